"""A sample of the power cuts and of the killed writers that proofs do in great numbers."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, produced

from proofs import harness, power_cuts
from proofs.power import kill_writer
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.promise import Appended, BrokenPromiseError, Compacted, Promise
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format.state.config import LogConfig
from seglog_format.storage.environment import Environment
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from pathlib import Path

HISTORIES = 5


def test_the_next_process_finds_what_was_acknowledged_and_nothing_else() -> None:
    endings = power_cuts.run_all(1, range(HISTORIES))
    failed = [f"{ending.problem}: {power_cuts.command(1, ending.number)}" for ending in endings if ending.problem]
    assert failed == []
    counts = sum((ending.counts for ending in endings), Counter())
    for what in ("cut while opening", "cut while writing", "cut while recovering", "recovered logs written to"):
        assert counts[what] > 0, what
    assert counts["cuts that leave a clean-shutdown file"] > 0


def test_a_history_repeats_exactly() -> None:
    first, second = (power_cuts.run_all(5, [3, 5]) for _ in range(2))
    assert first == second


# What a history is held against


APPENDED = (Appended(b"one", 0, 2), Appended(b"four", 5, 6))


@pytest.mark.parametrize(
    ("found", "acknowledged", "problem"),
    [
        (b"one", 6, "at offset 5 is missing, but everything below 6"),
        (b"", 1, "at offset 0 is missing, but everything below 1"),
        (b"four", 0, "at offset 0 is something else"),
        (b"onefive", 0, "at offset 5 is something else"),
        (b"onefo", 0, "at offset 5 is something else"),
        (b"onefour\0", 0, "1 bytes more"),
    ],
)
def test_a_promise_is_broken(found: bytes, acknowledged: int, problem: str) -> None:
    with pytest.raises(BrokenPromiseError, match=problem):
        Promise(APPENDED, acknowledged).kept(found)


def test_a_promise_is_kept() -> None:
    one, four = APPENDED
    assert Promise(APPENDED, 6).kept(b"onefour") == [one, four]
    assert Promise(APPENDED, 5).kept(b"one") == [one]  # offsets 2 to 4 were never given out
    assert Promise(APPENDED, 0).kept(b"") == []
    assert Promise(APPENDED, 6).kept(b"onefour\0\0", zeros_may_follow=True) == [one, four]
    assert Promise(APPENDED, 6, start=2).kept(b"four") == [four]
    assert Promise(APPENDED, 6, start=2).kept(b"onefour") == [one, four]  # it may be gone; it need not
    assert Promise(APPENDED, 6, start=6).kept(b"") == []


def test_a_group_is_as_it_was_or_as_it_is_to_be() -> None:
    group = Compacted(0, 6, (Appended(b"5", 5, 6),))
    tail = Appended(b"end", 6, 7)
    promise = Promise((*APPENDED, tail), 7, groups=(group,))
    assert promise.kept(b"onefourend") == [*APPENDED, tail]
    assert promise.kept(b"5end") == [*group.batches, tail]
    for found in (b"one5end", b"oneend", b"5"):
        with pytest.raises(BrokenPromiseError):
            promise.kept(found)


def test_histories_with_compaction() -> None:
    endings = power_cuts.run_all(1, [2], compacts=True)
    assert [ending.problem for ending in endings if ending.problem] == []
    assert sum(ending.counts["cut while compacting"] for ending in endings) > 0


def test_a_history_notices_a_writer_that_does_not_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedFiles, "sync_node", lambda *_: None)
    problems = [ending.problem for ending in power_cuts.run_all(1, range(8))]
    assert any("acknowledged" in problem for problem in problems)


class Unlucky(random.Random):
    """A disk that keeps nothing but what it has to."""

    def choice(self, _: object) -> str:  # type: ignore[override]
        return "nothing"

    def random(self) -> float:
        return 0.9


def dies_early(files: SimulatedFiles, config: LogConfig, operations: int) -> None:
    """Open a log in a process that ends after so many operations on files; the power stays."""
    files.cut_at = files.step_count + operations
    with pytest.raises(PowerCut):
        open_log(files, config)
    files.cut_at = None


def open_log(files: SimulatedFiles, config: LogConfig) -> PartitionWriter:
    environment = Environment(files=MirroredFiles(files), clock=Clock(), locks_directory=False)
    return PartitionWriter(files.root / "t-0", config, environment=environment)


@pytest.mark.req("SEG-FLS-012")
def test_names_that_a_dead_process_made_are_on_the_disk_before_anything_is_acknowledged(tmp_path: Path) -> None:
    files = SimulatedFiles(tmp_path, Unlucky())
    dies_early(files, LogConfig(), 2)
    (tmp_path / "t-0").mkdir(exist_ok=True)  # the process knew nothing of it any more, but others see it
    writer = open_log(files, LogConfig())
    writer.append(produced())
    assert writer.flush() == 1
    files.lose_power()
    assert len(files.read(tmp_path / "t-0" / "00000000000000000000.log")) == len(produced())


@pytest.mark.req("SEG-FLS-016", "SEG-ROL-018")
def test_what_a_clean_end_adds_and_cuts_is_on_the_disk(tmp_path: Path) -> None:
    files = SimulatedFiles(tmp_path, Unlucky())
    writer = open_log(files, LogConfig(preallocate=True))
    writer.append(produced(1000))
    writer.close()
    files.lose_power()
    segment = tmp_path / "t-0" / f"{0:020d}"
    sizes = [len(files.read(segment.with_suffix(suffix))) for suffix in (".log", ".index", ".timeindex")]
    assert sizes == [len(produced(1000)), 0, 12]


@pytest.mark.req("SEG-FLS-006")
def test_a_clean_shutdown_file_that_a_dead_process_removed_does_not_come_back(tmp_path: Path) -> None:
    files = SimulatedFiles(tmp_path, Unlucky())
    open_log(files, LogConfig()).close()
    clean = tmp_path / ".kafka_cleanshutdown"
    assert files.exists(clean)
    dies_early(files, LogConfig(), 1)
    clean.unlink()
    open_log(files, LogConfig()).append(produced())
    files.lose_power()
    assert not files.exists(clean)


@pytest.mark.req("SEG-FLS-009")
def test_a_segment_is_on_the_disk_before_the_next_one_is_written(tmp_path: Path) -> None:
    """Entries lost off the end of a segment that others follow are a gap that nobody notices."""
    files = SimulatedFiles(tmp_path, Unlucky())
    environment = Environment(files=files, clock=Clock(), locks_directory=False)
    writer = PartitionWriter(tmp_path / "t-0", LogConfig(segment_bytes=160), environment=environment)
    sealed = []

    def look() -> None:
        if files.exists(tmp_path / "t-0" / "00000000000000000002.log"):
            sealed.append(bytes(files._file(tmp_path / "t-0" / "00000000000000000000.log").durable))

    files.before_sync = look
    for _ in range(3):
        writer.append(produced())
    writer.flush()
    assert {len(data) for data in sealed} == {2 * len(produced())}


def test_killed_writers_keep_their_word(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert harness.main(["kills", "--runs", "3", "--seed", "9", "--report", str(path)]) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["shows"] == kill_writer.CLAIM
    assert report["kept"] >= report["acknowledged"] > 0
