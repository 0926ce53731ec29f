"""Rows of Arrow columns: numbers, and views of bytes that are not copied.

A view takes 16 bytes: the size, then a value of up to 12 bytes; or the first four bytes of a longer value, the number
of its buffer and the position in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import inlined, int64, uint64
from seglog_format.columnar.memory import load_64, load_le32, load_le64, load_u8, store_8, store_32, store_64
from seglog_format.columnar.plan import (
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    NULL_HEADER_VALUES,
    NULL_KEYS,
    NULL_TIMESTAMPS,
    NULL_VALUES,
)

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

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
