"""Messages of magic 0 and 1 written out by hand for tests: `struct` and `zlib`, nothing of the package."""

from __future__ import annotations

import struct
import zlib

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME = 8


def nullable(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def sealed(body: bytes, offset: int, crc: int | None = None) -> bytes:
    """Return an entry around everything from the magic on."""
    crc = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, len(body) + 4, crc) + body


def message(  # noqa: PLR0913 - the fields of a message
    offset: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"a",
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp_ms: int = 1000,
    crc: int | None = None,
    trailing: bytes = b"",
) -> bytes:
    timestamp = struct.pack(">q", timestamp_ms) if magic else b""
    body = struct.pack(">bb", magic, attributes) + timestamp + nullable(key) + nullable(value) + trailing
    return sealed(body, offset, crc)


def snappy(data: bytes) -> bytes:
    """Return a raw snappy block that copies nothing: the length, then literals of up to 60 bytes."""
    size, groups = len(data), []
    while size > 127:
        groups.append(size & 127 | 128)
        size >>= 7
    parts = [data[start : start + 60] for start in range(0, len(data), 60)]
    return bytes([*groups, size]) + b"".join(bytes([(len(part) - 1) << 2]) + part for part in parts)


def wrapper(
    *inner: bytes,
    offset: int,
    magic: int = 0,
    attributes: int = SNAPPY,
    timestamp_ms: int = 1000,
    key: bytes | None = None,
) -> bytes:
    """Return a message whose value is other entries, compressed with snappy whatever the attributes say."""
    return message(offset, key, snappy(b"".join(inner)), magic=magic, attributes=attributes, timestamp_ms=timestamp_ms)
