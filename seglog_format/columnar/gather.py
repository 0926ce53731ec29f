"""Copies of the bytes that views refer to, for batches that use few of them, and for Arrow's classic layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, kernel
from seglog_format.columnar.copying import AHEAD, copy_long, copy_run
from seglog_format.columnar.memory import LINE, load_64, load_le32, prefetch, region, store_32, store_64
from seglog_format.columnar.views import MAX_INLINE, VIEW_SIZE

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Region

HIGH: Final = 1 << 32


@helper
def _bytes_at(views: Region, at: int, log: Region, origin: int, arena: Region) -> tuple[Region, int]:
    """Return the position of the bytes of a view."""
    if load_le32(views, at) <= MAX_INLINE:
        return views, at + 4
    reference = load_64(views, at + 8)
    if reference & (HIGH - 1):
        return arena, reference >> 32
    return log, origin + (reference >> 32)


@kernel
def gather_views(block: Bytes, at: int, rows: int, log: Bytes, origin: int, arena: Bytes, target: Bytes) -> int:
    """Copy all bytes that do not fit into their views, and make the views refer to the copy; return its size."""
    views, log_, arena_, target_ = region(block), region(log), region(arena), region(target)
    used = 0
    for view in range(at, at + rows * VIEW_SIZE, VIEW_SIZE):
        size = load_le32(views, view)
        if size > MAX_INLINE:
            source, position = _bytes_at(views, view, log_, origin, arena_)
            copy_run(target_, used, source, position, size)
            store_64(views, view + 8, used << 32)
            used += size
    return used


@kernel
def gather_values(
    block: Bytes,
    at: int,
    rows: int,
    log: Bytes,
    origin: int,
    arena: Bytes,
    target: Bytes,
    used: int,
    width: int,
    ends: Bytes,
) -> int:
    """Copy all bytes that some views refer to, one after the other, with the end of each; return the last end.

    Args:
        block: holds the views.
        at: position of the first view.
        rows: number of views.
        log: bytes that some views refer to.
        origin: position in the log that views are relative to.
        arena: bytes that the other views refer to.
        target: receives the bytes.
        used: number of bytes already in it.
        width: bytes of a number in ``ends``: 4 or 8.
        ends: receives the end of the row before, and of each row.
    """
    views, log_, arena_, target_, ends_ = region(block), region(log), region(arena), region(target), region(ends)
    for row in range(rows + 1):
        if width == 4:
            store_32(ends_, 4 * row, used)
        else:
            store_64(ends_, 8 * row, used)
        if row < rows:
            view = at + row * VIEW_SIZE
            source, position = _bytes_at(views, view, log_, origin, arena_)
            size = load_le32(views, view)
            for line in range(used, used + size, LINE):
                prefetch(target_, line + AHEAD)
            copy_long(target_, used, source, position, size)
            used += size
    return used
