"""The parsed headers of compressed data, and the interface of their parsers (chapter 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.errors import Location


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
        zstd_block: returns the fields of a block header, whose last bytes may be missing.
        zstd_skippable: returns the size of a frame without content (SEG-COD-023).
    """

    gzip: Callable[[memoryview, Location], int]
    gzip_trailer: Callable[[memoryview, Location], GzipTrailer]
    is_xerial: Callable[[memoryview], bool]
    xerial_block: Callable[[memoryview], int]
    lz4: Callable[[memoryview, Location], Lz4Header]
    lz4_block: Callable[[memoryview], int]
    zstd: Callable[[memoryview, Location], ZstdHeader]
    zstd_block: Callable[[memoryview], int]
    zstd_skippable: Callable[[memoryview, Location], int]
