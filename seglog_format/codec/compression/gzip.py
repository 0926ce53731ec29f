"""Gzip: consecutive members (SEG-COD-002, SEG-COD-017, SEG-COD-018).

Libraries differ in what they allow after a member. So this module reads headers and trailers, and a library decodes
only the deflate data between them. The library is zlib, as in Java: isal is twice as fast, but decodes some data with
incomplete codes that zlib refuses.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32
from seglog_format.codec.compression.output import LIBRARY_ERRORS, PIECE_SIZE, inside
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.fixed_fields import (
    GZIP_COMMENT,
    GZIP_EXTRA,
    GZIP_HEADER_CHECKSUM,
    GZIP_HEADER_SIZE,
    GZIP_NAME,
    GZIP_TRAILER_SIZE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.codec.compression.output import Output
    from seglog_format.codec.container_headers import ContainerHeaders, GzipTrailer
    from seglog_format.storage.byte_source import Buffer

FEED_SIZE: Final = 2**16
"""Compressed bytes passed to the library at a time: it copies the bytes that it does not consume."""

RAW_DEFLATE: Final = -15
ERRORS: Final = (*LIBRARY_ERRORS, zlib.error)


def decompress(data: memoryview, output: Output, at: Location, headers: ContainerHeaders) -> int:
    """Decompress every member.

    Args:
        data: compressed bytes.
        output: receives the decompressed bytes.
        at: where the data starts.
        headers: parsers of the headers.

    Returns:
        Number of bytes read. The bytes after them do not start a member, and are ignored.

    Raises:
        CorruptRecordError: a member is damaged or cut short (SEG-COD-002).
        RefusedError: the output is full (SEG-COD-016).
    """
    position = _decompress_member(data, 0, output, at, headers)
    while _member_follows(data, position, at, headers):
        position = _decompress_member(data, position, output, at, headers)
    return position


def _member_follows(data: memoryview, position: int, at: Location, headers: ContainerHeaders) -> bool:
    """Return whether another member starts at a position, by the rules of Java's reader."""
    if len(data) - position <= GZIP_HEADER_SIZE + GZIP_TRAILER_SIZE:
        return False
    try:
        _header_end(data, position, at, headers)
    except CorruptRecordError:
        return False
    return True


def _decompress_member(data: memoryview, start: int, output: Output, at: Location, headers: ContainerHeaders) -> int:
    body = _Inflation(data, _header_end(data, start, at, headers))
    crc, size = 0, 0
    try:
        for piece in body.pieces():
            crc, size = crc32(piece, crc), size + len(piece)
            output.append(piece)
    except ERRORS as problem:
        where = inside(at, "gzip.data", start)
        raise CorruptRecordError(where, "SEG-COD-002", expected="deflated data", found=problem) from None
    if not body.complete:
        where = inside(at, "gzip.data", len(data))
        raise CorruptRecordError(where, "SEG-COD-002", expected="more deflated data", found="the end")
    where = inside(at, "gzip.trailer", body.position, GZIP_TRAILER_SIZE)
    end = body.position + GZIP_TRAILER_SIZE
    _verify_trailer(headers.gzip_trailer(data[body.position : end], where), crc, size, where)
    return end


def _verify_trailer(stored: GzipTrailer, crc: int, size: int, where: Location) -> None:
    if (stored.crc, stored.size) != (crc, size % 2**32):
        expected = f"CRC {crc:#010x} and size {size}"
        found = f"{stored.crc:#010x} and {stored.size}"
        raise CorruptRecordError(where, "SEG-COD-002", expected=expected, found=found)


class _Inflation:
    """Decodes raw deflate data piece by piece, and finds its end."""

    def __init__(self, data: memoryview, position: int) -> None:
        self._data = data
        self._inflater = zlib.decompressobj(RAW_DEFLATE)
        self._fed = position

    def pieces(self) -> Iterator[bytes]:
        """Yield decoded pieces up to the end of the deflated data or of the bytes."""
        pending: bytes | memoryview = b""
        while not self._inflater.eof:
            pending = pending or self._feed()
            piece = self._inflater.decompress(pending, PIECE_SIZE)
            if not piece and not pending:
                return
            pending = self._inflater.unconsumed_tail
            yield piece

    def _feed(self) -> memoryview:
        start = self._fed
        self._fed = min(start + FEED_SIZE, len(self._data))
        return self._data[start : self._fed]

    @property
    def complete(self) -> bool:
        """Return whether the last deflate block has been decoded."""
        return self._inflater.eof

    @property
    def position(self) -> int:
        """Position after the last byte of the deflated data."""
        return self._fed - len(self._inflater.unused_data)


def _header_end(data: memoryview, start: int, at: Location, headers: ContainerHeaders) -> int:
    """Return the position after a member's header, including the optional fields that its flags announce."""
    where = inside(at, "gzip", start)
    flags = headers.gzip(data[start : start + GZIP_HEADER_SIZE], where)
    end = start + GZIP_HEADER_SIZE
    if flags & GZIP_EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (GZIP_NAME, GZIP_COMMENT):
        if flags & flag:
            end = _text_end(data, end)
    end += 2 if flags & GZIP_HEADER_CHECKSUM else 0
    if end > len(data):
        location = inside(at, "gzip.header", start, len(data) - start)
        raise CorruptRecordError(location, "SEG-COD-002", expected="a complete header", found="the end")
    if flags & GZIP_HEADER_CHECKSUM:
        _verify_header(data, start, end - 2, at)
    return end


def _text_end(data: memoryview, start: int) -> int:
    """Return the position after a zero-terminated text; a position beyond the data if there is no zero."""
    zero = bytes(data[start:]).find(0)
    return start + zero + 1 if zero >= 0 else len(data) + 1


def _verify_header(data: memoryview, start: int, end: int, at: Location) -> None:
    computed = crc32(data[start:end]) & 0xFFFF
    stored = int.from_bytes(data[end : end + 2], "little")
    if stored != computed:
        where = inside(at, "gzip.header_checksum", end, 2)
        raise CorruptRecordError(where, "SEG-COD-002", expected=f"{computed:#06x}", found=f"{stored:#06x}")


# -- compression -------------------------------------------------------------------------------------------------------


WINDOW_BITS: Final = 15 + 16


def compress(data: Buffer) -> bytes:
    """Compress to one member without name or time."""
    return zlib.compress(data, wbits=WINDOW_BITS)
