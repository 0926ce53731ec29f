"""Reader of ranges of an open file, parts of which the disk may refuse, and which may become shorter."""

from __future__ import annotations

import errno
import mmap
import os
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from ctypes import c_ubyte
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import finalize

from seglog_format.errors import Location, UnreadableError, UsageError
from seglog_format.storage.refused_ranges import RefusedRange, RefusedRanges, RefusedSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_OF_THE_DISK: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.ENXIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
    }
)
"""Error numbers of the path or of this process, not of a failing disk."""

CUT_SHORT: Final = "the file has become shorter"

STEP_SIZE: Final = 4 * 2**20
"""Bytes tried at once after a refused range."""

MAX_TRIES: Final = 3
"""Maximum reads of a failing range whose parts can be read."""

BUFFER_SIZE: Final = 4 * 2**20
"""Bytes of a buffer for large parts of files."""

MIN_BUFFERED_SIZE: Final = 2**20
"""Bytes of a part from which on it is read into a buffer, unless it is larger than one."""

BufferContent: Final = c_ubyte * BUFFER_SIZE
"""Type of the object that all views of a buffer keep alive."""

PRIVATE_MEMORY: Final = mmap.MAP_PRIVATE | mmap.MAP_ANON if hasattr(os, "preadv") else None
"""Flags for new memory; None if the system has no such memory, or no call to read into it."""

SPARE_BUFFERS: Final[deque[mmap.mmap]] = deque(maxlen=4)
"""Buffers whose content is not in use any more."""

NOTED: Final[ContextVar[list[UnreadableError] | None]] = ContextVar("NOTED", default=None)


@contextmanager
def noted_refusals() -> Iterator[list[UnreadableError]]:
    """Record everything that the disk refuses in this context, even if the errors are caught.

    Recovery checks this before it trusts what it has read: a disk error must never be taken for damage of a log,
    which would be truncated.
    """
    found: list[UnreadableError] = []
    token = NOTED.set(found)
    try:
        yield found
    finally:
        NOTED.reset(token)
        outer = NOTED.get()
        if outer is not None:
            outer += found


@contextmanager
def raised_refusals() -> Iterator[None]:
    """Raise at the end what the disk refused in this context, even if the error was caught.

    Raises:
        UnreadableError: the first refusal (SEG-PDR-022).
    """
    with noted_refusals() as noted:
        yield
    if noted:
        raise noted[0]


def unreadable(path: str, start: int, size: int, error: OSError | None) -> UnreadableError:
    """Create an error for bytes that the disk refuses, and record it.

    Args:
        path: of the file.
        start: position of the first byte.
        size: number of refused bytes; 0 if unknown.
        error: the system's error; None if the file has become shorter.
    """
    reason = CUT_SHORT if error is None else error.strerror or str(error)
    found = UnreadableError(
        Location(path, start, size=size), "SEG-PDR-022", expected="bytes that can be read", found=reason
    )
    found.__cause__ = error
    noted = NOTED.get()
    if noted is not None:
        noted.append(found)
    return found


def is_refusal(error: OSError) -> bool:
    """Return whether the disk refuses an existing file, as opposed to a wrong path or kind of file."""
    return error.errno not in NOT_OF_THE_DISK


def refusal_of(name: str, error: OSError) -> UsageError | UnreadableError:
    """Return the error for a file or directory that cannot be opened."""
    if not is_refusal(error):
        return UsageError(f"{name}: {error.strerror or error}")
    size = 0
    with suppress(OSError):
        size = Path(name).stat().st_size
    return unreadable(name, 0, size, error)


class FileReader:
    """An open file. Ranges that it refused once are not read again.

    Args:
        path: file name for errors.
        descriptor: of the open file; it is closed with this object.
        size: bytes of the file when it was opened.
    """

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        self._refused = RefusedRanges()
        self._search = RefusedSearch(self._can_read)
        self.close = finalize(self, os.close, descriptor)

    def read(self, start: int, end: int) -> bytes | memoryview:
        """Return the bytes from one position to another, or to the first refused one.

        Args:
            start: position of the first.
            end: position after the last, at most the size.

        Raises:
            UnreadableError: the first byte is refused (SEG-PDR-022).
        """
        for _ in range(MAX_TRIES):
            refused = self._refused.next_from(start)
            if refused is not None and refused.start <= start:
                raise unreadable(self.path, start, refused.end - start, refused.error)
            stop = end if refused is None else min(end, refused.start)
            try:
                data = self._read(start, stop)
            except OSError as error:
                self._note_refused(start, stop, error.with_traceback(None))  # its frames would be kept with it
                continue
            if len(data) == stop - start:
                return data
            self._refused.add(RefusedRange(start + len(data), self.size, None))
        raise self._failing(start, end)

    def _note_refused(self, start: int, end: int, error: OSError) -> None:
        """Find the refused part of a range that failed, and how far it extends beyond."""
        reaches_end = True
        while reaches_end:
            reaches_end = False
            for low, high in self._search.ranges_in(start, end):
                self._refused.add(RefusedRange(low, high, error))
                reaches_end = high == end
            start, end = end, min(end + STEP_SIZE, self.size)
            reaches_end = reaches_end and start < end and not self._search.reads(start, end)

    def _failing(self, start: int, end: int) -> UnreadableError:
        """Return the error for a range that fails now and then: refused, except for bytes already in memory."""
        refused = self._refused.next_from(start)
        if refused is None or refused.start > start:
            refused = RefusedRange(start, end, OSError(errno.EIO, os.strerror(errno.EIO)))
            self._refused.add(refused)
        return unreadable(self.path, start, refused.end - start, refused.error)

    def is_hole(self, start: int, end: int) -> bool:
        """Return whether a range is known to be a hole, which reads as zeros."""
        seek_data = getattr(os, "SEEK_DATA", None)
        if seek_data is None or not self.close.alive:
            return False
        try:
            return os.lseek(self._descriptor, start, seek_data) >= end
        except OSError as error:
            with suppress(OSError):
                return error.errno == errno.ENXIO and os.fstat(self._descriptor).st_size >= end
            return False

    def _can_read(self, start: int, end: int) -> bool:
        try:
            self._read(start, end)
        except OSError:
            return False
        return True

    def _read(self, start: int, end: int) -> bytes | memoryview:
        """Return the bytes of a range; fewer at the end of the file.

        Raises:
            OSError: the disk refuses some of them.
        """
        if not self.close.alive:
            msg = f"{self.path} is closed"
            raise ValueError(msg)
        parts: list[bytes | memoryview] = []
        while start < end:
            part = _read_at(self._descriptor, end - start, start)
            if not part:
                break
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_at(descriptor: int, size: int, position: int) -> bytes | memoryview:
    """Return the bytes from a position on, up to so many; none at the end of the file.

    Large parts are read into buffers that are used again as soon as no view of their content is left. New memory for
    each would take longer to get than to fill, and the C library keeps freed memory of that size for the process:
    two threads that read windows left 150 MB behind.

    Raises:
        OSError: the disk refuses the first of them.
    """
    if not MIN_BUFFERED_SIZE <= size <= BUFFER_SIZE or PRIVATE_MEMORY is None:
        return _pread(descriptor, size, position)
    try:
        buffer = SPARE_BUFFERS.pop() if SPARE_BUFFERS else mmap.mmap(-1, BUFFER_SIZE, flags=PRIVATE_MEMORY)
    except (IndexError, OSError):  # another thread took the last one; no address space is left
        return _pread(descriptor, size, position)
    content = BufferContent.from_buffer(buffer)  # every view keeps it alive
    finalize(content, SPARE_BUFFERS.append, buffer).atexit = False
    view = memoryview(content).cast("B")[:size]
    return view[: os.preadv(descriptor, [view], position)].toreadonly()


_SEEKING: Final = Lock()


def _read_by_seeking(descriptor: int, size: int, position: int) -> bytes:
    """Read at a position, for systems without a single call for that."""
    with _SEEKING:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)


_pread: Final = getattr(os, "pread", _read_by_seeking)
