"""Arrow's classic layouts: all bytes of a column in one buffer, and a number for the end of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from seglog_format.columnar.copying import SLACK
from seglog_format.columnar.gather import gather_values
from seglog_format.columnar.views import MAX_INLINE, VIEW_SIZE
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes
    from seglog_format.columnar.pool import Pool

WIDTHS: Final = {"binary": 4, "large_binary": 8}
"""Size of the number for the end of a row, by layout."""
LARGEST: Final = {layout: 2 ** (8 * width - 1) - 1 for layout, width in WIDTHS.items()}


class CopiedColumn:
    """Collects copies of the bytes that views refer to, some rows at a time.

    Attributes:
        capacity: bytes that currently fit.
    """

    def __init__(self, pool: Pool, layout: str, rows: int, capacity: int) -> None:
        self._pool = pool
        self._width = WIDTHS[layout]
        self._largest = LARGEST[layout]
        self._target = pool.take(capacity + SLACK)
        self.capacity = len(self._target) - SLACK
        self._ends = pool.take((rows + 1) * self._width)
        self._rows = self._used = 0

    def extend(self, block: Bytes, at: int, rows: int, most: int, log: Bytes, origin: int, arena: Bytes) -> None:
        """Copy the bytes of the rows that were not copied yet.

        Args:
            block: holds the views of the column.
            at: position of the first view.
            rows: number of views.
            most: upper bound of the bytes that all views refer to.
            log: bytes that some views refer to.
            origin: position in the log that views are relative to.
            arena: bytes that the other views refer to.

        Raises:
            UsageError: there are more bytes than the layout can hold.
        """
        start, count = at + VIEW_SIZE * self._rows, rows - self._rows
        most += MAX_INLINE * rows
        if most > self._largest:
            most = self._held_to_layout(self._used + _size(block, start, count))
        if most > self.capacity:
            self._grow(most)
        ends = self._ends[self._rows * self._width :]
        self._used = gather_values(block, start, count, log, origin, arena, self._target, self._used, self._width, ends)
        self._rows = rows

    def _held_to_layout(self, size: int) -> int:
        if size > self._largest:
            msg = f"a column of {size} bytes is too large for layout 'binary': ask for 'large_binary'"
            raise UsageError(msg)
        return size

    def _grow(self, size: int) -> None:
        larger = self._pool.take(max(size, 2 * self.capacity) + SLACK)
        larger[: self._used] = self._target[: self._used]
        self._target, self.capacity = larger, len(larger) - SLACK

    def array(self, kind: pa.DataType, valid: pa.Buffer | None) -> pa.Array:
        """Return the rows as an Arrow array."""
        ends, target = pa.py_buffer(self._ends), pa.py_buffer(self._target)
        buffers = [valid, ends.slice(0, (self._rows + 1) * self._width), target.slice(0, self._used)]
        return pa.Array.from_buffers(kind, self._rows, buffers)


def _size(block: Bytes, at: int, rows: int) -> int:
    """Return the number of bytes that views refer to, including bytes inside of views."""
    sizes = block[at : at + VIEW_SIZE * rows].view(np.uint32)[:: VIEW_SIZE // 4]
    return int(sizes.sum(dtype=np.int64))
