"""Chapter 60 on logs written out by hand: bounds, gaps, damage, special timestamps, log start offsets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import astuple
from typing import TYPE_CHECKING

import pytest
from helpers.batches import patched, sealed
from helpers.full_scan import expected_logs
from helpers.index_files import example, examples, table
from helpers.lookup_checks import check_positions, check_reads, check_timestamps, until_error
from helpers.made_logs import (
    Entry,
    MadeLog,
    checkpoint,
    data_batch,
    marker,
    offset_index,
    plain_message,
    time_index,
    wrapped_messages,
)
from helpers.support import authentic, authentic_expected
from helpers.walking import each_of

from seglog_format import Engine, OffsetSpec, open_log_directory, open_partition
from seglog_format.errors import (
    CorruptRecordError,
    FormatError,
    MissingOffsetsWarning,
    OffsetOutOfRangeError,
    UsageError,
)
from seglog_format.log.gaps import Gap, GapKind
from seglog_format.log.listing import list_partition
from seglog_format.types import AbortedTxn, Partition, TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def offsets(records: object) -> list[int]:
    return [record.offset for record in records]


THREE = {
    0: [data_batch(0, [10, 11]), data_batch(2, [12, 13])],
    6: [data_batch(6, [5]), data_batch(9, [20, 20])],
    11: [],
}
"""Offsets 4, 5, 7 and 8 are missing, and the last segment is empty."""


@pytest.mark.req("SEG-LKP-001", "SEG-LKP-002", "SEG-LKP-003", "SEG-LKP-005", "SEG-LKP-008", "SEG-LKP-015")
def test_gaps_within_and_between_segments(tmp_path: Path) -> None:
    made = MadeLog(THREE)
    log = made.full_scan()
    for trust_indexes in (False, True):
        with open_partition(made.write(tmp_path / str(trust_indexes)), trust_indexes=trust_indexes) as partition:
            assert partition.log_end_offset == 11
            check_positions(log, partition, list(range(-1, 14)))
            check_reads(log, partition, list(range(-1, 14)))
            check_timestamps(log, partition, log.timestamps())


@pytest.mark.req("SEG-LKP-001")
def test_segment_for_an_offset(tmp_path: Path) -> None:
    with open_partition(MadeLog(THREE | {3: []}).write(tmp_path)) as partition:
        found = {offset: partition.segment_for(offset).base_offset for offset in (0, 2, 3, 5, 6, 10, 11, 999)}
        assert found == {0: 0, 2: 0, 3: 3, 5: 3, 6: 6, 10: 6, 11: 11, 999: 11}
        with pytest.raises(OffsetOutOfRangeError):
            partition.segment_for(-1)


@pytest.mark.req("SEG-LKP-006", "SEG-LKP-007")
def test_a_read_is_bounded_by_whole_entries_of_one_segment(tmp_path: Path) -> None:
    entries = [data_batch(0, [1, 2]), plain_message(2, 3, 1), wrapped_messages(3, [4, 5, 6]), data_batch(6, [7])]
    sizes = [len(entry.data) for entry in entries]
    ends = [sum(sizes[: number + 1]) for number in range(4)]
    made = MadeLog({0: entries, 7: [data_batch(7, [8])]})
    with open_partition(made.write(tmp_path)) as partition:
        for offset, skipped in ((0, 0), (1, 0), (2, 1), (4, 2)):
            start = ends[skipped - 1] if skipped else 0
            for border in (0, *(end - start for end in ends[skipped:]), 10**6):
                for size in range(max(border - 2, 0), border + 3):
                    whole = sum(end - start <= size for end in ends[skipped:])
                    assert len(partition.read(offset, size, min_one_message=False).batches) == whole
                    fetch = partition.read(offset, size)
                    assert len(fetch.batches) == max(whole, 1)
                    assert fetch.batches[0].position == start
                    assert fetch.next_offset == [2, 3, 6, 7][skipped + max(whole, 1) - 1]
        assert partition.read(0, 10, min_one_message=False).next_offset == 0


@pytest.mark.req("SEG-LKP-006", "SEG-LKP-007")
@pytest.mark.parametrize("name", ["4.3.0/segs", "2.8.2/mixed-segs"])
def test_reads_around_the_borders_of_broker_batches(name: str) -> None:
    ((directory, log),) = expected_logs(authentic_expected(name)).items()
    with open_partition(authentic(name) / directory) as partition:
        for segment in log.segments[:3]:
            size = 0
            for number, batch in enumerate(segment.batches):
                size += batch.size
                counts = [
                    len(partition.read(segment.base_offset, size + more, min_one_message=False).batches)
                    for more in (-1, 0, 1)
                ]
                assert counts == [number, number + 1, number + 1]


@pytest.mark.req("SEG-LKP-003", "SEG-CTL-009")
def test_records_of_a_range(tmp_path: Path) -> None:
    made = MadeLog(
        {0: [data_batch(0, [1] * 3), marker(3, 7, 0)], 4: [data_batch(4, [1, 1], deltas=[0, 4]), *THREE[6][1:]]}
    )
    with open_partition(made.write(tmp_path)) as partition:
        assert offsets(partition.records()) == [0, 1, 2, 4, 8, 9, 10]
        assert offsets(partition.records(2, 9)) == [2, 4, 8]
        assert offsets(partition.records(3, 8)) == [4]
        assert offsets(partition.records(5)) == [8, 9, 10]
        assert offsets(partition.records(5, 5)) == []
        assert offsets(partition.records(11, 99)) == []
        assert [each.base_offset for each in partition.batches()] == [0, 3, 4, 9]


@pytest.mark.req("SEG-LKP-003")
def test_records_of_overlapping_batches_are_delivered_once(tmp_path: Path) -> None:
    made = MadeLog({0: [data_batch(0, [1] * 4), data_batch(2, [2] * 4)]})
    skipped = pytest.warns(MissingOffsetsWarning, match=r"2 offsets are missing, 2 to 3 \(overlapping entries\)")
    with open_partition(made.write(tmp_path)) as partition, skipped:
        assert [(each.offset, each.timestamp_ms) for each in partition.records()] == [
            *((offset, 1) for offset in range(4)),
            (4, 2),
            (5, 2),
        ]


@pytest.mark.req("SEG-LOG-007")
@each_of("engine", [Engine.PLAIN, Engine.COLUMNAR, Engine.REFERENCE])
def test_every_engine_names_the_offsets_that_overlapping_batches_hide(engine: Engine, tmp_path: Path) -> None:
    data = [data_batch(offset, [1] * 4) for offset in (*range(0, 4000, 4), 3998, *range(4002, 8000, 4))]
    gaps: list[Gap] = []
    with open_partition(MadeLog({0: data}).write(tmp_path)) as partition:
        offsets = [each.offset for each in partition.records(engine=engine, on_gap=gaps.append)]
    assert offsets == list(range(8002))
    assert [(gap.first_offset, gap.next_offset, gap.kind) for gap in gaps] == [(3998, 4000, GapKind.OVERLAP)]


@pytest.mark.req("SEG-LKP-004", "SEG-LKP-005")
def test_out_of_range(tmp_path: Path) -> None:
    made = MadeLog({5: [data_batch(5, [1, 1])]})
    with open_partition(made.write(tmp_path)) as partition:
        for wrong in (-1, 0, 4, 8, 2**63):
            for ask in (partition.read, partition.records):
                with pytest.raises(OffsetOutOfRangeError, match="5 to 7"):
                    ask(wrong)
        assert astuple(partition.read(7)) == ((), (), 7)
        assert list(partition.records(7)) == []


@pytest.mark.req("SEG-LKP-004", "SEG-LKP-005", "SEG-LKP-015")
def test_a_directory_without_segments(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    with open_partition(tmp_path / "topic-0") as partition:
        assert (partition.log_start_offset, partition.log_end_offset, partition.last_stable_offset) == (0, 0, 0)
        assert partition.read(0).batches == ()
        assert list(partition.records(isolation="read_committed")) == []
        assert partition.offset_for_timestamp(0) is None
        assert partition.offset_for_timestamp(-3) is None
        with pytest.raises(OffsetOutOfRangeError):
            partition.read(1)


def test_arguments_that_mean_nothing(tmp_path: Path) -> None:
    with open_partition(MadeLog(THREE).write(tmp_path)) as partition:
        with pytest.raises(UsageError, match="read_commited"):
            partition.records(isolation="read_commited")
        with pytest.raises(UsageError, match="max_bytes"):
            partition.read(0, -1)
        for timestamp in (-7, -8, -(2**63)):
            with pytest.raises(UsageError, match=str(timestamp)):
                partition.offset_for_timestamp(timestamp)
    with pytest.raises(UsageError):
        open_partition(tmp_path / "absent-0")


@pytest.mark.req("SEG-LKP-009", "SEG-LKP-013")
def test_special_timestamps(tmp_path: Path) -> None:
    with open_partition(MadeLog(THREE).write(tmp_path)) as partition:
        found = {timestamp: partition.offset_for_timestamp(timestamp) for timestamp in OffsetSpec}
        latest, earliest = TimestampOffset(-1, 11), TimestampOffset(-1, 0)
        largest = TimestampOffset(20, 9)
        assert found == {-1: latest, -2: earliest, -3: largest, -4: earliest, -5: None, -6: None}


@pytest.mark.req("SEG-LKP-013")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([data_batch(0, [5, 9, 9]), data_batch(3, [9])], (9, 1)),
        ([data_batch(0, [5, 8]), data_batch(2, [9, 9]), data_batch(4, [9])], (9, 2)),
        ([plain_message(0, 7, 0), plain_message(1, 3, 1), wrapped_messages(2, [2, 6, 6])], (6, 3)),
        ([plain_message(0, 7, 0)], None),
        ([data_batch(0, [-1, -1])], None),
        ([data_batch(0, [4]), marker(1, 7, 0, time=6)], (6, 1)),
    ],
)
def test_the_first_of_the_youngest(tmp_path: Path, entries: list[Entry], expected: tuple[int, int] | None) -> None:
    with open_partition(MadeLog({0: entries}).write(tmp_path)) as partition:
        found = partition.offset_for_timestamp(-3)
        assert (found and astuple(found)) == expected


@pytest.mark.req("SEG-LKP-013", "SEG-LKP-008")
def test_a_header_that_states_more_than_its_records_hold(tmp_path: Path) -> None:
    """What an older cleaner may leave: the youngest record is gone, and the header still tells of it."""
    thinned = Entry(patched(data_batch(0, [5, 6]).data, 35, "q", 100), data_batch(0, [5, 6]).batch)
    made = MadeLog({0: [thinned, data_batch(2, [6, 7]), data_batch(4, [7])]})
    with open_partition(made.write(tmp_path)) as partition:
        assert partition.offset_for_timestamp(-3) == TimestampOffset(7, 3)
        assert partition.offset_for_timestamp(7) == TimestampOffset(7, 3)


@pytest.mark.req("SEG-LKP-018")
def test_control_records_count_for_timestamps(tmp_path: Path) -> None:
    made = MadeLog({0: [data_batch(0, [1], producer=7), marker(1, 7, 1, time=50), data_batch(2, [60])]})
    with open_partition(made.write(tmp_path)) as partition:
        assert partition.offset_for_timestamp(2) == TimestampOffset(50, 1)


@pytest.mark.req("SEG-LKP-008")
def test_broker_time_counts_for_every_record(tmp_path: Path) -> None:
    stamped = data_batch(0, [5, 1]).data
    made = MadeLog({0: [Entry(patched(stamped, 21, "h", 8), data_batch(0, [5, 1]).batch)]})
    with open_partition(made.write(tmp_path)) as partition:
        assert [record.timestamp_ms for record in partition.records()] == [5, 5]
        assert partition.offset_for_timestamp(5) == TimestampOffset(5, 0)


def log_directory(root: Path, made: MadeLog, *, start: int | None = None, watermark: int | None = None) -> Path:
    if start is not None:
        (root / "log-start-offset-checkpoint").write_text(checkpoint(("other", 0, 1), ("topic", 0, start)))
    if watermark is not None:
        (root / "replication-offset-checkpoint").write_text(checkpoint(("topic", 0, watermark)))
    return made.write(root)


@pytest.mark.req("SEG-CKP-010", "SEG-LKP-010", "SEG-LKP-004", "SEG-LKP-008", "SEG-LKP-009")
@pytest.mark.parametrize("start", [0, 1, 3, 7, 10, 11])
def test_the_log_start_offset_hides_records(tmp_path: Path, start: int) -> None:
    made = MadeLog(THREE)
    log = made.full_scan(start)
    with open_partition(log_directory(tmp_path, made, start=start, watermark=9)) as partition:
        assert (partition.log_start_offset, partition.high_watermark) == (start, 9)
        assert offsets(partition.records()) == log.delivered(start)
        check_reads(log, partition, list(range(-1, 13)))
        check_timestamps(log, partition, log.timestamps() or [0])
        largest = partition.offset_for_timestamp(-3)
        assert (largest and astuple(largest)) == log.first_of_largest()
        assert partition.offset_for_timestamp(-2) == TimestampOffset(-1, start)


@pytest.mark.req("SEG-CKP-010")
@pytest.mark.parametrize(
    "text", ["", "0", "1\n0\n", "0\n1\ntopic 0 x\n", "junk", "0\n1\ntopic 0 -7\n", "0\n1\ntopic 1 9\n"]
)
def test_a_checkpoint_that_says_nothing_hides_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text(text)
    with open_partition(MadeLog({5: [data_batch(5, [1])]}).write(tmp_path)) as partition:
        assert (partition.log_start_offset, partition.log_end_offset, partition.high_watermark) == (5, 6, None)


@pytest.mark.req("SEG-CKP-010")
def test_a_log_start_offset_past_the_end(tmp_path: Path) -> None:
    with open_partition(log_directory(tmp_path, MadeLog(THREE), start=99)) as partition:
        assert (partition.log_start_offset, partition.log_end_offset) == (99, 99)
        with pytest.warns(MissingOffsetsWarning, match="88 offsets are missing, 11 to 98"):
            assert list(partition.records()) == []
        assert partition.offset_for_timestamp(0) is None


@pytest.mark.req("SEG-LKP-010", "SEG-CKP-010")
@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", "3.9.1", "4.3.0"])
def test_a_broker_directory_whose_first_records_were_deleted(version: str, tmp_path: Path) -> None:
    (tmp_path / "delrec-0").symlink_to(authentic(f"{version}/delrec") / "delrec-0")
    texts = {line["file"]: line.get("text") for line in authentic_expected(f"{version}/root") if line["type"] == "text"}
    (tmp_path / "log-start-offset-checkpoint").write_text(texts["log-start-offset-checkpoint"])
    log = expected_logs(authentic_expected(f"{version}/delrec"), checkpoint=77)["delrec-0"]
    with open_partition(tmp_path / "delrec-0") as partition:
        assert partition.log_start_offset == 77
        assert offsets(partition.records()) == log.delivered(77)
        check_reads(log, partition, list(log.offsets()))
        check_timestamps(log, partition, log.timestamps())


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


DAMAGED_FIELDS = {"payload": 70, "last offset delta": 26, "max timestamp": 41, "crc": 17, "attributes": 22}


@pytest.mark.req("SEG-LKP-014")
@pytest.mark.parametrize("position", DAMAGED_FIELDS.values(), ids=DAMAGED_FIELDS.keys())
def test_everything_before_the_damage_is_delivered(tmp_path: Path, position: int) -> None:
    entries = [data_batch(0, [1, 1]), data_batch(2, [2, 2]), data_batch(4, [3, 3])]
    broken = Entry(flipped(entries[1].data, position), entries[1].batch)
    with open_partition(MadeLog({0: [entries[0], broken, entries[2]]}).write(tmp_path)) as partition:
        for isolation in ("read_uncommitted", "read_committed"):
            assert offsets(until_error(partition.records(isolation=isolation))) == [0, 1]
        assert offsets(partition.records(0, 2)) == [0, 1]
        assert offsets(partition.read(0).records) == [0, 1]
        with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
            partition.read(2)
        for timestamp in (2, 3, -3):
            with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
                partition.offset_for_timestamp(timestamp)
        assert partition.offset_for_timestamp(1) == TimestampOffset(1, 0)


@pytest.mark.req("SEG-LKP-017")
def test_a_gap_is_believed_only_after_an_intact_entry(tmp_path: Path) -> None:
    """A shorter last offset delta makes offsets disappear; only the checksum tells."""
    whole = data_batch(0, [1, 1, 1]).data
    shortened = Entry(patched(whole, 23, "i", 1, seal=False), data_batch(0, [1]).batch)
    for number, following in enumerate(
        ({0: [shortened, data_batch(3, [2])]}, {0: [shortened], 3: [data_batch(3, [2])]})
    ):
        with open_partition(MadeLog(following).write(tmp_path / str(number))) as partition:
            assert partition.segments[0].entries.last_offsets[0] == 1
            with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
                partition.read(2)
            assert offsets(partition.read(3).records) == [3]


@pytest.mark.req("SEG-LKP-017")
def test_the_log_end_is_believed_only_after_an_intact_entry(tmp_path: Path) -> None:
    whole = data_batch(0, [1, 1, 1]).data
    shortened = Entry(patched(whole, 23, "i", 1, seal=False), data_batch(0, [1]).batch)
    with open_partition(MadeLog({0: [shortened]}).write(tmp_path)) as partition:
        assert partition.log_end_offset == 2
        for offset in (2, 3):
            with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
                partition.read(offset)


@pytest.mark.req("SEG-LKP-014")
def test_a_bad_size_is_met_by_every_read_behind_it(tmp_path: Path) -> None:
    bad = Entry(patched(data_batch(2, [2, 2]).data, 8, "i", 5, seal=False), data_batch(2, [2, 2]).batch)
    for number, segments in enumerate(
        ({0: [data_batch(0, [1, 1]), bad]}, {0: [data_batch(0, [1, 1]), bad], 9: THREE[11]})
    ):
        with open_partition(MadeLog(segments).write(tmp_path / str(number))) as partition:
            for offset in (2, 3, 8):
                with pytest.raises(CorruptRecordError, match="SEG-LOG-003"):
                    partition.read(offset)
                with pytest.raises(CorruptRecordError, match="SEG-LOG-003"):
                    list(partition.records(offset))
            for timestamp in (2, -3):
                with pytest.raises(CorruptRecordError, match="SEG-LOG-003"):
                    partition.offset_for_timestamp(timestamp)
            assert offsets(until_error(partition.records())) == [0, 1]


def test_damage_below_the_log_start_offset_is_hidden_with_its_segment(tmp_path: Path) -> None:
    bad = Entry(patched(data_batch(2, [2, 2]).data, 8, "i", 5, seal=False), data_batch(2, [2, 2]).batch)
    made = MadeLog({0: [data_batch(0, [1, 1]), bad], 4: [data_batch(4, [3])]})
    with open_partition(log_directory(tmp_path, made, start=4)) as partition:
        assert offsets(partition.records(isolation="read_committed")) == [4]
        assert partition.offset_for_timestamp(-3) == TimestampOffset(3, 4)


@pytest.mark.parametrize("size", [0, 5, 12, 17, 18, 40, 67])
def test_tails_end_quietly(tmp_path: Path, size: int) -> None:
    tail = data_batch(2, [2, 2]).data
    made = MadeLog({0: [data_batch(0, [1, 1])]}, tails={0: tail[:size]})
    with open_partition(made.write(tmp_path)) as partition:
        assert offsets(partition.records()) == [0, 1]
        assert partition.log_end_offset == 2
        assert partition.read(2).batches == ()


def test_trusted_indexes_find_the_end_from_the_last_entry(tmp_path: Path) -> None:
    entries = [data_batch(number, [number + 1]) for number in range(9)]
    made = MadeLog({0: entries})
    size = len(entries[0].data)
    indexes = {
        f"{0:020}.index": offset_index((2, 2 * size), (6, 6 * size)),
        f"{0:020}.timeindex": time_index((3, 2), (7, 6)),
    }
    with open_partition(made.write(tmp_path, indexes), trust_indexes=True) as partition:
        assert partition.log_end_offset == 9
        assert partition.read(7).batches[0].position == 7 * size
        assert [partition.offset_for_timestamp(time).offset for time in (1, 3, 4, 7, 9)] == [0, 2, 3, 6, 8]
        assert partition.offset_for_timestamp(10) is None
        assert len(partition.segments[0]._table.positions) == 1


def test_a_trusted_time_index_rules_out_closed_segments(tmp_path: Path) -> None:
    made = MadeLog({0: [data_batch(0, [5])], 1: [data_batch(1, [9])]})
    indexes = {f"{0:020}.timeindex": time_index((5, 0)), f"{1:020}.timeindex": time_index((4, 0))}
    with open_partition(made.write(tmp_path, indexes), trust_indexes=True) as partition:
        assert partition.offset_for_timestamp(6) == TimestampOffset(9, 1)
        assert partition.segments[0]._bytes is None


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold() -> Callable[[Path], None]:
    """Lock a file in another process until the test ends."""
    running = []

    def lock(path: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout.readline() == "held\n"

    yield lock
    for process in running:
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks to ask for")
def test_a_broker_that_holds_the_lock_is_seen(tmp_path: Path, hold: Callable[[Path], None]) -> None:
    path = MadeLog(THREE).write(tmp_path)
    lock = tmp_path / ".lock"
    lock.touch()
    assert not open_log_directory(tmp_path).directories[0].is_locked
    hold(lock)
    assert open_log_directory(tmp_path).directories[0].is_locked
    with open_partition(path) as partition:
        assert offsets(partition.records(0, 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("mapped", [False, True])
def test_files_are_mapped_only_for_a_caller_who_asks(tmp_path: Path, mapped: bool) -> None:  # noqa: FBT001
    path = MadeLog(THREE).write(tmp_path)
    directory = open_log_directory(tmp_path)
    for partition in (
        open_partition(path, mapped=mapped),
        directory.open("topic", 0, mapped=mapped),
        directory.directories[0].open(next(iter(directory.partitions.values())), mapped=mapped),
    ):
        with partition:
            assert offsets(partition.records(0, 4)) == [0, 1, 2, 3]
            assert partition.segments[0]._bytes.is_mapped is mapped


def test_a_lock_that_is_not_ours_to_open_counts_as_held(tmp_path: Path) -> None:
    MadeLog(THREE).write(tmp_path)
    (tmp_path / ".lock").symlink_to(".lock")
    assert open_log_directory(tmp_path).directories[0].is_locked


def test_nothing_is_written(tmp_path: Path) -> None:
    path = MadeLog(THREE).write(tmp_path)
    before = {each: each.stat().st_mtime_ns for each in sorted(tmp_path.rglob("*"))}
    with open_partition(path) as partition:
        list(partition.records(isolation="read_committed"))
        partition.offset_for_timestamp(-3)
    assert {each: each.stat().st_mtime_ns for each in sorted(tmp_path.rglob("*"))} == before


def test_a_partition_shows_what_it_is(tmp_path: Path) -> None:
    path = MadeLog(THREE).write(tmp_path)
    with open_partition(path) as partition:
        assert (partition.name, partition.path, repr(partition)) == ("topic-0", path, f"Partition({str(path)!r})")
        assert [segment.base_offset for segment in partition.segments] == [0, 6, 11]
    with Partition(list_partition(path)) as partition:
        assert partition.log_end_offset == 11


def test_a_limit_on_decompression_is_a_refusal(tmp_path: Path) -> None:
    made = MadeLog({0: [data_batch(0, [1]), wrapped_messages(1, [1, 2, 3])]})
    with open_partition(made.write(tmp_path), limit=10) as partition:
        assert offsets(until_error(partition.records())) == [0]
        with pytest.raises(FormatError, match="SEG-COD-016"):
            partition.read(1)


@pytest.fixture
def chapter(tmp_path: Path) -> Iterator[Partition]:
    """Provide the log of the examples of chapter 60."""
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / f"{0:020}.log").write_bytes(example("60-lookup", "log").data)
    with open_partition(tmp_path / "topic-0") as partition:
        yield partition


@pytest.mark.req("SEG-LKP-002", "SEG-LKP-003", "SEG-LKP-004", "SEG-LKP-005", "SEG-LKP-015", "SEG-CTL-009")
def test_offsets_of_the_chapter(chapter: Partition) -> None:
    heading = "| requested offset | position of the entry found | first record delivered |"
    for offset, *expected in table("60-lookup", heading):
        batches, records = chapter.read(offset).batches, chapter.records(offset)
        assert [each.position for each in batches[:1]] + offsets(records)[:1] == expected
    assert chapter.log_end_offset == 13
    with pytest.raises(OffsetOutOfRangeError):
        chapter.read(14)


@pytest.mark.req("SEG-LKP-006")
def test_byte_limits_of_the_chapter(chapter: Partition) -> None:
    for limit, count, at_least_one in table("60-lookup", '| byte limit | entries | entries with "at least one" |'):
        assert len(chapter.read(0, limit, min_one_message=False).batches) == count
        assert len(chapter.read(0, limit).batches) == at_least_one


@pytest.mark.req("SEG-LKP-008", "SEG-LKP-009", "SEG-LKP-013", "SEG-LKP-018")
def test_timestamps_of_the_chapter(chapter: Partition) -> None:
    heading = "| requested timestamp | timestamp of the result | offset of the result |"
    for timestamp, *expected in table("60-lookup", heading):
        found = chapter.offset_for_timestamp(timestamp)
        assert list(astuple(found) if found else ()) == expected
    assert [chapter.offset_for_timestamp(each).offset for each in (-1, -2, -3)] == [13, 0, 12]


@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012", "SEG-LKP-016")
def test_transactions_of_the_chapter(chapter: Partition) -> None:
    assert offsets(chapter.records(isolation="read_committed")) == [0, 1, 2, 6, 9]
    assert chapter.last_stable_offset == 12
    assert chapter.aborted_transactions() == (AbortedTxn(0, 7, 3, 5, 6),)


@pytest.mark.req("SEG-IDX-009")
def test_the_nested_batch_of_the_chapter(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / f"{0:020}.log").write_bytes(example("60-lookup", "nested").data)
    (index,) = (block for block in examples("60-lookup") if block.kind == "offset-index")
    (tmp_path / "topic-0" / f"{0:020}.index").write_bytes(index.data)
    for trust_indexes, position, largest in ((False, 70, 1002), (True, 140, 1002)):
        with open_partition(tmp_path / "topic-0", trust_indexes=trust_indexes) as partition:
            assert partition.read(1).batches[0].position == position
            assert partition.offset_for_timestamp(-3).timestamp_ms == largest


def test_sealing_is_what_makes_damage_invisible() -> None:
    """The flips above are damage only because the checksum was not made right again."""
    assert sealed(flipped(data_batch(0, [1]).data, 26)) != flipped(data_batch(0, [1]).data, 26)
