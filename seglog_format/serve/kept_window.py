"""Drops what was read of log files after use, so a server's memory does not grow with the partitions it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment

DROP_SIZE: Final = 1 << 19
"""Bytes read before the window that holds the last of them is dropped; windows become larger until then."""


class KeptWindow:
    """Limits what one partition keeps in memory to a small window of one segment. Callers hold the partition's lock."""

    def __init__(self) -> None:
        self._segment: LogSegment | None = None
        self._size = 0

    def used(self, segment: LogSegment, size: int) -> None:
        """Record that `size` bytes of a segment were read, and are no longer needed."""
        if segment is not self._segment:
            self.drop()
            self._segment = segment
        self._size += size
        if self._size >= DROP_SIZE:
            self.drop()

    def drop(self) -> None:
        """Drop the window."""
        if self._segment is not None:
            self._segment.forget()
        self._segment, self._size = None, 0
