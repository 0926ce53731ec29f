"""A part of a log: the entries of a range of offsets, if other segments are used for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.closing import Closing
from seglog_format.codec.framing import walk
from seglog_format.storage.byte_source import Window

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import SourceFile


class SlicedBytes(Closing):
    """A part of a file, from one position to another, that is read like a whole file; a `SourceFile`.

    Attributes:
        path: of the whole file.
        size: size of the part in bytes.
    """

    def __init__(self, source: SourceFile, start: int, end: int) -> None:
        self._source, self._start = source, start
        self.path = source.path
        self.size = end - start

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of a range."""
        self._source.expect(start + self._start, min(self.size, end or self.size) + self._start)

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another, fewer at the end of the part."""
        return self._source.view(start + self._start, min(end, self.size) + self._start)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position."""
        start, data = self._source.window(position + self._start, min(at_least, self.size - position))
        cut = max(self._start - start, 0)
        data = data[cut : self._start + self.size - start]
        return Window(start + cut - self._start, data)

    def forget(self) -> None:
        """Release memory, as the whole file does."""
        self._source.forget()

    def release_before(self, position: int) -> None:
        """Release memory from time to time, as the whole file does."""
        self._source.release_before(position + self._start)

    def close(self) -> None:
        """Close the whole file."""
        self._source.close()


def slice_of(source: SourceFile, first_offset: int, last_offset: int) -> tuple[int, int]:
    """Return the positions at which the entries of a range of offsets begin and end in a log.

    Args:
        source: the log.
        first_offset: first offset of the range.
        last_offset: last offset of the range, inclusive.

    Raises:
        FormatError: at damage after which no entry can be found.
    """
    start: int | None = None
    end = 0
    for frame in walk(source, path=source.path):
        header = frame.header
        if header.last_offset < first_offset:
            end = frame.end
            continue
        first = header.last_offset if header.base_offset is None else header.base_offset
        if first > last_offset:
            break
        start = frame.position if start is None else start
        end = frame.end
    return end if start is None else start, end
