"""Conversion of the records of magic 2 in a section, decompressed if necessary, to rows (chapter 31)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined, int64, uint64
from seglog_format.columnar.layout import GREATEST_OFFSET
from seglog_format.columnar.memory import load_64, load_be16, load_u8, store_64
from seglog_format.columnar.plan import (
    FROM_TIMESTAMP,
    HEADER_ENDS,
    HEADER_KEYS,
    HEADER_VALUES,
    HEADER_VALUES_VALID,
    HEADERS,
    KEY_BYTES,
    KEYS,
    KEYS_VALID,
    MAX_HEADERS,
    OFFSETS,
    ORIGIN,
    POSITIONS,
    ROWS,
    TIMESTAMPS,
    TIMESTAMPS_VALID,
    TO_TIMESTAMP,
    VALUE_BYTES,
    VALUES,
    VALUES_VALID,
)
from seglog_format.columnar.views import MAX_INLINE, add, put_header, put_header_ends, put_position, put_row

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

DAMAGED: Final = -1
NO_ROOM: Final = -2

INT32_BYTES: Final = 5
INT64_BYTES: Final = 10
MASK_32: Final = 0xFFFFFFFF
CONTROL_KEY_SIZE: Final = 4


@inlined
def varint(data: Region, position: int, end: int, most: int) -> tuple[int, int]:
    """Read a signed number of at most ``most`` bytes, and the position after it; `DAMAGED` if invalid (SEG-REC-004).

    A position that already is `DAMAGED` stays so.
    """
    if position < 0 or position >= end:
        return 0, DAMAGED
    byte = load_u8(data, position)
    if byte < 128:
        return byte >> 1 ^ -(byte & 1), position + 1
    if position + 1 < end:
        second = load_u8(data, position + 1)
        if second < 128:
            value = byte & 127 | second << 7
            return value >> 1 ^ -(value & 1), position + 2
    return _long_varint(data, position, min(position + most, end), most)


@helper
def _long_varint(data: Region, position: int, stop: int, most: int) -> tuple[int, int]:
    """Read a number of any size, as `varint` does; few are longer than two bytes."""
    value, shift = uint64(0), uint64(0)
    while position < stop:
        byte = load_u8(data, position)
        value |= uint64(byte & 127) << shift
        position += 1
        if byte < 128:
            value = value & uint64(MASK_32) if most == INT32_BYTES else value
            return int64(value >> uint64(1)) ^ -int64(value & uint64(1)), position
        shift += uint64(7)
    return 0, DAMAGED


@inlined
def decode_records(  # noqa: C901, PLR0911 - checks that leave at once: joined, they would become part of each address
    data: Region,
    section: tuple[int, int],
    buffer: int,
    times: tuple[int, int, bool],
    offsets: tuple[int, int, int],
    count: int,
    plan: Region,
    state: Region,
    block: Region,
    header_block: Region,
) -> int:
    """Decode all records of a batch into the block.

    Args:
        data: the bytes with the section.
        section: its start and end.
        buffer: number of the buffer that views refer to.
        times: base timestamp, largest timestamp, and whether the largest holds for all (SEG-BAT-011).
        offsets: base offset; lowest requested offset, and the one after the highest.
        count: records that the header states.
        plan: see `plan`.
        state: see `plan`.
        block: of rows.
        header_block: of headers.

    Returns:
        0, or `DAMAGED`, or `NO_ROOM` for headers; then the stored rows are invalid.
    """
    position, end = section
    base_timestamp_ms, max_timestamp_ms, is_append_time = times
    base_offset, lowest, highest = offsets
    earliest, latest = load_64(plan, 8 * FROM_TIMESTAMP), load_64(plan, 8 * TO_TIMESTAMP)
    columns = row_columns(plan)
    header_ends, origin = load_64(plan, 8 * HEADER_ENDS), load_64(state, 8 * ORIGIN) if buffer == 0 else 0
    positions = load_64(plan, 8 * POSITIONS)
    row, headers = load_64(state, 8 * ROWS), load_64(state, 8 * HEADERS)
    key_bytes, value_bytes, ended = 0, 0, row
    for _ in range(count):
        put_position(block, positions, row, position, buffer)
        length, position = varint(data, position, end, INT32_BYTES)
        if position < 0 or length < 0 or length > end - position:
            return DAMAGED
        stop = position + length
        timestamp_delta, position = varint(data, position + 1, stop, INT64_BYTES)
        offset_delta, position = varint(data, position, stop, INT32_BYTES)
        key_size, key = varint(data, position, stop, INT32_BYTES)
        if key < 0 or key_size > stop - key:
            return DAMAGED
        value_size, value = varint(data, key + max(key_size, 0), stop, INT32_BYTES)
        if value < 0 or value_size > stop - value:
            return DAMAGED
        header_count, position = varint(data, value + max(value_size, 0), stop, INT32_BYTES)
        offset = base_offset + offset_delta
        if position < 0 or header_count < 0 or not 0 <= offset <= GREATEST_OFFSET:
            return DAMAGED
        timestamp_ms = max_timestamp_ms if is_append_time else base_timestamp_ms + timestamp_delta
        is_wanted = lowest <= offset < highest and earliest <= timestamp_ms <= latest
        if header_count:
            shown = is_wanted and header_ends >= 0
            if shown:
                put_header_ends(block, header_ends, ended, row, headers)
                ended = row
            position = read_headers(
                data, position, stop, header_count, headers if shown else -1, buffer, origin, plan, state, header_block
            )
            headers += header_count if shown else 0
        if position != stop:
            return position if position == NO_ROOM else DAMAGED
        if is_wanted:
            numbers, parts = (offset, timestamp_ms), (key, key_size, value, value_size)
            put_row(block, columns, state, row, numbers, data, parts, buffer, origin)
            key_bytes += key_size if key_size > MAX_INLINE else 0
            value_bytes += value_size if value_size > MAX_INLINE else 0
            row += 1
    if position != end:
        return DAMAGED
    if header_ends >= 0:
        put_header_ends(block, header_ends, ended, row, headers)
    add(state, KEY_BYTES + buffer, key_bytes)
    add(state, VALUE_BYTES + buffer, value_bytes)
    store_64(state, 8 * ROWS, row)
    store_64(state, 8 * HEADERS, headers)
    return 0


@helper
def has_control_keys(data: Region, position: int, end: int, count: int) -> bool:
    """Return whether all records of a batch, which were decoded, have keys of control records (SEG-CTL-001)."""
    for _ in range(count):
        length, position = varint(data, position, end, INT32_BYTES)
        _, key = varint(data, position + 1, end, INT64_BYTES)
        _, key = varint(data, key, end, INT32_BYTES)
        key_size, key = varint(data, key, end, INT32_BYTES)
        if key_size < CONTROL_KEY_SIZE or load_be16(data, key) < 0:
            return False
        position += length
    return True


@inlined
def row_columns(plan: Region) -> tuple[int, int, int, int, int, int, int]:
    """Return the positions of the columns of a row."""
    return (
        load_64(plan, 8 * OFFSETS),
        load_64(plan, 8 * TIMESTAMPS),
        load_64(plan, 8 * TIMESTAMPS_VALID),
        load_64(plan, 8 * KEYS),
        load_64(plan, 8 * KEYS_VALID),
        load_64(plan, 8 * VALUES),
        load_64(plan, 8 * VALUES_VALID),
    )


@inlined
def read_headers(
    data: Region,
    position: int,
    stop: int,
    count: int,
    row: int,
    buffer: int,
    origin: int,
    plan: Region,
    state: Region,
    block: Region,
) -> int:
    """Read headers, into rows from ``row`` on unless that is negative.

    Returns:
        The position after them, `DAMAGED` or `NO_ROOM`.
    """
    columns = (load_64(plan, 8 * HEADER_KEYS), load_64(plan, 8 * HEADER_VALUES), load_64(plan, 8 * HEADER_VALUES_VALID))
    capacity = load_64(plan, 8 * MAX_HEADERS)
    for number in range(count):
        key_size, key = varint(data, position, stop, INT32_BYTES)
        if key < 0 or not 0 <= key_size <= stop - key:
            return DAMAGED
        value_size, value = varint(data, key + key_size, stop, INT32_BYTES)
        if value < 0 or value_size > stop - value:
            return DAMAGED
        position = value + max(value_size, 0)
        if row >= 0:
            if row + number >= capacity:
                return NO_ROOM
            put_header(block, columns, state, row + number, data, (key, key_size, value, value_size), buffer, origin)
    return position
