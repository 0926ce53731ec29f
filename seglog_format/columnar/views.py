"""Rows of Arrow columns: numbers, and views of bytes that are not copied.

A view takes 16 bytes: the size, then a value of up to 12 bytes; or the first four bytes of a longer value, the number
of its buffer and the position in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined, int64, kernel, uint64
from seglog_format.columnar.memory import (
    AHEAD,
    LINE,
    copy_long,
    copy_run,
    load_64,
    load_le32,
    load_le64,
    load_u8,
    prefetch,
    region,
    store_8,
    store_32,
    store_64,
)
from seglog_format.columnar.plan import (
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    NULL_HEADER_VALUES,
    NULL_KEYS,
    NULL_TIMESTAMPS,
    NULL_VALUES,
)

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Region


VIEW_SIZE: Final = 16
MAX_INLINE: Final = 12
NO_TIMESTAMP: Final = -1


@inlined
def put_view(block: Region, at: int, data: Region, position: int, size: int, reference: int) -> None:
    """Store a view. ``reference``: the buffer's number in the low 32 bits, and above them the position in it."""
    if size > MAX_INLINE:
        store_64(block, at, size | load_le32(data, position) << 32)
        store_64(block, at + 8, reference)
        return
    low, high = _short(data, position, size)
    store_64(block, at, uint64(size) | low << uint64(32))
    store_64(block, at + 8, low >> uint64(32) | high << uint64(32))


@inlined
def _short(data: Region, position: int, size: int) -> tuple[int, int]:
    """Return up to 12 bytes as two numbers."""
    low, high = uint64(0), uint64(0)
    if position + MAX_INLINE <= data[1]:
        low, high = load_le64(data, position), uint64(load_le32(data, position + 8))
        if size < 8:
            return low & ((uint64(1) << uint64(8 * size)) - uint64(1)), uint64(0)
        return low, high & ((uint64(1) << uint64(8 * (size - 8))) - uint64(1))
    for byte in range(size):
        value = uint64(load_u8(data, position + byte))
        if byte < 8:
            low |= value << uint64(8 * byte)
        else:
            high |= value << uint64(8 * (byte - 8))
    return low, high


@inlined
def put_bytes(
    block: Region, at: int, valid_at: int, row: int, data: Region, position: int, size: int, reference: int
) -> None:
    """Store a view in a row, or a null if the size is negative."""
    if size >= 0:
        put_view(block, at + VIEW_SIZE * row, data, position, size, reference)
        return
    store_64(block, at + VIEW_SIZE * row, 0)
    store_64(block, at + VIEW_SIZE * row + 8, 0)
    put_null(block, valid_at, row)


@inlined
def put_null(block: Region, valid_at: int, row: int) -> None:
    """Clear a row's validity bit; all bits are set before."""
    at = valid_at + (row >> 3)
    store_8(block, at, load_u8(block, at) & ~(1 << (row & 7)))


@inlined
def add(state: Region, number: int, amount: int) -> None:
    """Add to a number of the state."""
    store_64(state, 8 * number, load_64(state, 8 * number) + amount)


@inlined
def put_row(
    block: Region,
    columns: tuple[int, ...],
    state: Region,
    row: int,
    numbers: tuple[int, int],
    data: Region,
    parts: tuple[int, int, int, int],
    buffer: int,
    origin: int,
) -> None:
    """Store a row in the requested columns: offset and timestamp, key and value with their sizes."""
    offsets, timestamps, timestamps_valid, keys, keys_valid, values, values_valid = columns
    offset, timestamp_ms = numbers
    key, key_size, value, value_size = parts
    if offsets >= 0:
        store_64(block, offsets + 8 * row, offset)
    if timestamps >= 0:
        store_64(block, timestamps + 8 * row, timestamp_ms)
        if timestamp_ms == NO_TIMESTAMP:
            put_null(block, timestamps_valid, row)
            add(state, NULL_TIMESTAMPS, 1)
    if keys >= 0:
        put_bytes(block, keys, keys_valid, row, data, key, key_size, buffer | (key - origin) << 32)
        if key_size < 0:
            add(state, NULL_KEYS, 1)
    if values >= 0:
        put_bytes(block, values, values_valid, row, data, value, value_size, buffer | (value - origin) << 32)
        if value_size < 0:
            add(state, NULL_VALUES, 1)


@inlined
def put_position(block: Region, positions: int, row: int, position: int, buffer: int) -> None:
    """Store the position of a row's record, if it is requested; the lowest bit is the number of its buffer."""
    if positions >= 0:
        store_64(block, positions + 8 * row, position << 1 | buffer)


@inlined
def _count(state: Region, size: int, nulls: int, referred: int) -> None:
    """Count a null, or bytes that a view refers to."""
    if size < 0:
        add(state, nulls, 1)
    elif size > MAX_INLINE:
        add(state, referred, size)


@inlined
def put_header(
    block: Region,
    columns: tuple[int, int, int],
    state: Region,
    row: int,
    data: Region,
    parts: tuple[int, int, int, int],
    buffer: int,
    origin: int,
) -> None:
    """Store a header in the columns of headers."""
    keys, values, values_valid = columns
    key, key_size, value, value_size = parts
    put_view(block, keys + VIEW_SIZE * row, data, key, key_size, buffer | (key - origin) << 32)
    _count(state, key_size, NULL_HEADER_VALUES, HEADER_KEY_BYTES + buffer)
    put_bytes(block, values, values_valid, row, data, value, value_size, buffer | (value - origin) << 32)
    _count(state, value_size, NULL_HEADER_VALUES, HEADER_VALUE_BYTES + buffer)


@inlined
def put_header_ends(block: Region, at: int, first: int, last: int, count: int) -> None:
    """Store for each row of a range the number of headers up to its end, which is the same for all of them."""
    for row in range(first, last):
        store_32(block, at + 4 * (row + 1), int64(count))


# -- copies of the bytes that views refer to, for batches that use few of them, and for Arrow's classic layouts --------


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
