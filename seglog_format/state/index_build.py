"""Computing the indexes of a segment from its log, as a broker's recovery does (chapters 40, 41 and 71).

Recovery has always taken one entry of the log as the unit of the sparse rule, so its result depends on the log alone,
on `index.interval.bytes`, and on which offset that generation of brokers stores.
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
    """What indexing needs to know of one entry of a log.

    Attributes:
        position: byte position in the file.
        size: bytes.
        first_offset: of its first record, decompressed where that is needed.
        last_offset: of its last.
        max_timestamp_ms: largest timestamp, or -1.
    """

    position: int
    size: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BuiltIndexes:
    """The entries of both indexes, in order."""

    offset_entries: tuple[OffsetPosition, ...]
    time_entries: tuple[TimestampOffset, ...]


class IndexBuilder:
    """Collects index entries while a log is walked from its start.

    Args:
        interval_bytes: `index.interval.bytes`, 0 or more.
        indexed_offset: which offset the offset index stores.
    """

    def __init__(
        self,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
        indexed_offset: IndexedOffset = IndexedOffset.LAST,
    ) -> None:
        self.interval_bytes = interval_bytes
        self.indexed_offset = indexed_offset
        self._bytes_since_last_entry = 0
        self._largest = TimestampOffset(NO_TIMESTAMP, 0)
        self._offset_entries: list[OffsetPosition] = []
        self._time_entries: list[TimestampOffset] = []

    def add(self, row: IndexedRow) -> None:
        """Account for the next entry of the log; index it if more than the interval lies behind."""
        if row.max_timestamp_ms > self._largest.timestamp_ms:
            self._largest = TimestampOffset(row.max_timestamp_ms, row.last_offset)
        if self._bytes_since_last_entry > self.interval_bytes:
            offset = row.last_offset if self.indexed_offset is IndexedOffset.LAST else row.first_offset
            self._offset_entries.append(OffsetPosition(offset, row.position))
            self._add_largest_timestamp()
            self._bytes_since_last_entry = 0
        self._bytes_since_last_entry += row.size

    def _add_largest_timestamp(self) -> None:
        last = self._time_entries[-1].timestamp_ms if self._time_entries else NO_TIMESTAMP
        if self._largest.timestamp_ms > last:
            self._time_entries.append(self._largest)

    def finish(self) -> BuiltIndexes:
        """The indexes of the entries so far, with the largest timestamp at the end (SEG-TIX-006)."""
        self._add_largest_timestamp()
        return BuiltIndexes(tuple(self._offset_entries), tuple(self._time_entries))


def build_indexes(
    rows: Iterable[IndexedRow],
    *,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
    indexed_offset: IndexedOffset = IndexedOffset.LAST,
) -> BuiltIndexes:
    """Index a whole segment.

    Args:
        rows: its entries in file order.
        interval_bytes: `index.interval.bytes`.
        indexed_offset: which offset the offset index stores.
    """
    builder = IndexBuilder(interval_bytes, indexed_offset)
    for row in rows:
        builder.add(row)
    return builder.finish()


def encode_offset_index(entries: Sequence[OffsetPosition], base_offset: int) -> bytes:
    """The bytes of an offset index; offsets are stored relative to the segment's base offset (SEG-IDX-002)."""
    return b"".join(OFFSET_INDEX_ENTRY.pack(entry.offset - base_offset, entry.position) for entry in entries)


def encode_time_index(entries: Sequence[TimestampOffset], base_offset: int) -> bytes:
    """The bytes of a time index."""
    return b"".join(TIME_INDEX_ENTRY.pack(entry.timestamp_ms, entry.offset - base_offset) for entry in entries)


def interval_bounds(rows: Sequence[IndexedRow], entries: Sequence[OffsetPosition]) -> range:
    """The settings of `index.interval.bytes` under which recovery would have written these entries.

    Args:
        rows: entries of the log in file order.
        entries: of the segment's offset index.

    Returns:
        Smallest to largest; empty where no setting explains the entries.
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
