"""Decompression of common gzip members and zstd frames, by functions of libraries (chapter 34).

The fallback decoder reads all other data.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from seglog_format.columnar.checksum import crc32
from seglog_format.columnar.compiled import helper, inlined, int64
from seglog_format.columnar.decoders import NONE, Stream, foreign
from seglog_format.columnar.layout import LENGTH_SIZE
from seglog_format.columnar.memory import address, load_64, load_le16, load_le32, load_u8, store_32, store_64
from seglog_format.columnar.plan import CHECKSUM_PATH, DECODERS
from seglog_format.columnar.records import DAMAGED, MASK_32, NO_ROOM

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Numbers, Region

DECLINED: Final = -1

GZIP_START: Final = 0x00088B1F
"""Magic, deflate, and no flags."""
GZIP_HEADER_SIZE: Final = 10
GZIP_TRAILER_SIZE: Final = 8
MAX_DEFLATION: Final = 1032
"""Maximum ratio of decompressed to compressed bytes of deflate."""

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_SMALLEST: Final = 6
ZSTD_DESCRIPTOR: Final = 4
SINGLE_SEGMENT: Final = 0x20
RESERVED_OR_DICTIONARY: Final = 0x0B
CHECKSUM: Final = 0x04
CHECKSUM_SIZE: Final = 4
BLOCK_HEADER_SIZE: Final = 3
MAX_BLOCK_SIZE: Final = 2**17
MAX_WINDOW: Final = 2**23
"""Maximum window of clients; the library allocates it."""
REPEATED_BYTE: Final = 1
COMPRESSED: Final = 2
RESERVED: Final = 3

STREAM_SIZE: Final = ctypes.sizeof(Stream)
NEXT_OUT: Final = Stream.next_out.offset
AVAIL_OUT: Final = Stream.avail_out.offset
TOTAL_OUT: Final = Stream.total_out.offset
NEXT_IN: Final = Stream.next_in.offset
AVAIL_IN: Final = Stream.avail_in.offset


@inlined
def gzip_size(data: Region, start: int, end: int) -> int:
    """Return the size that a gzip member without optional fields states; `DECLINED` for any other member."""
    stored = end - start - GZIP_HEADER_SIZE - GZIP_TRAILER_SIZE
    if stored < 0 or load_le32(data, start) != GZIP_START:
        return DECLINED
    size = load_le32(data, end - LENGTH_SIZE)
    return size if size <= MAX_DEFLATION * stored else DECLINED


@inlined
def zstd_bound(data: Region, start: int, end: int) -> int:
    """Return an upper bound for the content of a zstd frame; `DECLINED` if it is not covered, or bytes follow it."""
    if end - start < ZSTD_SMALLEST or load_le32(data, start) != ZSTD_MAGIC:
        return DECLINED
    descriptor = load_u8(data, start + ZSTD_DESCRIPTOR)
    position, window_size, content_size = _zstd_header(data, start, end, descriptor)
    if descriptor & RESERVED_OR_DICTIONARY or window_size < 0 or window_size > MAX_WINDOW:
        return DECLINED
    largest, total, is_last = min(window_size, MAX_BLOCK_SIZE), 0, False
    while not is_last:
        if end - position < BLOCK_HEADER_SIZE:
            return DECLINED
        fields = load_le16(data, position) | load_u8(data, position + 2) << 16
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if kind == RESERVED or size > largest:
            return DECLINED
        position += BLOCK_HEADER_SIZE + (1 if kind == REPEATED_BYTE else size)
        total += largest if kind == COMPRESSED else size
    position += CHECKSUM_SIZE if descriptor & CHECKSUM else 0
    if position != end or content_size > total:
        return DECLINED
    bound: int = int64(total if content_size < 0 else content_size)
    return bound


@inlined
def _zstd_header(data: Region, start: int, end: int, descriptor: int) -> tuple[int, int, int]:
    """Return the start of a frame's blocks, its window, and the size of its content; negative if missing."""
    is_single, size_code = descriptor & SINGLE_SEGMENT, descriptor >> 6
    position = start + ZSTD_DESCRIPTOR + (1 if is_single else 2)
    size = 1 << size_code if size_code or is_single else 0
    if size > end - position:
        return position, -1, -1
    content_size = -1
    if size == 1:
        content_size = load_u8(data, position)
    elif size == 2:
        content_size = load_le16(data, position) + 256
    elif size == 4:
        content_size = load_le32(data, position)
    elif size == 8:
        content_size = load_64(data, position)
    if is_single:
        return position + size, content_size, content_size
    window = load_u8(data, position - 1)
    base = 1 << (10 + (window >> 3))
    return position + size, base + (base >> 3) * (window & 7), content_size


@helper
def decompress_zstd(data: Region, start: int, end: int, arena: Region, at: int, room: int, plan: Numbers) -> int:
    """Decompress a frame; return the end of its content in the arena, or `DAMAGED`, or `NO_ROOM`."""
    function, context = plan[DECODERS], plan[DECODERS + 1]
    bound = zstd_bound(data, start, end)
    if context == NONE or bound < 0:
        return DAMAGED
    if bound > room:
        return NO_ROOM
    target, source = address(arena, at, bound), address(data, start, end - start)
    size = foreign(function, (context, target, bound, source, end - start))
    return at + size if 0 <= size <= bound else DAMAGED


@helper
def decompress_gzip(data: Region, start: int, end: int, arena: Region, at: int, room: int, plan: Numbers) -> int:
    """Decompress a member, and verify its checksum and size; the result is as of `decompress_zstd`."""
    reset, inflate, stream_address = plan[DECODERS + 2], plan[DECODERS + 3], plan[DECODERS + 4]
    size = gzip_size(data, start, end)
    if stream_address == NONE or size < 0:
        return DAMAGED
    if size > room:
        return NO_ROOM
    stream, stored = (stream_address, STREAM_SIZE), end - start - GZIP_HEADER_SIZE - GZIP_TRAILER_SIZE
    foreign(reset, (stream_address,))
    store_64(stream, NEXT_OUT, address(arena, at, size + 1))
    store_32(stream, AVAIL_OUT, size + 1)
    store_64(stream, NEXT_IN, address(data, start + GZIP_HEADER_SIZE, stored))
    store_32(stream, AVAIL_IN, stored)
    answer = foreign(inflate, (stream_address,)) & MASK_32
    if answer != 0 or load_le32(stream, TOTAL_OUT) != size or load_le32(stream, AVAIL_IN) != 0:
        return DAMAGED
    if crc32(plan[CHECKSUM_PATH], arena, at, size) != load_le32(data, end - GZIP_TRAILER_SIZE):
        return DAMAGED
    return at + size
