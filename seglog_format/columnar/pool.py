"""Buffers that are used again: fresh memory costs more than what is written into it."""

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
"""Bytes that a pool keeps for later; buffers that are handed out are not counted."""
MAX_IDLE: Final = 4
"""Pools that a process keeps for its next scans."""
FIT: Final = 1.5
"""How many times as large a buffer is used for less: one much larger is for those that need it."""


class Pool:
    """Hands out arrays of bytes, and takes each back when the last user has let go of it."""

    def __init__(self) -> None:
        self._free: deque[Bytes] = deque()

    def take(self, size: int) -> Bytes:
        """An array of at least so many bytes, with whatever they hold.

        It comes back when the array, and every Arrow buffer made of the whole of it, is gone. A slice does not keep it.
        """
        for _ in range(len(self._free)):
            try:
                array = self._free.pop()  # what came back last is still near
            except IndexError:  # another thread was quicker
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
        with suppress(IndexError):  # another thread was quicker
            self._free.popleft()


@contextmanager
def own_pool() -> Iterator[Pool]:
    """A pool that nobody else takes from meanwhile: the last one that was let go of, whose buffers are still near."""
    try:
        pool = _IDLE.pop()
    except IndexError:
        pool = Pool()
    try:
        yield pool
    finally:
        _IDLE.append(pool)


_IDLE: Final[deque[Pool]] = deque(maxlen=MAX_IDLE)
