"""Which segments of a partition keep their files open: only the few that were used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment

MAX_OPEN_SEGMENTS: Final = 16
"""So many segments of a partition keep their files open; a directory may hold ten thousand."""


class OpenSegments:
    """The segments of a partition whose files are open, the one used last at the end."""

    def __init__(self, limit: int = MAX_OPEN_SEGMENTS) -> None:
        self._limit = limit
        self._open: OrderedDict[int, LogSegment] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def use(self, segment: LogSegment) -> None:
        """Note that a segment is in use; let go of the one that was not for longest, if they are too many."""
        self._open[segment.base_offset] = segment
        self._open.move_to_end(segment.base_offset)
        if len(self._open) > self._limit:
            _, oldest = self._open.popitem(last=False)
            oldest.release()

    def close(self) -> None:
        """Close them all."""
        while self._open:
            self._open.popitem()[1].close()
