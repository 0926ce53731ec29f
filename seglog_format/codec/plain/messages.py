"""Hand-written parsers of messages of magic 0 and 1 (chapter 33)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32
from seglog_format.codec.record_rules import MessageReader, StoredMessage, check_message, refuse_cut_short
from seglog_format.model import MessageHeader
from seglog_format.schema.fixed_fields import (
    BYTES_LENGTH,
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    SIZE_POSITION,
)

if TYPE_CHECKING:
    from seglog_format.errors import Location


def read_message(data: memoryview, at: Location) -> StoredMessage:
    """Return the stored fields of one message.

    Args:
        data: the message, from its first byte to its last; at least as long as the fixed fields of magic 0.
        at: location of the message.

    Raises:
        CorruptRecordError: SEG-MSG-003, SEG-MSG-005 or SEG-MSG-026.
    """
    magic = ENTRY_PREFIX.unpack_from(data)[3]
    check_message(data, magic, at)
    fixed = MESSAGE_HEADERS[magic]
    header = MessageHeader(*fixed.unpack_from(data))
    key, position = _nullable_bytes(data, fixed.size, at, "key")
    value, end = _nullable_bytes(data, position, at, "value")
    return StoredMessage(header, key, value, len(data) - end, crc32(data[MAGIC_POSITION:]) == header.crc)


def _nullable_bytes(data: memoryview, position: int, at: Location, name: str) -> tuple[bytes | None, int]:
    """Return the bytes after a length field, and the position of their end."""
    start = position + BYTES_LENGTH.size
    if start > len(data):
        refuse_cut_short(data, position, name, at)
    (size,) = BYTES_LENGTH.unpack_from(data, position)
    if size < 0:
        return None, start
    if size > len(data) - start:
        refuse_cut_short(data, position, name, at)
    return bytes(data[start : start + size]), start + size


def read_size(data: memoryview) -> int:
    """Return the size field of the message that starts at the first byte."""
    return int(BYTES_LENGTH.unpack_from(data, SIZE_POSITION)[0])


PLAIN: Final = MessageReader(read_message, read_size)
