"""gzip and zstd: what libraries decompress. Only streams of the plain kind that clients write; None for any other."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zstandard
from numba import int64

from seglog_format.columnar.arrays import readable
from seglog_format.columnar.compiled import inlined, kernel
from seglog_format.columnar.entries import entry_size
from seglog_format.columnar.layout import GZIP, LENGTH_SIZE, ZSTD
from seglog_format.columnar.memory import load_le16, load_le32, load_u8, region
from seglog_format.columnar.sections import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.columnar.arrays import Bytes, Numbers, Region

GZIP_START: Final = 0x00088B1F
"""Magic, deflate, and no flags."""
GZIP_SMALLEST: Final = 18
GZIP_WINDOW: Final = 31

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_SMALLEST: Final = 6
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

AHEAD: Final = 16
"""Entries that are listed at a time; mostly half as many are decompressed before they are read."""
LISTED_FIELDS: Final = 5
"""Of each: position, start and end of the compressed bytes, codec, and how many bytes they decode to at most."""


class Expander:
    """Decompresses entries, with one decoder for all of a thread's."""

    def __init__(self, data: memoryview, limit: int) -> None:
        self._data = data
        self._log = readable(data)
        self._limit = limit
        self._zstd = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._listed = np.zeros(AHEAD * LISTED_FIELDS, np.int64)

    def stored(self, position: int) -> list[list[int]]:
        """The fields of some gzip and zstd entries from a position on, up to one that is odd."""
        count = list_stored(self._log, position, self._limit, self._listed)
        entries: list[list[int]] = self._listed.reshape(-1, LISTED_FIELDS)[:count].tolist()
        return entries

    def expand(self, entry: Sequence[int], target: Bytes) -> int:
        """Decompress one of these.

        Args:
            entry: its fields.
            target: takes the content; one byte larger than that can be.

        Returns:
            How many bytes it has, or `DECLINED`: it is for the reference to judge.
        """
        _, start, end, codec, bound = entry
        stored = self._data[start:end]
        if codec == ZSTD:
            return self._unpack(stored, bound, target)
        content = _gunzipped(stored, bound)
        if content is None:
            return DECLINED
        target[:bound] = np.frombuffer(content, np.uint8)
        return bound

    def _unpack(self, stored: memoryview, bound: int, target: Bytes) -> int:
        """The content of a single zstd frame, which `list_stored` has seen to be all there."""
        try:
            with self._zstd.stream_reader(stored) as reader:
                size: int = reader.readinto(target)
        except zstandard.ZstdError:
            return DECLINED
        return size if size <= bound else DECLINED


def _gunzipped(stored: memoryview, size: int) -> bytes | None:
    """The content of a single member of a stated size, its checksum verified by the library."""
    inflater = INFLATING.decompressobj(GZIP_WINDOW)
    try:
        content: bytes = inflater.decompress(stored, size + 1)
    except (INFLATING.error, ValueError):
        return None
    is_whole = inflater.eof and not inflater.unused_data and not inflater.unconsumed_tail
    return content if is_whole and size == len(content) else None


@kernel
def list_stored(log: Bytes, position: int, limit: int, listed: Numbers) -> int:
    """List the entries from a position on that the libraries are to decompress.

    Args:
        log: bytes of the log.
        position: of the first.
        limit: bytes that one may decode to.
        listed: takes the fields of each.

    Returns:
        How many there are before one that is odd or of another codec, or before there is no more room.
    """
    data, count = region(log), 0
    while LISTED_FIELDS * (count + 1) <= len(listed) and position >= 0:
        size = entry_size(data, position, len(log))
        if size < 0:
            break
        start, end, codec, _ = stored_bytes(data, position, size)
        bound = DECLINED
        if start >= 0 and codec == GZIP:
            bound = _gzip_size(data, start, end)
        elif start >= 0 and codec == ZSTD:
            bound = _zstd_bound(data, start, end)
        if not 0 <= bound <= limit:
            break
        at = LISTED_FIELDS * count
        listed[at], listed[at + 1], listed[at + 2], listed[at + 3], listed[at + 4] = position, start, end, codec, bound
        position, count = position + size, count + 1
    return count


@inlined
def _gzip_size(data: Region, start: int, end: int) -> int:
    """How many bytes a gzip member without optional fields says that it holds; `DECLINED` for one that is odd."""
    if end - start < GZIP_SMALLEST or load_le32(data, start) != GZIP_START:
        return DECLINED
    return load_le32(data, end - LENGTH_SIZE)


@inlined
def _zstd_bound(data: Region, start: int, end: int) -> int:
    """How many bytes a zstd frame can decode to at most; `DECLINED` for one that is odd, or is not all there is."""
    if end - start < ZSTD_SMALLEST:
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
