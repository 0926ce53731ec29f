"""The end of compressed data: readers ignore what follows it, and checks report that (chapter 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.layout import LZ4, SNAPPY
from seglog_format.columnar.lz4 import BLOCK_HEADER_SIZE as LZ4_BLOCK_HEADER_SIZE
from seglog_format.columnar.lz4 import (
    CHECKSUM_SIZE,
    CONTENT_SIZE_SIZE,
    DESCRIPTOR,
    HAS_CONTENT_CHECKSUM,
    HAS_CONTENT_SIZE,
    STORED,
)
from seglog_format.columnar.lz4 import HEADER_SIZE as LZ4_HEADER_SIZE
from seglog_format.columnar.memory import load_64, load_be32, load_le32, load_u8
from seglog_format.columnar.snappy import BLOCK_HEADER_SIZE as SNAPPY_BLOCK_HEADER_SIZE
from seglog_format.columnar.snappy import HEADER_SIZE as XERIAL_HEADER_SIZE
from seglog_format.columnar.snappy import XERIAL_MAGIC

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region


@helper
def is_all_used(data: Region, start: int, end: int, codec: int) -> bool:
    """Return whether decompression uses all bytes of lz4 or snappy data; other decompressors check that themselves."""
    if codec == LZ4:
        return _frame_end(data, start, end) == end
    return codec != SNAPPY or _blocks_end(data, start, end) == end


@inlined
def _frame_end(data: Region, start: int, end: int) -> int:
    """Return the position after an lz4 frame."""
    flags = load_u8(data, start + DESCRIPTOR)
    position = start + LZ4_HEADER_SIZE + (CONTENT_SIZE_SIZE if flags & HAS_CONTENT_SIZE else 0)
    while end - position >= LZ4_BLOCK_HEADER_SIZE:
        size = load_le32(data, position) & ~STORED
        position += LZ4_BLOCK_HEADER_SIZE + size
        if size == 0:
            return position + (CHECKSUM_SIZE if flags & HAS_CONTENT_CHECKSUM else 0)
    return -1


@inlined
def _blocks_end(data: Region, start: int, end: int) -> int:
    """Return the position after the last xerial block, or after a bare block, which is always the whole data."""
    if end - start < XERIAL_HEADER_SIZE or load_64(data, start) != XERIAL_MAGIC:
        return end
    position = start + XERIAL_HEADER_SIZE
    while end - position >= SNAPPY_BLOCK_HEADER_SIZE:
        if end - position >= XERIAL_HEADER_SIZE and load_64(data, position) == XERIAL_MAGIC:
            position += XERIAL_HEADER_SIZE
        else:
            size = load_be32(data, position)
            if size < 0:
                return -1
            position += SNAPPY_BLOCK_HEADER_SIZE + size
    return position
