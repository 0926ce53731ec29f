"""Decompression of lz4 frames with independent blocks, as Kafka's clients write them (chapter 34).

The fallback decoder reads all frames that this module does not cover. The limits near the end of a block are those of
the library that the fallback decoder uses, so this module accepts no frame that the library refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.memory import NEAR, PAIR, copy_16, copy_run, load_le16, load_le32, load_u8, prefetch, repeat
from seglog_format.columnar.records import DAMAGED, NO_ROOM

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

FRAME_MAGIC: Final = 0x184D2204
DESCRIPTOR: Final = 4
HEADER_SIZE: Final = 7
CONTENT_SIZE_SIZE: Final = 8
BLOCK_HEADER_SIZE: Final = 4
CHECKSUM_SIZE: Final = 4
STORED: Final = 0x80000000

FIXED_FLAGS: Final = 0xE3
"""Version, independence and reserved bits."""
HAS_BLOCK_CHECKSUMS: Final = 0x10
INDEPENDENT_VERSION_1: Final = 0x60
HAS_CONTENT_SIZE: Final = 0x08
HAS_CONTENT_CHECKSUM: Final = 0x04

MAX_RATIO: Final = 255
MIN_MATCH: Final = 4
MORE: Final = 15
"""Value of either half of a token if the length continues in the following bytes."""
SHORT_MATCH: Final = 32
"""Number of bytes copied for a match whose size, at most 18, is in its token."""
FAR: Final = 64
"""Distance from the ends of block and room at which no sequence with sizes in its token can reach either."""
LAST_LITERALS: Final = 5
"""Minimum distance of the end of a match from the end of the room."""
LAST_SEQUENCE: Final = 8
"""Distance from the end of a block's bytes within which only the last sequence, which has no match, may start."""
LAST_MATCH: Final = 12
"""Distance from the end of the room within which only last literals may start."""

PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
MASK: Final = 0xFFFFFFFF
STRIPE_SIZE: Final = 16


@inlined
def decompress_lz4(  # noqa: C901, PLR0911 - each way out is another damage
    data: Region, start: int, end: int, arena: Region, at: int, room_end: int, verify_header: bool
) -> int:
    """Decompress one frame.

    Returns:
        The end of its content in the arena, or `DAMAGED`, or `NO_ROOM`.
    """
    if end - start < HEADER_SIZE or load_le32(data, start) != FRAME_MAGIC:
        return DAMAGED
    flags, descriptor = load_u8(data, start + DESCRIPTOR), load_u8(data, start + DESCRIPTOR + 1)
    size_code = descriptor >> 4
    position = start + HEADER_SIZE + (CONTENT_SIZE_SIZE if flags & HAS_CONTENT_SIZE else 0)
    if flags & FIXED_FLAGS != INDEPENDENT_VERSION_1 or descriptor & 0x8F or size_code < 4 or position > end:
        return DAMAGED
    if verify_header:
        computed = xxh32(data, start + DESCRIPTOR, position - 1) >> 8 & 0xFF
        if computed != load_u8(data, position - 1):
            return DAMAGED
    max_size = 1 << (8 + 2 * size_code)
    checksum_size = CHECKSUM_SIZE if flags & HAS_BLOCK_CHECKSUMS else 0
    while end - position >= BLOCK_HEADER_SIZE:
        field = load_le32(data, position)
        size = field & ~STORED
        position += BLOCK_HEADER_SIZE
        if size == 0:
            has_checksum = not flags & HAS_CONTENT_CHECKSUM or end - position >= CHECKSUM_SIZE
            return at if has_checksum else DAMAGED
        if size > max_size or size + checksum_size > end - position:
            return DAMAGED
        if checksum_size and xxh32(data, position, position + size) != load_le32(data, position + size):
            return DAMAGED
        if field & STORED:
            if size > room_end - at:
                return NO_ROOM
            copy_run(arena, at, data, position, size)
            at += size
        else:
            at = decompress_block(data, position, position + size, arena, at, max_size, room_end)
            if at < 0:
                return at
        position += size + checksum_size
    return DAMAGED


@inlined
def decompress_block(  # noqa: C901, PLR0911, PLR0912 - each way out is another damage; short copies have a way of their own
    data: Region, position: int, end: int, arena: Region, start: int, max_size: int, room_end: int
) -> int:
    """Decompress one block; return the end of its content in the arena, or `DAMAGED`, or `NO_ROOM`."""
    at = start
    block_end = start + min(max_size, (end - position) * MAX_RATIO)
    limit = min(block_end, room_end)
    full = NO_ROOM if room_end < block_end else DAMAGED
    while position < end:
        prefetch(data, position + NEAR)
        prefetch(arena, at + NEAR)
        token = load_u8(data, position)
        position += 1
        size = token >> 4
        is_far = end - position >= FAR and limit - at >= FAR
        if is_far and size < MORE:
            copy_16(arena, at, data, position)
        else:
            if size == MORE:
                size, position = _longer(data, position, end, size)
            if size > end - position:
                return DAMAGED
            if size > limit - at:
                return full
            copy_run(arena, at, data, position, size)
            if end - position - size < LAST_SEQUENCE or block_end - at - size < LAST_MATCH:
                return at + size if size == end - position else DAMAGED
        position, at = position + size, at + size
        distance = load_le16(data, position)
        position += 2
        size = (token & MORE) + MIN_MATCH
        if distance == 0 or distance > at - start:
            return DAMAGED
        if is_far and token & MORE < MORE and distance >= PAIR and limit - at >= SHORT_MATCH:
            copy_16(arena, at, arena, at - distance)
            copy_16(arena, at + PAIR, arena, at + PAIR - distance)
        else:
            if token & MORE == MORE:
                size, position = _longer(data, position, end, size)
            if size > block_end - at - LAST_LITERALS:
                return DAMAGED
            if size > limit - at:
                return full
            repeat(arena, at, distance, size)
        at += size
    return DAMAGED


@helper
def _longer(data: Region, position: int, end: int, size: int) -> tuple[int, int]:
    """Read a continued length; return it and the position after it. Past the end it becomes impossibly large."""
    while position < end:
        byte = load_u8(data, position)
        position += 1
        size += byte
        if byte != 255:
            return size, position
    return 1 << 40, position


@helper
def xxh32(data: Region, start: int, end: int) -> int:
    """Compute xxHash32 with seed 0 (SEG-COD-007, SEG-COD-012)."""
    value, position = PRIMES[4], start
    if end - start >= STRIPE_SIZE:
        first, second, third, fourth = (PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK
        while end - position >= STRIPE_SIZE:
            first = _mixed(first, load_le32(data, position))
            second = _mixed(second, load_le32(data, position + 4))
            third = _mixed(third, load_le32(data, position + 8))
            fourth = _mixed(fourth, load_le32(data, position + 12))
            position += STRIPE_SIZE
        value = _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
    value = (value + end - start) & MASK
    while end - position >= 4:
        value = (value + load_le32(data, position) * PRIMES[2]) & MASK
        value = (_rotated(value, 17) * PRIMES[3]) & MASK
        position += 4
    while position < end:
        value = (value + load_u8(data, position) * PRIMES[4]) & MASK
        value = (_rotated(value, 11) * PRIMES[0]) & MASK
        position += 1
    value = ((value ^ value >> 15) * PRIMES[1]) & MASK
    value = ((value ^ value >> 13) * PRIMES[2]) & MASK
    return value ^ value >> 16


@inlined
def _mixed(lane: int, word: int) -> int:
    return (_rotated((lane + word * PRIMES[1]) & MASK, 13) * PRIMES[0]) & MASK


@inlined
def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & MASK
