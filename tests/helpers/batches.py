"""Batches written out by hand for tests: `struct` and a checksum library, nothing of the package."""

from __future__ import annotations

import struct

import google_crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")


def zigzag_varint(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def nullable(data: bytes | None) -> bytes:
    return zigzag_varint(-1) if data is None else zigzag_varint(len(data)) + data


def record(
    timestamp_delta: int = 0,
    offset_delta: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"",
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
    attributes: int = 0,
) -> bytes:
    body = bytes([attributes]) + zigzag_varint(timestamp_delta) + zigzag_varint(offset_delta)
    body += nullable(key) + nullable(value) + zigzag_varint(len(headers))
    body += b"".join(nullable(name) + nullable(content) for name, content in headers)
    return zigzag_varint(len(body)) + body


def sealed(data: bytes) -> bytes:
    """Return the same batch with batch length and checksum made right."""
    size = struct.pack(">i", len(data) - 12)
    data = data[:8] + size + data[12:]
    return data[:17] + struct.pack(">I", google_crc32c.value(data[21:])) + data[21:]


def patched(data: bytes, position: int, code: str, value: int, *, seal: bool = True) -> bytes:
    """Return the same batch with one number replaced."""
    number = struct.pack(">" + code, value)
    data = data[:position] + number + data[position + len(number) :]
    return sealed(data) if seal else data


def batch(section: bytes, count: int = 1, **fields: int) -> bytes:
    """Return a magic 2 batch around a records section."""
    values = {
        "base_offset": 0,
        "batch_length": 0,
        "partition_leader_epoch": 0,
        "magic": 2,
        "crc": 0,
        "attributes": 0,
        "last_offset_delta": count - 1,
        "base_timestamp_ms": 1000,
        "max_timestamp_ms": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "records_count": count,
    }
    return sealed(HEADER.pack(*(values | fields).values()) + section)
