"""gzip and zstd: what libraries decompress. Only streams of the plain kind that clients write; None for any other."""

from __future__ import annotations

from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import zstandard
from numba import int64

from seglog_format.columnar.arrays import readable
from seglog_format.columnar.compiled import kernel
from seglog_format.columnar.layout import (
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    GZIP,
    LENGTH_SIZE,
    MAGIC,
    MESSAGE_ATTRIBUTES,
    MESSAGE_V0_HEADER_SIZE,
    MESSAGE_V1_HEADER_SIZE,
    PREFIX_SIZE,
    SIZE,
    ZSTD,
)
from seglog_format.columnar.memory import load_le16, load_le32, load_u8, region

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes

GZIP_PREFIX: Final = bytes.fromhex("1f8b0800")
"""Deflate, and no flags."""
GZIP_SMALLEST: Final = 18
GZIP_WINDOW: Final = 31

ZSTD_MAGIC: Final = 0xFD2FB528
SINGLE_SEGMENT: Final = 0x20
RESERVED_OR_DICTIONARY: Final = 0x0B
CHECKSUM: Final = 0x04
MAX_BLOCK_SIZE: Final = 2**17
MAX_WINDOW: Final = 2**23
"""What clients ask for; the library allocates it."""
REPEATED_BYTE: Final = 1
COMPRESSED: Final = 2
RESERVED: Final = 3

DECLINED: Final = -1


def _inflating() -> Any:
    """The quickest library for gzip that is there: not every processor has a wheel of isal."""
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return import_module("zlib")


INFLATING: Final = _inflating()

NUMBER: Final = Struct(">i")


class Expander:
    """Decompresses what stands at a position, with one decoder for all of a thread's."""

    def __init__(self, data: memoryview, limit: int) -> None:
        self._data = data
        self._log = readable(data)
        self._limit = limit
        self._zstd = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)

    def content(self, position: int) -> bytes | None:
        """The content of the gzip or zstd entry at a position; None where it is for the reference to say."""
        start, end, codec = self._stored(position)
        if codec == GZIP:
            return _gunzipped(self._data[start:end], self._limit)
        return self._unpacked(start, end) if codec == ZSTD else None

    def end(self, position: int) -> int:
        """Position after an entry whose size is right."""
        (size,) = NUMBER.unpack_from(self._data, position + SIZE)
        return position + PREFIX_SIZE + int(size)

    def is_regular(self, position: int) -> bool:
        """Whether a whole entry stands at a position; its other fields may be anything."""
        left = len(self._data) - position
        return left > BATCH_HEADER_SIZE and PREFIX_SIZE < self.end(position) - position <= left

    def _stored(self, position: int) -> tuple[int, int, int]:
        """Where the compressed bytes of an entry stand, and their codec; nowhere, as 0, where its fields do not fit."""
        data, end = self._data, self.end(position)
        if data[position + MAGIC] == BATCH_MAGIC:
            return position + BATCH_HEADER_SIZE, end, data[position + BATCH_ATTRIBUTES + 1] & CODEC_MASK
        codec = data[position + MESSAGE_ATTRIBUTES] & CODEC_MASK
        key = position + (MESSAGE_V1_HEADER_SIZE if data[position + MAGIC] else MESSAGE_V0_HEADER_SIZE) + LENGTH_SIZE
        value = key + LENGTH_SIZE + max(self._number(key - LENGTH_SIZE, end), 0)
        size = self._number(value - LENGTH_SIZE, end)
        return (value, value + size, codec) if 0 <= size <= end - value else (0, 0, 0)

    def _number(self, position: int, end: int) -> int:
        return int(NUMBER.unpack_from(self._data, position)[0]) if position + LENGTH_SIZE <= end else -1

    def _unpacked(self, start: int, end: int) -> bytes | None:
        """The content of a single zstd frame."""
        bound = zstd_bound(self._log, start, end)
        if not 0 <= bound <= self._limit:
            return None
        try:
            content: bytes = self._zstd.decompress(self._data[start:end], max_output_size=max(bound, 1))
        except zstandard.ZstdError:
            return None
        return content


def _gunzipped(stored: memoryview, limit: int) -> bytes | None:
    """The content of a single member without optional fields, its checksum verified by the library."""
    if len(stored) < GZIP_SMALLEST or stored[:4] != GZIP_PREFIX:
        return None
    inflater = INFLATING.decompressobj(GZIP_WINDOW)
    try:
        content: bytes = inflater.decompress(stored, limit + 1)
    except (INFLATING.error, ValueError):
        return None
    is_whole = inflater.eof and not inflater.unused_data and not inflater.unconsumed_tail
    size = int.from_bytes(stored[-4:], "little")
    return content if is_whole and len(content) <= limit and size == len(content) else None


@kernel
def zstd_bound(log: Bytes, start: int, end: int) -> int:
    """How many bytes a zstd frame can decode to at most; `DECLINED` for one that is odd, or is not all there is."""
    data = region(log)
    if start < 0 or end > len(log) or end - start < 6:
        return DECLINED
    descriptor = load_u8(data, start + 4)
    if load_le32(data, start) != ZSTD_MAGIC or descriptor & (RESERVED_OR_DICTIONARY | SINGLE_SEGMENT):
        return DECLINED
    window = load_u8(data, start + 5)
    window_size = (1 << (10 + (window >> 3))) + ((1 << (10 + (window >> 3))) >> 3) * (window & 7)
    size_code = descriptor >> 6
    position = start + 6 + (1 << size_code if size_code else 0)
    if window_size > MAX_WINDOW:
        return DECLINED
    largest, total, is_last = min(window_size, MAX_BLOCK_SIZE), 0, False
    while not is_last:
        if end - position < 3:
            return DECLINED
        fields = load_le16(data, position) | load_u8(data, position + 2) << 16
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if kind == RESERVED or size > largest:
            return DECLINED
        position += 3 + (1 if kind == REPEATED_BYTE else size)
        total += largest if kind == COMPRESSED else size
    position += 4 if descriptor & CHECKSUM else 0
    return int64(total) if position == end and size_code == 0 else DECLINED
