"""The rules that an index and its log must follow: one generator for each requirement, over rows of plain numbers.

The rules use neither files nor findings, so checks, tests and index builders can share them. They require only what all
broker versions do: an index may have entries at any distance, and an entry may hold any offset of the batches that were
appended together at its position.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.model import AbortedTxn, OffsetPosition, TimestampOffset
    from seglog_format.record_model import ProducerStateEntry


class Violation(NamedTuple):
    """A slot that breaks a requirement.

    Attributes:
        slot: number of the entry, from 0.
        requirement: id of the broken requirement.
        field: of the entry.
        expected: what the requirement asks for, as a short text.
        found: the value found instead.
    """

    slot: int
    requirement: str
    field: str
    expected: str
    found: int


# Chapter 40


def relative_offsets_not_negative(entries: Sequence[OffsetPosition], base_offset: int) -> Iterator[Violation]:
    """Check SEG-IDX-002."""
    for slot, entry in enumerate(entries):
        if entry.offset < base_offset:
            yield Violation(slot, "SEG-IDX-002", "relative_offset", "0 or more", entry.offset - base_offset)


def positions_start_entries(entries: Sequence[OffsetPosition], log: LogOutline) -> Iterator[Violation]:
    """Check SEG-IDX-003."""
    for slot, entry in enumerate(entries):
        if not log.is_start(entry.position):
            yield Violation(slot, "SEG-IDX-003", "position", "where an entry of the log starts", entry.position)


def offsets_increase(entries: Sequence[OffsetPosition]) -> Iterator[Violation]:
    """Check SEG-IDX-004."""
    for slot, (before, entry) in enumerate(pairwise(entries), start=1):
        if entry.offset <= before.offset:
            yield Violation(slot, "SEG-IDX-004", "relative_offset", f"an offset above {before.offset}", entry.offset)


def positions_increase(entries: Sequence[OffsetPosition]) -> Iterator[Violation]:
    """Check SEG-IDX-005."""
    for slot, (before, entry) in enumerate(pairwise(entries), start=1):
        if entry.position <= before.position:
            yield Violation(slot, "SEG-IDX-005", "position", f"a position above {before.position}", entry.position)


def offsets_match_positions(
    entries: Sequence[OffsetPosition], base_offset: int, log: LogOutline
) -> Iterator[Violation]:
    """Check SEG-IDX-006, except for slots that break SEG-IDX-002 or SEG-IDX-003."""
    for slot, entry in enumerate(entries):
        before = log.last_offset_before(entry.position)
        if before is None or entry.offset < base_offset:
            continue
        first = log.base_offset_at(entry.position)
        if entry.offset <= before:
            expected = f"an offset above {before}, where the entries before the position end"
            yield Violation(slot, "SEG-IDX-006", "relative_offset", expected, entry.offset)
        elif first is not None and first > entry.offset:
            expected = f"an offset of {first} or more, where the entry at the position starts"
            yield Violation(slot, "SEG-IDX-006", "relative_offset", expected, entry.offset)


# Chapter 41


def timestamps_increase(entries: Sequence[TimestampOffset]) -> Iterator[Violation]:
    """Check SEG-TIX-002."""
    last_timestamp_ms = NO_TIMESTAMP
    for slot, entry in enumerate(entries):
        if entry.timestamp_ms <= last_timestamp_ms:
            expected = f"a timestamp above {last_timestamp_ms}"
            yield Violation(slot, "SEG-TIX-002", "timestamp_ms", expected, entry.timestamp_ms)
        last_timestamp_ms = entry.timestamp_ms


def time_offsets_do_not_decrease(entries: Sequence[TimestampOffset], base_offset: int) -> Iterator[Violation]:
    """Check SEG-TIX-003."""
    last_offset = base_offset
    for slot, entry in enumerate(entries):
        if entry.offset < last_offset:
            yield Violation(slot, "SEG-TIX-003", "relative_offset", f"an offset of {last_offset} or more", entry.offset)
        last_offset = max(entry.offset, base_offset)


def later_timestamps_follow(entries: Sequence[TimestampOffset], log: LogOutline) -> Iterator[Violation]:
    """Check SEG-TIX-004, against log entries that end at or below the offset of an index entry.

    The header of any other log entry does not show whether its largest timestamp is before that offset.
    """
    for slot, entry in enumerate(entries):
        largest = log.timestamp_up_to(entry.offset)
        if largest > entry.timestamp_ms:
            expected = f"a timestamp of {largest} or more, which the log has reached at offset {entry.offset}"
            yield Violation(slot, "SEG-TIX-004", "timestamp_ms", expected, entry.timestamp_ms)


def timestamps_match_log(entries: Sequence[TimestampOffset], log: LogOutline) -> Iterator[Violation]:
    """Check SEG-TIX-005."""
    for slot, entry in enumerate(entries):
        row = log.row_with(entry.offset)
        if row is None:
            if log.is_whole:
                yield Violation(slot, "SEG-TIX-005", "relative_offset", "an offset that the log holds", entry.offset)
        elif row.magic > 0 and row.max_timestamp_ms != entry.timestamp_ms:
            expected = f"{row.max_timestamp_ms}, the largest of the log entry with offset {entry.offset}"
            yield Violation(slot, "SEG-TIX-005", "timestamp_ms", expected, entry.timestamp_ms)


def last_timestamp_is_largest(entries: Sequence[TimestampOffset], log: LogOutline) -> Iterator[Violation]:
    """Check SEG-TIX-006, for segments that are not active."""
    if not log.is_whole:
        return
    largest = max((row.max_timestamp_ms for row in log.rows if not row.is_empty), default=NO_TIMESTAMP)
    recorded = entries[-1].timestamp_ms if entries else 0  # one entry (0, base offset) looks like zeros
    if recorded < largest:
        slot = max(len(entries) - 1, 0)
        yield Violation(slot, "SEG-TIX-006", "timestamp_ms", f"{largest}, the largest of the segment", recorded)


# Chapter 42


def aborts_not_below_segment(entries: Sequence[AbortedTxn], base_offset: int) -> Iterator[Violation]:
    """Check SEG-TXN-003."""
    for slot, entry in enumerate(entries):
        if entry.last_offset < base_offset:
            yield Violation(slot, "SEG-TXN-003", "last_offset", f"{base_offset} or more", entry.last_offset)


def aborts_in_order(entries: Sequence[AbortedTxn]) -> Iterator[Violation]:
    """Check SEG-TXN-004."""
    for slot, (before, entry) in enumerate(pairwise(entries), start=1):
        if entry.last_offset <= before.last_offset:
            expected = f"an offset above {before.last_offset}"
            yield Violation(slot, "SEG-TXN-004", "last_offset", expected, entry.last_offset)


def aborted_from_first_to_last(entries: Sequence[AbortedTxn]) -> Iterator[Violation]:
    """Check SEG-TXN-005."""
    for slot, entry in enumerate(entries):
        if not 0 <= entry.first_offset <= entry.last_offset:
            yield Violation(slot, "SEG-TXN-005", "first_offset", f"0 to {entry.last_offset}", entry.first_offset)


def aborts_have_markers(entries: Sequence[AbortedTxn], markers: Mapping[int, int]) -> Iterator[Violation]:
    """Check SEG-TXN-006.

    Args:
        entries: of the index.
        markers: producer ids by offset, of each ABORT record of the segment and of each control batch that compaction
            has emptied.
    """
    for slot, entry in enumerate(entries):
        if markers.get(entry.last_offset) != entry.producer_id:
            expected = f"the offset of an ABORT record of producer {entry.producer_id}"
            yield Violation(slot, "SEG-TXN-006", "last_offset", expected, entry.last_offset)


def last_stable_offsets_in_range(entries: Sequence[AbortedTxn]) -> Iterator[Violation]:
    """Check SEG-TXN-008."""
    for slot, entry in enumerate(entries):
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            expected = f"0 to {entry.last_offset + 1}"
            yield Violation(slot, "SEG-TXN-008", "last_stable_offset", expected, entry.last_stable_offset)


# Chapter 50

SNAPSHOT_NUMBERS = (
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "offset_delta",
    "timestamp_ms",
    "coordinator_epoch",
    "current_txn_first_offset",
)


def producers_are_sound(producers: Sequence[ProducerStateEntry]) -> Iterator[Violation]:
    """Check SEG-PSN-004."""
    seen: set[int] = set()
    for slot, entry in enumerate(producers):
        if entry.producer_id < 0 or entry.producer_id in seen:
            expected = "an id of 0 or more that did not occur before"
            yield Violation(slot, "SEG-PSN-004", "producer_id", expected, entry.producer_id)
        seen.add(entry.producer_id)
        for name in SNAPSHOT_NUMBERS:
            if getattr(entry, name) < -1:
                yield Violation(slot, "SEG-PSN-004", name, "-1 or more", getattr(entry, name))


def snapshot_offsets_below_name(producers: Sequence[ProducerStateEntry], offset: int) -> Iterator[Violation]:
    """Check SEG-PSN-006.

    Args:
        producers: of the snapshot.
        offset: the number in the file's name.
    """
    for slot, entry in enumerate(producers):
        for name in ("last_offset", "current_txn_first_offset"):
            if getattr(entry, name) >= offset:
                yield Violation(slot, "SEG-PSN-006", name, f"below {offset}", getattr(entry, name))


# -- the outline of a log that an index is checked against: start, offsets and largest timestamp of each entry ---------


class LogRow(NamedTuple):
    """The values of one log entry that an index is checked against.

    Attributes:
        position: byte position in the file.
        base_offset: first offset; None for a compressed wrapper, which does not store it.
        last_offset: last offset.
        max_timestamp_ms: largest timestamp, or -1.
        magic: 0, 1 or 2.
        is_empty: whether compaction has removed every record, so the largest timestamp may be that of a removed record.
    """

    position: int
    base_offset: int | None
    last_offset: int
    max_timestamp_ms: int
    magic: int
    is_empty: bool = False


class LogOutline:
    """The rows of a log, indexed by position and by offset.

    Args:
        rows: whole entries in file order.
        partial_at: start of a last entry that is incomplete; None if there is none.
        unknown_from: position from which on damage hides the entries; None without damage.
    """

    def __init__(
        self, rows: Iterable[LogRow], *, partial_at: int | None = None, unknown_from: int | None = None
    ) -> None:
        self.rows = tuple(rows)
        self.partial_at = partial_at
        self.unknown_from = unknown_from
        self._slots = {row.position: slot for slot, row in enumerate(self.rows)}
        if partial_at is not None:
            self._slots[partial_at] = len(self.rows)
        self._last_before = (-1, *accumulate((row.last_offset for row in self.rows), max))
        self._by_offset = sorted(self.rows, key=_last_offset)
        timestamps = (NO_TIMESTAMP if row.is_empty else row.max_timestamp_ms for row in self._by_offset)
        self._timestamp_up_to = (NO_TIMESTAMP, *accumulate(timestamps, max))

    @property
    def is_whole(self) -> bool:
        """Return whether the rows cover the whole file."""
        return self.partial_at is None and self.unknown_from is None

    def is_start(self, position: int) -> bool:
        """Return whether an entry starts at a position; also True for a position that damage hides."""
        return position in self._slots or (self.unknown_from is not None and position >= self.unknown_from)

    def last_offset_before(self, position: int) -> int | None:
        """Return the greatest last offset of the entries before a position; None if no entry starts there."""
        slot = self._slots.get(position)
        return None if slot is None else self._last_before[slot]

    def base_offset_at(self, position: int) -> int | None:
        """Return the base offset of the entry at a position, if it is known."""
        slot = self._slots.get(position)
        return None if slot is None or slot == len(self.rows) else self.rows[slot].base_offset

    def timestamp_up_to(self, offset: int) -> int:
        """Return the largest timestamp of the entries that end at or below an offset; -1 without any."""
        return self._timestamp_up_to[bisect_right(self._by_offset, offset, key=_last_offset)]

    def row_with(self, offset: int) -> LogRow | None:
        """Return the entry that covers an offset, even if compaction has removed its record."""
        slot = bisect_left(self._by_offset, offset, key=_last_offset)
        if slot == len(self._by_offset):
            return None
        row = self._by_offset[slot]
        return row if row.base_offset is None or row.base_offset <= offset else None


def _last_offset(row: LogRow) -> int:
    return row.last_offset
