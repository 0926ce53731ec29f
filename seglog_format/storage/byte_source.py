"""Sources of bytes: bytes in memory, or a file that is read through windows of bounded size, or mapped if asked for."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, TypeAlias

from seglog_format.errors import Location, RefusedError, UsageError
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.storage.file_reader import FileReader, note_refusals, open_regular, refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


Buffer: TypeAlias = bytes | bytearray | memoryview


class Closing(ABC):
    """A context manager that closes itself at the end."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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


MAX_LOG_SIZE: Final = 2**31 - 1
"""Largest size of a `.log` file in bytes (SEG-LOG-010)."""

FORGET: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""The `madvise` value for pages that are not needed any more; None if the system has none."""

FORGET_SIZE: Final = 64 * 2**20
"""Bytes read before their pages are released."""

WINDOW_SIZE: Final = 4 * 2**20
"""Maximum size of a window, for a file that is read sequentially."""
FIRST_WINDOW: Final = 64 * 2**10
"""Size of a first window, before it is known whether the file is read sequentially."""
ZEROS: Final = bytes(WINDOW_SIZE)
NOTHING: Final = memoryview(b"")

MAX_WHOLE_SIZE: Final = 64 * 2**20
"""Maximum size of a file that is read and decoded whole: many times the size that brokers write."""
MAX_TEXT_SIZES: Final = {
    **dict.fromkeys((kind.value for kind in OFFSET_CHECKPOINT_KINDS), 16 * 2**20),
    FileKind.LEADER_EPOCH_CHECKPOINT.value: 2**20,
    FileKind.META_PROPERTIES.value: 2**16,
    FileKind.PARTITION_METADATA.value: 2**16,
    FileKind.QUORUM_STATE.value: 2**16,
    FileKind.CLEAN_SHUTDOWN.value: 2**16,
}
"""The same for text files, by name: 200,000 partitions, 50,000 leader epochs, 1,000 voters. Text is slow to decode."""


class FileBytes(Closing):
    """A file's bytes, read-only: read through windows of bounded size, or mapped into memory. A context manager.

    It is a `ByteSource`. With windows, memory use is bounded for files of any size, and neither a file that another
    process truncates nor a failing disk ends the process: both raise an `UnreadableError`. With a mapped file, both end
    it with SIGBUS.

    Attributes:
        path: of the file, as the caller gave it.
        size: size of the file in bytes when it was opened.
        is_mapped: whether the file is mapped, instead of read through windows; False after `close`.
    """

    def __init__(self, path: str, size: int, content: FileReader | mmap.mmap) -> None:
        self.path = path
        self.size = size
        self.is_mapped = not isinstance(content, FileReader)
        self._reader = content if isinstance(content, FileReader) else None
        self._mapping = None if isinstance(content, FileReader) else content
        self._data = memoryview(b"" if isinstance(content, FileReader) else content).toreadonly()
        # A slice is another view than the one that `close` releases.
        self._window = Window(0, self._data[:] if self.is_mapped else NOTHING)
        self._next_size = FIRST_WINDOW
        self._forgotten = 0

    def expect(self, start: int, end: int | None) -> None:
        """Do nothing: reads of a local file need not be announced."""

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another in one piece, fewer at the end; they outlive `close`.

        Raises:
            UnreadableError: the disk refuses one of these bytes (SEG-PDR-022).
            UsageError: the file was closed.
        """
        end = min(end, self.size)
        if self.is_mapped:
            return self._data[start:end]
        first, data = self._window
        if first <= start and end <= first + len(data):
            return data[start - first : end - first]
        return self._read(start, end, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the file that holds the byte at a position, and bytes after it.

        For a mapped file it is the whole file. Otherwise the window is kept until another one is requested; the next
        windows become larger, up to `WINDOW_SIZE`, as long as each follows the one before.

        Args:
            position: of the first byte needed.
            at_least: number of bytes needed; fewer are returned at the end of the file.

        Raises:
            UnreadableError: the disk refuses one of the bytes that are needed (SEG-PDR-022).
            UsageError: the file was closed.
        """
        found = self._window
        if self.is_mapped:
            return found
        end = min(position + max(at_least, 1), self.size)
        known_end = found.start + len(found.data)
        if found.start <= position and end <= known_end:
            return found
        follows = found.start <= position <= known_end
        self._next_size = min(2 * self._next_size, WINDOW_SIZE) if follows else FIRST_WINDOW
        stop = min(max(position + self._next_size, end), self.size)
        self._window = found = Window(position, self._read(position, end, stop))
        return found

    def _read(self, start: int, end: int, stop: int) -> memoryview:
        """Return the bytes up to ``end``, and if they can be read, up to ``stop``."""
        if self._reader is None:
            msg = f"{self.path}: closed while it is read; read to the end before the partition is closed"
            raise UsageError(msg)
        if start >= stop:  # an index may name a position beyond the end
            return NOTHING
        if FIRST_WINDOW < stop - start <= WINDOW_SIZE and self._reader.is_hole(start, stop):
            return memoryview(ZEROS)[: stop - start]
        data = self._reader.read(start, stop)
        if len(data) < end - start:
            self._reader.read(start + len(data), end)  # raises the reason
        return memoryview(data)

    def forget(self) -> None:
        """Release the memory that holds what was read so far; it is read again when needed.

        Without it, a file that is not used keeps a window, and a mapped file of 1 GB that is read as a whole counts as
        1 GB of memory in use.
        """
        if self._reader is not None:
            self._window = Window(0, NOTHING)
        elif self._mapping is not None and FORGET is not None:
            self._mapping.madvise(FORGET)

    def release_before(self, position: int) -> None:
        """Release the pages of a mapped file after each `FORGET_SIZE` bytes of a sequential read, and when it restarts.

        Args:
            position: up to which everything was read.
        """
        if self.is_mapped and not 0 <= position - self._forgotten <= FORGET_SIZE:
            self.forget()
            self._forgotten = position

    def close(self) -> None:
        """Close the file; a second call does nothing.

        Views of its bytes stay valid: the mapping is closed with the last view.
        """
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        self._window, self.is_mapped = Window(0, NOTHING), False
        mapping, self._mapping = self._mapping, None
        try:
            self._data.release()
            if mapping is not None:
                mapping.close()
        except BufferError:
            return  # a view is still in use: the mapping is closed with the last one


def open_bytes(path: str | os.PathLike[str], *, mapped: bool = False, max_size: int | None = None) -> FileBytes:
    """Open a regular file for reading.

    It is read through windows. If it becomes shorter meanwhile, or the disk refuses a part, reading that part raises an
    `UnreadableError`; what is appended meanwhile is not read.

    Args:
        path: of a regular file; symbolic links are followed.
        mapped: map the file instead. Access to a part that another process has cut off, or that the disk refuses, then
            ends this process with SIGBUS, without an error. Files that cannot be mapped are read through windows.
        max_size: refuse a larger file.

    Raises:
        UsageError: the path does not exist, or is not a regular file.
        UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
        RefusedError: it is larger than ``max_size`` (SEG-PDR-020).
    """
    check = None if max_size is None else partial(refuse_beyond, max_size)
    return open_checked(path, check, mapped=mapped)


def open_log(path: str | os.PathLike[str]) -> FileBytes:
    """Open a `.log` file, as `open_bytes` does.

    Raises:
        RefusedError: it is larger than the greatest position, so no broker opens it (SEG-LOG-010).
    """
    return open_checked(path, refuse_large_log)


def open_index(path: str | os.PathLike[str]) -> FileBytes:
    """Open an offset or time index, as `open_bytes` does.

    Raises:
        RefusedError: it is larger than a broker can map (SEG-PDR-020).
    """
    return open_bytes(path, max_size=MAX_LOG_SIZE)


def open_checked(
    path: str | os.PathLike[str], check: Callable[[int, str], None] | None, *, mapped: bool = False
) -> FileBytes:
    """Open a regular file as `open_bytes` does, if a check of its size and name raises no error."""
    name = os.fspath(path)
    descriptor, size = _opened(name)
    try:
        if check is not None:
            check(size, name)
        mapping = _mapping(descriptor, size) if mapped and size else None
    except BaseException:
        os.close(descriptor)
        raise
    if mapping is None:
        return FileBytes(name, size, FileReader(name, descriptor, size))
    os.close(descriptor)
    return FileBytes(name, size, mapping)


def open_whole(path: str | os.PathLike[str]) -> FileBytes:
    """Open a file that is decoded whole: text, a producer snapshot, a transaction index.

    Raises:
        UsageError: as for `open_bytes`.
        RefusedError: it is too large (see `refuse_whole`).
    """
    return open_checked(path, refuse_whole)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file that is decoded whole; errors as those of `open_whole`."""
    with open_whole(path) as source:
        return bytes(source.view(0, source.size))


def read_range(path: str | os.PathLike[str], start: int, size: int) -> bytes:
    """Return a range of a file, fewer bytes at its end; errors as those of `open_bytes`."""
    name = os.fspath(path)
    descriptor, found = _opened(name)
    reader = FileReader(name, descriptor, found)
    try:
        return bytes(reader.read(start, min(start + size, found)))
    finally:
        reader.close()


def refuse_beyond(max_size: int, size: int, name: str) -> None:
    """Refuse a file that is larger than a maximum.

    Raises:
        RefusedError: it is too large (SEG-PDR-020).
    """
    if size > max_size:
        raise RefusedError(Location(name), "SEG-PDR-020", expected=f"at most {max_size:,} bytes", found=f"{size:,}")


def max_text_size(name: str) -> int:
    """Return the maximum size of a text file that is shown: that of its name, or 1 MiB."""
    return MAX_TEXT_SIZES.get(os.path.basename(name), 2**20)  # noqa: PTH119 - no path


def refuse_whole(size: int, name: str) -> None:
    """Refuse a file that is too large to be decoded whole, and record that for commands that do without the file.

    Raises:
        RefusedError: it is larger than `MAX_WHOLE_SIZE`, or than a text file of its name may be (SEG-PDR-020).
    """
    try:
        refuse_beyond(MAX_TEXT_SIZES.get(os.path.basename(name), MAX_WHOLE_SIZE), size, name)  # noqa: PTH119 - no path
    except RefusedError as error:
        note_refusals((error,))
        raise


def refuse_large_log(size: int, name: str) -> None:
    """Refuse a log that is larger than the greatest position.

    Raises:
        RefusedError: it is too large (SEG-LOG-010).
    """
    if size > MAX_LOG_SIZE:
        raise RefusedError(
            Location(name, size=size), "SEG-LOG-010", expected=f"at most {MAX_LOG_SIZE:,} bytes", found=f"{size:,}"
        )


def _opened(name: str) -> tuple[int, int]:
    """Return a descriptor of a regular file, and its size."""
    try:
        return open_regular(name)
    except OSError as error:
        raise refusal_of(name, error) from error
    except ValueError as error:  # a NUL character in the name
        msg = f"{name!r}: {error}"
        raise UsageError(msg) from error


def _mapping(descriptor: int, size: int) -> mmap.mmap | None:
    try:
        return _map(descriptor, size)
    except (OSError, ValueError):  # no address space, a file system that cannot map, or a file truncated meanwhile
        return None


def _map(descriptor: int, size: int) -> mmap.mmap:
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
