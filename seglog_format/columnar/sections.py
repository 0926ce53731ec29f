"""Entries decompressed ahead of being read: some at a time, so that their content is still near when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import helper, inlined, kernel
from seglog_format.columnar.copying import SLACK
from seglog_format.columnar.entries import entry_codec, entry_size
from seglog_format.columnar.layout import (
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    GZIP,
    LZ4,
    MAGIC,
    RECORDS_COUNT,
    SNAPPY,
    ZSTD,
)
from seglog_format.columnar.lz4 import expand_lz4
from seglog_format.columnar.memory import load_64, load_be32, load_u8, region
from seglog_format.columnar.messages import message_parts
from seglog_format.columnar.plan import (
    ARENA_USED,
    EXPAND,
    FULL,
    LIMIT,
    MAX_ROWS,
    MAX_SECTIONS,
    MORE_ARENA,
    NEXT_SECTION,
    POSITION,
    ROWS,
    SECTION_FIELDS,
    SECTIONS,
)
from seglog_format.columnar.records import NO_ROOM
from seglog_format.columnar.snappy import expand_snappy
from seglog_format.columnar.streams import expand_gzip, expand_zstd

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region

NONE_STANDS: Final = (-1, -1)
AHEAD_SIZE: Final = 2**17
"""Bytes that are decompressed ahead: what stays in a processor's nearer caches."""


@inlined
def section_of(sections: Region, state: Numbers, position: int) -> tuple[int, int]:
    """Where the content of the entry at a position stands in the arena, or `NONE_STANDS`."""
    while state[NEXT_SECTION] < state[SECTIONS]:
        at = 8 * SECTION_FIELDS * state[NEXT_SECTION]
        if load_64(sections, at) == position:
            return load_64(sections, at + 8), load_64(sections, at + 16)
        state[NEXT_SECTION] += 1
    return NONE_STANDS


@helper
def expand_entries(data: Region, arena: Bytes, plan: Numbers, state: Numbers, sections: Numbers) -> int:
    """Decompress entries from the position on, as many as are worth while, into the arena, behind what it holds.

    Checksums are left to the reader: decompressing damaged bytes does no harm.

    Args:
        data: bytes of the log.
        arena: takes what is decompressed.
        plan: what is wanted.
        state: the position; afterwards the sections that were made.
        sections: takes where the content of each entry stands.

    Returns:
        How many were decompressed: 0 where the first is odd; `NO_ROOM` where it was room that was missing for it.
    """
    arena_, position, used = region(arena), state[POSITION], state[ARENA_USED]
    stop, rows = used + AHEAD_SIZE, plan[MAX_ROWS] - state[ROWS]
    count, misses_room = 0, False
    while count < MAX_SECTIONS and used < stop and rows > 0:
        size = entry_size(data, position, data[1])
        if size < 0:
            break
        start, end, codec, is_frame_old = stored_bytes(data, position, size)
        left = len(arena) - SLACK - used
        room = min(left, plan[LIMIT])
        if left < 0 or start < 0:
            misses_room = start >= 0
            break
        if codec == LZ4:
            content_end = expand_lz4(data, start, end, arena_, used, used + room, not is_frame_old)
        elif codec == SNAPPY:
            content_end = expand_snappy(data, start, end, arena_, used, used + room)
        elif codec == ZSTD:
            content_end = expand_zstd(data, start, end, arena_, used, room, plan)
        elif codec == GZIP:
            content_end = expand_gzip(data, start, end, arena_, used, room, plan)
        else:
            break
        if content_end < 0:
            misses_room = content_end == NO_ROOM and room < plan[LIMIT]
            break
        sections[SECTION_FIELDS * count] = position
        sections[SECTION_FIELDS * count + 1] = used
        sections[SECTION_FIELDS * count + 2] = content_end
        used, count = content_end, count + 1
        if load_u8(data, position + MAGIC) == BATCH_MAGIC:
            rows -= load_be32(data, position + RECORDS_COUNT)
        position += size
    state[SECTIONS], state[NEXT_SECTION] = count, 0
    return NO_ROOM if misses_room and count == 0 else count


@inlined
def expand_next(data: Region, arena: Bytes, plan: Numbers, state: Numbers, sections: Numbers) -> int:
    """The same for a reader: 0, or with what it ends, as the entry at the position could not be decompressed."""
    count = expand_entries(data, arena, plan, state, sections)
    if count == NO_ROOM:
        return FULL if state[ARENA_USED] else MORE_ARENA
    return 0 if count else EXPAND


@kernel
def expand_ahead(log: Bytes, arena: Bytes, plan: Numbers, state: Numbers, sections: Numbers) -> int:
    """As `expand_entries`, for who does not read. The position is one in the log."""
    return expand_entries(region(log), arena, plan, state, sections)


@inlined
def stored_bytes(data: Region, position: int, size: int) -> tuple[int, int, int, bool]:
    """Where the compressed bytes of an entry stand, their codec, and whether it is of magic 0; -1: nowhere."""
    magic, codec = load_u8(data, position + MAGIC), entry_codec(data, position)
    if magic == BATCH_MAGIC:
        return position + BATCH_HEADER_SIZE, position + size, codec, False
    key, _, value, value_size = message_parts(data, position, size)
    if key < 0 or value_size < 0:
        return -1, -1, codec, False
    return value, value + value_size, codec, magic == 0


def no_sections() -> Numbers:
    """Room to note sections."""
    return np.zeros(SECTION_FIELDS * MAX_SECTIONS, np.int64)
