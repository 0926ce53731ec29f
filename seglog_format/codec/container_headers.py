"""The headers of compressed data, as readers get them, and who parses them (chapter 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.errors import Location


class GzipTrailer(NamedTuple):
    """The end of a gzip member.

    Attributes:
        crc: CRC-32 of the decompressed bytes.
        size: number of these, modulo 2^32.
    """

    crc: int
    size: int


class Lz4Header(NamedTuple):
    """The header of an lz4 frame, found to be legal.

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
        window: descriptor of the window; None for a single segment.
        dictionary_id: as stored; None where there is none.
        content_size: as stored; None where there is none.
        size_in_bytes: of the header.
    """

    descriptor: int
    window: int | None
    dictionary_id: int | None
    content_size: int | None
    size_in_bytes: int


class ContainerHeaders(NamedTuple):
    """Parses each header from the bytes that start with it, and refuses an illegal one with `CorruptRecordError`.

    Attributes:
        gzip: returns the flags of a member (SEG-COD-002).
        gzip_trailer: the end of a member.
        is_xerial: says whether a header of snappy blocks starts there.
        xerial_block: returns the size field of a block; at least its four bytes are there.
        lz4: the header of a frame (SEG-COD-006).
        lz4_block: returns the size field of a block; its four bytes are there.
        zstd: the header of a frame (SEG-COD-014).
        zstd_block: returns the fields of a block header, of which bytes may be missing at the end.
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
