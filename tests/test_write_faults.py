"""Full disks and failing operations: a clear error, nothing taken any more, and a directory that can be recovered."""

from __future__ import annotations

import errno
import random
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, produced
from helpers.walking import each_of

from proofs.power.fault import Fault
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import SimulatedFiles
from seglog_format import LogConfig, LogWriter, PartitionWriter, verify
from seglog_format.codec.build import with_offset
from seglog_format.errors import UsageError, WriteError
from seglog_format.recovery.apply import recover_partition
from seglog_format.recovery.truncation import truncate_to
from seglog_format.requirements import Severity
from seglog_format.storage.environment import Environment

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = LogConfig(segment_bytes=300, segment_index_bytes=60, index_interval_bytes=0)
APPENDS = 40
FLUSH_EVERY = 5

FAULTS = [
    pytest.param("write", errno.ENOSPC, ".log", id="log"),
    pytest.param("write", errno.EIO, ".index", id="offset index"),
    pytest.param("write", errno.EIO, ".timeindex", id="time index"),
    pytest.param("write", errno.ENOSPC, ".tmp", id="checkpoint"),
    pytest.param("fsync", errno.EIO, ".log", id="sync of a log"),
    pytest.param("fsync", errno.EIO, ".index", id="sync of an index"),
    pytest.param("fsync_directory", errno.EIO, "", id="sync of a directory"),
    pytest.param("create", errno.EMFILE, ".log", id="new log"),
    pytest.param("create", errno.ENOSPC, ".index", id="new index"),
    pytest.param("truncate", errno.ENOSPC, ".index", id="preallocation"),
    pytest.param("rename", errno.EIO, ".tmp", id="rename"),
]


def a_disk(tmp_path: Path, seed: int = 0) -> SimulatedFiles:
    return SimulatedFiles(tmp_path / "logs", random.Random(seed))  # noqa: S311 - chance that repeats


def open_writer(files: SimulatedFiles) -> PartitionWriter:
    environment = Environment(files=files, clock=Clock(), locks_directory=False)
    return PartitionWriter(files.root / "t-0", CONFIG, environment=environment)


def write_until_failure(files: SimulatedFiles) -> tuple[int, WriteError | None]:
    """Return how many offsets were acknowledged, and the error that ended it."""
    acknowledged = 0
    try:
        writer = open_writer(files)
        for number in range(APPENDS):
            if number % 10 == 0:
                writer.become_leader(number // 10)
            writer.append(produced())
            if number % FLUSH_EVERY == 0:
                acknowledged = writer.flush()
    except WriteError as error:
        return acknowledged, error
    return acknowledged, None


def check_recovered(files: SimulatedFiles, acknowledged: int) -> None:
    """Recovered, the log is the beginning of what was appended, as far as was acknowledged or further."""
    shutil.rmtree(files.root, ignore_errors=True)
    files.store(files.root)
    directory = files.root / "t-0"
    if not directory.is_dir():
        assert acknowledged == 0
        return
    recover_partition(directory)
    found = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    expected = b"".join(with_offset(produced(), number, number // 10) for number in range(APPENDS))
    assert expected.startswith(found)
    assert len(found) >= acknowledged * len(produced())
    assert [finding for finding in verify(files.root) if finding.severity is Severity.ERROR] == []
    assert recover_partition(directory).steps == ()


@pytest.mark.parametrize("loses_power", [False, True], ids=["power stays", "power goes"])
@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize(("operation", "number", "ending"), FAULTS)
@pytest.mark.req("SEG-FLS-008")
def test_an_operation_fails(
    operation: str, number: int, ending: str, after: int, *, loses_power: bool, tmp_path: Path
) -> None:
    files = a_disk(tmp_path, after)
    files.faults.append(Fault(operation, number, ending, after=after, keep=30))
    acknowledged, error = write_until_failure(files)
    assert error is not None
    assert isinstance(error.__cause__, OSError)
    assert error.__cause__.errno == number
    assert str(files.root) in str(error)
    if loses_power:
        files.lose_power()
    check_recovered(files, acknowledged)


OPERATIONS = 150
"""About so many does it take to write everything."""


@pytest.mark.req("SEG-FLS-008")
@each_of("after", range(0, OPERATIONS, 6))
def test_whatever_operation_fails(after: int, tmp_path: Path) -> None:
    files = a_disk(tmp_path, after)
    files.faults.append(Fault("*", errno.EIO, after=after, keep=13))
    acknowledged, error = write_until_failure(files)
    assert error is not None
    assert "Input/output error" in str(error)
    files.lose_power()
    check_recovered(files, acknowledged)


@pytest.mark.parametrize("after", range(12))
def test_truncation_goes_on_after_a_failure(after: int, tmp_path: Path) -> None:
    files = a_disk(tmp_path)
    with open_writer(files) as writer:
        for _ in range(12):
            writer.append(produced())
    files.store(files.root)
    files.faults.append(Fault("*", errno.ENOSPC, after=after, keep=3))
    with pytest.raises(WriteError, match="No space left"):
        truncate_to(files.root / "t-0", 2, files=MirroredFiles(files))
    shutil.rmtree(files.root)
    files.store(files.root)
    truncate_to(files.root / "t-0", 2)
    check_same(files, 2)


def check_same(files: SimulatedFiles, count: int) -> None:
    """So many appends are left, and nothing is wrong with them."""
    directory = files.root / "t-0"
    found = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    assert found == b"".join(with_offset(produced(), number, 0) for number in range(count))
    assert [finding for finding in verify(files.root) if finding.severity is Severity.ERROR] == []


@each_of("capacity", range(0, 1200, 97))
def test_the_disk_runs_full(capacity: int, tmp_path: Path) -> None:
    files = a_disk(tmp_path)
    files.capacity = capacity
    acknowledged, error = write_until_failure(files)
    assert "No space left" in str(error)
    check_recovered(files, acknowledged)


@pytest.mark.req("SEG-FLS-008")
def test_nothing_is_taken_after_a_failed_sync(tmp_path: Path) -> None:
    files = a_disk(tmp_path)
    writer = open_writer(files)
    writer.append(produced())
    assert writer.flush() == 1
    writer.append(produced())
    files.faults.append(Fault("fsync", errno.EIO, ".log"))
    with pytest.raises(WriteError, match="Input/output error; nothing more is written"):
        writer.flush()
    for act in (writer.flush, writer.roll, lambda: writer.append(produced())):
        with pytest.raises(WriteError):
            act()
    assert (writer.recovery_point, writer.has_failed) == (1, True)
    writer.close()
    assert not files.exists(files.root / ".kafka_cleanshutdown")
    with pytest.raises(UsageError, match="recover it first"):
        open_writer(files)


def test_a_directory_that_is_read_only(tmp_path: Path) -> None:
    files = a_disk(tmp_path)
    files.read_only.add(files.root)
    with pytest.raises(WriteError, match="Permission denied"):
        open_writer(files)
    files.read_only.clear()
    writer = open_writer(files)
    writer.append(produced())
    assert writer.flush() == 1
    files.read_only.add(files.root / "t-0")
    with pytest.raises(WriteError, match="Permission denied"):
        writer.roll()
    check_recovered(files, 1)


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    files = a_disk(tmp_path)
    logs = LogWriter(files.root, CONFIG, environment=Environment(files=files, clock=Clock(), locks_directory=False))
    logs.open("t", 0).append(produced(), acks="flushed")
    logs.checkpoint()
    path = files.root / "recovery-point-offset-checkpoint"
    before = files.read(path)
    logs.writers[0].append(produced(), acks="flushed")
    files.faults.append(Fault("rename"))
    with pytest.raises(WriteError, match="Input/output"):
        logs.checkpoint()
    assert files.read(path) == before == b"0\n1\nt 0 1\n"
    logs.checkpoint()
    assert files.read(path) == b"0\n1\nt 0 2\n"


@pytest.mark.parametrize("operation", ["write", "fsync", "rename", "truncate", "remove", "fsync_directory"])
@pytest.mark.parametrize("after", [0, 2])
def test_recovery_goes_on_after_a_failure(operation: str, after: int, tmp_path: Path) -> None:
    files = a_disk(tmp_path, 3)
    files.faults.append(Fault("fsync", errno.EIO, ".log", after=9))
    acknowledged, error = write_until_failure(files)
    assert error is not None
    files.lose_power()
    files.store(files.root)
    disk = a_disk(tmp_path, 4)
    disk.load(files.root)
    disk.faults.append(Fault(operation, errno.EIO, after=after, keep=7))
    with suppress(WriteError):
        recover_partition(files.root / "t-0", files=MirroredFiles(disk))
    disk.lose_power()
    check_recovered(disk, acknowledged)
