"""A search for one record of a batch that the kernel of `verify` finds sound: numpy is not needed for it."""

from __future__ import annotations

import ctypes
from array import array
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from seglog_format.columnar import plan as names
from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.kernel_library import library

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.storage.byte_source import Buffer

FIRST_SIZE: Final = 2**15
"""Bytes of memory for a batch, until a larger one is checked."""
ROW_NUMBERS: Final = 16
"""Room for the numbers of one row of the kernel's table; more than it has (`prefilter_entries.COLUMNS`)."""
FLAGS: Final = 7
NUMBERS: Final = "q"


class Passed:
    """Memory that is passed to a kernel as if it were an array of numpy."""

    __slots__ = ("__array_interface__", "memory", "shape", "size")

    def __init__(self, memory: Any, size: int) -> None:
        self.memory = memory
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if size else 0
        self.__array_interface__ = {"data": (address, False)}
        self.size = size
        self.shape = (1, size)


@cache
def _kernels() -> tuple[Callable[..., int], Callable[..., int], Passed]:
    """Return both kernels and the plan of the first."""
    found = library()
    assert found is not None, "whether there is a library was asked before"
    plan = array(NUMBERS, [0] * names.PLAN_SIZE)
    plan[names.CHECKSUM_PATH] = checksum_path()
    return found.kernel("prefilter_entries"), found.kernel("find_record"), Passed(plan, names.PLAN_SIZE)


class RecordFinder:
    """Finds one record of a batch that is sound: checksum, header, and each record. It does not cover compressed ones.

    Not thread-safe: all calls use the same memory.
    """

    def __init__(self) -> None:
        self._prefilter, self._find, self._plan = _kernels()
        self._none = Passed(b"", 0)
        self._log = Passed(bytearray(FIRST_SIZE), FIRST_SIZE)
        self._state = Passed(array(NUMBERS, bytes(8 * names.STATE_SIZE)), names.STATE_SIZE)
        self._row = Passed(array(NUMBERS, bytes(8 * ROW_NUMBERS)), ROW_NUMBERS)

    def find(self, batch: Buffer, base_offset: int, number: int, timestamp_ms: int) -> int | None:
        """Return the position of the first record from a number on that is not older than a timestamp.

        None: there is none, or the batch of magic 2 does not decode to as many records as its range of offsets has.

        Args:
            batch: its bytes.
            base_offset: of it.
            number: of a record in it, from 0.
            timestamp_ms: milliseconds since 1970.
        """
        size, state = len(batch), self._state.memory
        if size > len(self._log.memory):
            self._log = Passed(bytearray(2 * size), 2 * size)
        self._log.memory[:size] = batch
        self._log.size = size
        state[names.POSITION], state[names.PREVIOUS] = 0, base_offset - 1
        stored = self._row  # of a compressed entry only, which does not pass
        answer = self._prefilter(self._log, self._none, self._none, self._plan, self._state, self._row, stored)
        if answer != names.FULL or state[names.ROWS] != 1 or self._row.memory[FLAGS]:
            return None
        position: int = self._find(self._log, number, timestamp_ms)
        return None if position < 0 else position
