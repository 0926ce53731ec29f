"""The walk from entry to entry: sizes, offsets and checksums, without decoding (chapter 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.checksum import crc32, crc32c
from seglog_format.columnar.compiled import helper, inlined, kernel
from seglog_format.columnar.layout import (
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_CRC,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    MAGIC,
    MAX_TIMESTAMP,
    MESSAGE_ATTRIBUTES,
    MESSAGE_CRC,
    MESSAGE_TIMESTAMP,
    MIN_BATCH_LENGTH,
    MIN_ENTRY_SIZE,
    MIN_MESSAGE_V1_SIZE,
    MIN_SHOWN_SIZE,
    OFFSET,
    PREFIX_SIZE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_i8, load_u8, region, store_64
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table

DOUBT: Final = -1
"""Returned instead of a size if the entry is not covered, so the fallback decoder must read it."""
UNKNOWN_OFFSET: Final = -1
"""Returned instead of the first offset of a wrapper, which must be decompressed to find it."""

COLUMNS: Final = (
    "position",
    "size",
    "magic",
    "base_offset",
    "last_offset",
    "attributes",
    "crc",
    "crc_is_valid",
    "base_timestamp_ms",
    "max_timestamp_ms",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)
"""Columns of a batch table. Fields that magic 0 and 1 lack, or that need decompression, are -1."""
ROW_SIZE: Final = 8 * len(COLUMNS)
COLUMN: Final = {name: number for number, name in enumerate(COLUMNS)}


@helper
def entry_size(data: Region, position: int, end: int) -> int:
    """Return the size of the whole entry at a position, or `DOUBT`: truncated, of impossible size or unknown magic."""
    left = end - position
    if left < MIN_SHOWN_SIZE:
        return DOUBT
    size = load_be32(data, position + SIZE)
    magic = load_u8(data, position + MAGIC)
    least = MIN_ENTRY_SIZE
    if magic == BATCH_MAGIC:
        least = MIN_BATCH_LENGTH
    elif magic == 1:
        least = MIN_MESSAGE_V1_SIZE
    elif magic > BATCH_MAGIC:
        return DOUBT
    if size < least or size > left - PREFIX_SIZE:
        return DOUBT
    return size + PREFIX_SIZE


@inlined
def entry_codec(data: Region, position: int) -> int:
    """Return the number of the codec in an entry's attributes."""
    is_batch = load_u8(data, position + MAGIC) == BATCH_MAGIC
    return load_u8(data, position + (BATCH_ATTRIBUTES + 1 if is_batch else MESSAGE_ATTRIBUTES)) & CODEC_MASK


@inlined
def entry_offsets(data: Region, position: int) -> tuple[int, int]:
    """Return first and last offset of an entry; the first of a wrapper is unknown; a negative last one is invalid."""
    offset = load_be64(data, position + OFFSET)
    if load_u8(data, position + MAGIC) < BATCH_MAGIC:
        return (UNKNOWN_OFFSET if entry_codec(data, position) else offset), offset
    delta = load_be32(data, position + LAST_OFFSET_DELTA)
    # The sum itself is not tested: a compiler may assume that sums of signed numbers do not overflow.
    if offset < 0 or delta < 0 or offset > INT64_MAX - delta:
        return offset, DOUBT
    return offset, offset + delta


@inlined
def batch_is_valid(path: int, data: Region, position: int, size: int) -> bool:
    """Return whether a batch's stored and computed checksum are equal (SEG-BAT-003)."""
    stored = load_be32(data, position + BATCH_CRC) & 0xFFFFFFFF
    return crc32c(path, data, position + BATCH_ATTRIBUTES, size - BATCH_ATTRIBUTES) == stored


@inlined
def message_is_valid(path: int, data: Region, position: int, size: int) -> bool:
    """Return whether a message's stored and computed checksum are equal (SEG-MSG-004)."""
    stored = load_be32(data, position + MESSAGE_CRC) & 0xFFFFFFFF
    return crc32(path, data, position + MAGIC, size - MAGIC) == stored


@inlined
def entry_is_valid(path: int, data: Region, position: int, size: int) -> bool:
    """Return whether an entry's stored and computed checksum are equal."""
    if load_u8(data, position + MAGIC) == BATCH_MAGIC:
        return batch_is_valid(path, data, position, size)
    return message_is_valid(path, data, position, size)


@inlined
def are_in_order(first: int, last: int, previous: int, first_allowed: int, last_allowed: int) -> bool:
    """Return whether the offsets of an entry are above the previous offset, and possible in the log."""
    return previous < last <= last_allowed and (first == UNKNOWN_OFFSET or first_allowed <= first > previous)


@inlined
def entry_in_order(
    data: Region, position: int, end: int, previous: int, first_allowed: int, last_allowed: int
) -> tuple[int, int, int]:
    """Return size, first and last offset of the entry at a position; the size is `DOUBT` if it is impossible."""
    size = entry_size(data, position, end)
    if size < 0:
        return DOUBT, 0, 0
    first, last = entry_offsets(data, position)
    if not are_in_order(first, last, previous, first_allowed, last_allowed):
        return DOUBT, 0, 0
    return size, first, last


@kernel
def fill_table(log: Bytes, state: Numbers, path: int, table: Table) -> int:
    """Fill a batch table with entries until it is full, or an entry is not covered.

    Args:
        log: bytes of the log.
        state: start of the walk, and after the call the start of the next: position, last offset of the entry before,
            lowest and highest offset that the log can hold.
        path: of checksums; negative to compute none.
        table: a row for each entry.

    Returns:
        The number of rows filled.
    """
    position, previous, first_allowed, last_allowed = state[0], state[1], state[2], state[3]
    if position < 0:
        return 0
    data, rows, end, row = region(log), region(table), len(log), 0
    while row < len(table):
        size, first, last = entry_in_order(data, position, end, previous, first_allowed, last_allowed)
        if size < 0:
            break
        is_valid = path >= 0 and entry_is_valid(path, data, position, size)
        at = row * ROW_SIZE
        store_fields(data, position, rows, at)
        store_64(rows, at + 8 * 1, size)
        store_64(rows, at + 8 * 3, first)
        store_64(rows, at + 8 * 4, last)
        store_64(rows, at + 8 * 7, is_valid)
        position, previous, row = position + size, last, row + 1
    state[0], state[1] = position, previous
    return row


@inlined
def store_fields(data: Region, position: int, rows: Region, at: int) -> None:
    """Copy the fixed fields of a header into a row."""
    magic = load_u8(data, position + MAGIC)
    store_64(rows, at, position)
    store_64(rows, at + 8 * 2, magic)
    if magic == BATCH_MAGIC:
        store_64(rows, at + 8 * 5, load_be16(data, position + BATCH_ATTRIBUTES))
        store_64(rows, at + 8 * 6, load_be32(data, position + BATCH_CRC) & 0xFFFFFFFF)
        store_64(rows, at + 8 * 8, load_be64(data, position + BASE_TIMESTAMP))
        store_64(rows, at + 8 * 9, load_be64(data, position + MAX_TIMESTAMP))
        store_64(rows, at + 8 * 10, load_be32(data, position + LEADER_EPOCH))
        store_64(rows, at + 8 * 11, load_be64(data, position + PRODUCER_ID))
        store_64(rows, at + 8 * 12, load_be16(data, position + PRODUCER_EPOCH))
        store_64(rows, at + 8 * 13, load_be32(data, position + BASE_SEQUENCE))
        store_64(rows, at + 8 * 14, load_be32(data, position + RECORDS_COUNT))
    else:
        store_64(rows, at + 8 * 5, load_i8(data, position + MESSAGE_ATTRIBUTES))
        store_64(rows, at + 8 * 6, load_be32(data, position + MESSAGE_CRC) & 0xFFFFFFFF)
        for column in range(8, len(COLUMNS)):
            store_64(rows, at + 8 * column, -1)
        if magic == 1:
            store_64(rows, at + 8 * 9, load_be64(data, position + MESSAGE_TIMESTAMP))


assert BATCH_HEADER_SIZE - PREFIX_SIZE == MIN_BATCH_LENGTH
assert [COLUMN[name] for name in ("size", "base_offset", "last_offset", "crc_is_valid")] == [1, 3, 4, 7]
