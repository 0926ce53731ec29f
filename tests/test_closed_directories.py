"""Tools that change a log directory that was closed: whoever opens it in the middle of that does not trust it."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, marker, produced, transactional

from seglog_format.cleaning.compaction_apply import compact_partition
from seglog_format.cleaning.deletion import retain_partition
from seglog_format.errors import SeglogError, WriteError
from seglog_format.recovery.apply import recover_partition
from seglog_format.recovery.truncation import truncate_to
from seglog_format.state.config import COMPACT, LogConfig
from seglog_format.state.producer_state import Origin
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LocalFiles
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.storage.files import LocalHandle

CLEAN = ".kafka_cleanshutdown"
NAMES = ("truncate", "retain", "compact", "recover")


class Failing(LocalFiles):
    """A disk on which the last step of each kind of work fails."""

    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails
        self.steps: list[str] = []

    def open_append(self, path: Path) -> LocalHandle:
        self.step("open", path)
        return super().open_append(path)

    def rename(self, path: Path, target: Path) -> None:
        self.step("rename", target)
        super().rename(path, target)

    def remove(self, path: Path) -> None:
        self.steps.append(f"remove {path.name}")
        super().remove(path)

    def fsync_directory(self, path: Path) -> None:
        self.steps.append(f"sync {path.name}")
        super().fsync_directory(path)

    def step(self, what: str, path: Path) -> None:
        if self.fails and path.suffix in {".log", ".deleted"}:
            raise OSError(errno.EIO, "the power is gone")
        self.steps.append(f"{what} {path.name}")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Provide a log of three segments, with an aborted transaction in the last one, closed."""
    root = tmp_path / "logs"
    config = LogConfig(segment_bytes=10_000)
    with LogWriter(root, config, environment=Environment(clock=Clock())) as logs:
        writer = logs.open("t", 0)
        for _ in range(2):
            writer.append(produced())
            writer.roll()
        writer.append(transactional(0))
        writer.append(marker(0), origin=Origin.COORDINATOR)
        writer.append(produced())
    (root / CLEAN).write_text('{"version":0,"brokerEpoch":77}', encoding="utf-8")
    return root / "t-0"


def work(name: str, path: Path, files: Failing) -> Callable[[], object]:
    compacted = LogConfig(cleanup_policy=frozenset({COMPACT}))
    return {
        "truncate": partial(truncate_to, path, 3, files=files),
        "retain": partial(retain_partition, path, LogConfig(retention_bytes=1), now_ms=3000, files=files),
        "compact": partial(compact_partition, path, compacted, now_ms=3000, files=files),
        "recover": partial(recover_partition, path, files=files),
    }[name]


def prepare(name: str, path: Path) -> None:
    """Leave something to recover in a directory that counts as closed."""
    if name == "recover":
        (path / "00000000000000000000.log").rename(path / "00000000000000000000.log.swap")


@pytest.mark.req("SEG-FLS-010")
@pytest.mark.parametrize("name", NAMES)
def test_the_clean_shutdown_file_is_away_while_a_log_changes(directory: Path, name: str) -> None:
    prepare(name, directory)
    with pytest.raises(WriteError, match="the power is gone"):
        work(name, directory, Failing())()
    assert not (directory.parent / CLEAN).exists()


@pytest.mark.req("SEG-FLS-010")
@pytest.mark.parametrize("name", NAMES)
def test_it_is_there_again_when_all_is_done(directory: Path, name: str) -> None:
    prepare(name, directory)
    files = Failing(fails=False)
    work(name, directory, files)()
    assert files.steps[:2] == [f"remove {CLEAN}", "sync logs"]
    assert files.steps[-3:] == ["sync t-0", f"rename {CLEAN}", "sync logs"]
    assert (directory.parent / CLEAN).read_text(encoding="utf-8") == '{"version":0,"brokerEpoch":77}'


@pytest.mark.parametrize("name", NAMES)
def test_it_is_not_made_where_it_was_not(directory: Path, name: str) -> None:
    prepare(name, directory)
    (directory.parent / CLEAN).unlink()
    work(name, directory, Failing(fails=False))()
    assert not (directory.parent / CLEAN).exists()


@pytest.mark.req("SEG-FLS-010")
def test_what_was_aborted_stays_so_when_a_truncation_does_not_end(directory: Path) -> None:
    """Its entry in the transaction index goes before the log is cut; only a scan brings it back."""
    with pytest.raises(WriteError):
        truncate_to(directory, 3, files=Failing())
    with LogWriter(directory.parent) as logs:
        assert logs.open("t", 0).log_end_offset == 5
    assert len((directory / "00000000000000000002.txnindex").read_bytes()) == 34


def stop_waiting(_signal: int, _frame: object) -> None:
    pytest.fail("it waits for ever")


@pytest.fixture
def alarm() -> Iterator[None]:
    """Fail after some seconds: opening a FIFO blocks for ever."""
    before = signal.signal(signal.SIGALRM, stop_waiting)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


ROOT_FILES = (CLEAN, "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
PARTITION_FILES = ("leader-epoch-checkpoint", "partition.metadata", "00000000000000000004.snapshot")
INDEXES = tuple(f"00000000000000000002.{kind}" for kind in ("index", "timeindex", "txnindex", "log"))


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("file", [*ROOT_FILES, *PARTITION_FILES, *INDEXES])
@pytest.mark.parametrize("name", [*NAMES, "open"])
def test_a_fifo_in_the_place_of_a_file_blocks_nothing(directory: Path, name: str, file: str) -> None:
    prepare(name, directory)
    path = directory.parent / file if file in ROOT_FILES else directory / file
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with suppress(SeglogError, OSError):
        if name == "open":
            with LogWriter(directory.parent) as logs:
                logs.open("t", 0)
        else:
            work(name, directory, Failing(fails=False))()
