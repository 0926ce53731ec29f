"""Decompression of snappy: xerial blocks after a header, or one bare block (chapter 34).

The fallback decoder reads all data that this module does not cover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.memory import (
    NEAR,
    PAIR,
    copy_16,
    copy_run,
    load_64,
    load_be32,
    load_le16,
    load_le32,
    load_u8,
    prefetch,
    repeat,
)
from seglog_format.columnar.records import DAMAGED, NO_ROOM

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

XERIAL_MAGIC: Final = int.from_bytes(bytes.fromhex("82534e41505059"), "little")
"""The first seven bytes of a xerial header; the eighth is 0."""
HEADER_SIZE: Final = 16
BLOCK_HEADER_SIZE: Final = 4
SIZE_BYTES: Final = 5
MAX_RATIO: Final = 22
SHORT_LITERAL: Final = 60
FAR: Final = 64
"""Distance from the ends of a block and of its content at which no copy and no literal of 16 bytes can reach either."""
TOO_MANY: Final = 1 << 40


@helper
def decompress_snappy(data: Region, start: int, end: int, arena: Region, at: int, room_end: int) -> int:
    """Decompress xerial blocks or one bare block.

    Returns:
        The end of the content in the arena, or `DAMAGED`, or `NO_ROOM`.
    """
    if not _has_header_at(data, start, end):
        return decompress_raw(data, start, end, arena, at, room_end)
    if end - start < HEADER_SIZE:
        return DAMAGED
    position = start + HEADER_SIZE
    while end - position >= BLOCK_HEADER_SIZE:
        if _has_header_at(data, position, end):
            position += HEADER_SIZE
            continue
        size = load_be32(data, position)
        position += BLOCK_HEADER_SIZE
        if size < 0 or size > end - position:
            return DAMAGED
        at = decompress_raw(data, position, position + size, arena, at, room_end)
        if at < 0:
            return at
        position += size
    return at if position <= end else DAMAGED


@inlined
def _has_header_at(data: Region, position: int, end: int) -> bool:
    return end - position >= 8 and load_64(data, position) == XERIAL_MAGIC


@helper
def decompress_raw(  # noqa: C901 - elements that are short and far from both ends have paths of their own
    data: Region, position: int, end: int, arena: Region, at: int, room_end: int
) -> int:
    """Decompress one raw block; return the end of its content in the arena, or `DAMAGED`, or `NO_ROOM`."""
    left = end - position
    size, position = _claimed_size(data, position, end)
    if position < 0 or size > left * MAX_RATIO:
        return DAMAGED
    if size > room_end - at:
        return NO_ROOM
    start, stop = at, at + size
    while position < end:
        prefetch(data, position + NEAR)
        prefetch(arena, at + NEAR)
        tag = load_u8(data, position)
        kind, is_far = tag & 3, end - position >= FAR and stop - at >= FAR
        if is_far and kind == 0 and tag >> 2 < PAIR:
            copy_16(arena, at, data, position + 1)
            size = (tag >> 2) + 1
            position += 1 + size
        elif is_far and 0 < kind < 3:
            size, distance = _short_copy(load_le16(data, position + 1), tag)
            if distance == 0 or distance > at - start:
                return DAMAGED
            if distance >= PAIR:
                _copy_far(arena, at, distance, size)
            else:
                repeat(arena, at, distance, size)
            position += 1 + kind
        elif kind == 0:
            size, position = _literal(data, position, end, tag)
            if size > end - position or size > stop - at:
                return DAMAGED
            copy_run(arena, at, data, position, size)
            position += size
        else:
            size, distance, position = _copy(data, position, end, tag)
            if distance == 0 or distance > at - start or size > stop - at:
                return DAMAGED
            repeat(arena, at, distance, size)
        at += size
    return at if at == stop else DAMAGED


@inlined
def _claimed_size(data: Region, position: int, end: int) -> tuple[int, int]:
    """Return the decompressed size that a block claims, and the position after it; `DAMAGED` if it is invalid."""
    size, shift = 0, 0
    while position < end and shift < 7 * SIZE_BYTES:
        byte = load_u8(data, position)
        size |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return size, position
    return 0, DAMAGED


@inlined
def _literal(data: Region, position: int, end: int, tag: int) -> tuple[int, int]:
    """Return size and position of a literal. Past the end the size becomes impossibly large."""
    size, position = (tag >> 2) + 1, position + 1
    if size <= SHORT_LITERAL:
        return size, position
    count = size - SHORT_LITERAL
    if count > end - position:
        return TOO_MANY, position
    size, index = 1, 0
    while index < count:
        size += load_u8(data, position + index) << (8 * index)
        index += 1
    return size, position + count


@inlined
def _short_copy(field: int, tag: int) -> tuple[int, int]:
    """Return size and distance of a copy of kind 1 or 2, without a branch, since the kind is unpredictable."""
    is_short = tag & 3 == 1
    size = (tag >> 2 & 7) + 4 if is_short else (tag >> 2) + 1
    return size, (tag >> 5 << 8 | field & 255) if is_short else field


@inlined
def _copy_far(arena: Region, at: int, distance: int, size: int) -> None:
    """Copy 64 bytes, or 32 if that is enough, from at least 16 bytes back."""
    copy_16(arena, at, arena, at - distance)
    copy_16(arena, at + PAIR, arena, at + PAIR - distance)
    if size > 2 * PAIR:
        copy_16(arena, at + 2 * PAIR, arena, at + 2 * PAIR - distance)
        copy_16(arena, at + 3 * PAIR, arena, at + 3 * PAIR - distance)


@inlined
def _copy(data: Region, position: int, end: int, tag: int) -> tuple[int, int, int]:
    """Return size and distance of a copy, and the position after it; distance 0 if it is truncated."""
    kind, position = tag & 3, position + 1
    if kind == 1:
        if position >= end:
            return 0, 0, position
        return (tag >> 2 & 7) + 4, tag >> 5 << 8 | load_u8(data, position), position + 1
    size = (tag >> 2) + 1
    if kind == 2:
        return (size, load_le16(data, position), position + 2) if end - position >= 2 else (0, 0, position)
    return (size, load_le32(data, position), position + 4) if end - position >= 4 else (0, 0, position)
