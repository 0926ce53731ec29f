"""Sources of bytes: bytes in memory, or a file that is read through windows of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

Buffer: TypeAlias = bytes | bytearray | memoryview


class Window(NamedTuple):
    """A part of the bytes of a source.

    Attributes:
        start: position of its first byte in the source.
        data: the bytes; they stay valid and unchanged as long as they are referenced.
    """

    start: int
    data: memoryview


class ByteSource(Protocol):
    """Bytes that can be read in parts, such as those of a file."""

    @property
    def path(self) -> str:
        """File name for errors; empty for bytes in memory."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another in one piece, fewer at the end of the source.

        Raises:
            UnreadableError: the disk refuses one of these bytes.
        """

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position and bytes after it, usually more than requested.

        Args:
            position: of the first byte needed, below the size.
            at_least: number of bytes needed; fewer are returned at the end of the source.

        Raises:
            UnreadableError: the disk refuses one of the needed bytes.
        """


class SourceFile(ByteSource, Protocol):
    """A file that is open for reading; a context manager."""

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of a range, so a remote file fetches it in few requests.

        Args:
            start: position of the first byte.
            end: position after the last; None for the end of the file.
        """

    def forget(self) -> None:
        """Release the memory that holds the bytes read so far; they are read again when needed."""

    def release_before(self, position: int) -> None:
        """Release memory from time to time, during a sequential read that has reached a position."""

    def close(self) -> None:
        """Close the file; closing it again does nothing."""

    def __enter__(self) -> Self:
        """Enter the context."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""


class MemoryBytes:
    """A source of bytes in memory.

    Attributes:
        path: file name for errors.
        size: number of bytes.
    """

    __slots__ = ("_window", "path", "size")

    def __init__(self, data: bytes | bytearray | memoryview, path: str = "") -> None:
        self._window = Window(0, memoryview(data))
        self.path = path
        self.size = len(data)

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another."""
        return self._window.data[start:end]

    def window(self, position: int, at_least: int = 0) -> Window:  # noqa: ARG002 - all bytes are in memory
        """Return all bytes."""
        return self._window


class FirstBytes:
    """The first bytes of a source, as if it ended after them.

    Attributes:
        path: file name for errors.
        size: number of bytes.
    """

    __slots__ = ("_source", "path", "size")

    def __init__(self, source: ByteSource, size: int) -> None:
        self._source = source
        self.path = source.path
        self.size = min(size, source.size)

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another."""
        return self._source.view(start, min(end, self.size))

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position."""
        start, data = self._source.window(position, min(at_least, self.size - position))
        return Window(start, data[: self.size - start])


Readable: TypeAlias = "Buffer | ByteSource"
"""Bytes in memory, or a source of them."""


def source_of(data: Readable, path: str = "") -> ByteSource:
    """Return the source itself, or a source of bytes in memory.

    Args:
        data: bytes or a source.
        path: file name for errors about bytes in memory.

    Raises:
        UsageError: the data is neither.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return MemoryBytes(data, path)
    if not hasattr(data, "window"):
        msg = f"data: expected bytes, found {type(data).__name__}"
        raise UsageError(msg)
    return data


def starts_with(source: ByteSource, data: bytes) -> bool:
    """Return whether a source begins with these bytes, without reading it into memory as a whole."""
    position = 0
    while position < len(data):
        if position == source.size:
            return False
        start, found = source.window(position, 1)
        piece = bytes(found[position - start :][: len(data) - position])
        if piece != data[position : position + len(piece)]:
            return False
        position += len(piece)
    return True
