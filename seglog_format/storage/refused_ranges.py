"""Search for the ranges of a file that the disk refuses, with few reads (SEG-PDR-022).

A failed read only shows that some bytes of its range cannot be read. So smaller ranges are read, as disk rescue
programs do: first to find where a refused range begins and ends, then to find readable bytes inside it. Each failing
read of a disk may take seconds, so their number and their total time are bounded.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
