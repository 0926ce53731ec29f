"""The time index of a segment: from timestamps to offsets (chapter 41)."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from seglog_format.codec.index_entries import usable_time_slots
from seglog_format.log.index_file import IndexFile
from seglog_format.model import NO_TIMESTAMP, TimestampOffset
from seglog_format.schema.fixed_fields import TIME_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable


class TimeIndex(IndexFile[TimestampOffset]):
    """A time index; its entries have absolute offsets."""

    layout = TIME_INDEX_ENTRY

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """Return the offset up to which no record is later than a timestamp (SEG-TIX-008).

        Args:
            timestamp_ms: milliseconds since 1970; any integer.

        Returns:
            The last entry whose timestamp is not greater, else timestamp -1 with the segment's base offset.
        """
        count = bisect_right(self.entries, timestamp_ms, key=_timestamp_ms)
        return self.entries[count - 1] if count else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def _decode(self, first: int, second: int) -> TimestampOffset:
        return TimestampOffset(first, self.base_offset + second)

    def _usable_count(self, fields: Iterable[tuple[int, int]]) -> int:
        return usable_time_slots(fields)


def _timestamp_ms(entry: TimestampOffset) -> int:
    return entry.timestamp_ms
