"""Compression with the frames that brokers and their clients write (chapter 34).

The compressed bytes depend on library and level. Kafka chooses the frames around them, and this module writes those
frames.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, assert_never

from seglog_format.errors import UsageError
from seglog_format.model import CompressionCodec
from seglog_format.schema.compression import Lz4BlockHeader, Lz4FrameHeader, XerialBlock, XerialHeader
from seglog_format.schema.compression_rules import LZ4_INDEPENDENT, LZ4_MAGIC, LZ4_STORED, LZ4_VERSION, XERIAL_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP_WINDOW_BITS: Final = 15 + 16
SNAPPY_BLOCK_SIZE: Final = 32 * 1024
LZ4_BLOCK_SIZE: Final = 64 * 1024
LZ4_BLOCK_DESCRIPTOR: Final = 0x40
LZ4_END_MARK: Final = bytes(4)
XERIAL_VERSION: Final = 1
ZSTD_LEVEL: Final = 3


def compress(codec: CompressionCodec, data: bytes, *, magic: int) -> bytes:
    """Compress a records section, or the messages of a wrapper, at Kafka's default level.

    Args:
        codec: of the batch or wrapper.
        data: any bytes.
        magic: of the batch or wrapper: 0, 1 or 2.

    Raises:
        UsageError: zstd below magic 2 (SEG-MSG-018).
    """
    if codec is CompressionCodec.ZSTD and magic < 2:  # noqa: PLR2004 - the number itself is the rule
        msg = f"zstd cannot be used in magic {magic} (SEG-MSG-018)"
        raise UsageError(msg)
    match codec:
        case CompressionCodec.NONE:
            return data
        case CompressionCodec.GZIP:
            return _gzip(data)
        case CompressionCodec.SNAPPY:
            return _snappy(data)
        case CompressionCodec.LZ4:
            return _lz4(data, magic)
        case CompressionCodec.ZSTD:
            return _zstd(data)
        case _:
            assert_never(codec)


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _gzip(data: bytes) -> bytes:
    """Compress to one member without name or time."""
    compressor = zlib.compressobj(wbits=GZIP_WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def _snappy(data: bytes) -> bytes:
    """Compress to a xerial header and blocks of 32 KiB."""
    import cramjam  # noqa: PLC0415 - loaded when snappy is written

    header = XerialHeader.build(
        {"magic": XERIAL_MAGIC, "version": XERIAL_VERSION, "compatible_version": XERIAL_VERSION}
    )
    blocks = [bytes(cramjam.snappy.compress_raw(piece)) for piece in _pieces(data, SNAPPY_BLOCK_SIZE)]
    blocks = blocks or [bytes(cramjam.snappy.compress_raw(b""))]  # a header alone is refused (SEG-COD-003)
    return bytes(header) + b"".join(XerialBlock.build({"size": len(block)}) + block for block in blocks)


def _lz4(data: bytes, magic: int) -> bytes:
    """Compress to one frame of independent 64 KiB blocks; a block that does not shrink is stored."""
    blocks = (_lz4_block(piece) for piece in _pieces(data, LZ4_BLOCK_SIZE))
    return _lz4_header(magic) + b"".join(blocks) + LZ4_END_MARK


def _lz4_header(magic: int) -> bytes:
    import xxhash  # noqa: PLC0415 - loaded when lz4 is written

    fields = {
        "magic": LZ4_MAGIC,
        "flags": LZ4_VERSION | LZ4_INDEPENDENT,
        "block_descriptor": LZ4_BLOCK_DESCRIPTOR,
        "content_size": None,
        "header_checksum": 0,
    }
    unsealed = bytes(Lz4FrameHeader.build(fields))[:-1]
    hashed = unsealed if magic == 0 else unsealed[4:]  # SEG-COD-008: old brokers hashed the magic number, too
    return unsealed + bytes([xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF])


def _lz4_block(piece: bytes) -> bytes:
    import lz4.block  # noqa: PLC0415 - loaded when lz4 is written

    packed = lz4.block.compress(piece, store_size=False)
    stored = len(packed) >= len(piece)
    content = piece if stored else packed
    return bytes(Lz4BlockHeader.build({"size": len(content) | (LZ4_STORED if stored else 0)})) + content


def _zstd(data: bytes) -> bytes:
    """Compress to one frame without content size and checksum; an empty block ends it, as in a written stream."""
    import zstandard  # noqa: PLC0415 - loaded when zstd is written

    compressor = zstandard.ZstdCompressor(
        level=ZSTD_LEVEL, write_content_size=False, write_checksum=False
    ).compressobj()
    body = compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return body + compressor.flush()
