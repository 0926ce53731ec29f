"""The part of a log that a kernel reads: the whole log if it is mapped, else a window that moves with the kernel.

Kernels are independent of windows: they read an array, and stop at an entry that is not whole in it. Positions in their
arguments and results are relative to the start of the array.
"""

from __future__ import annotations

import struct
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.arrays import readable
from seglog_format.columnar.layout import MIN_SHOWN_SIZE, PREFIX_SIZE, SIZE
from seglog_format.columnar.plan import POSITION
from seglog_format.errors import UnreadableError
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.columnar.arrays import Bytes, Numbers, Table
    from seglog_format.storage.byte_source import Readable


WINDOW_SIZE: Final = 4 * 2**20
"""Bytes in memory at once, unless one entry alone has more. A window ends at a multiple of this size, unless an entry
continues there, because storage usually holds such a range of a remote log in one piece.
"""
FIRST_SIZE: Final = 2**18
"""Size of the first window, which is small for readers of a record or two."""
MAX_ENTRY_SIZE: Final = 2**28
"""The fallback decoder reads larger entries, and refuses those that would have to be in memory whole."""
NOTHING: Final = readable(b"")
STORED_SIZE: Final = struct.Struct(">i")


class Windows:
    """The bytes of a log that a kernel reads.

    Args:
        log: the bytes, or a source of them, of which only views are used, so several windows may share it.
        position: of the first entry to read.
        end: position at which to stop; None for the end of the log.

    Attributes:
        data: the bytes for the kernel.
        origin: position in the log of its first byte.
    """

    __slots__ = ("_end", "_next_size", "_source", "data", "origin")

    def __init__(self, log: Readable, position: int = 0, end: int | None = None) -> None:
        self._source = source = source_of(log)
        self._end = source.size if end is None else min(end, source.size)
        self._next_size = FIRST_SIZE
        self.origin, self.data = position, NOTHING
        if position < self._end and not self._has_all(position):
            self._move_to(position, MIN_SHOWN_SIZE)

    @property
    def is_whole(self) -> bool:
        """Return whether the window holds the whole log up to the end."""
        return not self.origin and len(self.data) == self._end

    def _has_all(self, position: int) -> bool:
        """Use the whole log, if it is in memory or mapped; return whether it is."""
        with suppress(UnreadableError):
            if len(whole := self._source.window(position, 1).data) == self._source.size:
                self.origin, self.data = 0, readable(whole[: self._end])
        return len(self.data) > 0

    def _move_to(self, position: int, at_least: int) -> bool:
        """Move the window to a position; return whether it can be read. The fallback decoder reports the error."""
        size, self._next_size = self._next_size, min(2 * self._next_size, WINDOW_SIZE)
        border = position + WINDOW_SIZE - position % WINDOW_SIZE
        stop = min(max(min(position + size, border), position + at_least), self._end)
        try:
            data = self._some(position, at_least, stop)
        except UnreadableError:
            return False
        self.origin, self.data = position, readable(data)
        return True

    def _some(self, position: int, at_least: int, stop: int) -> memoryview:
        try:
            return self._source.view(position, stop)
        except UnreadableError:
            start, data = self._source.window(position, at_least)
            return data[position - start : stop - start]

    def at(self, position: int) -> int:
        """Return the index of a position of the log in the array, moving the window if necessary."""
        if not self.origin <= position <= self.origin + len(self.data):
            self.origin, self.data = min(position, self._end), NOTHING
            self._move_to(self.origin, MIN_SHOWN_SIZE)
        return position - self.origin

    def has_more(self, state: Numbers) -> bool:
        """Return whether a kernel stopped only because the array ends, and can continue in another window.

        Args:
            state: of the kernel, with the position of the entry at which it stopped.
        """
        at, known_end = int(state[POSITION]), self.origin + len(self.data)
        if at < 0 or known_end >= self._end:
            return False
        needed = self._size_of(at)
        if needed > MAX_ENTRY_SIZE or at + needed <= len(self.data) or not self._move_to(self.origin + at, needed):
            return False
        state[POSITION] = 0
        return True

    def _size_of(self, at: int) -> int:
        """Return the size that an entry claims; if its size field is not in the window, the bytes needed to read it."""
        if len(self.data) - at < MIN_SHOWN_SIZE:
            return MIN_SHOWN_SIZE
        size: int = STORED_SIZE.unpack_from(self.data.data, at + SIZE)[0]
        return PREFIX_SIZE + size

    def to_log_positions(self, table: Table, column: int) -> None:
        """Convert positions in a table to positions in the log."""
        if self.origin:
            np.add(table[:, column], self.origin, out=table[:, column])


# -- a pool of reusable buffers: allocating memory takes longer than filling it ----------------------------------------


MAX_FREE: Final = 2**25
"""Maximum bytes of free buffers in a pool."""
MAX_IDLE: Final = 4
"""Pools that a process keeps for later scans."""
FIT: Final = 1.5
"""Maximum ratio of the size of a reused buffer to the requested size."""


class Pool:
    """Lends arrays of bytes, and takes each back when it is no longer referenced."""

    def __init__(self) -> None:
        self._free: deque[Bytes] = deque()

    def take(self, size: int) -> Bytes:
        """Return an array of at least ``size`` bytes, with any content.

        It returns to the pool when the array, and every Arrow buffer made of all of it, is freed. Slices do not count.
        """
        for _ in range(len(self._free)):
            try:
                array = self._free.pop()  # the array returned last is probably still in the cache
            except IndexError:  # another thread was faster
                break
            if size <= len(array) <= max(FIT * size, 2**16):
                return self._lend(array)
            self._free.appendleft(array)
        return self._lend(np.empty(size, np.uint8))

    def _lend(self, array: Bytes) -> Bytes:
        lent = array[:]
        weakref.finalize(lent, self._take_back, array).atexit = False
        return lent

    def _take_back(self, array: Bytes) -> None:
        if len(array) <= MAX_FREE:
            self._free.append(array)
            while sum(map(len, tuple(self._free))) > MAX_FREE:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        with suppress(IndexError):  # another thread was faster
            self._free.popleft()


@contextmanager
def own_pool() -> Iterator[Pool]:
    """Lend a pool for exclusive use: the last one returned, whose buffers are still in the cache."""
    try:
        pool = _IDLE.pop()
    except IndexError:
        pool = Pool()
    try:
        yield pool
    finally:
        _IDLE.append(pool)


_IDLE: Final[deque[Pool]] = deque(maxlen=MAX_IDLE)
