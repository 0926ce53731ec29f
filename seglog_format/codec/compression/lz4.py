"""Lz4: one frame of independent blocks (SEG-COD-006 to SEG-COD-013, SEG-COD-024)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import lz4.block
import xxhash

from seglog_format.codec.compression.output import LIBRARY_ERRORS, inside
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.fixed_fields import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_BLOCK_HEADER_SIZE,
    LZ4_CONTENT_CHECKSUM,
    LZ4_CONTENT_SIZE,
    LZ4_DESCRIPTOR_POSITION,
    LZ4_INDEPENDENT,
    LZ4_MAGIC,
    LZ4_MAX_HEADER_SIZE,
    LZ4_STORED,
    LZ4_VERSION,
)

if TYPE_CHECKING:
    from seglog_format.codec.compression.output import Output
    from seglog_format.codec.container_headers import ContainerHeaders, Lz4Header
    from seglog_format.storage.byte_source import Buffer

CHECKSUM_SIZE: Final = 4

MAX_RATIO: Final = 255
"""Maximum ratio of decompressed to compressed bytes in a block: one byte encodes at most 255."""

ERRORS: Final = (*LIBRARY_ERRORS, lz4.block.LZ4BlockError)


def decompress(
    data: memoryview, output: Output, at: Location, headers: ContainerHeaders, *, verify_header: bool
) -> int:
    """Decompress one frame.

    Args:
        data: compressed bytes.
        output: receives the decompressed bytes.
        at: where the data starts.
        headers: parsers of the headers.
        verify_header: whether to verify the header's checksum, as brokers do from magic 1 on.

    Returns:
        Number of bytes read; bytes after the frame are ignored.

    Raises:
        CorruptRecordError: the frame is damaged, cut short or of a kind that brokers do not read.
        RefusedError: the output is full (SEG-COD-016).
    """
    where = inside(at, "lz4")
    header = headers.lz4(data[:LZ4_MAX_HEADER_SIZE], where)
    position = LZ4_MAX_HEADER_SIZE if header.flags & LZ4_CONTENT_SIZE else LZ4_MAX_HEADER_SIZE - 8
    if verify_header:
        _verify_header(data[LZ4_DESCRIPTOR_POSITION : position - 1], header.header_checksum, at)
    frame = _Frame(data, header, at, headers)
    while block_size := frame.block_size_at(position):
        position = frame.decompress_block(position, block_size, output)
    return frame.end(position)


def _verify_header(descriptor: memoryview, stored: int, at: Location) -> None:
    computed = xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF
    if stored != computed:
        where = inside(at, "lz4.header_checksum", LZ4_DESCRIPTOR_POSITION + len(descriptor), 1)
        raise CorruptRecordError(where, "SEG-COD-007", expected=f"{computed:#04x}", found=f"{stored:#04x}")


class _Frame:
    """A frame whose header has been read."""

    def __init__(self, data: memoryview, header: Lz4Header, at: Location, headers: ContainerHeaders) -> None:
        self._data = data
        self._headers = headers
        self._at = at
        self._has_block_checksums = bool(header.flags & LZ4_BLOCK_CHECKSUM)
        self._has_content_checksum = bool(header.flags & LZ4_CONTENT_CHECKSUM)
        self._max_block_size = 1 << (8 + 2 * (header.block_descriptor >> 4))

    def block_size_at(self, position: int) -> int:
        """Return the size field of the block at a position; 0, stored or not, is the end mark (SEG-COD-024)."""
        field = self._data[position : position + LZ4_BLOCK_HEADER_SIZE]
        if len(field) < LZ4_BLOCK_HEADER_SIZE:
            where = inside(self._at, "lz4.block_size", position, len(field))
            raise CorruptRecordError(where, "SEG-COD-010", expected="a block or the end mark", found="the end")
        size = self._headers.lz4_block(field)
        return 0 if size == LZ4_STORED else size

    def decompress_block(self, position: int, size_field: int, output: Output) -> int:
        """Decompress one block and return the position after it."""
        start = position + LZ4_BLOCK_HEADER_SIZE
        size = size_field & ~LZ4_STORED
        where = inside(self._at, "lz4.block", start, size)
        if size > min(self._max_block_size, len(self._data) - start):
            expected = f"at most {self._max_block_size} bytes, {len(self._data) - start} are left"
            raise CorruptRecordError(where, "SEG-COD-009", expected=expected, found=size)
        block = self._data[start : start + size]
        if self._has_block_checksums:
            self._verify_block(block, start + size)
        output.append(block if size_field & LZ4_STORED else self._decode(block, where))
        return start + size + CHECKSUM_SIZE * self._has_block_checksums

    def _decode(self, block: memoryview, where: Location) -> bytes:
        room = min(self._max_block_size, len(block) * MAX_RATIO)
        try:
            return bytes(lz4.block.decompress(block, uncompressed_size=room))
        except ERRORS as problem:
            expected = f"a block that decodes to at most {self._max_block_size} bytes"
            raise CorruptRecordError(where, "SEG-COD-009", expected=expected, found=problem) from None

    def _verify_block(self, block: memoryview, position: int) -> None:
        computed = xxhash.xxh32_digest(block)[::-1]
        stored = self._data[position : position + CHECKSUM_SIZE]
        if stored != computed:
            where = inside(self._at, "lz4.block_checksum", position, CHECKSUM_SIZE)
            raise CorruptRecordError(where, "SEG-COD-012", expected=computed.hex(), found=stored.hex())

    def end(self, position: int) -> int:
        """Return the position after the end mark, and after the content checksum if there is one."""
        end = position + LZ4_BLOCK_HEADER_SIZE + CHECKSUM_SIZE * self._has_content_checksum
        if end > len(self._data):
            where = inside(self._at, "lz4.content_checksum", position + LZ4_BLOCK_HEADER_SIZE)
            raise CorruptRecordError(where, "SEG-COD-010", expected="a content checksum", found="the end")
        return end


# -- compression -------------------------------------------------------------------------------------------------------


BLOCK_SIZE: Final = 64 * 1024
BLOCK_DESCRIPTOR: Final = 0x40


def compress(data: Buffer, magic: int) -> bytes:
    """Compress to one frame of independent 64 KiB blocks; a block that does not shrink is stored."""
    found: list[Buffer] = [_header(magic)]
    for start in range(0, len(data), BLOCK_SIZE):
        piece = data[start : start + BLOCK_SIZE]
        packed = lz4.block.compress(piece, store_size=False)
        size, content = (len(packed), packed) if len(packed) < len(piece) else (len(piece) | LZ4_STORED, piece)
        found += (size.to_bytes(LZ4_BLOCK_HEADER_SIZE, "little"), content)
    return b"".join([*found, bytes(LZ4_BLOCK_HEADER_SIZE)])  # a block of size 0 ends it


@cache
def _header(magic: int) -> bytes:
    descriptor = bytes((LZ4_VERSION | LZ4_INDEPENDENT, BLOCK_DESCRIPTOR))
    unsealed = LZ4_MAGIC.to_bytes(4, "little") + descriptor
    hashed = unsealed if magic == 0 else descriptor  # SEG-COD-008: old brokers hashed the magic number, too
    return unsealed + bytes([xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF])
