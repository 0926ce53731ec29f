"""Chapter 42: the transaction index."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import pytest
from helpers.index_files import authentic_lines, base_offset_of, broken, example, examples, partition, write_example
from helpers.support import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec import reference
from seglog_format.errors import Location, UnsupportedVersionError
from seglog_format.log.index_file import TransactionIndex, TxnIndexSearchResult
from seglog_format.model import AbortedTxn

if TYPE_CHECKING:
    from pathlib import Path

    from helpers.index_files import Example

CHAPTER = "42-transaction-index"
BROKEN = [block for block in examples(CHAPTER) if block.breaks]
KAFKA = "0000 000000000000004d 0000000000000000 0000000000000003 0000000000000002"
"""Observed from Kafka 4.1.1."""


def packed(*entries: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)


@pytest.mark.req("SEG-TXN-009")
def test_an_entry_has_34_bytes_and_absolute_offsets() -> None:
    data = bytes.fromhex(KAFKA)
    assert len(data) == 34
    index = TransactionIndex.from_bytes(data, 0)
    assert index.entries == (AbortedTxn(0, 77, 0, 3, 2),)
    assert example(CHAPTER, "kafka").data == data
    numbers = "0000 0102030405060708 1112131415161718 2122232425262728 3132333435363738"
    (entry,) = TransactionIndex.from_bytes(bytes.fromhex(numbers), 10**9).entries
    assert reference.decode_transaction_index(bytes.fromhex(numbers), Location()) == (entry,)
    assert (entry.producer_id, entry.first_offset) == (0x0102030405060708, 0x1112131415161718)
    assert (entry.last_offset, entry.last_stable_offset) == (0x2122232425262728, 0x3132333435363738)


@pytest.mark.req("SEG-TXN-001")
def test_every_truncation_leaves_the_whole_entries() -> None:
    data = packed((77, 0, 3, 2), (88, 2, 5, 4), (77, 4, 9, 10))
    for size in range(len(data) + 1):
        index = TransactionIndex.from_bytes(data[:size], 0)
        assert len(index.entries) == size // 34
        assert (index.trailing_size, index.file_size) == (size % 34, size)


@pytest.mark.req("SEG-TXN-002")
@pytest.mark.parametrize("version", ["0001", "00ff", "0100", "7fff", "8000", "ffff"])
def test_another_version_is_refused_where_it_stands(version: str) -> None:
    data = bytes.fromhex(KAFKA + version + KAFKA[4:])
    with pytest.raises(UnsupportedVersionError) as caught:
        TransactionIndex.from_bytes(data, 0, "00000000000000000000.txnindex")
    assert caught.value.requirements == ("SEG-TXN-002",)
    assert caught.value.location.position == 34
    assert str(caught.value).startswith("00000000000000000000.txnindex:34: version: expected version 0, found")


@pytest.mark.req("SEG-TXN-002")
def test_every_other_byte_is_an_entry_or_a_refusal() -> None:
    data = packed((77, 0, 3, 2), (88, 2, 5, 4))
    for position in range(len(data)):
        for value in {data[position] ^ 1 << bit for bit in range(8)} | {0x00, 0x7F, 0x80, 0xFF}:
            variant = data[:position] + bytes([value]) + data[position + 1 :]
            if position % 34 < 2 and variant != data:
                with pytest.raises(UnsupportedVersionError, match="SEG-TXN-002"):
                    TransactionIndex.from_bytes(variant, 0)
            else:
                assert len(TransactionIndex.from_bytes(variant, 0).entries) == 2


@pytest.mark.req("SEG-TXN-007")
def test_a_search_answers_the_table_of_the_chapter() -> None:
    block = example(CHAPTER, "three")
    index = TransactionIndex.from_bytes(block.data, 0)
    text = (REPOSITORY / "spec" / f"{CHAPTER}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (none|[\d, ]+) \| (yes|no) \|$", text, re.MULTILINE)
    assert len(rows) == 7
    for from_offset, to_offset, numbers, complete in rows:
        expected = tuple(index.entries[int(number) - 1] for number in re.findall(r"\d+", numbers))
        answer = index.aborted(int(from_offset), int(to_offset))
        assert answer == TxnIndexSearchResult(expected, is_complete=complete == "yes"), (from_offset, to_offset)


@pytest.mark.req("SEG-TXN-007")
@pytest.mark.parametrize(
    ("from_offset", "to_offset", "is_found"),
    [(0, 1, True), (3, 4, True), (3, 10, True), (4, 10, False), (0, 0, False)],
)
def test_a_range_holds_its_start_but_not_its_end(from_offset: int, to_offset: int, is_found: bool) -> None:  # noqa: FBT001
    index = TransactionIndex.from_bytes(packed((77, 0, 3, 4)), 0)
    assert bool(index.aborted(from_offset, to_offset).aborted) == is_found


@pytest.mark.req("SEG-TXN-007")
def test_a_search_stops_at_the_entry_that_decides_everything_below() -> None:
    index = TransactionIndex.from_bytes(packed((77, 0, 3, 4), (88, 1, 9, 10)), 0)
    assert [entry.producer_id for entry in index.aborted(0, 4).aborted] == [77]
    assert [entry.producer_id for entry in index.aborted(0, 5).aborted] == [77, 88]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Return what happens at each offset of a partition: a producer's data, or its COMMIT or ABORT."""
    actions = st.tuples(st.sampled_from(["data", "data", "commit", "abort"]), st.integers(0, 3))
    return draw(st.lists(actions, max_size=40))


def index_of(history: list[tuple[str, int]]) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
    """Return the entries that a broker would write, and for each offset of aborted data where its marker is."""
    open_since: dict[int, int] = {}
    data: dict[int, list[int]] = {}
    entries, hidden = [], {}
    for offset, (action, producer) in enumerate(history):
        if action == "data":
            open_since.setdefault(producer, offset)
            data.setdefault(producer, []).append(offset)
            continue
        first = open_since.pop(producer, None)
        written = data.pop(producer, [])
        if action == "abort" and first is not None:
            entries.append((producer, first, offset, min(open_since.values(), default=offset + 1)))
            hidden |= dict.fromkeys(written, offset)
    return entries, hidden


@pytest.mark.req("SEG-TXN-007")
@given(histories(), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_a_search_finds_every_aborted_record_of_its_range(
    history: list[tuple[str, int]], first: int, second: int, cut: int
) -> None:
    from_offset, to_offset = sorted((first, second))
    entries, hidden = index_of(history)
    segments = [[entry for entry in entries if entry[2] < cut], [entry for entry in entries if entry[2] >= cut]]
    answers = []
    for segment in segments if from_offset < cut else segments[1:]:
        result = TransactionIndex.from_bytes(packed(*segment), 0).aborted(from_offset, to_offset)
        answers += [entry.last_offset for entry in result.aborted]
        if result.is_complete:
            break
    wanted = {marker for offset, marker in hidden.items() if from_offset <= offset < to_offset}
    assert wanted <= set(answers)


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=pytest.mark.req(block.breaks)) for block in BROKEN],
    ids=lambda block: block.breaks,
)
def test_examples_break_what_they_say_first(tmp_path: Path, block: Example) -> None:
    path = write_example(tmp_path, CHAPTER, block)
    assert broken(path, "transaction-index")[:1] == [block.breaks]


@pytest.mark.req("SEG-TXN-006")
@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ((9, 3, 5, 6), []),
        ((9, 3, 6, 7), ["SEG-TXN-006"]),
        ((8, 3, 5, 6), ["SEG-TXN-006"]),
    ],
)
def test_entries_are_held_against_the_markers_of_the_log(
    tmp_path: Path, entry: tuple[int, int, int, int], found: list[str]
) -> None:
    files = {"batch": example(CHAPTER, "abort").data, "transaction-index": packed(entry)}
    assert broken(partition(tmp_path, 5, files), "transaction-index") == found


@pytest.mark.req("SEG-TXN-008")
@pytest.mark.parametrize(
    ("last_stable_offset", "found"), [(-1, ["SEG-TXN-008"]), (0, []), (2, []), (6, []), (7, ["SEG-TXN-008"])]
)
def test_a_last_stable_offset_may_lie_before_its_transaction(
    tmp_path: Path, last_stable_offset: int, found: list[str]
) -> None:
    entry = (9, 3, 5, last_stable_offset)
    files = {"batch": example(CHAPTER, "abort").data, "transaction-index": packed(entry)}
    assert broken(partition(tmp_path, 5, files), "transaction-index") == found


@pytest.mark.req("SEG-TXN-005")
def test_a_negative_first_offset_is_reported(tmp_path: Path) -> None:
    files = {"batch": example(CHAPTER, "abort").data, "transaction-index": packed((9, -1, 5, 6))}
    assert broken(partition(tmp_path, 5, files), "transaction-index") == ["SEG-TXN-005"]


@pytest.mark.req("SEG-TXN-009")
def test_indexes_of_real_brokers_hold_what_kafka_reads() -> None:
    count = 0
    for name, path, line in authentic_lines("transactionIndex"):
        index = TransactionIndex.open(path, base_offset_of(path))
        found = [
            {
                "version": entry.version,
                "producerId": entry.producer_id,
                "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset,
                "lastStableOffset": entry.last_stable_offset,
            }
            for entry in index.entries
        ]
        assert found == line["aborted"], (name, path)
        assert index.trailing_size == 0
        count += 1
    assert count
