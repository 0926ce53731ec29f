"""Numbers and checksums, the smallest things that the format is made of."""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any, Final

from crcmod.predefined import mkPredefinedCrcFun

DIGEST_OVER: Final = 4096
"""Longer byte strings stand in an answer as their size and SHA-256."""

SEQUENCES: Final = 2**31

crc32c = mkPredefinedCrcFun("crc-32c")
crc32 = zlib.crc32


def uvarint(value: int, size: int = 1) -> bytes:
    """Return an unsigned varint, in at least ``size`` bytes."""
    groups = []
    while value > 127 or len(groups) < size - 1:  # noqa: PLR2004 - seven bits
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def varint(value: int, size: int = 1) -> bytes:
    """Return a zig-zag varint, in at least ``size`` bytes."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1, size)


def sized(data: bytes | None) -> bytes:
    """Bytes behind their length as a varint; None is null."""
    return varint(-1) if data is None else varint(len(data)) + data


def sized32(data: bytes | None) -> bytes:
    """Bytes behind their length in four bytes; None is null."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def replaced(data: bytes, position: int, code: str, value: int) -> bytes:
    """Return the same bytes with one big-endian number put over them."""
    number = struct.pack(">" + code, value)
    return data[:position] + number + data[position + len(number) :]


def flipped(data: bytes, position: int, bit: int = 0) -> bytes:
    """Return the same bytes with one bit turned over."""
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


def shown(data: bytes | None) -> Any:  # noqa: ANN401 - a string, null or a digest
    """Bytes as an answer has them."""
    if data is not None and len(data) > DIGEST_OVER:
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return None if data is None else data.hex()


def sequence(base: int, delta: int) -> int:
    """Return a sequence number further on; -1 stays."""
    return -1 if base < 0 else (base + delta) % SEQUENCES
