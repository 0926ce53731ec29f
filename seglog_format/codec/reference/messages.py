"""Parsers of messages of magic 0 and 1 by their declarations; `codec.message_set` reads wrappers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from construct import Struct

from seglog_format.codec.record_rules import MessageReader, StoredMessage, check_message, refuse_cut_short
from seglog_format.codec.reference.checksum import crc32
from seglog_format.codec.reference.framing import model_of
from seglog_format.model import MessageHeader
from seglog_format.schema.fields import CONSTRUCT_ERRORS, position_of
from seglog_format.schema.message_set import MESSAGES, MessageV0
from seglog_format.schema.record_batch import EntryPrefix
from seglog_format.schema.tracing import trace

if TYPE_CHECKING:
    from seglog_format.errors import Location


def read_message(data: memoryview, at: Location) -> StoredMessage:
    """Return the stored fields of one message.

    Args:
        data: the message, from its first byte to its last.
        at: location of the message.

    Raises:
        CorruptRecordError: SEG-MSG-003, SEG-MSG-005 or SEG-MSG-026.
    """
    magic = EntryPrefix.parse(data).magic
    check_message(data, magic, at)
    declaration, stream = MESSAGES[magic], io.BytesIO(data)
    try:
        message = declaration.parse_stream(stream)
    except CONSTRUCT_ERRORS:
        failed = trace(declaration, data).failed
        assert failed is not None
        refuse_cut_short(data, failed.start, failed.name, at)
    checked = data[position_of(declaration, "magic") :]
    return StoredMessage(
        header=model_of(message, MessageHeader),
        key=message.key,
        value=message.value,
        trailing_size=len(data) - stream.tell(),
        is_valid=crc32(checked) == message.crc,
    )


OFFSET_AND_SIZE: Final = Struct(*MessageV0.subcons[:2])
"""The first two fields of every message."""


def read_size(data: memoryview) -> int:
    """Return the size field of the message that starts at the first byte."""
    return int(OFFSET_AND_SIZE.parse(data).message_size)


BY_DECLARATION: Final = MessageReader(read_message, read_size)
