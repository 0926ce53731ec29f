"""From entry to entry at memory speed: to an offset, or to cut a log into ranges that several threads can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seglog_format.columnar.arrays import readable
from seglog_format.columnar.compiled import kernel
from seglog_format.columnar.entries import UNKNOWN_OFFSET, entry_offsets, entry_size
from seglog_format.columnar.memory import region

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers


@kernel
def next_range(log: Bytes, state: Numbers, size: int) -> bool:
    """Pass over entries until so many bytes are behind.

    Args:
        log: bytes of a log.
        state: where to start, and after the call where to go on: position, last offset of the entry before, lowest
            and highest offset that the log can hold.
        size: bytes of a range.

    Returns:
        Whether that many bytes were passed over; if not, the log ends there or something irregular stands there.
    """
    data, end = region(log), len(log)
    position, previous = state[0], state[1]
    stop = position + size
    while 0 <= position < stop:
        entry = entry_size(data, position, end)
        if entry < 0:
            break
        first, last = entry_offsets(data, position)
        if last <= previous or last > state[3] or (first != UNKNOWN_OFFSET and first < state[2]):
            break
        position, previous = position + entry, last
    state[0], state[1] = position, previous
    is_whole: bool = position >= stop
    return is_whole


@kernel
def seek(log: Bytes, state: Numbers, offset: int) -> bool:
    """Pass over entries that end below an offset.

    Args:
        log: bytes of a log.
        state: as for `next_range`.
        offset: to look for.

    Returns:
        Whether an entry stands there that says that it holds the offset.
    """
    data, end = region(log), len(log)
    position, previous = state[0], state[1]
    is_found = False
    while position >= 0:
        entry = entry_size(data, position, end)
        if entry < 0:
            break
        first, last = entry_offsets(data, position)
        if last <= previous or last > state[3] or (first != UNKNOWN_OFFSET and first < state[2]):
            break
        if last >= offset:
            is_found = first != UNKNOWN_OFFSET and first <= offset
            break
        position, previous = position + entry, last
    state[0], state[1] = position, previous
    return is_found


def position_of(data: memoryview, allowed_offsets: tuple[int, int], offset: int) -> int | None:
    """Where the entry starts that holds an offset; None where that is not beyond doubt.

    Args:
        data: bytes of a log.
        allowed_offsets: lowest and highest that it can hold.
        offset: to look for.
    """
    lowest, highest = allowed_offsets
    state = np.array([0, lowest - 1, lowest, highest], np.int64)
    return int(state[0]) if seek(readable(data), state, offset) else None
