"""Chapter 20 as `LogSegment` reads it: order, ends, files that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record
from helpers.lookup_checks import until_error
from helpers.made_logs import MadeLog, data_batch, offset_index, plain_message, wrapped_messages
from helpers.messages import message
from helpers.support import vector

from seglog_format import open_partition
from seglog_format.errors import CorruptRecordError, FormatError, UsageError
from seglog_format.log.listing import SegmentFiles
from seglog_format.log.segment import OpenSegments
from seglog_format.model import TailKind
from seglog_format.types import LogSegment

if TYPE_CHECKING:
    from pathlib import Path

NAME = f"{0:020}"


def segment(root: Path, *data: bytes, base_offset: int = 0, next_base_offset: int | None = None) -> LogSegment:
    path = root / f"{base_offset:020}.log"
    path.write_bytes(b"".join(data))
    return LogSegment(SegmentFiles(base_offset, path), next_base_offset=next_base_offset)


@pytest.mark.req("SEG-LOG-001", "SEG-LOG-011")
def test_entries_of_every_magic_follow_each_other(tmp_path: Path) -> None:
    made = [plain_message(0, 5, 0), wrapped_messages(1, [7, 6]), data_batch(3, [9, 8]), plain_message(5, 4, 1)]
    with segment(tmp_path, *(entry.data for entry in made)) as log:
        assert [each.base_offset for each in log.batches()] == [0, 1, 3, 5]
        assert [[each.offset for each in one.records] for one in log.batches()] == [[0], [1, 2], [3, 4], [5]]
        assert list(log.entries.last_offsets) == [0, 2, 4, 5]
        assert list(log.entries.max_timestamps) == [-1, 7, 9, 4]
        assert (log.next_offset, log.last_offset, log.largest_timestamp_ms) == (6, 5, 9)
        assert (log.damage, log.tail.kind) == (None, TailKind.NONE)


def test_an_empty_segment(tmp_path: Path) -> None:
    with segment(tmp_path, base_offset=7) as log:
        assert (log.size, log.next_offset, log.last_offset, log.largest_timestamp_ms) == (0, 7, None, -1)
        assert log.position_of(7) is None
        assert list(log.batches()) == []
        log.verify_last_entry()


@pytest.mark.req("SEG-LOG-002", "SEG-LOG-004", "SEG-LOG-005")
@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        (b"\1" * 17, TailKind.TRAILING),
        (bytes(17), TailKind.ZEROS),
        (bytes(18), TailKind.ZEROS),
        (bytes(70000), TailKind.ZEROS),
        (vector("V-06")[:-1], TailKind.PARTIAL),
        (vector("V-06")[:18], TailKind.PARTIAL),
    ],
)
def test_tails_end_a_segment_without_an_error(tmp_path: Path, tail: bytes, kind: TailKind) -> None:
    whole = vector("V-06")
    with segment(tmp_path, whole, tail) as log:
        assert [each.base_offset for each in log.batches()] == [10]
        assert (log.tail.kind, log.tail.position, log.tail.size) == (kind, len(whole), len(tail))
        assert (log.damage, log.next_offset, log.position_of(13)) == (None, 13, None)


@pytest.mark.req("SEG-LOG-003")
def test_a_bad_size_ends_what_can_be_found(tmp_path: Path) -> None:
    first = data_batch(0, [1, 2]).data
    with segment(tmp_path, first, b"\0" * 11 + b"\5" + bytes(20)) as log:
        assert (log.position_of(1), log.next_offset, log.tail) == (0, 2, None)
        for _ in range(2):
            with pytest.raises(CorruptRecordError) as raised:
                log.position_of(2)
            assert raised.value.requirements == ("SEG-LOG-003",)
        assert raised.value is not log.damage
        assert [each.base_offset for each in until_error(log.batches())] == [0]


@pytest.mark.parametrize(
    ("second", "requirement"),
    [
        (data_batch(1, [1]).data, "SEG-LOG-006"),
        (data_batch(0, [1]).data, "SEG-LOG-006"),
        (message(1, magic=1), "SEG-LOG-006"),
        (data_batch(2, [1], last_delta=-1).data, "SEG-LOG-006"),
        (data_batch(3, [1, 1]).data, "SEG-PDR-013"),
        (message(4), "SEG-PDR-013"),
        (data_batch(2**63 - 1, [1, 1]).data, "SEG-LOG-013"),
        (data_batch(2**63 - 1, [1]).data, "SEG-LOG-013"),
        (message(2**63 - 1), "SEG-LOG-013"),
        (data_batch(-1, [1, 1, 1, 1]).data, "SEG-LOG-008"),
    ],
)
@pytest.mark.req("SEG-LOG-006", "SEG-LOG-008", "SEG-LOG-013", "SEG-PDR-013")
def test_offsets_that_cannot_be_true(tmp_path: Path, second: bytes, requirement: str) -> None:
    first = data_batch(0, [1, 2]).data
    with segment(tmp_path, first, second, next_base_offset=4) as log:
        assert log.damage.requirements == (requirement,)
        assert log.damage.location.position == len(first)
        assert (list(log.entries.positions), log.next_offset) == ([0], 2)
        with pytest.raises(CorruptRecordError, match=requirement):
            list(log.ordered_frames())
        assert len(list(log.frames())) == 2


@pytest.mark.req("SEG-LOG-008")
def test_a_first_entry_below_the_segment(tmp_path: Path) -> None:
    with segment(tmp_path, data_batch(4, [1, 2]).data, base_offset=5) as log:
        assert log.damage.requirements == ("SEG-LOG-008",)


def test_an_offset_past_64_bits_is_damage_and_no_overflow(tmp_path: Path) -> None:
    with segment(tmp_path, data_batch(2**63 - 1, [1, 1]).data) as log:
        assert log.damage.requirements == ("SEG-LOG-013",)


@pytest.mark.req("SEG-LOG-007")
def test_overlapping_entries_are_found_by_their_last_offsets(tmp_path: Path) -> None:
    made = [data_batch(0, [1] * 4), data_batch(2, [2] * 4), data_batch(6, [3])]
    with segment(tmp_path, *(entry.data for entry in made)) as log:
        size = len(made[0].data)
        assert [log.position_of(offset) for offset in range(8)] == [*[0] * 4, *[size] * 2, 2 * size, None]


def test_the_table_grows_only_as_far_as_it_is_asked_for(tmp_path: Path) -> None:
    made = [data_batch(offset, [1]) for offset in range(10)]
    with segment(tmp_path, *(entry.data for entry in made)) as log:
        size = len(made[0].data)
        assert log.position_of(3) == 3 * size
        table = log._table
        assert (len(table.positions), table.is_complete) == (4, False)
        assert log.position_of(1) == size
        assert log.next_offset == 10
        assert (len(table.positions), table.is_complete, table.position) == (10, True, 10 * size)


def test_only_a_few_segments_stay_open(tmp_path: Path) -> None:
    made = MadeLog({base: [data_batch(base, [base])] for base in range(40)})
    indexes = {f"{base:020}.index": offset_index((0, 0)) for base in range(40)}
    path = made.write(tmp_path, indexes)
    with open_partition(path) as partition:
        kept = partition.segments[0].source.view(0, 4)
        index = partition.segments[0].offset_index
        assert [each.offset for each in partition.records()] == list(range(40))
        assert len(partition._opened) == 16
        assert sum(each._bytes is not None for each in partition.segments) == 16
        assert bytes(kept) == bytes(4)
        assert index.lookup(5).offset == 0
        assert partition.segments[0].offset_index is not index
    assert len(partition._opened) == 0


def test_a_segment_opens_again_after_it_was_closed(tmp_path: Path) -> None:
    log = segment(tmp_path, data_batch(0, [1]).data)
    with log:
        assert log.position_of(0) == 0
    assert log._bytes is None
    assert next(log.batches()).base_offset == 0
    log.close()
    log.close()


def test_indexes_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(data_batch(0, [1]).data)
    gone, strange = tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.txnindex"
    strange.write_bytes(b"\x7f" * 34)
    log = LogSegment(SegmentFiles(0, path, gone, None, strange))
    assert (log.offset_index, log.time_index, log.transaction_index) == (None, None, None)


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    log = LogSegment(SegmentFiles(0, tmp_path / f"{NAME}.log"))
    with pytest.raises(UsageError):
        _ = log.size
    with pytest.raises(UsageError):
        log.position_of(0)
    assert NAME in repr(log)


def test_a_log_that_shrinks_between_two_looks(tmp_path: Path) -> None:
    made = [data_batch(0, [1]), data_batch(1, [2])]
    log = segment(tmp_path, *(entry.data for entry in made))
    assert log.next_offset == 2
    log.release()
    log.paths.log.write_bytes(made[0].data)
    with pytest.raises(FormatError, match="SEG-LOG-004"):
        log.verify_last_entry()


def test_the_segments_used_last_stay_open(tmp_path: Path) -> None:
    opened = OpenSegments(2)
    logs = []
    for base in range(3):
        path = tmp_path / f"{base:020}.log"
        path.write_bytes(batch(record(), base_offset=base))
        logs.append(LogSegment(SegmentFiles(base, path), opened=opened))
    for number in (0, 1, 0, 2):
        assert logs[number].source.size
    assert [each._bytes is None for each in logs] == [False, True, False]
    opened.close()
    assert all(each._bytes is None for each in logs)
