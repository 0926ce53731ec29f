"""Cutting a log into ranges of whole entries, so that several threads can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
