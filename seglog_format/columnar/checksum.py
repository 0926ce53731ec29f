"""CRC-32C and CRC-32 of a range of bytes, at the speed of the processor (SEG-BAT-003, SEG-MSG-004).

Three paths give the same numbers (`cpu.checksum_path`); a kernel takes the path as an argument. For data outside of the
caches, memory limits the speed rather than arithmetic, so every path prefetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32 as crc32_of

import numpy as np

from seglog_format.columnar import cpu, folding
from seglog_format.columnar.compiled import helper, inlined, kernel, uint64
from seglog_format.columnar.crc_constants import (
    BARRETT_POLYNOMIAL,
    BARRETT_QUOTIENT,
    CRC32_REFLECTED,
    CRC32C_REFLECTED,
    multiplier,
    power,
    tables,
)
from seglog_format.columnar.folding import (
    LONGEST,
    SHORTEST,
    crc32c_8,
    crc32c_16,
    crc32c_32,
    crc32c_64,
    fold_crc32,
    fold_crc32_wide,
    fold_crc32c_wide,
    fold_short_crc32,
    product,
)
from seglog_format.columnar.memory import LINE, load_le16, load_le32, load_le64, load_u8, prefetch, region

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Region

PORTABLE: Final = cpu.PORTABLE
WIDE: Final = cpu.WIDE
ONES: Final = 0xFFFFFFFF

CRC32_TABLES: Final = tables(CRC32_REFLECTED)
CRC32C_TABLES: Final = tables(CRC32C_REFLECTED)
AFTER_ZEROS: Final = np.array([crc32_of(bytes(size)) for size in range(LONGEST + 1)], np.int64)
"""CRC-32 of each number of zeros: the contribution of the initial register to the checksum of any bytes."""

NARROW_FOLD: Final = folding.fold_size(cpu.NARROW)
WIDE_FOLD: Final = folding.fold_size(cpu.WIDE)

LARGE_LANE: Final = 1024
MEDIUM_LANE: Final = 128
LANE_PREFETCH: Final = 6144
SMALL_PREFETCH: Final = 4096

LARGE_ONE, LARGE_TWO = (power(8 * n * LARGE_LANE - 33, CRC32C_REFLECTED) for n in (1, 2))
MEDIUM_ONE, MEDIUM_TWO = (power(8 * n * MEDIUM_LANE - 33, CRC32C_REFLECTED) for n in (1, 2))
"""Multipliers that move the first and second of three lanes to the end of the third."""

FOLD_LOW, FOLD_HIGH = multiplier(128 + 32, CRC32_REFLECTED), multiplier(128 - 32, CRC32_REFLECTED)
MOVE_64: Final = multiplier(64, CRC32_REFLECTED)


@inlined
def crc32c(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32C of ``size`` bytes from ``start``."""
    if path != PORTABLE and size < 3 * MEDIUM_LANE:  # a call would cost more than these instructions
        for line in range(start, start + size, LINE):
            prefetch(data, line + SMALL_PREFETCH)
        return _crc32c_rest(data, start, start + size, uint64(ONES)) ^ ONES
    return _crc32c_large(path, data, start, size)


@helper
def _crc32c_large(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32C of any number of bytes."""
    if path == PORTABLE:
        return _by_tables(CRC32C_TABLES, data, start, size, ONES) ^ ONES
    crc, position, end = uint64(ONES), start, start + size
    if path == WIDE and size >= WIDE_FOLD:
        whole = size // WIDE_FOLD * WIDE_FOLD
        low, high = fold_crc32c_wide(data, position, whole, crc)
        crc = crc32c_64(crc32c_64(uint64(0), low), high)
        position += whole
    else:
        crc, position = _lanes(data, position, end, crc, LARGE_LANE, LARGE_ONE, LARGE_TWO)
        crc, position = _lanes(data, position, end, crc, MEDIUM_LANE, MEDIUM_ONE, MEDIUM_TWO)
    return _crc32c_rest(data, position, end, crc) ^ ONES


@inlined
def _joined(first: int, second: int, third: int, one: int, two: int) -> int:
    """Return the register after three lanes that were computed in parallel."""
    low, _ = product(first & uint64(ONES), uint64(two))
    other, _ = product(second & uint64(ONES), uint64(one))
    joined: int = third ^ crc32c_64(uint64(0), low ^ other)
    return joined


@helper
def _lanes(data: Region, position: int, end: int, crc: int, lane: int, one: int, two: int) -> tuple[int, int]:
    """Compute three lanes in parallel, since one chain of instructions would wait for its own results."""
    while end - position >= 3 * lane:
        first, second, third = crc, uint64(0), uint64(0)
        for word in range(position, position + lane, 8):
            prefetch(data, word + LANE_PREFETCH)
            prefetch(data, word + lane + LANE_PREFETCH)
            prefetch(data, word + 2 * lane + LANE_PREFETCH)
            first = crc32c_64(first, load_le64(data, word))
            second = crc32c_64(second, load_le64(data, word + lane))
            third = crc32c_64(third, load_le64(data, word + 2 * lane))
        crc = _joined(first, second, third, one, two)
        position += 3 * lane
    return crc, position


@helper
def _crc32c_rest(data: Region, position: int, end: int, crc: int) -> int:
    """Compute the rest, word by word."""
    while end - position >= 8:
        crc = crc32c_64(crc, load_le64(data, position))
        position += 8
    left = end - position
    if left & 4:
        crc = crc32c_32(crc, load_le32(data, position))
        position += 4
    if left & 2:
        crc = crc32c_16(crc, load_le16(data, position))
        position += 2
    if left & 1:
        crc = crc32c_8(crc, load_u8(data, position))
    return int(crc)


@helper
def crc32(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32 of ``size`` bytes from ``start``."""
    if path == PORTABLE or size < 16:
        return _by_tables(CRC32_TABLES, data, start, size, ONES) ^ ONES
    if size <= LONGEST and start >= SHORTEST:
        line = start + SMALL_PREFETCH
        while line < start + size + SMALL_PREFETCH:
            prefetch(data, line)
            line += LINE
        low, high = fold_short_crc32(data, start, size)
        return _remainder(low, high) ^ int(AFTER_ZEROS[size])
    position, end = start, start + size
    if path == WIDE and size >= WIDE_FOLD:
        whole = size // WIDE_FOLD * WIDE_FOLD
        low, high = fold_crc32_wide(data, position, whole, uint64(ONES))
        position += whole
    elif size >= NARROW_FOLD:
        whole = size // NARROW_FOLD * NARROW_FOLD
        low, high = fold_crc32(data, position, whole, uint64(ONES))
        position += whole
    else:
        low, high = load_le64(data, position) ^ uint64(ONES), load_le64(data, position + 8)
        position += 16
    while end - position >= 16:
        low, high = _folded(low, high, load_le64(data, position), load_le64(data, position + 8))
        position += 16
    if position < end:
        low, high = _folded_rest(data, end, end - position, low, high)
    return _remainder(low, high) ^ ONES


@helper
def _folded(low: int, high: int, next_low: int, next_high: int) -> tuple[int, int]:
    """Return 128 bits folded onto the next 128."""
    first, second = product(low, uint64(FOLD_LOW))
    third, fourth = product(high, uint64(FOLD_HIGH))
    return first ^ third ^ next_low, second ^ fourth ^ next_high


@inlined
def _folded_rest(data: Region, end: int, size: int, low: int, high: int) -> tuple[int, int]:
    """Fold 128 bits and a rest of 1 to 15 bytes, as if the rest ended the last 128 bits of a longer range.

    The 16 bytes before the end are loaded: the rest, and bytes before it that are masked out.
    """
    last_low, last_high = load_le64(data, end - 16), load_le64(data, end - 8)
    bits = uint64(8 * size)
    if size < 8:
        back = uint64(64) - bits
        head_low, head_high = uint64(0), low << back
        tail_low = low >> bits | high << back
        tail_high = high >> bits | (last_high >> back << back)
    elif size == 8:
        head_low, head_high = uint64(0), low
        tail_low, tail_high = high, last_high
    else:
        over, back = bits - uint64(64), uint64(128) - bits
        head_low, head_high = low << back, low >> over | high << back
        tail_low, tail_high = high >> over | (last_low >> back << back), last_high
    return _folded(head_low, head_high, tail_low, tail_high)


@inlined
def _remainder(low: int, high: int) -> int:
    """Return 128 bits modulo the polynomial (Barrett's reduction)."""
    ones = uint64(ONES)
    first, second = product(low, uint64(FOLD_HIGH))
    low, high = high ^ first, second
    shifted = low >> uint64(32) | high << uint64(32)
    first, _ = product(low & ones, uint64(MOVE_64))
    rest = first ^ shifted
    quotient, _ = product(rest & ones, uint64(BARRETT_QUOTIENT))
    multiple, _ = product(quotient & ones, uint64(BARRETT_POLYNOMIAL))
    return int((rest ^ multiple) >> uint64(32))


@helper
def _by_tables(
    rows: np.ndarray[tuple[int, int], np.dtype[np.int64]], data: Region, start: int, size: int, crc: int
) -> int:
    """Compute eight bytes at a time, with a table for each."""
    position, end = start, start + size
    while end - position >= 8:
        low = load_le32(data, position) ^ crc
        high = load_le32(data, position + 4)
        crc = rows[7, low & 255] ^ rows[6, low >> 8 & 255] ^ rows[5, low >> 16 & 255] ^ rows[4, low >> 24]
        crc ^= rows[3, high & 255] ^ rows[2, high >> 8 & 255] ^ rows[1, high >> 16 & 255] ^ rows[0, high >> 24]
        position += 8
    while position < end:
        crc = crc >> 8 ^ rows[0, (crc ^ load_u8(data, position)) & 255]
        position += 1
    return crc


@kernel
def checksum(is_castagnoli: bool, path: int, data: Bytes, start: int, size: int) -> int:
    """Compute one checksum, CRC-32C or CRC-32, for callers in Python."""
    if start < 0 or size < 0 or start + size > len(data):
        return -1
    where = region(data)
    return crc32c(path, where, start, size) if is_castagnoli else crc32(path, where, start, size)
