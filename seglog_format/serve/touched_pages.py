"""Pages of log files that were looked at: let go again, so that a server's memory does not grow with what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment

LET_GO_SIZE: Final = 1 << 19
"""Bytes that are looked at before their pages are let go. The system maps some more pages around each."""


class TouchedPages:
    """Of one partition, at most a few of one segment stay mapped. Whoever uses it holds the lock of the partition."""

    def __init__(self) -> None:
        self._segment: LogSegment | None = None
        self._size = 0

    def touch(self, segment: LogSegment, size: int) -> None:
        """So many bytes of a segment were looked at, and are not needed any more."""
        if segment is not self._segment:
            self.let_go()
            self._segment = segment
        self._size += size
        if self._size >= LET_GO_SIZE:
            self.let_go()

    def let_go(self) -> None:
        """Keep none."""
        if self._segment is not None:
            self._segment.forget()
        self._segment, self._size = None, 0
