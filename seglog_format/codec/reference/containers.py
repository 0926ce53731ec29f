"""Parsers of the headers of compressed data by their declarations (chapter 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.container_headers import ContainerHeaders, GzipTrailer, Lz4Header, ZstdHeader
from seglog_format.codec.parse import parse
from seglog_format.schema.compression import (
    GzipMemberHeader,
    GzipMemberTrailer,
    Lz4BlockHeader,
    Lz4FrameHeader,
    XerialBlock,
    XerialHeader,
    ZstdBlockHeader,
    ZstdFrameHeader,
    ZstdSkippableHeader,
)
from seglog_format.schema.compression_rules import XERIAL_MAGIC, ZSTD_BLOCK_HEADER_SIZE
from seglog_format.schema.fields import position_of

if TYPE_CHECKING:
    from seglog_format.errors import Location

XERIAL_MAGIC_POSITION: Final = position_of(XerialHeader, "magic")


def gzip_flags(data: memoryview, at: Location) -> int:
    """Return the flags of a gzip member."""
    return int(parse(GzipMemberHeader, data, at, requirement="SEG-COD-002").flags)


def gzip_trailer(data: memoryview, at: Location) -> GzipTrailer:
    """Return the end of a gzip member."""
    found = parse(GzipMemberTrailer, data, at, requirement="SEG-COD-002")
    return GzipTrailer(found.crc, found.size)


def is_xerial(data: memoryview) -> bool:
    """Return whether the bytes start with a header of snappy blocks: with its magic number, even if nothing follows."""
    return data[XERIAL_MAGIC_POSITION : XERIAL_MAGIC_POSITION + len(XERIAL_MAGIC)] == XERIAL_MAGIC


def xerial_block(data: memoryview) -> int:
    """Return the size field of a snappy block."""
    return int(XerialBlock.parse(data).size)


def lz4_header(data: memoryview, at: Location) -> Lz4Header:
    """Return the header of an lz4 frame."""
    found = parse(Lz4FrameHeader, data, at, requirement="SEG-COD-006")
    return Lz4Header(found.flags, found.block_descriptor, found.header_checksum)


def lz4_block(data: memoryview) -> int:
    """Return the size field of an lz4 block."""
    return int(Lz4BlockHeader.parse(data).size)


def zstd_header(data: memoryview, at: Location) -> ZstdHeader:
    """Return the header of a zstd frame."""
    found = parse(ZstdFrameHeader, data, at, requirement="SEG-COD-014")
    return ZstdHeader(found.descriptor, found.window, found.dictionary_id, found.content_size, found.size_in_bytes)


def zstd_block(data: memoryview) -> int:
    """Return the fields of a zstd block header; bytes that are missing at the end count as zeros."""
    return int(ZstdBlockHeader.parse(bytes(data[:ZSTD_BLOCK_HEADER_SIZE]).ljust(ZSTD_BLOCK_HEADER_SIZE, b"\0")).fields)


def zstd_skippable(data: memoryview, at: Location) -> int:
    """Return the size of a zstd frame without content."""
    return int(parse(ZstdSkippableHeader, data, at, requirement="SEG-COD-023").size)


BY_DECLARATION: Final = ContainerHeaders(
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
