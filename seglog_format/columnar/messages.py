"""Conversion of messages of magic 0 and 1, plain and in wrappers, to rows (chapter 33)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.entries import entry_size, message_is_valid
from seglog_format.columnar.layout import (
    CODEC_MASK,
    GREATEST_OFFSET,
    LENGTH_SIZE,
    LOG_APPEND_TIME,
    MAGIC,
    MESSAGE_ATTRIBUTES,
    MESSAGE_TIMESTAMP,
    MESSAGE_V0_HEADER_SIZE,
    MESSAGE_V1_HEADER_SIZE,
    MIN_ENTRY_SIZE,
    OFFSET,
    PREFIX_SIZE,
    SIZE,
)
from seglog_format.columnar.memory import load_64, load_be32, load_be64, load_u8, store_64
from seglog_format.columnar.plan import (
    FROM_TIMESTAMP,
    HEADER_ENDS,
    HEADERS,
    KEY_BYTES,
    ORIGIN,
    POSITIONS,
    PREVIOUS,
    ROWS,
    TO_TIMESTAMP,
    VALUE_BYTES,
)
from seglog_format.columnar.records import DAMAGED, row_columns
from seglog_format.columnar.views import MAX_INLINE, add, put_header_ends, put_position, put_row

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

NO_TIMESTAMP: Final = -1
OVERLAPS: Final = -2
"""The first message of a wrapper is below the end of the entry before it."""
NO_PARTS: Final = (DAMAGED, 0, 0, 0)


@helper
def message_parts(data: Region, position: int, size: int) -> tuple[int, int, int, int]:
    """Return starts and sizes of key and value of a message; `NO_PARTS` if they do not fit (SEG-MSG-005)."""
    end = position + size
    fixed = MESSAGE_V1_HEADER_SIZE if load_u8(data, position + MAGIC) == 1 else MESSAGE_V0_HEADER_SIZE
    key = position + fixed + LENGTH_SIZE
    if key > end:
        return NO_PARTS
    key_size = load_be32(data, key - LENGTH_SIZE)
    if key_size > end - key:
        return NO_PARTS
    value = key + max(key_size, 0) + LENGTH_SIZE
    if value > end:
        return NO_PARTS
    value_size = load_be32(data, value - LENGTH_SIZE)
    if value_size > end - value:
        return NO_PARTS
    return key, key_size, value, value_size


@inlined
def message_timestamp(data: Region, position: int) -> int:
    """Return the timestamp of a message; -1 in magic 0."""
    return load_be64(data, position + MESSAGE_TIMESTAMP) if load_u8(data, position + MAGIC) == 1 else NO_TIMESTAMP


@inlined
def decode_message(
    data: Region,
    position: int,
    size: int,
    numbers: tuple[int, int],
    bounds: tuple[int, int],
    buffer: int,
    plan: Region,
    state: Region,
    block: Region,
) -> int:
    """Decode one message into a row, if its offset and timestamp are requested; return 0, or `DAMAGED`."""
    parts = message_parts(data, position, size)
    offset, timestamp_ms = numbers
    lowest, highest = bounds
    if parts[0] < 0 or not 0 <= offset <= GREATEST_OFFSET:
        return DAMAGED
    earliest, latest = load_64(plan, 8 * FROM_TIMESTAMP), load_64(plan, 8 * TO_TIMESTAMP)
    if not (lowest <= offset < highest and earliest <= timestamp_ms <= latest):
        return 0
    row, origin = load_64(state, 8 * ROWS), load_64(state, 8 * ORIGIN) if buffer == 0 else 0
    put_row(block, row_columns(plan), state, row, numbers, data, parts, buffer, origin)
    put_position(block, load_64(plan, 8 * POSITIONS), row, position, buffer)
    _, key_size, _, value_size = parts
    add(state, KEY_BYTES + buffer, key_size if key_size > MAX_INLINE else 0)
    add(state, VALUE_BYTES + buffer, value_size if value_size > MAX_INLINE else 0)
    header_ends = load_64(plan, 8 * HEADER_ENDS)
    if header_ends >= 0:
        put_header_ends(block, header_ends, row, row + 1, load_64(state, 8 * HEADERS))
    store_64(state, 8 * ROWS, row + 1)
    return 0


@helper
def inner_size(data: Region, position: int, end: int) -> int:
    """Return the size of the message at a position in a wrapper; 0 if it is truncated, `DAMAGED` if it is invalid.

    A truncated message is ignored (SEG-MSG-019).
    """
    if end - position < PREFIX_SIZE:
        return 0
    size = load_be32(data, position + SIZE)
    if size < MIN_ENTRY_SIZE:
        return DAMAGED
    if size > end - position - PREFIX_SIZE:
        return 0
    if load_u8(data, position + MAGIC) > 1:
        return DAMAGED
    if load_u8(data, position + MESSAGE_ATTRIBUTES) & CODEC_MASK:
        return DAMAGED
    return max(entry_size(data, position, position + PREFIX_SIZE + size), DAMAGED)


@inlined
def survey(path: int, data: Region, start: int, end: int) -> tuple[int, int]:
    """Return the number of messages in a wrapper, or `DAMAGED`, and the offset stored in the last.

    A message whose checksum is wrong counts as damage (SEG-MSG-016); ``path`` is that of checksums.
    """
    position, count, last = start, 0, 0
    while True:
        size = inner_size(data, position, end)
        if size == 0:
            return count, last
        if size < 0 or not message_is_valid(path, data, position, size):
            return DAMAGED, 0
        last = load_be64(data, position + OFFSET)
        position, count = position + size, count + 1


@inlined
def decode_wrapped(
    data: Region,
    section: tuple[int, int],
    wrapper: tuple[int, int, int, int],
    last: int,
    bounds: tuple[int, int],
    plan: Region,
    state: Region,
    block: Region,
) -> int:
    """Decode the messages of a wrapper into rows; return 0, or `DAMAGED` or `OVERLAPS`; then the rows are invalid.

    Args:
        data: the decompressed messages.
        section: their start and end, as checked by `survey`.
        wrapper: offset, magic, attributes and timestamp of the wrapper.
        last: the offset stored in the last message.
        bounds: lowest offset wanted, and the one after the highest.
        plan: see `plan`.
        state: see `plan`.
        block: of rows.
    """
    offset, magic, attributes, timestamp_ms = wrapper
    base = 0 if magic == 0 or offset == 0 else offset - last
    if base < 0:
        return DAMAGED
    if base + load_be64(data, section[0] + OFFSET) <= load_64(state, 8 * PREVIOUS):
        return OVERLAPS
    before = load_64(state, 8 * ROWS)
    position, end = section
    while True:
        size = inner_size(data, position, end)
        if size <= 0:
            return 0
        stored_ms = message_timestamp(data, position)
        has_own_time = load_u8(data, position + MAGIC) == 0 or magic == 0 or not attributes & LOG_APPEND_TIME
        numbers = (base + load_be64(data, position + OFFSET), stored_ms if has_own_time else timestamp_ms)
        if decode_message(data, position, size, numbers, bounds, 1, plan, state, block):
            store_64(state, 8 * ROWS, before)
            return DAMAGED
        position += size
