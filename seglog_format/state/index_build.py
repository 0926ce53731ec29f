"""Computation of a segment's indexes from its log, as a broker's recovery does it (chapters 40, 41 and 71).

In every version, recovery adds at most one index entry for each entry of the log. So its result depends only on the
log, on `index.interval.bytes`, and on which offset that generation of brokers stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from seglog_format.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INDEX_INTERVAL_BYTES: Final = 4096
"""Default of `index.interval.bytes`."""


class IndexedOffset(Enum):
    """Which offset of an entry the offset index stores (SEG-IDX-006 allows both)."""

    LAST = "last"
    """2.0 and later."""

    FIRST = "first"
    """0.8.0 to 1.1."""


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """The values of one log entry that indexing needs.

    Attributes:
        position: byte position in the file.
        size: in bytes.
        first_offset: offset of the first record; a wrapper has to be decompressed to find it.
        last_offset: offset of the last record.
        max_timestamp_ms: largest timestamp, or -1.
    """

    position: int
    size: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BuiltIndexes:
    """The entries of an offset index and a time index, in order."""

    offset_entries: tuple[OffsetPosition, ...]
    time_entries: tuple[TimestampOffset, ...]


class IndexInterval:
    """The rule when index entries are due: when more bytes than the interval follow the last index entries.

    Args:
        interval_bytes: `index.interval.bytes`, 0 or more.
        largest: largest timestamp so far, with its offset.

    Attributes:
        largest: largest timestamp so far, including the units added.
    """

    def __init__(self, interval_bytes: int, largest: TimestampOffset) -> None:
        self.largest = largest
        self._interval = interval_bytes
        # Brokers keep this count in memory only, so it begins at 0 when a log is opened (SEG-ROL-012).
        self._bytes_since_last_entry = 0

    def add(self, size: int, largest: TimestampOffset) -> bool:
        """Add the next unit of the log; return whether index entries are due at its start (SEG-ROL-010).

        Args:
            size: size of the unit in bytes.
            largest: its largest timestamp, with the offset that a time index stores.
        """
        if largest.timestamp_ms > self.largest.timestamp_ms:
            self.largest = largest
        is_due = self._bytes_since_last_entry > self._interval
        self._bytes_since_last_entry = size if is_due else self._bytes_since_last_entry + size
        return is_due


class IndexBuilder:
    """Collects index entries while a log is walked from its start.

    Args:
        interval_bytes: `index.interval.bytes`, 0 or more.
        indexed_offset: which offset the offset index stores.

    Attributes:
        offset_entries: of the offset index, so far.
        time_entries: of the time index, so far; `finish` adds the last one.
    """

    def __init__(
        self,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
        indexed_offset: IndexedOffset = IndexedOffset.LAST,
    ) -> None:
        self.offset_entries: list[OffsetPosition] = []
        self.time_entries: list[TimestampOffset] = []
        self._indexed_offset = indexed_offset
        self._interval = IndexInterval(interval_bytes, TimestampOffset(NO_TIMESTAMP, 0))

    def add(self, row: IndexedRow) -> None:
        """Add the next entry of the log; index it if index entries are due."""
        if self._interval.add(row.size, TimestampOffset(row.max_timestamp_ms, row.last_offset)):
            offset = row.last_offset if self._indexed_offset is IndexedOffset.LAST else row.first_offset
            self.add_offset_entry(OffsetPosition(offset, row.position))
            self.add_time_entry(self._interval.largest)

    def add_offset_entry(self, entry: OffsetPosition) -> None:
        """Add an entry to the offset index."""
        self.offset_entries.append(entry)

    def add_time_entry(self, largest: TimestampOffset) -> None:
        """Add an entry to the time index if its timestamp is larger than that of the last entry."""
        if largest.timestamp_ms > (self.time_entries[-1].timestamp_ms if self.time_entries else NO_TIMESTAMP):
            self.time_entries.append(largest)

    def finish(self) -> BuiltIndexes:
        """Add the largest timestamp to the time index (SEG-TIX-006), and return both indexes."""
        self.add_time_entry(self._interval.largest)
        return BuiltIndexes(tuple(self.offset_entries), tuple(self.time_entries))


def build_indexes(
    rows: Iterable[IndexedRow],
    *,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
    indexed_offset: IndexedOffset = IndexedOffset.LAST,
) -> BuiltIndexes:
    """Index a whole segment.

    Args:
        rows: of the entries of the log, in file order.
        interval_bytes: `index.interval.bytes`.
        indexed_offset: which offset the offset index stores.
    """
    builder = IndexBuilder(interval_bytes, indexed_offset)
    for row in rows:
        builder.add(row)
    return builder.finish()


def encode_offset_index(entries: Sequence[OffsetPosition], base_offset: int) -> bytes:
    """Encode an offset index; offsets are stored relative to the segment's base offset (SEG-IDX-002)."""
    return b"".join(OFFSET_INDEX_ENTRY.pack(entry.offset - base_offset, entry.position) for entry in entries)


def encode_time_index(entries: Sequence[TimestampOffset], base_offset: int) -> bytes:
    """Encode a time index."""
    return b"".join(TIME_INDEX_ENTRY.pack(entry.timestamp_ms, entry.offset - base_offset) for entry in entries)


def interval_bounds(rows: Sequence[IndexedRow], entries: Sequence[OffsetPosition]) -> range:
    """Return the settings of `index.interval.bytes` under which recovery would have written these entries.

    Args:
        rows: entries of the log in file order.
        entries: of the segment's offset index.

    Returns:
        Smallest to largest setting; empty if no setting explains the entries.
    """
    smallest, largest = 0, 2**31 - 1
    indexed = {entry.position for entry in entries}
    start = 0
    for row in rows:
        span = row.position - start
        if row.position in indexed:
            largest, start = min(largest, span - 1), row.position
        else:
            smallest = max(smallest, span)
    return range(smallest, largest + 1)
