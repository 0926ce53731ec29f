"""The segments of a partition whose files are open: only the few that were used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

MAX_OPEN_SEGMENTS: Final = 16
"""Maximum number of segments with open files; a partition may have ten thousand segments."""

MAX_MAPPED_SIZE: Final = 1_900_000_000
"""Maximum bytes of logs mapped at once, unless a single log is larger: address space may be limited."""


class OpenSegment(Protocol):
    """A segment, for closing its files."""

    @property
    def base_offset(self) -> int:
        """The offset in the file names."""

    @property
    def size(self) -> int:
        """Size of the log in bytes."""

    @property
    def mapped(self) -> bool:
        """Return whether files are mapped instead of being read through windows."""

    def forget(self) -> None:
        """Release the memory that holds the bytes read so far."""

    def release(self) -> None:
        """Release the files; they open again when needed."""

    def close(self) -> None:
        """Close the files."""


class OpenSegments:
    """The segments of a partition with open files, in the order of their last use."""

    def __init__(self, limit: int = MAX_OPEN_SEGMENTS) -> None:
        self._limit = limit
        self._open: OrderedDict[int, OpenSegment] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def use(self, segment: OpenSegment) -> None:
        """Record that a segment is in use; release the least recently used if too many or too large ones are open.

        The one used before keeps no window: of all open files together, only one window is in memory.
        """
        previous = next(reversed(self._open.values()), None)
        if previous is segment:
            return
        if previous is not None and not previous.mapped:
            previous.forget()
        is_known = self._open.get(segment.base_offset) is segment
        self._open[segment.base_offset] = segment
        self._open.move_to_end(segment.base_offset)
        if is_known:
            return
        while len(self._open) > self._limit or (len(self._open) > 1 and self._mapped_size > MAX_MAPPED_SIZE):
            _, oldest = self._open.popitem(last=False)
            oldest.release()

    @property
    def _mapped_size(self) -> int:
        return sum(segment.size for segment in self._open.values() if segment.mapped)

    def close(self) -> None:
        """Close all segments."""
        while self._open:
            self._open.popitem()[1].close()
