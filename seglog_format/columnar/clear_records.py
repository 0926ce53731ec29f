"""Records of magic 2 that no check says anything about: well formed, and regular in every respect (chapter 31).

A record is cleared or it is not. What is odd in any way, damaged or legal, is left to the checks, which alone know
what to say of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from numba import int64, uint64

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.memory import load_be16, load_be32, load_le64, load_u8
from seglog_format.columnar.records import DAMAGED, INT32_BYTES, INT64_BYTES

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

ODD: Final = DAMAGED
"""Instead of a position: what stands before it is not cleared."""
NULL: Final = -1
ABORT: Final = 0
COMMIT: Final = 1
MARKER_KEY_SIZE: Final = 4
MARKER_VALUE_SIZE: Final = 6
NOT_ASCII: Final = 0x8080808080808080
LAST_BYTES: Final = (0x0F, 0x01)
"""Largest last byte of a number of 32 bits in five bytes, and of one of 64 bits in ten."""


@helper
def exact_varint(data: Region, position: int, end: int, most: int) -> tuple[int, int]:
    """A signed number in as few bytes as it takes, at most so many, and the position after it; or `ODD`.

    A position that is `ODD` already stays so.
    """
    if position < 0 or position >= end:
        return 0, ODD
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
    """The same of a number of any size; few are longer than two bytes."""
    value, shift, start = uint64(0), uint64(0), position
    while position < stop:
        byte = load_u8(data, position)
        value |= uint64(byte & 127) << shift
        position += 1
        if byte < 128:
            largest = LAST_BYTES[0] if most == INT32_BYTES else LAST_BYTES[1]
            if byte == 0 or (position - start == most and byte > largest):
                return 0, ODD
            return int64(value >> uint64(1)) ^ -int64(value & uint64(1)), position
        shift += uint64(7)
    return 0, ODD


@helper
def exact_bytes(data: Region, position: int, stop: int) -> tuple[int, int, int]:
    """Bytes behind their length: where they start, how many (-1: null), and the position after them."""
    size, position = exact_varint(data, position, stop, INT32_BYTES)
    if position < 0 or size < NULL or size > stop - position:
        return 0, 0, ODD
    return position, size, position + max(size, 0)


@inlined
def clear_records(data: Region, start: int, end: int, count: int, last_delta: int, base_ms: int) -> tuple[bool, int]:
    """Look through all records of a batch.

    Args:
        data: where the section stands, decompressed.
        start: of the section.
        end: of it.
        count: records that the header states.
        last_delta: the last offset delta that the header states.
        base_ms: base timestamp.

    Returns:
        Whether nothing is odd, and the largest timestamp of a record by its own delta.
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
    """The position after so many headers; `ODD` also where a key is not plain text."""
    if count < 0:
        return ODD
    for _ in range(count):
        key, key_size, position = exact_bytes(data, position, stop)
        _, _, position = exact_bytes(data, position, stop)
        if position < 0 or key_size < 0 or not _is_ascii(data, key, key + key_size):
            return ODD
    return position


@inlined
def _is_ascii(data: Region, position: int, end: int) -> bool:
    """Whether some bytes are ASCII, which is UTF-8 as well."""
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
    """The end marker in a record that was cleared: type (`ODD`: none as coordinators write it), epoch, and time delta.

    The epoch is the coordinator's.
    """
    _, position = exact_varint(data, position, end, INT32_BYTES)
    timestamp_delta, position = exact_varint(data, position + 1, end, INT64_BYTES)
    _, position = exact_varint(data, position, end, INT32_BYTES)
    key, key_size, position = exact_bytes(data, position, end)
    value, value_size, position = exact_bytes(data, position, end)
    if position < 0 or key_size != MARKER_KEY_SIZE or value_size != MARKER_VALUE_SIZE:
        return ODD, 0, 0
    kind = load_be16(data, key + 2)
    if load_be16(data, key) != 0 or load_be16(data, value) != 0 or (kind != ABORT and kind != COMMIT):  # noqa: PLR1714 - numba
        return ODD, 0, 0
    return kind, load_be32(data, value + 2), timestamp_delta
