"""The bytes of one file, read-only: mapped into memory, or copied where that is asked for."""

from __future__ import annotations

import mmap
import os
import stat
from typing import TYPE_CHECKING, Final

from seglog_format.closing import Closing
from seglog_format.errors import Location, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A FIFO would block the open call, a terminal would become ours, Windows would translate line ends.
OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

FORGET: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""What tells the system that pages are not needed; None where there is no such thing."""

FORGET_SIZE: Final = 64 * 2**20
"""Bytes that a long reading touches before it lets them go."""

FILLERS: Final[dict[str, Callable[[str, int, int], None]]] = {}
"""Who brings bytes, from one position to another, of files that are empty here and full somewhere else: by the start of
their paths."""

MAX_WHOLE_SIZE: Final = 64 * 2**20
"""Bytes of the largest file that is taken into memory whole, in its decoded form too: many times what brokers write."""


class FileBytes(Closing):
    """A file's bytes as a read-only `memoryview`. A context manager.

    Attributes:
        path: the file, as the caller named it.
        is_mapped: whether its bytes are the file itself (mapped) or a copy of it.
    """

    def __init__(self, path: str, data: bytes | mmap.mmap) -> None:
        self.path = path
        self.is_mapped = isinstance(data, mmap.mmap)
        self._data = memoryview(data).toreadonly()
        self._mapping = data if isinstance(data, mmap.mmap) else None
        self._fill = filler_of(path) if self.is_mapped else None
        self._forgotten = 0

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        return self._data.nbytes

    @property
    def is_here(self) -> bool:
        """Whether all bytes are on this machine, and none has to be brought."""
        return self._fill is None

    @property
    def data(self) -> memoryview:
        """All bytes; may not be used after `close`."""
        return self.part(0, None)

    def part(self, start: int, end: int | None) -> memoryview:
        """All bytes, of which only some will be looked at: where the file is somewhere else no others are brought.

        Args:
            start: position of the first of them.
            end: position after the last; None for the end of the file.

        Raises:
            UsageError: they could not be brought.
        """
        if self._fill is not None:
            self._fill(self.path, start, self.size if end is None else min(end, self.size))
        return self._data

    def forget(self) -> None:
        """Let the pages go that were read so far: they are no longer this process's memory, and come back when needed.

        Without it a mapped file of a gigabyte, read from end to end, is counted as a gigabyte of memory in use.
        """
        if self._mapping is not None and FORGET is not None:
            self._mapping.madvise(FORGET)

    def forget_behind(self, position: int) -> None:
        """Let pages go whenever a reading has come `FORGET_SIZE` bytes further, or has begun anew.

        Args:
            position: up to which everything was read.
        """
        if not 0 <= position - self._forgotten <= FORGET_SIZE:
            self.forget()
            self._forgotten = position

    def close(self) -> None:
        """Give the file back; a second call does nothing.

        Views that were cut from ``data`` stay valid: as long as one is in use the mapping stays, and goes with it.
        """
        mapping, self._mapping = self._mapping, None
        try:
            self._data.release()
            if mapping is not None:
                mapping.close()
        except BufferError:
            return  # someone still holds a view: the last one takes the mapping along


def open_bytes(path: str | os.PathLike[str], *, copy: bool = False, max_size: int | None = None) -> FileBytes:
    """Open a regular file for reading.

    The file is mapped, so that only the parts in use are read. A mapped file that its owner cuts short ends the
    process with SIGBUS as soon as the missing part is touched: give ``copy=True`` for a directory on which a broker
    is working (it trims indexes when it rolls). Files that cannot be mapped, empty ones among them, are copied.

    Args:
        path: of a regular file; symbolic links are followed.
        copy: read the whole file at once instead of mapping it.
        max_size: refuse a larger file.

    Raises:
        UsageError: the path does not exist, may not be read, or is not a regular file.
        RefusedError: it is larger than ``max_size`` (SEG-PDR-020).
    """
    name = os.fspath(path)
    try:
        descriptor = os.open(name, OPEN_FLAGS)
        try:
            return FileBytes(name, _content(name, descriptor, copy=copy, max_size=max_size))
        finally:
            os.close(descriptor)
    except OSError as error:
        msg = f"{name}: {error.strerror or error}"
        raise UsageError(msg) from error
    except ValueError as error:  # a NUL character in the name
        msg = f"{name!r}: {error}"
        raise UsageError(msg) from error


def file_size(path: Path) -> int:
    """Bytes of a file, without opening it.

    Raises:
        UsageError: it is gone.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise UsageError(msg) from error


def open_whole(path: str | os.PathLike[str]) -> FileBytes:
    """Copy a file that is decoded whole: text, a producer snapshot, a transaction index.

    Raises:
        UsageError: as `open_bytes`.
        RefusedError: it is larger than `MAX_WHOLE_SIZE` (SEG-PDR-020).
    """
    return open_bytes(path, copy=True, max_size=MAX_WHOLE_SIZE)


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that is decoded whole; as `open_whole`."""
    with open_whole(path) as source:
        return bytes(source.data)


def refuse_beyond(max_size: int, size: int, name: str) -> None:
    """Refuse what would have to be in memory whole, and is too large for it.

    Raises:
        RefusedError: so it is (SEG-PDR-020).
    """
    if size > max_size:
        raise RefusedError(Location(name), "SEG-PDR-020", expected=f"at most {max_size:,} bytes", found=f"{size:,}")


def _content(name: str, descriptor: int, *, copy: bool, max_size: int | None) -> bytes | mmap.mmap:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        msg = f"{name}: not a regular file"
        raise UsageError(msg)
    if max_size is not None:
        refuse_beyond(max_size, status.st_size, name)
    if copy or status.st_size == 0:
        return _read(name, descriptor, status.st_size)
    try:
        return _map(descriptor, status.st_size)
    except (OSError, ValueError):  # a file system that cannot map, or a file that shrank just now
        return _read(name, descriptor, status.st_size)


def filler_of(path: str) -> Callable[[str, int, int], None] | None:
    """Who brings the bytes of a file; None where they are here."""
    return next((fill for start, fill in tuple(FILLERS.items()) if path.startswith(start)), None)


def _map(descriptor: int, size: int) -> mmap.mmap:
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)


def _read(name: str, descriptor: int, size: int) -> bytes:
    fill = filler_of(name)
    if fill is not None:
        fill(name, 0, size)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()
