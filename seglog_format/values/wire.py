"""The header that serializers of Schema Registry write before the bytes of an object."""

from __future__ import annotations

import struct
from typing import Final

from seglog_format.values.undecoded import UndecodedError

MAGIC: Final = 0
HEADER: Final = struct.Struct(">bI")
MAX_INDEXES: Final = 64
"""Maximum nesting depth of a message type."""


def id_and_rest(data: bytes) -> tuple[int, bytes]:
    """Return the id of the schema that a value was written by, and the bytes after the header.

    Raises:
        UndecodedError: the value has no such header.
    """
    if len(data) < HEADER.size or data[0] != MAGIC:
        found = f"first byte {data[0]}" if data else "no bytes"
        msg = f"no header of Schema Registry: {found}, {len(data)} bytes"
        raise UndecodedError(msg)
    return HEADER.unpack_from(data)[1], data[HEADER.size :]


def indexes_and_rest(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of indexes to the type of a Protobuf value in its file, and the bytes after the path.

    Raises:
        UndecodedError: the indexes are cut off or too many.
    """
    count, position = _zigzag(data, 0)
    if count == 0:
        return (0,), data[position:]
    if not 0 < count <= MAX_INDEXES:
        msg = f"{count} message indexes"
        raise UndecodedError(msg)
    indexes = []
    for _ in range(count):
        index, position = _zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), data[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 28:  # noqa: PLR2004 - five bytes of seven bits
            msg = "the message indexes are cut off"
            raise UndecodedError(msg)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
