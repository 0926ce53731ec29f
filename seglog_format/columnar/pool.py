"""A pool of reusable buffers: allocating memory takes longer than filling it."""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.columnar.arrays import Bytes

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
