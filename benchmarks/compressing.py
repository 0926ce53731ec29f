"""Compression with the framing of Java producers, by the libraries alone: the measured code makes no data."""

from __future__ import annotations

import gzip
import struct
from typing import Final

import cramjam
import lz4.frame
import zstandard

from seglog_format import CompressionCodec

GZIP_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
XERIAL_HEADER: Final = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
XERIAL_BLOCK: Final = 32 * 1024


def compress(codec: CompressionCodec, data: bytes) -> bytes:
    """Compress the records of a batch, or the messages of a wrapper of magic 1."""
    match codec:
        case CompressionCodec.GZIP:
            return gzip.compress(data, GZIP_LEVEL, mtime=0)
        case CompressionCodec.SNAPPY:
            return _xerial(data)
        case CompressionCodec.LZ4:
            made: bytes = lz4.frame.compress(
                data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
            )
            return made
        case CompressionCodec.ZSTD:
            return _zstd(data)
        case _:
            return data


def _xerial(data: bytes) -> bytes:
    pieces = [data[start : start + XERIAL_BLOCK] for start in range(0, len(data), XERIAL_BLOCK)]
    blocks = [bytes(cramjam.snappy.compress_raw(piece)) for piece in pieces]
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def _zstd(data: bytes) -> bytes:
    """Return one frame without the size of its content, as a stream writes it."""
    stream = zstandard.ZstdCompressor(ZSTD_LEVEL, write_content_size=False, write_checksum=False).compressobj()
    return stream.compress(data) + stream.flush()
