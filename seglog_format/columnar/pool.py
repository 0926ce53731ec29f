"""Buffers that are used again: fresh memory costs more than what is written into it."""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes

MAX_FREE: Final = 16
"""Buffers kept for later; those that are handed out are not counted."""
FIT: Final = 1.5
"""How many times as large a buffer is used for less: one much larger is for those that need it."""


class Pool:
    """Hands out arrays of bytes, and takes each back when the last user has let go of it."""

    def __init__(self) -> None:
        self._free: deque[Bytes] = deque(maxlen=MAX_FREE)

    def take(self, size: int) -> Bytes:
        """An array of at least so many bytes, with whatever they hold.

        It comes back when the array, and every Arrow buffer made of the whole of it, is gone. A slice does not keep it.
        """
        for _ in range(len(self._free)):
            try:
                array = self._free.popleft()
            except IndexError:  # another thread was quicker
                break
            if size <= len(array) <= max(FIT * size, 2**16):
                return self._lend(array)
            self._free.append(array)
        return self._lend(np.empty(size, np.uint8))

    def _lend(self, array: Bytes) -> Bytes:
        lent = array[:]
        weakref.finalize(lent, self._free.append, array).atexit = False
        return lent
