"""Chapter 40: the offset index."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record
from helpers.index_files import (
    authentic_lines,
    base_offset_of,
    broken,
    example,
    examples,
    partition,
    table,
    write_example,
)
from helpers.support import vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.errors import UsageError
from seglog_format.log.index_file import OffsetIndex
from seglog_format.log.partition import open_partition
from seglog_format.model import OffsetPosition

if TYPE_CHECKING:
    from pathlib import Path

    from helpers.index_files import Example

CHAPTER = "40-offset-index"
ZERO_SLOT = bytes(8)
EXAMPLES = [block for block in examples(CHAPTER) if "log" in block.options]


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def unpacked(data: bytes) -> list[tuple[int, int]]:
    return [struct.unpack(">ii", data[start : start + 8]) for start in range(0, len(data) - 7, 8)]


def pairs(entries: object) -> list[tuple[int, int]]:
    return [(entry.offset, entry.position) for entry in entries]  # type: ignore[attr-defined]


@pytest.mark.req("SEG-IDX-011")
def test_entries_are_pairs_of_big_endian_numbers() -> None:
    expected = [(3, 119), (5, 238), (7, 357), (9, 476), (11, 595), (13, 714), (15, 833)]
    assert pairs(OffsetIndex.from_bytes(vector("V-26-index"), 0).entries) == expected
    assert pairs(OffsetIndex.from_bytes(b"\x01\x02\x03\x04\x05\x06\x07\x08", 0).entries) == [(0x01020304, 0x05060708)]


@pytest.mark.req("SEG-IDX-011")
def test_offsets_count_from_the_base_offset_of_the_segment() -> None:
    index = OffsetIndex.from_bytes(packed((3, 119), (2**31 - 1, 2**31 - 2)), 2**40)
    assert pairs(index.entries) == [(2**40 + 3, 119), (2**40 + 2**31 - 1, 2**31 - 2)]


@pytest.mark.req("SEG-IDX-011")
def test_entries_can_be_counted_picked_and_sliced() -> None:
    entries = OffsetIndex.from_bytes(vector("V-26-index"), 0).entries
    assert len(entries) == 7
    assert entries[0] == OffsetPosition(3, 119)
    assert entries[-1] == OffsetPosition(15, 833)
    assert entries[1:3] == [OffsetPosition(5, 238), OffsetPosition(7, 357)]
    with pytest.raises(IndexError):
        entries[7]


@pytest.mark.req("SEG-IDX-008")
def test_lookup_answers_the_table_of_the_chapter() -> None:
    block = example(CHAPTER, "by-batch")
    index = OffsetIndex.from_bytes(block.data, block.base_offset)
    rows = table(CHAPTER, "| requested | result (offset, position) |")
    assert len(rows) == 9
    for asked, offset, position in rows:
        assert index.lookup(asked) == OffsetPosition(offset, position), asked


@pytest.mark.req("SEG-IDX-008")
def test_lookup_without_an_entry_starts_at_the_segment() -> None:
    assert OffsetIndex.from_bytes(b"", 700).lookup(10**9) == OffsetPosition(700, 0)
    assert OffsetIndex.from_bytes(packed((5, 99)), 700).lookup(704) == OffsetPosition(700, 0)


@st.composite
def sorted_entries(draw: st.DrawFn) -> list[tuple[int, int]]:
    offsets = sorted(draw(st.sets(st.integers(0, 60) | st.integers(0, 2**31 - 1), max_size=20)))
    return [(offset, draw(st.integers(0, 2**31 - 1))) for offset in offsets]


def floor(entries: list[tuple[int, int]], relative: int) -> tuple[int, int]:
    found = (0, 0)
    for entry in entries:
        if entry[0] <= relative:
            found = entry
    return found


@pytest.mark.req("SEG-IDX-008", "SEG-IDX-010")
@given(
    entries=sorted_entries(),
    zero_slots=st.integers(0, 5),
    rest=st.binary(max_size=7),
    base=st.sampled_from([0, 1, 368_769, 2**62]),
    queries=st.lists(st.integers(-5, 70) | st.integers(-(2**40), 2**40), max_size=20),
)
def test_lookup_is_the_floor_of_any_sorted_index(
    entries: list[tuple[int, int]], zero_slots: int, rest: bytes, base: int, queries: list[int]
) -> None:
    index = OffsetIndex.from_bytes(packed(*entries) + ZERO_SLOT * zero_slots + rest, base)
    for relative in [*queries, *(offset for offset, _ in entries)]:
        offset, position = floor(entries, relative)
        assert index.lookup(base + relative) == OffsetPosition(base + offset, position)


@pytest.mark.req("SEG-IDX-010")
@pytest.mark.parametrize(
    ("slots", "count"),
    [
        ([], 0),
        ([(3, 77), (5, 154)], 2),
        ([(3, 77), (5, 154), (0, 0), (0, 0)], 2),  # preallocated
        ([(3, 77), (5, 154), (5, 231), (7, 300)], 2),  # equal
        ([(3, 77), (5, 154), (4, 231), (7, 300)], 2),  # less: left over from before a truncation
        ([(3, 77), (-1, 154), (7, 300)], 1),
        ([(-1, 77), (3, 154)], 0),
        ([(0, 0), (5, 154)], 2),  # a real first slot
        ([(0, 0), (0, 0), (5, 154)], 1),
        ([(0, 77), (5, 154), (6, 10)], 3),  # positions do not end the index
    ],
)
def test_entries_end_where_offsets_stop_increasing(slots: list[tuple[int, int]], count: int) -> None:
    index = OffsetIndex.from_bytes(packed(*slots), 0)
    assert pairs(index.entries) == slots[:count]


@pytest.mark.req("SEG-IDX-010")
@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(0, 3)), max_size=12), st.binary(max_size=7))
def test_any_slots_are_listed_and_the_usable_ones_increase(slots: list[tuple[int, int]], rest: bytes) -> None:
    index = OffsetIndex.from_bytes(packed(*slots) + rest, 0)
    assert index.slot_count == len(slots)
    assert index.trailing_size == len(rest)
    assert pairs(index.raw_entries()) == slots[: len(slots) - index.trailing_zero_count]
    assert all(slot == (0, 0) for slot in slots[len(slots) - index.trailing_zero_count :])
    assert index.trailing_zero_count == len(slots) or slots[len(slots) - index.trailing_zero_count - 1] != (0, 0)
    usable = [offset for offset, _ in pairs(index.entries)]
    assert usable == sorted(set(usable))
    assert usable == [offset for offset, _ in slots[: len(usable)]]
    assert len(usable) == len(slots) or slots[len(usable)][0] <= (usable[-1] if usable else -1)


@pytest.mark.req("SEG-IDX-007")
def test_a_preallocated_index_is_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(vector("V-26-index").ljust(10_485_760, b"\0"))
    with OffsetIndex.open(path, 0) as index:
        assert (index.file_size, index.slot_count, index.trailing_zero_count) == (10_485_760, 1_310_720, 1_310_713)
        assert pairs(index.raw_entries()) == pairs(index.entries) == unpacked(vector("V-26-index"))
        assert index.lookup(10**6) == OffsetPosition(15, 833)


@pytest.mark.parametrize("mapped", [False, True])
def test_an_open_index_can_be_read_and_closed_twice(tmp_path: Path, mapped: bool) -> None:  # noqa: FBT001
    path = tmp_path / "00000000000000000007.index"
    path.write_bytes(packed((1, 100)))
    index = OffsetIndex.open(path, 7, mapped=mapped)
    assert index.path == str(path)
    assert list(index.entries) == [OffsetPosition(8, 100)]
    index.close()
    index.close()
    with pytest.raises(UsageError, match="closed while it is read"):
        index.lookup(8)


def test_an_index_from_bytes_needs_no_closing() -> None:
    with OffsetIndex.from_bytes(packed((1, 100)), 0) as index:
        pass
    assert index.lookup(1) == OffsetPosition(1, 100)


@pytest.mark.req("SEG-IDX-008")
def test_every_truncation_and_every_other_byte_gives_an_answer() -> None:
    data = vector("V-26-index")
    damaged = [data[:size] for size in range(len(data))]
    for position in range(len(data)):
        values = {data[position] ^ 1 << bit for bit in range(8)} | {0x00, 0x7F, 0x80, 0xFF}
        damaged += [data[:position] + bytes([value]) + data[position + 1 :] for value in values]
    for variant in damaged:
        index = OffsetIndex.from_bytes(variant, 0)
        assert pairs(index.raw_entries()) == unpacked(variant)[: len(index.raw_entries())]
        for offset in range(-1, 17):
            answer = index.lookup(offset)
            assert answer == OffsetPosition(0, 0) or (answer in index.entries and answer.offset <= offset)


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=pytest.mark.req(block.breaks or "SEG-IDX-006")) for block in EXAMPLES],
    ids=lambda block: block.breaks or f"valid-{block.options['name']}",
)
def test_examples_break_what_they_say_and_nothing_else(tmp_path: Path, block: Example) -> None:
    path = write_example(tmp_path, CHAPTER, block)
    assert broken(path, "offset-index") == ([block.breaks] if block.breaks else [])


@pytest.mark.req("SEG-IDX-001")
def test_bytes_after_the_last_entry_are_reported_and_passed_over(tmp_path: Path) -> None:
    log, block = example(CHAPTER, "four-batches").data, example(CHAPTER, "by-batch")
    assert pairs(OffsetIndex.from_bytes(block.data + bytes(3), 10).entries) == [(13, 77), (15, 154), (17, 231)]
    path = partition(tmp_path, 10, {"batch": log, "offset-index": block.data + b"\0\1\2"})
    assert broken(path, "offset-index") == ["SEG-IDX-001"]


@pytest.mark.req("SEG-IDX-003")
@pytest.mark.parametrize("position", [-1, 1, 76, 78, 307, 308, 2**31 - 1])
def test_a_position_that_starts_no_entry_is_reported(tmp_path: Path, position: int) -> None:
    log = example(CHAPTER, "four-batches").data
    path = partition(tmp_path, 10, {"batch": log, "offset-index": packed((7, position))})
    assert broken(path, "offset-index") == ["SEG-IDX-003"]


@pytest.mark.req("SEG-IDX-003")
def test_an_entry_that_the_end_of_the_log_cuts_short_can_be_indexed(tmp_path: Path) -> None:
    log = example(CHAPTER, "four-batches").data[:-10]
    path = partition(tmp_path, 10, {"batch": log, "offset-index": packed((3, 77), (7, 231))})
    assert broken(path, "offset-index") == []


@pytest.mark.req("SEG-IDX-006")
@pytest.mark.parametrize(
    ("entry", "is_right"),
    [
        ((1, 77), False),  # the first batch ends at 11
        ((2, 77), True),
        ((7, 77), True),
        ((100, 77), True),
        ((3, 154), False),
        ((4, 154), True),
        ((1, 0), True),
    ],
)
def test_an_offset_lies_above_what_stands_before_its_position(
    tmp_path: Path,
    entry: tuple[int, int],
    is_right: bool,  # noqa: FBT001
) -> None:
    log = example(CHAPTER, "four-batches").data
    path = partition(tmp_path, 10, {"batch": log, "offset-index": packed(entry)})
    assert broken(path, "offset-index") == ([] if is_right else ["SEG-IDX-006"])


@pytest.mark.req("SEG-IDX-006")
def test_the_entry_at_the_position_does_not_start_above_the_offset(tmp_path: Path) -> None:
    log = example(CHAPTER, "four-batches").data
    gap = log[:77] + log[154:]  # 12 and 13 are gone
    path = partition(tmp_path, 10, {"batch": gap, "offset-index": packed((3, 77))})
    assert broken(path, "offset-index") == ["SEG-IDX-006"]


WRONG_INDEXES = {
    "missing": None,
    "empty": b"",
    "cut": packed((3, 77), (5, 154))[:-3],
    "zeros": bytes(64),
    "too early": packed((7, 77)),
    "too late": packed((1, 154), (2, 231)),
    "of the last entry": packed((0, 231)),
    "inside an entry": packed((2, 78), (4, 170)),
    "in the last bytes": packed((2, 300)),
    "past the end": packed((0, 308), (5, 2**31 - 1)),
    "before the start": packed((2, -77)),
    "out of order": packed((7, 231), (3, 77)),
    "text": b"this is not an index, whatever its name says",
}


@pytest.mark.req("SEG-IDX-009")
@pytest.mark.parametrize("trust_indexes", [False, True])
@pytest.mark.parametrize("index", WRONG_INDEXES.values(), ids=WRONG_INDEXES.keys())
def test_no_index_changes_what_is_read(tmp_path: Path, index: bytes | None, trust_indexes: bool) -> None:  # noqa: FBT001
    files = {"batch": example(CHAPTER, "four-batches").data} | ({} if index is None else {"offset-index": index})
    with open_partition(partition(tmp_path, 10, files), trust_indexes=trust_indexes) as log:
        for offset in range(10, 18):
            assert [record.offset for record in log.records(from_offset=offset)] == list(range(offset, 18))


@pytest.mark.req("SEG-IDX-009")
def test_what_looks_like_an_entry_inside_a_record_is_not_believed(tmp_path: Path) -> None:
    inner = bytearray(batch(record(value=b"not stored at 12"), base_offset=12))
    inner[-2] ^= 1  # the checksum is wrong
    outer = batch(record(value=bytes(inner)), base_offset=10)
    log = outer + batch(record(value=b"stored at 12"), base_offset=12)
    files = {"batch": log, "offset-index": packed((2, outer.index(inner)))}
    with open_partition(partition(tmp_path, 10, files), trust_indexes=True) as opened:
        assert [(found.offset, found.value) for found in opened.records(from_offset=12)] == [(12, b"stored at 12")]


@pytest.mark.req("SEG-IDX-011", "SEG-IDX-007")
def test_indexes_of_real_brokers_hold_what_kafka_reads() -> None:
    count = 0
    for name, path, line in authentic_lines("offsetIndex"):
        with OffsetIndex.open(path, base_offset_of(path)) as index:
            assert pairs(index.raw_entries()) == [tuple(entry) for entry in line["entries"]], (name, path)
            numbers = (index.file_size, index.slot_count, index.trailing_zero_count)
            assert numbers == (line["fileBytes"], line["entryCount"], line["trailingZeroEntries"]), (name, path)
        count += 1
    assert count
