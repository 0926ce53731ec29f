"""The outline of a log that an index is checked against: start, offsets and largest timestamp of each entry."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable


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
