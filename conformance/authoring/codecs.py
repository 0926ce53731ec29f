"""Compressed data in all the forms that encoders write, framed by hand around what the libraries make.

What a library makes differs from one release to the next. So each compressed run of bytes is kept in
``compressed.json`` once it was made, under a name and the SHA-256 of its content, and taken from there ever after.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cramjam
import lz4.block
import xxhash
import zstandard

from authoring.primitives import crc32

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT: Final = Path(__file__).with_name("compressed.json")
_kept: dict[str, str] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
_used: dict[str, str] = {}


def kept(name: str, content: bytes, make: Callable[[bytes], bytes]) -> bytes:
    """Return what a library made of some content the first time."""
    key = f"{name} {hashlib.sha256(content).hexdigest()}"
    if key not in _kept:
        _kept[key] = make(content).hex()
    _used[key] = _kept[key]
    return bytes.fromhex(_kept[key])


def kept_document() -> str:
    """All that was used, for the next time."""
    return json.dumps(dict(sorted(_used.items())), indent=0) + "\n"


# -- gzip -------------------------------------------------------------------------------------------------------------

GZIP_HEADER: Final = bytes.fromhex("1f8b08000000000000ff")
GZIP_EXTRA: Final = 4
GZIP_NAME: Final = 8
GZIP_COMMENT: Final = 16
GZIP_HEADER_CRC: Final = 2


def deflated(content: bytes, level: int = 6) -> bytes:
    """Raw deflate data."""

    def make(data: bytes) -> bytes:
        coder = zlib.compressobj(level, zlib.DEFLATED, -15)
        return coder.compress(data) + coder.flush()

    return kept(f"deflate-{level}", content, make)


def deflate_stored(content: bytes) -> bytes:
    """Deflate data that does not compress: one stored block."""
    return b"\x01" + struct.pack("<HH", len(content), len(content) ^ 0xFFFF) + content


def gzip(content: bytes, *, body: bytes | None = None, header: bytes = GZIP_HEADER) -> bytes:
    """One gzip member."""
    trailer = struct.pack("<II", crc32(content), len(content) % 2**32)
    return header + (deflated(content) if body is None else body) + trailer


def gzip_header(flags: int, optional: bytes) -> bytes:
    """Return a header with optional fields."""
    return GZIP_HEADER[:3] + bytes([flags]) + GZIP_HEADER[4:] + optional


# -- snappy -----------------------------------------------------------------------------------------------------------

XERIAL: Final = bytes.fromhex("82534e415050590000000001 00000001")


def snappy_block(content: bytes) -> bytes:
    """One raw snappy block."""
    return kept("snappy", content, lambda data: bytes(cramjam.snappy.compress_raw(data)))


def xerial(content: bytes, size: int = 32768, header: bytes = XERIAL) -> bytes:
    """Return a xerial stream of blocks of some size."""
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    blocks = [snappy_block(piece) for piece in pieces]
    return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


# -- lz4 --------------------------------------------------------------------------------------------------------------

LZ4_MAGIC: Final = bytes.fromhex("04224d18")
LZ4_END: Final = bytes(4)
LZ4_VERSION: Final = 0x40
LZ4_INDEPENDENT: Final = 0x20
LZ4_BLOCK_CHECKSUM: Final = 0x10
LZ4_CONTENT_SIZE: Final = 0x08
LZ4_CONTENT_CHECKSUM: Final = 0x04
LZ4_PLAIN: Final = LZ4_VERSION | LZ4_INDEPENDENT


def lz4_block(content: bytes) -> bytes:
    """One raw lz4 block."""
    return kept("lz4", content, lambda data: bytes(lz4.block.compress(data, store_size=False)))


def xxh32(data: bytes) -> bytes:
    """Return a checksum of lz4, as it is stored."""
    return struct.pack("<I", xxhash.xxh32_intdigest(data))


def lz4_header(flags: int = LZ4_PLAIN, block: int = 0x40, size: int | None = None, *, old: bool = False) -> bytes:
    """Return a frame header; ``old`` counts the magic number into its checksum, as writers of magic 0 do."""
    described = bytes([flags, block]) + (b"" if size is None else struct.pack("<Q", size))
    return LZ4_MAGIC + described + xxh32((LZ4_MAGIC if old else b"") + described)[1:2]


def lz4_stored(content: bytes, *, checksum: bool = False) -> bytes:
    """Return a block that is not compressed."""
    return struct.pack("<I", len(content) | 1 << 31) + content + (xxh32(content) if checksum else b"")


def lz4_packed(content: bytes, *, checksum: bool = False) -> bytes:
    """Return a compressed block."""
    block = lz4_block(content)
    return struct.pack("<I", len(block)) + block + (xxh32(block) if checksum else b"")


def lz4_frame(content: bytes) -> bytes:
    """Return a frame as Kafka writes it."""
    pieces = [content[at : at + 65536] for at in range(0, len(content), 65536)]
    return lz4_header() + b"".join(map(lz4_packed, pieces)) + LZ4_END


def lz4_frame_v0(content: bytes) -> bytes:
    """Return a frame as Kafka writes it in magic 0: with the other header checksum."""
    return lz4_header(old=True) + lz4_packed(content) + LZ4_END


# -- zstd -------------------------------------------------------------------------------------------------------------

ZSTD_MAGIC: Final = bytes.fromhex("28b52ffd")


def zstd(content: bytes, *, size: bool = False, checksum: bool = False, level: int = 3) -> bytes:
    """One zstd frame."""

    def make(data: bytes) -> bytes:
        coder = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=size)
        if size:
            return coder.compress(data)
        stream = coder.compressobj()
        return stream.compress(data) + stream.flush()

    return kept(f"zstd-{level}-{size:d}-{checksum:d}", content, make)


def zstd_block(content: bytes, *, last: bool = True) -> bytes:
    """Return a raw block inside a frame."""
    return (len(content) << 3 | last).to_bytes(3, "little") + content


def zstd_raw(content: bytes) -> bytes:
    """Return a frame with a window of 2 MiB and one raw block."""
    return ZSTD_MAGIC + b"\x00\x58" + zstd_block(content)
