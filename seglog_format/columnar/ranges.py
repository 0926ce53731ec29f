"""Walks over entries at memory speed: to an offset, or to divide a log into ranges for several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import inlined, kernel
from seglog_format.columnar.entries import DOUBT, UNKNOWN_OFFSET, entry_codec, entry_offsets, entry_size
from seglog_format.columnar.memory import region
from seglog_format.columnar.plan import POSITION
from seglog_format.columnar.windows import Windows

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region
    from seglog_format.storage.byte_source import Readable

COMPRESSED: Final = 8
"""Factor of time and memory for compressed bytes, relative to uncompressed ones."""


@inlined
def _regular(data: Region, position: int, end: int, previous: int, lowest: int, highest: int) -> tuple[int, int, int]:
    """Return size, first and last offset of the entry at a position; a negative size if it is not covered.

    Args:
        data: bytes of the log.
        position: where the entry begins.
        end: of the log.
        previous: last offset of the entry before.
        lowest: lowest offset that the log can hold.
        highest: highest offset that the log can hold.
    """
    entry = entry_size(data, position, end)
    if entry < 0:
        return entry, 0, 0
    first, last = entry_offsets(data, position)
    if last <= previous or last > highest or (first != UNKNOWN_OFFSET and first < lowest):
        return DOUBT, 0, 0
    return entry, first, last


@kernel
def next_range(log: Bytes, state: Numbers, size: int) -> int:
    """Skip entries of ``size`` bytes together; compressed bytes count for more (`COMPRESSED`).

    Args:
        log: bytes of a log.
        state: start of the walk, and after the call the start of the next: position, last offset of the entry before,
            lowest and highest offset that the log can hold.
        size: bytes of a range.

    Returns:
        The number of bytes left to skip; if it is positive, the log ends, or the next entry is not covered.
    """
    data, end = region(log), len(log)
    position, previous, left = state[0], state[1], size
    while position >= 0 and left > 0:
        entry, _, last = _regular(data, position, end, previous, state[2], state[3])
        if entry < 0:
            break
        left -= COMPRESSED * entry if entry_codec(data, position) else entry
        position, previous = position + entry, last
    state[0], state[1] = position, previous
    return max(left, 0)


@kernel
def seek(log: Bytes, state: Numbers, offset: int) -> bool:
    """Skip entries that end below an offset.

    Args:
        log: bytes of a log.
        state: as for `next_range`.
        offset: to find.

    Returns:
        Whether there is an entry whose header covers the offset.
    """
    data, end = region(log), len(log)
    position, previous = state[0], state[1]
    is_found = False
    while position >= 0:
        entry, first, last = _regular(data, position, end, previous, state[2], state[3])
        if entry < 0:
            break
        if last >= offset:
            is_found = first != UNKNOWN_OFFSET and first <= offset
            break
        position, previous = position + entry, last
    state[0], state[1] = position, previous
    return is_found


class Cuts:
    """Finds positions between the entries of a log by skipping covered entries.

    Args:
        log: the bytes of a log.
        allowed_offsets: lowest and highest that it can hold.
        position: where to start.
        previous: last offset of the entry before; by default one less than the lowest.
        end: where to stop; None for the end of the log.
    """

    def __init__(
        self,
        log: Readable,
        allowed_offsets: tuple[int, int],
        position: int = 0,
        previous: int | None = None,
        end: int | None = None,
    ) -> None:
        lowest, highest = allowed_offsets
        self._window = Windows(log, position, end)
        before = lowest - 1 if previous is None else previous
        self._state = np.array([self._window.at(position), before, lowest, highest], np.int64)

    @property
    def is_in_memory(self) -> bool:
        """Return whether no windows are necessary."""
        return self._window.is_whole

    @property
    def position(self) -> int:
        """Position of the next entry."""
        return self._window.origin + int(self._state[POSITION])

    @property
    def previous(self) -> int:
        """Last offset of the entry before."""
        return int(self._state[1])

    def next(self, size: int) -> bool:
        """Skip ``size`` bytes, as `next_range`; return whether the log has that many."""
        while (size := next_range(self._window.data, self._state, size)) and self._window.has_more(self._state):
            pass
        return not size

    def seek(self, offset: int) -> bool:
        """Skip entries that end below an offset; return whether the header of the next one covers the offset."""
        while not (is_found := seek(self._window.data, self._state, offset)) and self._window.has_more(self._state):
            pass
        return bool(is_found)


def position_of(log: Readable, allowed_offsets: tuple[int, int], offset: int) -> int | None:
    """Return the start of the entry that holds an offset; None if it is uncertain.

    Args:
        log: the bytes of a log.
        allowed_offsets: lowest and highest that it can hold.
        offset: to find.
    """
    cuts = Cuts(log, allowed_offsets)
    return cuts.position if cuts.seek(offset) else None
