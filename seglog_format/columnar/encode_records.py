"""The kernel that writes batches of magic 2 from columns: headers, records, and checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.checksum import crc32c
from seglog_format.columnar.compiled import helper, inlined, kernel, uint64
from seglog_format.columnar.layout import (
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_CRC,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    MAGIC,
    MAX_TIMESTAMP,
    OFFSET,
    PREFIX_SIZE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
)
from seglog_format.columnar.memory import SLACK, copy_long, load_64, load_u8, region, store_8

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region

# -- positions of columns in the addresses: pairs of address and size --------------------------------------------------
OFFSETS, TIMESTAMPS, KEYS, VALUES, HEADER_ENDS, HEADER_KEYS, HEADER_VALUES = 0, 2, 4, 10, 16, 18, 24
"""Each column of bytes has three pairs: the ends of values, after a 0; the bytes; and one byte for each value, 0 for
null. The third is empty if there is no null. The ends of headers are empty if no row has headers."""
ADDRESSES: Final = 30

# -- the state ---------------------------------------------------------------------------------------------------------
ROW: Final = 0
"""Index of the next row to write."""
ROWS: Final = 1
USED: Final = 2
"""Bytes written by the last call."""
BATCHES: Final = 3
"""Batches written so far."""
MAX_SIZE: Final = 4
"""Maximum size of a batch of several records, unless the number of records is given."""
ATTRIBUTES, EPOCH, PRODUCER, PRODUCERS_EPOCH, SEQUENCE, CHECKSUM_PATH = range(5, 11)
"""Fields of each batch; the sequence number continues over batches."""
STATE_SIZE: Final = 11

MAX_DELTA: Final = 2**31 - 1
COMPRESSED: Final = 0x07


@inlined
def zigzag(value: int) -> int:
    """Convert a signed number to an unsigned one."""
    folded: int = uint64(value) << uint64(1) ^ uint64(value >> 63)
    return folded


@inlined
def number_size(value: int) -> int:
    """Return the size of a signed number (SEG-REC-005)."""
    if -64 <= value < 64:
        return 1
    return 2 if -8192 <= value < 8192 else _long_size(value)


@helper
def _long_size(value: int) -> int:
    left, size = zigzag(value), 1
    while left >= uint64(128):
        left >>= uint64(7)
        size += 1
    return size


@inlined
def put_number(out: Region, at: int, value: int) -> int:
    """Write a signed number; return the position after it."""
    folded = value << 1 ^ value >> 63
    if -64 <= value < 64:
        store_8(out, at, folded)
        return at + 1
    if -8192 <= value < 8192:
        store_8(out, at, folded & 127 | 128)
        store_8(out, at + 1, folded >> 7)
        return at + 2
    return _put_long(out, at, value)


@helper
def _put_long(out: Region, at: int, value: int) -> int:
    left = zigzag(value)
    while left >= uint64(128):
        store_8(out, at, uint64(left & uint64(127) | uint64(128)))
        left >>= uint64(7)
        at += 1
    store_8(out, at, left)
    return at + 1


@inlined
def put_field(out: Region, at: int, value: int, size: int) -> None:
    """Write a field of a header, its highest byte first."""
    for byte in range(size):
        store_8(out, at + byte, value >> 8 * (size - 1 - byte))


@inlined
def column_at(addresses: Numbers, column: int) -> tuple[Region, Region, Region]:
    """Return the three parts of a column of bytes in variables: otherwise they would be reloaded after every store."""
    return (
        (addresses[column], addresses[column + 1]),
        (addresses[column + 2], addresses[column + 3]),
        (addresses[column + 4], addresses[column + 5]),
    )


@inlined
def value_at(column: tuple[Region, Region, Region], row: int) -> tuple[int, int]:
    """Return the start of a value in a column of bytes, and its size; -1 for null."""
    ends, _, valid = column
    start, end = load_64(ends, 8 * row), load_64(ends, 8 * row + 8)
    return start, end - start if valid[1] == 0 or load_u8(valid, row) else -1


@inlined
def put_value(out: Region, at: int, column: tuple[Region, Region, Region], start: int, size: int) -> int:
    """Write a size and as many bytes; return the position after them."""
    at = put_number(out, at, size)
    if size > 0:
        copy_long(out, at, column[1], start, size)
        at += size
    return at


@inlined
def sized(size: int) -> int:
    """Return the size of a length field and its bytes."""
    return number_size(size) + max(size, 0)


@helper
def headers_size(addresses: Numbers, first: int, last: int) -> int:
    """Return the size of some headers."""
    size, keys, values = 0, column_at(addresses, HEADER_KEYS), column_at(addresses, HEADER_VALUES)
    for header in range(first, last):
        _, key_size = value_at(keys, header)
        _, value_size = value_at(values, header)
        size += sized(key_size) + sized(value_size)
    return size


@helper
def put_headers(out: Region, at: int, addresses: Numbers, first: int, last: int) -> int:
    """Write headers; return the position after them."""
    keys, values = column_at(addresses, HEADER_KEYS), column_at(addresses, HEADER_VALUES)
    for header in range(first, last):
        start, size = value_at(keys, header)
        at = put_value(out, at, keys, start, size)
        start, size = value_at(values, header)
        at = put_value(out, at, values, start, size)
    return at


@kernel
def encode_rows(addresses: Numbers, counts: Numbers, state: Numbers, out: Bytes) -> bool:
    """Write rows as batches until all are written or the output is full.

    Records of a compressed batch are written uncompressed: the caller compresses them, and sets size and checksum.

    Args:
        addresses: addresses and sizes of the columns, which the caller keeps alive.
        counts: number of records in each batch; empty if batches are cut by size.
        state: the next row, and the fields of batches.
        out: receives whole batches, one after the other.

    Returns:
        Whether it stopped for lack of room.
    """
    target, room_end = region(out), len(out) - SLACK
    offsets, times = (addresses[OFFSETS], addresses[OFFSETS + 1]), (addresses[TIMESTAMPS], addresses[TIMESTAMPS + 1])
    header_ends = (addresses[HEADER_ENDS], addresses[HEADER_ENDS + 1])
    keys, values = column_at(addresses, KEYS), column_at(addresses, VALUES)
    max_size, is_cut_by_size = state[MAX_SIZE], len(counts) == 0
    row, at = state[ROW], 0
    state[USED] = 0
    while row < state[ROWS]:
        first, start = row, at
        stop = min(row + counts[state[BATCHES]], state[ROWS]) if len(counts) else state[ROWS]
        first_offset, first_time = load_64(offsets, 8 * row), load_64(times, 8 * row)
        newest = first_time
        at += BATCH_HEADER_SIZE
        while row < stop:
            offset_delta, timestamp = load_64(offsets, 8 * row) - first_offset, load_64(times, 8 * row)
            key, key_size = value_at(keys, row)
            value, value_size = value_at(values, row)
            header, last_header = 0, 0
            if header_ends[1] > 0:
                header, last_header = load_64(header_ends, 8 * row), load_64(header_ends, 8 * row + 8)
            size = 1 + number_size(timestamp - first_time) + number_size(offset_delta)
            size += sized(key_size) + sized(value_size) + number_size(last_header - header)
            if last_header > header:
                size += headers_size(addresses, header, last_header)
            is_first, whole = row == first, at - start + number_size(size) + size
            if not is_first and is_cut_by_size and (whole > max_size or offset_delta > MAX_DELTA):
                break
            if start + whole > room_end:
                return True
            at = put_number(target, at, size)
            store_8(target, at, 0)
            at = put_number(target, at + 1, timestamp - first_time)
            at = put_number(target, at, offset_delta)
            at = put_value(target, at, keys, key, key_size)
            at = put_value(target, at, values, value, value_size)
            at = put_number(target, at, last_header - header)
            if last_header > header:
                at = put_headers(target, at, addresses, header, last_header)
            newest, row = max(newest, timestamp), row + 1
        put_field(target, start + OFFSET, first_offset, 8)
        put_field(target, start + LAST_OFFSET_DELTA, load_64(offsets, 8 * row - 8) - first_offset, 4)
        put_field(target, start + BASE_TIMESTAMP, first_time, 8)
        put_field(target, start + MAX_TIMESTAMP, newest, 8)
        put_field(target, start + RECORDS_COUNT, row - first, 4)
        put_fixed(target, start, state)
        seal(target, start, at, state)
        if state[SEQUENCE] >= 0:
            state[SEQUENCE] = (state[SEQUENCE] + row - first) & MAX_DELTA
        state[ROW], state[USED], state[BATCHES] = row, at, state[BATCHES] + 1
    return False


@inlined
def put_fixed(out: Region, start: int, state: Numbers) -> None:
    """Write the given fields."""
    put_field(out, start + LEADER_EPOCH, state[EPOCH], 4)
    put_field(out, start + MAGIC, BATCH_MAGIC, 1)
    put_field(out, start + BATCH_ATTRIBUTES, state[ATTRIBUTES], 2)
    put_field(out, start + PRODUCER_ID, state[PRODUCER], 8)
    put_field(out, start + PRODUCER_EPOCH, state[PRODUCERS_EPOCH], 2)
    put_field(out, start + BASE_SEQUENCE, state[SEQUENCE], 4)


@inlined
def seal(out: Region, start: int, end: int, state: Numbers) -> None:
    """Write size and checksum."""
    put_field(out, start + SIZE, end - start - PREFIX_SIZE, 4)
    crc = 0
    if state[ATTRIBUTES] & COMPRESSED == 0:
        crc = crc32c(state[CHECKSUM_PATH], out, start + BATCH_ATTRIBUTES, end - start - BATCH_ATTRIBUTES)
    put_field(out, start + BATCH_CRC, crc, 4)
