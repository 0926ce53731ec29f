"""Decompression of a few entries ahead of reading, so their content is still in the cache when it is read."""

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
from seglog_format.columnar.lz4 import decompress_lz4
from seglog_format.columnar.memory import load_64, load_be32, load_u8, region
from seglog_format.columnar.messages import message_parts
from seglog_format.columnar.plan import (
    ARENA_USED,
    CHUNK_FIELDS,
    CHUNKS,
    DECOMPRESS,
    FULL,
    LIMIT,
    MAX_CHUNKS,
    MAX_ROWS,
    MORE_ARENA,
    NEXT_CHUNK,
    POSITION,
    ROWS,
)
from seglog_format.columnar.records import NO_ROOM
from seglog_format.columnar.snappy import decompress_snappy
from seglog_format.columnar.streams import decompress_gzip, decompress_zstd

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region

NO_CHUNK: Final = (-1, -1)
AHEAD_SIZE: Final = 2**17
"""Maximum bytes decompressed ahead: they fit the processor's inner caches."""


@inlined
def chunk_of(chunks: Region, state: Numbers, position: int) -> tuple[int, int]:
    """Return start and end of the content of the entry at a position in the arena, or `NO_CHUNK`."""
    while state[NEXT_CHUNK] < state[CHUNKS]:
        at = 8 * CHUNK_FIELDS * state[NEXT_CHUNK]
        if load_64(chunks, at) == position:
            return load_64(chunks, at + 8), load_64(chunks, at + 16)
        state[NEXT_CHUNK] += 1
    return NO_CHUNK


@helper
def decompress_entries(data: Region, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress some entries from the position on into the arena, after its used part.

    The reader verifies checksums later: decompressing damaged bytes does no harm.

    Args:
        data: bytes of the log.
        arena: receives decompressed bytes.
        plan: parameters of the read.
        state: the position; afterwards also the number of chunks.
        chunks: receives the position of the content of each entry.

    Returns:
        The number of decompressed entries: 0 if the first is not covered; `NO_ROOM` if it did not fit.
    """
    arena_, position, used = region(arena), state[POSITION], state[ARENA_USED]
    stop, rows = used + AHEAD_SIZE, plan[MAX_ROWS] - state[ROWS]
    count, misses_room = 0, False
    while count < MAX_CHUNKS and used < stop and rows > 0:
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
            content_end = decompress_lz4(data, start, end, arena_, used, used + room, not is_frame_old)
        elif codec == SNAPPY:
            content_end = decompress_snappy(data, start, end, arena_, used, used + room)
        elif codec == ZSTD:
            content_end = decompress_zstd(data, start, end, arena_, used, room, plan)
        elif codec == GZIP:
            content_end = decompress_gzip(data, start, end, arena_, used, room, plan)
        else:
            break
        if content_end < 0:
            misses_room = content_end == NO_ROOM and room < plan[LIMIT]
            break
        chunks[CHUNK_FIELDS * count] = position
        chunks[CHUNK_FIELDS * count + 1] = used
        chunks[CHUNK_FIELDS * count + 2] = content_end
        used, count = content_end, count + 1
        if load_u8(data, position + MAGIC) == BATCH_MAGIC:
            rows -= load_be32(data, position + RECORDS_COUNT)
        position += size
    state[CHUNKS], state[NEXT_CHUNK] = count, 0
    return NO_ROOM if misses_room and count == 0 else count


@inlined
def decompress_next(data: Region, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress for a reader; return 0, or the reason to stop if the entry at the position was not decompressed."""
    count = decompress_entries(data, arena, plan, state, chunks)
    if count == NO_ROOM:
        return FULL if state[ARENA_USED] else MORE_ARENA
    return 0 if count else DECOMPRESS


@kernel
def decompress_ahead(log: Bytes, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress entries as `decompress_entries` does, for callers in Python. The position is one in the log."""
    return decompress_entries(region(log), arena, plan, state, chunks)


@inlined
def stored_bytes(data: Region, position: int, size: int) -> tuple[int, int, int, bool]:
    """Return start and end of an entry's compressed bytes (-1: none), their codec, and whether it is of magic 0."""
    magic, codec = load_u8(data, position + MAGIC), entry_codec(data, position)
    if magic == BATCH_MAGIC:
        return position + BATCH_HEADER_SIZE, position + size, codec, False
    key, _, value, value_size = message_parts(data, position, size)
    if key < 0 or value_size < 0:
        return -1, -1, codec, False
    return value, value + value_size, codec, magic == 0


def no_chunks() -> Numbers:
    """Return an empty table of chunks."""
    return np.zeros(CHUNK_FIELDS * MAX_CHUNKS, np.int64)
