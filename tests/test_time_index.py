"""Chapter 41: the time index."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
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

from seglog_format.log.index_file import TimeIndex
from seglog_format.model import TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from helpers.index_files import Example

CHAPTER = "41-time-index"
ZERO_SLOT = bytes(12)
EXAMPLES = [block for block in examples(CHAPTER) if "log" in block.options]


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def pairs(entries: Iterable[TimestampOffset]) -> list[tuple[int, int]]:
    return [(entry.timestamp_ms, entry.offset) for entry in entries]


@pytest.mark.req("SEG-TIX-010")
def test_entries_are_a_timestamp_and_an_offset() -> None:
    expected = [(1101, 3), (1201, 5), (1301, 7), (1401, 9), (1501, 11), (1601, 13), (1701, 15)]
    assert pairs(TimeIndex.from_bytes(vector("V-26-timeindex"), 0).entries) == expected
    data = bytes.fromhex("0102030405060708 090a0b0c")
    assert pairs(TimeIndex.from_bytes(data, 2**40).entries) == [(0x0102030405060708, 2**40 + 0x090A0B0C)]


@pytest.mark.req("SEG-TIX-008")
def test_lookup_answers_the_table_of_the_chapter() -> None:
    block = example(CHAPTER, "by-batch")
    index = TimeIndex.from_bytes(block.data, block.base_offset)
    rows = table(CHAPTER, "| requested | result (timestamp, offset) |")
    assert len(rows) == 6
    for asked, timestamp_ms, offset in rows:
        assert index.lookup(asked) == TimestampOffset(timestamp_ms, offset), asked


@pytest.mark.req("SEG-TIX-008")
def test_lookup_without_an_entry_knows_no_timestamp() -> None:
    assert TimeIndex.from_bytes(b"", 700).lookup(10**15) == TimestampOffset(-1, 700)
    assert TimeIndex.from_bytes(packed((5, 9)), 700).lookup(4) == TimestampOffset(-1, 700)
    assert TimeIndex.from_bytes(packed((5, 9)), 700).lookup(-1) == TimestampOffset(-1, 700)


@st.composite
def sorted_entries(draw: st.DrawFn) -> list[tuple[int, int]]:
    timestamps = sorted(draw(st.sets(st.integers(0, 60) | st.integers(0, 2**63 - 1), max_size=20)))
    offsets = st.integers(0, 2**31 - 1)
    return list(zip(timestamps, sorted(draw(offsets) for _ in timestamps), strict=True))


def floor(entries: list[tuple[int, int]], timestamp_ms: int) -> tuple[int, int]:
    found = (-1, 0)
    for entry in entries:
        if entry[0] <= timestamp_ms:
            found = entry
    return found


@pytest.mark.req("SEG-TIX-008", "SEG-TIX-009")
@given(
    entries=sorted_entries(),
    zero_slots=st.integers(0, 5),
    rest=st.binary(max_size=11),
    base=st.sampled_from([0, 1, 368_769, 2**62]),
    queries=st.lists(st.integers(-5, 70) | st.integers(-(2**40), 2**63), max_size=20),
)
def test_lookup_is_the_floor_of_any_sorted_index(
    entries: list[tuple[int, int]], zero_slots: int, rest: bytes, base: int, queries: list[int]
) -> None:
    index = TimeIndex.from_bytes(packed(*entries) + ZERO_SLOT * zero_slots + rest, base)
    if zero_slots and not entries:
        entries = [(0, 0)]  # a first slot of zeros may be real
    for timestamp_ms in [*queries, *(timestamp for timestamp, _ in entries)]:
        expected, offset = floor(entries, timestamp_ms)
        assert index.lookup(timestamp_ms) == TimestampOffset(expected, base + offset)


@pytest.mark.req("SEG-TIX-009")
@pytest.mark.parametrize(
    ("slots", "count"),
    [
        ([], 0),
        ([(1030, 3), (1040, 7)], 2),
        ([(1030, 3), (1040, 3)], 2),  # one offset may have two timestamps
        ([(1030, 3), (1040, 7), (0, 0), (0, 0)], 2),  # preallocated
        ([(1030, 3), (1030, 7), (1040, 9)], 1),
        ([(1030, 3), (1029, 7), (1040, 9)], 1),
        ([(1030, 3), (1040, 2), (1050, 9)], 1),
        ([(1030, -1), (1040, 2)], 0),
        ([(-1, 3), (1040, 4)], 0),
        ([(0, 0), (5, 0)], 2),
        ([(0, 0), (0, 0), (5, 4)], 1),
    ],
)
def test_entries_end_where_the_order_breaks(slots: list[tuple[int, int]], count: int) -> None:
    assert pairs(TimeIndex.from_bytes(packed(*slots), 0).entries) == slots[:count]


@pytest.mark.req("SEG-TIX-009")
@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), max_size=12), st.binary(max_size=11))
def test_any_slots_are_listed_and_the_usable_ones_are_in_order(slots: list[tuple[int, int]], rest: bytes) -> None:
    index = TimeIndex.from_bytes(packed(*slots) + rest, 0)
    listed = len(slots) - index.trailing_zero_count
    assert (index.slot_count, index.trailing_size) == (len(slots), len(rest))
    assert pairs(index.raw_entries()) == slots[:listed]
    assert set(slots[listed:]) <= {(0, 0)}
    assert listed == 0 or slots[listed - 1] != (0, 0)
    usable = pairs(index.entries)
    steps = list(zip([(-1, 0), *slots], slots, strict=False))
    in_order = [before[0] < after[0] and before[1] <= after[1] for before, after in steps]
    assert usable == slots[: in_order.index(False) if False in in_order else len(slots)]


@pytest.mark.req("SEG-TIX-007")
def test_a_preallocated_index_is_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.timeindex"
    path.write_bytes(vector("V-26-timeindex").ljust(10_485_756, b"\0"))
    with TimeIndex.open(path, 0) as index:
        assert (index.file_size, index.slot_count, index.trailing_zero_count) == (10_485_756, 873_813, 873_806)
        assert len(index.raw_entries()) == len(index.entries) == 7
        assert index.lookup(10**15) == TimestampOffset(1701, 15)


@pytest.mark.req("SEG-TIX-008")
def test_every_truncation_and_every_other_byte_gives_an_answer() -> None:
    data = vector("V-26-timeindex")
    damaged = [data[:size] for size in range(len(data))]
    for position in range(len(data)):
        values = {data[position] ^ 1 << bit for bit in range(8)} | {0x00, 0x7F, 0x80, 0xFF}
        damaged += [data[:position] + bytes([value]) + data[position + 1 :] for value in values]
    for variant in damaged:
        index = TimeIndex.from_bytes(variant, 0)
        for timestamp_ms in (-1, 0, 1100, 1101, 1400, 1701, 2**63 - 1):
            answer = index.lookup(timestamp_ms)
            usable = [entry for entry in index.entries if entry.timestamp_ms <= timestamp_ms]
            assert answer == (usable[-1] if usable else TimestampOffset(-1, 0))


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=pytest.mark.req(block.breaks or "SEG-TIX-005")) for block in EXAMPLES],
    ids=lambda block: block.breaks or f"valid-{block.options['name']}",
)
def test_examples_break_what_they_say_first(tmp_path: Path, block: Example) -> None:
    path = write_example(tmp_path, CHAPTER, block)
    assert broken(path, "time-index")[:1] == ([block.breaks] if block.breaks else [])


@pytest.mark.req("SEG-TIX-001")
def test_bytes_after_the_last_entry_are_reported_and_passed_over(tmp_path: Path) -> None:
    log, block = example(CHAPTER, "four-batches").data, example(CHAPTER, "by-batch")
    assert pairs(TimeIndex.from_bytes(block.data + bytes(8), 10).entries) == [(1030, 13), (1040, 17)]
    path = partition(tmp_path, 10, {"batch": log, "time-index": block.data + bytes(8)})
    assert broken(path, "time-index") == ["SEG-TIX-001"]


@pytest.mark.req("SEG-TIX-002")
def test_a_timestamp_of_nothing_is_reported(tmp_path: Path) -> None:
    log = example(CHAPTER, "four-batches").data
    path = partition(tmp_path, 10, {"batch": log, "time-index": packed((-1, 0))})
    assert broken(path, "time-index")[:1] == ["SEG-TIX-002"]


@pytest.mark.req("SEG-TIX-003")
def test_an_offset_below_the_segment_is_reported(tmp_path: Path) -> None:
    log = example(CHAPTER, "four-batches").data
    path = partition(tmp_path, 10, {"batch": log, "time-index": packed((1030, -1), (1040, 7))})
    assert broken(path, "time-index")[:1] == ["SEG-TIX-003"]


@pytest.mark.req("SEG-TIX-004")
@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ((1010, 1), []),
        ((1029, 2), ["SEG-TIX-005"]),  # the youngest record of that batch might stand behind offset 12
        ((1029, 3), ["SEG-TIX-004", "SEG-TIX-005"]),
        ((1020, 5), ["SEG-TIX-004"]),
        ((1040, 7), []),
        ((1041, 7), ["SEG-TIX-005"]),
        ((1040, 8), ["SEG-TIX-005"]),  # past the end of the log
    ],
)
def test_an_entry_is_held_against_the_log(tmp_path: Path, entry: tuple[int, int], found: list[str]) -> None:
    log = example(CHAPTER, "four-batches").data
    path = partition(tmp_path, 10, {"batch": log, "time-index": packed(entry)})
    assert broken(path, "time-index") == found


@pytest.mark.req("SEG-TIX-005")
def test_messages_without_timestamps_leave_entries_alone(tmp_path: Path) -> None:
    path = partition(tmp_path, 10, {"batch": vector("V-01"), "time-index": packed((1795224225020, 2))})
    assert broken(path, "time-index") == []


@pytest.mark.req("SEG-TIX-006")
@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([(1030, 3), (1040, 7)], []),
        ([(1030, 3)], ["SEG-TIX-006"]),
        ([], ["SEG-TIX-006"]),
    ],
)
def test_only_a_closed_segment_has_to_end_with_its_largest_timestamp(
    tmp_path: Path, entries: list[tuple[int, int]], found: list[str]
) -> None:
    files = {"batch": example(CHAPTER, "four-batches").data, "time-index": packed(*entries)}
    (tmp_path / "active").mkdir()
    assert broken(partition(tmp_path / "active", 10, files), "time-index") == []
    assert broken(partition(tmp_path, 10, files, next_base=18), "time-index") == found


@pytest.mark.req("SEG-TIX-006")
def test_an_index_with_preallocated_zeros_was_not_finished(tmp_path: Path) -> None:
    files = {"batch": example(CHAPTER, "four-batches").data, "time-index": packed((1030, 3), (0, 0))}
    assert broken(partition(tmp_path, 10, files, next_base=18), "time-index") == ["SEG-TIX-007"]


@pytest.mark.req("SEG-TIX-010", "SEG-TIX-007")
def test_indexes_of_real_brokers_hold_what_kafka_reads() -> None:
    count = 0
    for name, path, line in authentic_lines("timeIndex"):
        with TimeIndex.open(path, base_offset_of(path)) as index:
            assert pairs(index.raw_entries()) == [tuple(entry) for entry in line["entries"]], (name, path)
            numbers = (index.file_size, index.slot_count, index.trailing_zero_count)
            assert numbers == (line["fileBytes"], line["entryCount"], line["trailingZeroEntries"]), (name, path)
        count += 1
    assert count
