"""The parsed headers of compressed data, the interface of their parsers, and hand-written parsers (chapter 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.fixed_fields import (
    GZIP_DEFLATE,
    GZIP_MAGIC,
    LZ4_CONTENT_SIZE,
    LZ4_MAGIC,
    XERIAL_BLOCK_SIZE,
    XERIAL_MAGIC,
    ZSTD_DICTIONARY_ID_MASK,
    ZSTD_MAGIC,
    ZSTD_RESERVED_FLAG,
    ZSTD_SINGLE_SEGMENT,
    lz4_descriptor_is_legal,
    lz4_flags_are_legal,
    zstd_content_size_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class GzipTrailer(NamedTuple):
    """The end of a gzip member.

    Attributes:
        crc: CRC-32 of the decompressed bytes.
        size: number of decompressed bytes, modulo 2^32.
    """

    crc: int
    size: int


class Lz4Header(NamedTuple):
    """The legal header of an lz4 frame.

    Attributes:
        flags: as stored.
        block_descriptor: as stored.
        header_checksum: as stored.
    """

    flags: int
    block_descriptor: int
    header_checksum: int


class ZstdHeader(NamedTuple):
    """The header of a zstd frame.

    Attributes:
        descriptor: as stored.
        window: descriptor of the window; None in a single segment.
        dictionary_id: as stored; None if it is absent.
        content_size: as stored; None if it is absent.
        size_in_bytes: of the header.
    """

    descriptor: int
    window: int | None
    dictionary_id: int | None
    content_size: int | None
    size_in_bytes: int


class ContainerHeaders(NamedTuple):
    """Functions that parse a header at the start of some bytes, and refuse an illegal one with `CorruptRecordError`.

    Attributes:
        gzip: returns the flags of a member (SEG-COD-002).
        gzip_trailer: returns the end of a member.
        is_xerial: returns whether the bytes start with a header of snappy blocks.
        xerial_block: returns the size field of a block, from at least four bytes.
        lz4: returns the header of a frame (SEG-COD-006).
        lz4_block: returns the size field of a block, from at least four bytes.
        zstd: returns the header of a frame (SEG-COD-014).
        zstd_block: returns the fields of a block header.
        zstd_skippable: returns the size of a frame without content (SEG-COD-023).
    """

    gzip: Callable[[memoryview, Location], int]
    gzip_trailer: Callable[[memoryview, Location], GzipTrailer]
    is_xerial: Callable[[memoryview], bool]
    xerial_block: Callable[[memoryview], int]
    lz4: Callable[[memoryview, Location], Lz4Header]
    lz4_block: Callable[[memoryview], int]
    zstd: Callable[[memoryview, Location], ZstdHeader]
    zstd_block: Callable[[bytes], int]
    zstd_skippable: Callable[[memoryview, Location], int]


# -- hand-written parsers of the headers of compressed data (chapter 34) ----------------------------------------------


DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
"""Sizes of a dictionary id in bytes, by the bits that announce it."""


class _Fields:
    """Reads the fields of a header one by one."""

    def __init__(self, data: memoryview, at: Location, requirement: str) -> None:
        self.data = data
        self.at = at
        self.requirement = requirement
        self.position = 0
        self._last = 0

    def take(self, name: str, size: int, requirement: str = "") -> memoryview:
        """Return the bytes of the next field."""
        self._last, end = self.position, self.position + size
        if end > len(self.data):
            left = max(len(self.data) - self._last, 0)
            self.refuse(name, "more bytes", f"the end after {left}", requirement)
        self.position = end
        return self.data[self._last : end]

    def number(self, name: str, size: int, requirement: str = "") -> int:
        """Return the next field as a little-endian number."""
        return int.from_bytes(self.take(name, size, requirement), "little")

    def refuse(self, name: str, expected: str, found: object, requirement: str = "") -> NoReturn:
        """Raise the error for the field that was taken last."""
        at = self.at.at(f"{self.at.field}.{name}" if self.at.field else name, self._last, len(self.data) - self._last)
        raise CorruptRecordError(at, requirement or self.requirement, expected=expected, found=found)


def gzip_flags(data: memoryview, at: Location) -> int:
    """Return the flags of a gzip member."""
    fields = _Fields(data, at, "SEG-COD-002")
    if (magic := bytes(fields.take("magic", 2))) != GZIP_MAGIC:
        fields.refuse("magic", "the magic number 1f 8b", magic)
    if (method := fields.number("method", 1)) != GZIP_DEFLATE:
        fields.refuse("method", "8, deflate", method)
    flags = fields.number("flags", 1)
    for name, size in (("modification_time", 4), ("extra_flags", 1), ("operating_system", 1)):
        fields.take(name, size)
    return flags


def gzip_trailer(data: memoryview, at: Location) -> GzipTrailer:
    """Return the end of a gzip member."""
    fields = _Fields(data, at, "SEG-COD-002")
    return GzipTrailer(fields.number("crc", 4), fields.number("size", 4))


def is_xerial(data: memoryview) -> bool:
    """Return whether the bytes start with a header of snappy blocks."""
    return data[: len(XERIAL_MAGIC)] == XERIAL_MAGIC


def xerial_block(data: memoryview) -> int:
    """Return the size field of a snappy block."""
    return int.from_bytes(data[:XERIAL_BLOCK_SIZE], "big", signed=True)


def lz4_header(data: memoryview, at: Location) -> Lz4Header:
    """Return the header of an lz4 frame."""
    fields = _Fields(data, at, "SEG-COD-006")
    if (magic := fields.number("magic", 4)) != LZ4_MAGIC:
        fields.refuse("magic", f"the magic number {LZ4_MAGIC:#x}", magic)
    flags = fields.number("flags", 1)
    if not lz4_flags_are_legal(flags):
        fields.refuse("flags", "version 1, independent blocks, no reserved bit", flags)
    descriptor = fields.number("block_descriptor", 1)
    if not lz4_descriptor_is_legal(descriptor):
        fields.refuse("block_descriptor", "a block size code of 4 to 7, no reserved bit", descriptor)
    fields.take("content_size", 8 if flags & LZ4_CONTENT_SIZE else 0)
    return Lz4Header(flags, descriptor, fields.number("header_checksum", 1, "SEG-COD-007"))


def lz4_block(data: memoryview) -> int:
    """Return the size field of an lz4 block."""
    return int.from_bytes(data, "little")


def zstd_header(data: memoryview, at: Location) -> ZstdHeader:
    """Return the header of a zstd frame."""
    fields = _Fields(data, at, "SEG-COD-014")
    if (magic := fields.number("magic", 4)) != ZSTD_MAGIC:
        fields.refuse("magic", f"the magic number {ZSTD_MAGIC:#x}", magic)
    descriptor = fields.number("descriptor", 1)
    if descriptor & ZSTD_RESERVED_FLAG:
        fields.refuse("descriptor", "the reserved bit clear", descriptor)
    window = None if descriptor & ZSTD_SINGLE_SEGMENT else fields.number("window", 1)
    id_size = DICTIONARY_ID_SIZES[descriptor & ZSTD_DICTIONARY_ID_MASK]
    dictionary_id = fields.number("dictionary_id", id_size) if id_size else None
    content_size_size = zstd_content_size_size(descriptor)
    content_size = fields.number("content_size", content_size_size) if content_size_size else None
    return ZstdHeader(descriptor, window, dictionary_id, content_size, fields.position)


def zstd_block(data: bytes) -> int:
    """Return the fields of a zstd block header."""
    return int.from_bytes(data, "little")


def zstd_skippable(data: memoryview, at: Location) -> int:
    """Return the size of a zstd frame without content."""
    fields = _Fields(data, at, "SEG-COD-023")
    fields.take("magic", 4)
    return fields.number("size", 4)


PLAIN: Final = ContainerHeaders(
    gzip=gzip_flags,
    gzip_trailer=gzip_trailer,
    is_xerial=is_xerial,
    xerial_block=xerial_block,
    lz4=lz4_header,
    lz4_block=lz4_block,
    zstd=zstd_header,
    zstd_block=zstd_block,
    zstd_skippable=zstd_skippable,
)
