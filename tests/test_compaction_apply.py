"""Chapter 73: the files of segments that compaction replaces, and what a crash leaves of them."""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING

import pytest
from helpers.appends import marker
from helpers.batches import patched
from helpers.made_partitions import EMPTY_SNAPSHOT, CountedFiles, PowerCutError, checkpoint, content, make, names
from helpers.support import bundled, bundled_cases
from helpers.walking import each_of
from test_compaction_records import data, in_transaction, of_producer

from proofs.power.fault import Fault
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format.checks import verify
from seglog_format.cleaning.compaction_apply import compact_partition, prepare_compaction
from seglog_format.errors import FormatError, UsageError, WriteError
from seglog_format.log.directory import LogDirectory
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.log.listing import list_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.recovery.apply import recover_partition
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.files import Files

NOW = 500_000
PAIRED = LogConfig(cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000, segment_bytes=500)
CLEANER = "cleaner-offset-checkpoint"
ABORT = 0


pytestmark = [
    pytest.mark.usefixtures("no_fsync"),
    pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning"),  # segments here do not join
]


def log_directory(root: Path) -> Path:
    """Five segments to compact, of which two pairs fit into one each, and an active one."""
    keys = ("a", "b", "c", "a", "b", "d")
    logs = [data(10 * number, *((key, str(number)) for key in keys[: 6 - number])) for number in range(5)]
    logs[1] += in_transaction(15, ("a", "gone")) + patched(marker(ABORT), 0, "q", 16) + of_producer(17, ("p", "1"))
    files = {f"{10 * number}.log": log for number, log in enumerate(logs)}
    files |= {f"{10 * number}.index": b"" for number in range(5)}
    files |= {f"{10 * number}.snapshot": EMPTY_SNAPSHOT for number in range(1, 6)}
    directory = make(root, {**files, "50.log": data(50, ("a", "6"))})
    checkpoint(directory, "recovery-point-offset-checkpoint", 51)
    for path in directory.glob("*.log"):
        os.utime(path, ns=(int(path.stem) * 10**9,) * 2)
    return directory


def records(directory: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    with open_partition(directory) as log:
        return [(record.offset, record.key, record.value) for record in log.records()]


def newest(directory: Path) -> dict[bytes | None, tuple[int, bytes | None]]:
    """Return what a reader knows in the end; nothing of transactions that were aborted."""
    with open_partition(directory) as log:
        found = log.records(isolation="read_committed")
        return {record.key: (record.offset, record.value) for record in found}


def errors(directory: Path) -> list[str]:
    return [str(finding) for finding in verify(directory) if finding.severity.value == "error"]


@pytest.mark.req("SEG-CMP-022", "SEG-CMP-024")
def test_new_files_take_the_place_of_old_ones(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    before, known = content(directory), newest(directory)
    done = compact_partition(directory, PAIRED, now_ms=NOW)
    groups = [[one.base_offset for one in group] for group in done.plan.groups]
    assert groups == [[0, 10], [20, 30, 40]]
    plain = [name for name in names(directory) if not name.endswith(".deleted")]
    second = ["20.index", "20.log", "20.snapshot", "20.timeindex", "50.log", "50.snapshot"]
    assert plain == [".index", ".log", ".timeindex", ".txnindex", *second]
    gone = {
        name.removesuffix(".deleted"): data for name, data in content(directory).items() if name.endswith(".deleted")
    }
    kept = {f"{base:020d}.snapshot" for base in (20, 50)} | {f"{50:020d}.log"}
    assert gone == {name: data for name, data in before.items() if name not in kept}
    assert newest(directory) == known
    assert errors(directory) == []


@pytest.mark.req("SEG-CMP-022")
def test_the_steps_of_a_replacement(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    done = compact_partition(directory, PAIRED, now_ms=NOW)
    steps = [(step.path.name.lstrip("0"), step.text.lstrip("0123456789 ")) for step in done.steps]
    start = next(number for number, step in enumerate(steps) if step[0] == "20.log.cleaned")
    assert [step[0] for step in steps[start : start + 8]] == [
        *("20.log.cleaned", "20.index.cleaned", "20.timeindex.cleaned", "orders-0"),
        *("20.log.cleaned", "20.index.cleaned", "20.timeindex.cleaned", "orders-0"),
    ]
    assert [step[0] for step in steps[start + 8 :]] == [
        *("20.index", "20.log", "30.snapshot", "30.index", "30.log", "40.snapshot", "40.index", "40.log", "orders-0"),
        *("20.log.swap", "20.index.swap", "20.timeindex.swap", "orders-0", CLEANER),
    ]


@pytest.mark.req("SEG-CMP-030")
def test_a_new_segment_is_as_old_as_the_last_of_its_sources(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    compact_partition(directory, PAIRED, now_ms=NOW)
    times = [(directory / f"{base:020d}.log").stat().st_mtime_ns // 10**9 for base in (0, 20, 50)]
    assert times == [10, 40, 50]


@pytest.mark.req("SEG-CMP-023")
def test_the_next_pass_goes_on_where_this_one_ended(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    checkpoint(directory, CLEANER, 0)
    compact_partition(directory, PAIRED, now_ms=NOW)
    assert (directory.parent / CLEANER).read_text(encoding="utf-8") == "0\n2\norders 1 77\norders 0 50\n"
    before = content(directory)
    assert compact_partition(directory, PAIRED, now_ms=NOW).steps == ()
    assert content(directory) == before


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    before = content(directory)
    plan = prepare_compaction(directory, PAIRED, now_ms=NOW)
    assert [fate.target for fate in plan.fates] == [0, 0, 20, 20, 20, 50]
    assert len(plan.explanation) == 6
    assert content(directory) == before


@pytest.mark.req("SEG-CMP-003")
@pytest.mark.parametrize(("high_watermark", "expected"), [(51, 50), (20, 20), (17, 10), (16, 10), (10, 10), (9, 0)])
def test_the_high_watermark_is_a_limit_and_so_is_a_transaction_that_is_open_there(
    high_watermark: int, expected: int, tmp_path: Path
) -> None:
    directory = log_directory(tmp_path)
    checkpoint(directory, "replication-offset-checkpoint", high_watermark)
    plan = prepare_compaction(directory, LogConfig(segment_bytes=100), now_ms=NOW)
    assert plan.first_uncleanable_offset == expected


@pytest.mark.req("SEG-CMP-003")
@pytest.mark.parametrize(("high_watermark", "expected"), [(11, 0), (12, 10), (21, 20)])
def test_a_transaction_is_open_until_its_marker_is_replicated(
    high_watermark: int, expected: int, tmp_path: Path
) -> None:
    end = patched(marker(ABORT), 0, "q", 11)
    logs = {
        "0.log": in_transaction(0, ("a", "1")),
        "10.log": data(10, ("a", "2")) + end,
        "20.log": data(20, ("b", "1")),
    }
    directory = make(tmp_path, logs)
    checkpoint(directory, "replication-offset-checkpoint", high_watermark)
    assert prepare_compaction(directory, PAIRED, now_ms=NOW).first_uncleanable_offset == expected


# What cannot be compacted


def test_damage_comes_first(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    path = directory / f"{20:020d}.log"
    path.write_bytes(patched(path.read_bytes(), 60, "b", 9, seal=False))
    before = content(directory)
    with pytest.raises(FormatError, match="SEG-BAT-003"):
        compact_partition(directory, PAIRED, now_ms=NOW)
    assert content(directory) == before


@pytest.mark.parametrize("tail", [b"\x00" * 5, b"\x00" * 40])
def test_so_do_bytes_behind_the_last_entry(tail: bytes, tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    path = directory / f"{20:020d}.log"
    path.write_bytes(path.read_bytes() + tail)
    with pytest.raises(FormatError, match="SEG-LOG"):
        compact_partition(directory, PAIRED, now_ms=NOW)


@pytest.mark.parametrize("name", ["20.log.swap", "20.log.cleaned"])
def test_so_does_what_is_left_of_a_replacement(name: str, tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    (directory / f"{20:020d}{name[2:]}").write_bytes(b"")
    with pytest.raises(UsageError, match="recover the directory first"):
        compact_partition(directory, PAIRED, now_ms=NOW)


def test_a_directory_without_segments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no segment"):
        compact_partition(make(tmp_path, {}), PAIRED, now_ms=NOW)


@pytest.mark.req("SEG-LDR-007")
def test_nothing_is_written_while_somebody_holds_the_lock(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    lock = DirectoryLock(directory.parent)
    try:
        before = content(directory)
        with pytest.raises(UsageError, match="in use"):
            compact_partition(directory, PAIRED, now_ms=NOW)
        assert content(directory) == before
        held = LogDirectory(list_log_directory(directory.parent))
        assert compact_partition(directory, PAIRED, now_ms=NOW, directory=held, holds_lock=True).steps
    finally:
        lock.close()


def test_a_change_that_does_not_work(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    before = records(directory)
    disk = SimulatedFiles(directory.parent, random.Random(0))  # noqa: S311 - chance that repeats
    disk.load(directory.parent)
    disk.faults = [Fault("write", errno.ENOSPC, ending=".log.cleaned")]
    with pytest.raises(WriteError, match="compaction stopped"):
        compact_partition(directory, PAIRED, now_ms=NOW, files=MirroredFiles(disk))
    assert records(directory) == before
    recover_partition(directory)
    assert records(directory) == before
    assert not [name for name in names(directory) if name.endswith(".cleaned")]


# Crashes


def finished(directory: Path, before: list[tuple[int, bytes | None, bytes | None]], known: object) -> None:
    """Whatever is left is the log before or after the replacement of each group, and another pass ends it."""
    recover_partition(directory)
    found = records(directory)
    assert set(found) <= set(before)
    assert newest(directory) == known
    assert errors(directory) == []
    settled = content(directory)
    assert recover_partition(directory).steps == ()
    assert content(directory) == settled
    compact_partition(directory, PAIRED, now_ms=NOW)
    assert newest(directory) == known
    assert errors(directory) == []


def outcome(root: Path) -> tuple[list[tuple[int, bytes | None, bytes | None]], object, list[list[bytes]]]:
    """Return records before, what readers know, and the logs that may be there: of each segment the old or the new."""
    directory = log_directory(root)
    before, known = records(directory), newest(directory)
    old = {path.name: path.read_bytes() for path in directory.glob("*.log")}
    compact_partition(directory, PAIRED, now_ms=NOW)
    new = {path.name: path.read_bytes() for path in directory.glob("*.log")}
    return before, known, [[data[name] for data in (old, new) if name in data] for name in sorted(old)]


def logs_are_old_or_new(directory: Path, allowed: list[list[bytes]]) -> None:
    every = {data for pair in allowed for data in pair}
    assert all(path.read_bytes() in every for path in directory.glob("*.log"))


@pytest.mark.req("SEG-CMP-022")
def test_the_process_dies_at_every_step(tmp_path: Path) -> None:
    before, known, allowed = outcome(tmp_path / "whole")
    for until in range(1, 200):
        directory = log_directory(tmp_path / str(until))
        files: Files = CountedFiles(until)
        try:
            compact_partition(directory, PAIRED, now_ms=NOW, files=files)
        except PowerCutError:
            logs_are_old_or_new(directory, allowed)
            finished(directory, before, known)
        else:
            assert until > 60
            return
    pytest.fail("there is no end")


@pytest.mark.req("SEG-CMP-022")
def test_a_power_cut_at_every_other_step(tmp_path: Path) -> None:
    """What was not synced survives at random."""
    before, known, allowed = outcome(tmp_path / "whole")
    for until in range(1, 200, 2):
        root = tmp_path / str(until)
        logs = log_directory(root).parent
        disk = SimulatedFiles(logs, random.Random(until))  # noqa: S311 - chance that repeats
        disk.load(logs)
        disk.cut_at = until
        try:
            compact_partition(logs / "orders-0", PAIRED, now_ms=NOW, files=MirroredFiles(disk))
        except PowerCut:
            disk.lose_power()
            survived = root / "survived"
            disk.store(survived)
            logs_are_old_or_new(survived / "orders-0", allowed)
            finished(survived / "orders-0", before, known)
        else:
            return
    pytest.fail("there is no end")


# What brokers wrote


@each_of("name", [name for name in bundled_cases() if "compact" in name])
def test_logs_of_brokers_are_compacted_further(name: str, tmp_path: Path) -> None:
    """Of every version, mixed magics and transactions included: readers end up with the same, and nothing is wrong."""
    (source,) = (path for path in bundled(name).iterdir() if path.is_dir())
    directory = tmp_path / source.name
    directory.mkdir()
    for path in source.iterdir():
        if path.suffix != ".deleted":
            (directory / path.name).write_bytes(path.read_bytes())
    known, wrong = newest(directory), errors(directory)
    settings = LogConfig(cleanup_policy=frozenset({"compact"}), delete_retention_ms=10**15)
    assert compact_partition(directory, settings, now_ms=NOW).plan.groups
    assert newest(directory) == known
    assert errors(directory) == wrong
    assert compact_partition(directory, settings, now_ms=NOW).steps == ()
