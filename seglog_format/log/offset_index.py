"""The offset index of a segment: from offsets to byte positions (chapter 40)."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from seglog_format.codec.index_entries import usable_offset_slots
from seglog_format.log.index_file import IndexFile
from seglog_format.model import OffsetPosition
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable


class OffsetIndex(IndexFile[OffsetPosition]):
    """An offset index; its entries have absolute offsets. Only the log decides what is in it (SEG-IDX-009)."""

    layout = OFFSET_INDEX_ENTRY

    def lookup(self, offset: int) -> OffsetPosition:
        """Return where to start searching the log for an offset (SEG-IDX-008).

        Args:
            offset: absolute; any integer.

        Returns:
            The last entry whose offset is not greater, else the segment's base offset with position 0.
        """
        count = bisect_right(self.entries, offset, key=_offset)
        return self.entries[count - 1] if count else OffsetPosition(self.base_offset, 0)

    def _decode(self, first: int, second: int) -> OffsetPosition:
        return OffsetPosition(self.base_offset + first, second)

    def _usable_count(self, fields: Iterable[tuple[int, int]]) -> int:
        return usable_offset_slots(fields)


def _offset(entry: OffsetPosition) -> int:
    return entry.offset
