"""Truncating a log to an offset."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    EPOCHS,
    CountedFiles,
    PowerCutError,
    checkpoint,
    content,
    entry,
    log_sizes,
    make,
    names,
)
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format.errors import UsageError
from seglog_format.log.listing import SegmentFiles
from seglog_format.log.partition import open_partition
from seglog_format.log.segment import LogSegment
from seglog_format.recovery.apply import recover_partition
from seglog_format.recovery.truncation import plan_truncation, truncate_to
from seglog_format.storage.byte_source import MemoryBytes

if TYPE_CHECKING:
    from pathlib import Path

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"


pytestmark = pytest.mark.usefixtures("no_fsync")


def files() -> dict[str, bytes]:
    """Offsets 0 to 8 in batches of three, and a batch in a segment of its own."""
    data = b"".join(entry(base, 3, time=1000 + base, epoch=base) for base in (0, 3, 6))
    size = len(entry(0, 3))
    return {
        "0.log": data,
        "0.index": struct.pack(">iiii", 5, size, 8, 2 * size) + bytes(80),
        "0.timeindex": struct.pack(">qiqi", 1003, 5, 1006, 8) + bytes(120),
        "0.txnindex": struct.pack(">hqqqq", 0, 7, 0, 2, 3) + struct.pack(">hqqqq", 0, 7, 3, 5, 6),
        "9.log": entry(9, epoch=9),
        "9.index": b"",
        "9.snapshot": EMPTY_SNAPSHOT,
        "4.snapshot": EMPTY_SNAPSHOT,
        EPOCHS: b"0\n4\n0 0\n3 3\n6 6\n9 9\n",
    }


THREE = len(entry(0, 3))


@pytest.mark.req("SEG-TRN-001")
@pytest.mark.parametrize(
    ("offset", "sizes"),
    [
        (9, {0: 3 * THREE, 9: 0}),
        (8, {0: 2 * THREE}),
        (7, {0: 2 * THREE}),
        (6, {0: 2 * THREE}),
        (5, {0: THREE}),
        (3, {0: THREE}),
        (0, {0: 0}),
    ],
)
def test_what_stays(offset: int, sizes: dict[int, int], tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    plan = truncate_to(directory, offset).plan
    assert plan.offset == offset
    assert log_sizes(directory) == sizes


@pytest.mark.req("SEG-TRN-001")
def test_what_is_dropped_is_renamed(tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    assert truncate_to(directory, 7).plan.dropped == (9,)
    assert {"9.log.deleted", "9.index.deleted", "9.snapshot.deleted"} <= set(names(directory))


@pytest.mark.req("SEG-TRN-002")
@pytest.mark.parametrize("offset", [10, 11, 10**15])
def test_nothing_to_truncate(offset: int, tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    before = content(directory)
    plan = truncate_to(directory, offset).plan
    assert (plan.offset, plan.changes_log) == (10, False)
    assert content(directory) == before


@pytest.mark.req("SEG-TRN-002")
def test_below_the_first_segment(tmp_path: Path) -> None:
    directory = make(tmp_path, {"5.log": entry(5), "5.index": b"", "9.log": entry(9), EPOCHS: b"0\n1\n0 5\n"})
    plan = truncate_to(directory, 3).plan
    assert plan.restarts
    assert log_sizes(directory) == {3: 0}
    assert (directory / EPOCHS).read_bytes() == b"0\n0\n"
    with open_partition(directory) as log:
        assert (log.log_start_offset, log.log_end_offset) == (3, 3)


@pytest.mark.req("SEG-TRN-003", "SEG-TRN-006")
@pytest.mark.parametrize(("offset", "entries", "aborted"), [(9, 2, 2), (8, 1, 2), (6, 1, 2), (5, 0, 1), (2, 0, 0)])
def test_indexes_end_below_the_offset(offset: int, entries: int, aborted: int, tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    truncate_to(directory, offset)
    kept = {name.lstrip("0"): len(data) for name, data in content(directory).items()}
    if offset == 9:  # the segment before the cut is not touched
        assert kept[".index"] == 2 * 8 + 80
    else:
        assert (kept[".index"], kept[".timeindex"], kept[".txnindex"]) == (8 * entries, 12 * entries, 34 * aborted)


@pytest.mark.req("SEG-TRN-004", "SEG-TRN-007")
def test_snapshots_and_epochs_end_with_the_log(tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    truncate_to(directory, 4)
    assert "4.snapshot" in names(directory)
    assert (directory / EPOCHS).read_bytes() == b"0\n2\n0 0\n3 3\n"
    truncate_to(directory, 3)
    assert "4.snapshot" in names(directory), "the log ended below it already"
    truncate_to(directory, 2)
    assert "4.snapshot" not in names(directory)
    assert (directory / EPOCHS).read_bytes() == b"0\n1\n0 0\n"


@pytest.mark.req("SEG-TRN-007")
def test_an_epoch_that_begins_at_the_offset_goes(tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    truncate_to(directory, 3)
    assert (directory / EPOCHS).read_bytes() == b"0\n1\n0 0\n"


def offset_in(directory: Path, name: str) -> list[int]:
    return [int(line.split()[2]) for line in (directory.parent / name).read_text(encoding="utf-8").splitlines()[2:]]


@pytest.mark.req("SEG-TRN-005")
def test_checkpoints_are_lowered(tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    checkpoint(directory, RECOVERY_POINT, 9)
    checkpoint(directory, LOG_START, 4)
    truncate_to(directory, 7)
    assert (offset_in(directory, RECOVERY_POINT), offset_in(directory, LOG_START)) == ([7, 77], [4, 77])
    truncate_to(directory, 2)
    assert (offset_in(directory, RECOVERY_POINT), offset_in(directory, LOG_START)) == ([2, 77], [2, 77])


def test_a_checkpoint_that_cannot_be_read_is_left(tmp_path: Path) -> None:
    directory = make(tmp_path, files())
    (directory.parent / LOG_START).write_bytes(b"9\n")
    truncate_to(directory, 7)
    assert (directory.parent / LOG_START).read_bytes() == b"9\n"


@pytest.mark.parametrize("offset", [9, 7, 3, 0])
@pytest.mark.req("SEG-TRN-005")
def test_the_power_may_go_at_any_moment(offset: int, tmp_path: Path) -> None:
    """Repeated, truncation ends the same; and what is left in between, recovery takes for no lost log."""
    whole = built(tmp_path / "whole")
    truncate_to(whole, offset)
    for moment in range(1000):
        directory = built(tmp_path / str(moment))
        try:
            truncate_to(directory, offset, files=CountedFiles(moment))
        except PowerCutError:
            found = recover_partition(built_copy(directory, tmp_path / f"{moment}-copy"))
            assert not found.plan.restarts or found.plan.log_end_offset == offset
            truncate_to(directory, offset)
            assert content(directory) == content(whole)
            assert content(directory.parent) == content(whole.parent)
        else:
            return


def built(root: Path) -> Path:
    """With a log start offset above some of the offsets that the log is truncated to."""
    directory = make(root, files())
    checkpoint(directory, RECOVERY_POINT, 9)
    checkpoint(directory, LOG_START, 5)
    return directory


def built_copy(directory: Path, root: Path) -> Path:
    copy = make(root, content(directory))
    for name, data in content(directory.parent).items():
        (copy.parent / name).write_bytes(data)
    return copy


def test_below_the_first_segment_the_power_may_go_too(tmp_path: Path) -> None:
    for moment in range(1000):
        directory = make(tmp_path / str(moment), {"5.log": entry(5), "5.index": b"", "9.log": entry(9)})
        try:
            truncate_to(directory, 3, files=CountedFiles(moment))
        except PowerCutError:
            truncate_to(directory, 3)
            assert log_sizes(directory) == {3: 0}
        else:
            return


@pytest.mark.req("SEG-TRN-001")
@each_of("seed", range(20))
def test_a_power_cut_leaves_no_hole(seed: int, tmp_path: Path) -> None:
    """What was not synced survives at random: of two renames the second may be there without the first."""
    segments = {f"{base}.log": entry(base, 10) for base in range(0, 60, 10)}
    for moment in range(1, 100):
        directory = make(tmp_path / str(moment), segments)
        disk = SimulatedFiles(directory.parent, random.Random(f"{seed} {moment}"))  # noqa: S311 - chance that repeats
        disk.load(directory.parent)
        disk.cut_at = moment
        try:
            truncate_to(directory, 5, files=MirroredFiles(disk))
        except PowerCut:
            disk.lose_power()
            survived = tmp_path / f"{moment}-survived"
            disk.store(survived)
            bases = sorted(log_sizes(survived / directory.name))
            assert bases == list(range(0, 10 * len(bases), 10))
        else:
            return
    pytest.fail("there is no end")


@pytest.mark.parametrize(("names_of", "offset"), [({}, 0), ({"0.log": b""}, -1)])
def test_what_cannot_be_truncated(names_of: dict[str, bytes], offset: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        truncate_to(make(tmp_path, names_of), offset)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(0, 50), st.data())
@pytest.mark.req("SEG-TRN-001")
def test_exactly_the_entries_below_the_offset_stay(counts: list[int], offset: int, data: st.DataObject) -> None:
    """Against a list of entries: of the last segment that begins at or below the offset, those stay that end below."""
    rolls = data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    logs: dict[int, list[tuple[int, int]]] = {0: []}
    base = 0
    for count, rolled in zip(counts, rolls, strict=True):
        if rolled:
            logs[base] = []
        logs[max(logs)].append((base, base + count - 1))
        base += count
    plan = plan_truncation([in_memory(base, entries) for base, entries in logs.items()], offset)
    if offset >= base:
        assert not plan.changes_log
        return
    last = max(start for start in logs if start <= offset)
    kept = [pair for pair in logs[last] if pair[1] < offset]
    assert (plan.base_offset, plan.dropped) == (last, tuple(start for start in logs if start > offset))
    assert plan.position == sum(len(entry(first, end - first + 1)) for first, end in kept)


class InMemory(LogSegment):
    """A segment without a file."""

    content = MemoryBytes(b"")

    @property
    def source(self) -> MemoryBytes:
        return self.content


def in_memory(base: int, entries: list[tuple[int, int]]) -> LogSegment:
    from pathlib import Path

    segment = InMemory(SegmentFiles(base, Path("x")))
    segment.content = MemoryBytes(b"".join(entry(first, last - first + 1) for first, last in entries))
    return segment
