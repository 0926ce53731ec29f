"""Reader of ranges of an open file; the disk may refuse parts of it, and other processes may truncate it."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import time
from bisect import bisect_left, bisect_right
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from ctypes import c_ubyte
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from weakref import finalize

from seglog_format.errors import FormatError, Location, UnreadableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


# -- search for the ranges of a file that the disk refuses, with few reads (SEG-PDR-022) -------------------------------


BLOCK_SIZE: Final = 4096
"""Minimum bytes that a disk reads at once."""
LEAF_SIZE: Final = 512
"""Size of the smallest parts of a refused range that are read to find readable bytes."""
MAX_SEARCHES: Final = 1024
"""Maximum number of failing reads inside refused ranges, for one file."""
MAX_SECONDS: Final = 600.0
"""Maximum total time of failing reads of one file; after it, a failing range counts as refused as a whole."""
SLOW_SECONDS: Final = 0.05
"""If a failing read takes longer, a disk is assumed to fail, which refuses whole blocks."""


class RefusedRange(NamedTuple):
    """Bytes that the disk refuses.

    Attributes:
        start: position of the first byte.
        end: position after the last byte.
        error: the system's error; None if the file has become shorter.
    """

    start: int
    end: int
    error: OSError | None


class RefusedRanges:
    """The known refused ranges of one file, which do not overlap."""

    def __init__(self) -> None:
        self._ranges: list[RefusedRange] = []

    def add(self, refused: RefusedRange) -> None:
        """Add a range; join it with the ranges that it overlaps or touches."""
        first = bisect_left(self._ranges, refused.start, key=_end)
        last = bisect_right(self._ranges, refused.end, key=_start)
        joined = [refused, *self._ranges[first:last]]
        start, end = min(map(_start, joined)), max(map(_end, joined))
        self._ranges[first:last] = [RefusedRange(start, end, refused.error)]

    def next_from(self, position: int) -> RefusedRange | None:
        """Return the range that holds a position, else the first range after it."""
        index = bisect_right(self._ranges, position, key=_start)
        if index and self._ranges[index - 1].end > position:
            return self._ranges[index - 1]
        return self._ranges[index] if index < len(self._ranges) else None


def _start(refused: RefusedRange) -> int:
    return refused.start


def _end(refused: RefusedRange) -> int:
    return refused.end


class RefusedSearch:
    """Searches failed ranges for readable parts. One object serves one file: it limits the number of its reads.

    Args:
        can_read: returns whether all bytes from one position to another can be read.
    """

    def __init__(self, can_read: Callable[[int, int], bool]) -> None:
        self._can_read = can_read
        self._searches = MAX_SEARCHES
        self._seconds = MAX_SECONDS
        self._finest = 1

    def ranges_in(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the refused ranges within a range of which a read failed, in order."""
        if self._seconds <= 0:
            yield start, end
            return
        while start < end:
            first = self._first_refused(start, end)
            last = self._end_of_run(first, end)
            yield from self._unreadable_parts(first, last)
            if last == end or self.reads(last, end):
                return
            start = last

    def reads(self, start: int, end: int) -> bool:
        """Return whether all bytes of a range can be read."""
        began = time.monotonic()
        found = self._can_read(start, end)
        took = time.monotonic() - began
        if not found:
            self._seconds -= took
            if took > SLOW_SECONDS:
                self._finest = BLOCK_SIZE
        return found

    def _middle(self, low: int, high: int) -> int:
        """Return a position between two others, at the start of a block if one starts between them."""
        middle = (low + high) // 2
        aligned = middle - middle % BLOCK_SIZE
        return aligned if aligned > low else middle

    def _first_refused(self, low: int, high: int) -> int:
        """Return the start of the first refused range from ``low`` on; not all bytes up to ``high`` can be read."""
        if not self.reads(low, min(low + self._finest, high)):
            return low
        while high - low > self._finest:
            middle = self._middle(low, high)
            if self.reads(low, middle):
                low = middle
            else:
                high = middle
        return low

    def _end_of_run(self, first: int, end: int) -> int:
        """Return the position after the first refused byte from which on bytes can be read again."""
        unit = step = self._finest
        low = first + unit
        while low < end:
            probe = min(low + step - unit, max(end - unit, low))
            if self.reads(probe, min(probe + unit, end)):
                return self._end_between(low, probe)
            low, step = probe + unit, 2 * step
        return end

    def _end_between(self, low: int, high: int) -> int:
        """Return the end of a refused range: bytes before ``low`` belong to it, the byte at ``high`` can be read."""
        while low < high:
            middle = low + (high - low) // 2 // self._finest * self._finest
            stop = min(middle + self._finest, high)
            if self.reads(middle, stop):
                high = middle
            else:
                low = stop
        return high

    def _unreadable_parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a refused range that cannot be read."""
        lost: list[tuple[int, int]] = []
        pieces = deque([(start, end)])
        while pieces:
            low, high = pieces.popleft()
            if high - low <= max(LEAF_SIZE, self._finest) or self._searches <= 0 or self._seconds <= 0:
                lost.append((low, high))
                continue
            middle = self._middle(low, high)
            for half in ((low, middle), (middle, high)):
                if not self.reads(*half):
                    self._searches -= 1
                    pieces.append(half)
        yield from sorted(lost)


# -- reader of ranges of an open file ----------------------------------------------------------------------------------


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
"""Numbers of errors that a wrong path or a limit of this process causes, not a failing disk."""

CUT_SHORT: Final = "the file has become shorter"

STEP_SIZE: Final = 4 * 2**20
"""Number of bytes that are read next after a refused range."""

MAX_TRIES: Final = 3
"""Maximum number of reads of a range that fails although its parts can be read."""

BUFFER_SIZE: Final = 4 * 2**20
"""Size of a buffer for large parts of files."""

MIN_BUFFERED_SIZE: Final = 2**20
"""Minimum size of a part that is read into a buffer; parts larger than a buffer are not."""

BufferContent: Final = c_ubyte * BUFFER_SIZE
"""Type of the object that every view of a buffer refers to; its end returns the buffer to `SPARE_BUFFERS`."""

PRIVATE_MEMORY: Final = mmap.MAP_PRIVATE | mmap.MAP_ANON if hasattr(os, "preadv") else None
"""Flags of `mmap` for private memory; None if the system has none, or cannot read into it."""

SPARE_BUFFERS: Final[deque[mmap.mmap]] = deque(maxlen=4)
"""Buffers that no view refers to any more."""

NOTED: Final[ContextVar[list[FormatError] | None]] = ContextVar("NOTED", default=None)


@contextmanager
def noted_refusals() -> Iterator[list[FormatError]]:
    """Record all refused reads in this context, and the logs that listings skip, even if the errors are caught.

    Recovery checks this list before it uses what it has read: if it took a disk error for damage, it would truncate the
    log.
    """
    found: list[FormatError] = []
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
    """Raise an error at the end of this context if the disk refused a read in it, even if the error was caught.

    Raises:
        UnreadableError: the first refusal (SEG-PDR-022).
        FormatError: the first is a log that a listing skips (SEG-PDR-030).
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
    note_refusals((found,))
    return found


def note_refusals(errors: Iterable[FormatError]) -> None:
    """Record errors about what cannot be read, for `noted_refusals`."""
    noted = NOTED.get()
    if noted is not None:
        noted += errors


def is_cut_short(error: FormatError) -> bool:
    """Return whether an error means that a file has become shorter since it was opened."""
    return isinstance(error, UnreadableError) and error.found == CUT_SHORT


def read_uncut(read: Callable[[], T]) -> T:
    """Return what a function opens and reads; if the file becomes shorter meanwhile, call it once more.

    A broker trims an index when it rolls the segment, and not again.

    Raises:
        UnreadableError: the disk refuses a part (SEG-PDR-022), or the file has become shorter again.
    """
    with noted_refusals() as noted:
        try:
            return read()
        except UnreadableError as error:
            if not is_cut_short(error):
                raise
            noted.clear()
    return read()


def is_refusal(error: OSError) -> bool:
    """Return whether an error means that the disk refuses an existing file, not that the path is wrong."""
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
    """An open file. Ranges that the disk refused once are not read again.

    Args:
        path: file name for errors.
        descriptor: of the open file; it is closed with this object.
        size: size of the file in bytes when it was opened.
    """

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        self._refused = RefusedRanges()
        self._search = RefusedSearch(self._can_read)
        self.close = finalize(self, os.close, descriptor)

    def read(self, start: int, end: int) -> bytes | memoryview:
        """Return the bytes from one position to another, or to the first that the disk refuses.

        Args:
            start: position of the first byte.
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
                self._find_refused(start, stop, error.with_traceback(None))  # not the traceback, which refers to data
                continue
            if len(data) == stop - start:
                return data
            self._refused.add(RefusedRange(start + len(data), self.size, None))
        raise self._refusal_of_range(start, end)

    def _find_refused(self, start: int, end: int, error: OSError) -> None:
        """Find the refused ranges in a range that failed; also after its end, if the last one extends beyond."""
        reaches_end = True
        while reaches_end:
            reaches_end = False
            for low, high in self._search.ranges_in(start, end):
                self._refused.add(RefusedRange(low, high, error))
                reaches_end = high == end
            start, end = end, min(end + STEP_SIZE, self.size)
            reaches_end = reaches_end and start < end and not self._search.reads(start, end)

    def _refusal_of_range(self, start: int, end: int) -> UnreadableError:
        """Return the error for a range that fails although its parts can be read, and count it as refused."""
        refused = self._refused.next_from(start)
        if refused is None or refused.start > start:
            refused = RefusedRange(start, end, OSError(errno.EIO, os.strerror(errno.EIO)))
            self._refused.add(refused)
        return unreadable(self.path, start, refused.end - start, refused.error)

    def is_hole(self, start: int, end: int) -> bool:
        """Return whether a range is known to be a hole in a sparse file, which reads as zeros."""
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
            OSError: the disk refuses some of these bytes.
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
    """Return at most a number of bytes from a position on; none at the end of the file.

    Large parts are read into buffers that are used again when no view refers to their content. To allocate memory for
    each part would take longer than to read it. And the C library does not return freed memory of that size to the
    system: two threads that read windows kept 150 MB.

    Raises:
        OSError: the disk refuses the first byte.
    """
    if not MIN_BUFFERED_SIZE <= size <= BUFFER_SIZE or PRIVATE_MEMORY is None:
        return _pread(descriptor, size, position)
    try:
        buffer = SPARE_BUFFERS.pop() if SPARE_BUFFERS else mmap.mmap(-1, BUFFER_SIZE, flags=PRIVATE_MEMORY)
    except (IndexError, OSError):  # another thread took the last buffer, or no address space is left
        return _pread(descriptor, size, position)
    content = BufferContent.from_buffer(buffer)  # every view keeps it alive
    finalize(content, SPARE_BUFFERS.append, buffer).atexit = False
    view = memoryview(content).cast("B")[:size]
    return view[: os.preadv(descriptor, [view], position)].toreadonly()


_SEEKING: Final = Lock()


def _read_by_seeking(descriptor: int, size: int, position: int) -> bytes:
    """Read at a position, for systems without `pread`."""
    with _SEEKING:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)


_pread: Final = getattr(os, "pread", _read_by_seeking)


# -- opening of regular files for reading; other kinds of files are refused --------------------------------------------


# Without these flags, `open` would wait at a FIFO, a terminal would become that of this process, and Windows would
# translate line ends.
OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_regular(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Open a regular file for reading; symbolic links are followed.

    Returns:
        A descriptor, which the caller closes, and the file's size in bytes.

    Raises:
        OSError: there is no such file, or it is not a regular one.
        ValueError: the path holds a NUL character.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return descriptor, status.st_size
