"""The prefilter of records of magic 2: well formed, and of the common encoding (chapter 31).

The checks read every record that does not pass, damaged or valid, and only they report findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined, int64, uint64
from seglog_format.columnar.memory import load_be16, load_be32, load_le64, load_u8
from seglog_format.columnar.records import DAMAGED, INT32_BYTES, INT64_BYTES

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

UNCOVERED: Final = DAMAGED
"""Returned instead of a position if the bytes before it do not pass."""
NULL: Final = -1
ABORT: Final = 0
COMMIT: Final = 1
MARKER_KEY_SIZE: Final = 4
MARKER_VALUE_SIZE: Final = 6
NOT_ASCII: Final = 0x8080808080808080
LAST_BYTES: Final = (0x0F, 0x01)
"""Maximum last byte of a number of 32 bits in five bytes, and of one of 64 bits in ten."""


@helper
def exact_varint(data: Region, position: int, end: int, most: int) -> tuple[int, int]:
    """Read a number in its shortest encoding of at most ``most`` bytes, and the position after it; or `UNCOVERED`.

    A position that already is `UNCOVERED` stays so.
    """
    if position < 0 or position >= end:
        return 0, UNCOVERED
    byte = load_u8(data, position)
    if byte < 128:
        return byte >> 1 ^ -(byte & 1), position + 1
    if position + 1 < end:
        second = load_u8(data, position + 1)
        if 0 < second < 128:
            value = byte & 127 | second << 7
            return value >> 1 ^ -(value & 1), position + 2
    return _long_exact_varint(data, position, min(position + most, end), most)


@helper
def _long_exact_varint(data: Region, position: int, stop: int, most: int) -> tuple[int, int]:
    """Read a number of any size, as `exact_varint` does; few are longer than two bytes."""
    value, shift, start = uint64(0), uint64(0), position
    while position < stop:
        byte = load_u8(data, position)
        value |= uint64(byte & 127) << shift
        position += 1
        if byte < 128:
            largest = LAST_BYTES[0] if most == INT32_BYTES else LAST_BYTES[1]
            if byte == 0 or (position - start == most and byte > largest):
                return 0, UNCOVERED
            return int64(value >> uint64(1)) ^ -int64(value & uint64(1)), position
        shift += uint64(7)
    return 0, UNCOVERED


@helper
def exact_bytes(data: Region, position: int, stop: int) -> tuple[int, int, int]:
    """Return start and size (-1: null) of bytes after their length, and the position after them."""
    size, position = exact_varint(data, position, stop, INT32_BYTES)
    if position < 0 or size < NULL or size > stop - position:
        return 0, 0, UNCOVERED
    return position, size, position + max(size, 0)


@inlined
def prefilter_records(
    data: Region, start: int, end: int, count: int, last_delta: int, base_ms: int
) -> tuple[bool, int]:
    """Prefilter all records of a batch.

    Args:
        data: the bytes with the decompressed section.
        start: of the section.
        end: of it.
        count: records that the header states.
        last_delta: the last offset delta that the header states.
        base_ms: base timestamp.

    Returns:
        Whether all records pass, and the largest timestamp of a record by its own delta.
    """
    position, before, largest_ms = start, -1, -(1 << 63)
    for _ in range(count):
        length, position = exact_varint(data, position, end, INT32_BYTES)
        if position < 0 or length < 1 or length > end - position:
            return False, 0
        stop = position + length
        if load_u8(data, position) != 0:
            return False, 0
        timestamp_delta, position = exact_varint(data, position + 1, stop, INT64_BYTES)
        offset_delta, position = exact_varint(data, position, stop, INT32_BYTES)
        _, _, position = exact_bytes(data, position, stop)
        _, _, position = exact_bytes(data, position, stop)
        header_count, position = exact_varint(data, position, stop, INT32_BYTES)
        if header_count:
            position = _after_headers(data, position, stop, header_count)
        if position != stop or offset_delta <= before:
            return False, 0
        timestamp_ms = int64(uint64(base_ms) + uint64(timestamp_delta))  # may wrap, which signed numbers may not
        before, largest_ms = offset_delta, max(timestamp_ms, largest_ms)
    return position == end and before <= last_delta, largest_ms


@inlined
def _after_headers(data: Region, position: int, stop: int, count: int) -> int:
    """Return the position after ``count`` headers; `UNCOVERED` also if a key is not ASCII."""
    if count < 0:
        return UNCOVERED
    for _ in range(count):
        key, key_size, position = exact_bytes(data, position, stop)
        _, _, position = exact_bytes(data, position, stop)
        if position < 0 or key_size < 0 or not _is_ascii(data, key, key + key_size):
            return UNCOVERED
    return position


@inlined
def _is_ascii(data: Region, position: int, end: int) -> bool:
    """Return whether bytes are ASCII, which is valid UTF-8."""
    while end - position >= 8:
        if load_le64(data, position) & uint64(NOT_ASCII):
            return False
        position += 8
    bits = 0
    while position < end:
        bits |= load_u8(data, position)
        position += 1
    return bits < 128


@helper
def end_marker(data: Region, position: int, end: int) -> tuple[int, int, int]:
    """Return the end marker in a record that passed: type (or `UNCOVERED`), epoch, and time delta.

    The epoch is the coordinator's.
    """
    _, position = exact_varint(data, position, end, INT32_BYTES)
    timestamp_delta, position = exact_varint(data, position + 1, end, INT64_BYTES)
    _, position = exact_varint(data, position, end, INT32_BYTES)
    key, key_size, position = exact_bytes(data, position, end)
    value, value_size, position = exact_bytes(data, position, end)
    if position < 0 or key_size != MARKER_KEY_SIZE or value_size != MARKER_VALUE_SIZE:
        return UNCOVERED, 0, 0
    kind = load_be16(data, key + 2)
    if load_be16(data, key) != 0 or load_be16(data, value) != 0 or (kind != ABORT and kind != COMMIT):  # noqa: PLR1714 - numba
        return UNCOVERED, 0, 0
    return kind, load_be32(data, value + 2), timestamp_delta
