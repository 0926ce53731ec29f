"""Unmaps pages of log files after use, so a server's memory does not grow with what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment

UNMAP_SIZE: Final = 1 << 19
"""Bytes read before their pages are unmapped. The system maps some more pages around each."""


class TouchedPages:
    """Limits the mapped pages of one partition to a few of one segment. Callers hold the partition's lock."""

    def __init__(self) -> None:
        self._segment: LogSegment | None = None
        self._size = 0

    def touch(self, segment: LogSegment, size: int) -> None:
        """Record that `size` bytes of a segment were read, and are no longer needed."""
        if segment is not self._segment:
            self.unmap()
            self._segment = segment
        self._size += size
        if self._size >= UNMAP_SIZE:
            self.unmap()

    def unmap(self) -> None:
        """Unmap all pages."""
        if self._segment is not None:
            self._segment.forget()
        self._segment, self._size = None, 0
