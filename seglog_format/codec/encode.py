"""Encoder of `RecordBatch` values, the inverse of `codec.decode` (chapters 30 to 33).

The encoder computes sizes and checksums, and writes all other values of the model unchanged, unknown attribute bits
included. So an uncompressed batch encodes to the bytes that it was decoded from.

Two encoders give the same bytes: packers written by hand, and those of `codec.reference.building`, which build every
structure through its declaration.
"""

from __future__ import annotations

import struct
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from construct import ConstructError

from seglog_format.arguments import require_instance
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compress import compress
from seglog_format.codec.encoders import Encoders
from seglog_format.codec.plain.record_packing import encode_record
from seglog_format.engine.choice import Engine
from seglog_format.errors import UsageError
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, CompressionCodec, MessageHeader, RecordBatchHeader
from seglog_format.record_model import Message, Record, RecordBatch
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BYTES_LENGTH,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

RecordT = TypeVar("RecordT", Record, Message)

MESSAGE_LAYOUTS: Final = {0: MESSAGE_V0_HEADER_LAYOUT, 1: MESSAGE_V1_HEADER_LAYOUT}
MESSAGE_CRCS: Final = {magic: layout.slot("crc") for magic, layout in MESSAGE_LAYOUTS.items()}
"""By magic."""
MESSAGE_VALUES: Final = {
    magic: attrgetter(*(field.name for field in fields(MessageHeader) if field.name in layout.codes))
    for magic, layout in MESSAGE_LAYOUTS.items()
}
"""Functions that return the values of a header in the order of its packer, by magic."""
BATCH_CRC: Final = RECORD_BATCH_HEADER_LAYOUT.slot("crc")
HEADER_VALUES: Final = attrgetter(*(field.name for field in fields(RecordBatchHeader)))
"""Returns the values of a header in the order of its packer."""


def encode_batch(batch: RecordBatch, *, engine: Engine = Engine.AUTO) -> bytes:
    """Encode one entry of a log.

    Args:
        batch: a record batch, or an outermost message of magic 0 or 1 with its content. Sizes, byte counts and
            the checksum in its header are ignored.
        engine: `Engine.REFERENCE` builds every structure through its declaration, slowly; any other uses packers
            written by hand. The bytes are the same.

    Returns:
        The whole entry, with its 12-byte prefix.

    Raises:
        UsageError: the records are not of the header's kind, a value does not fit its field, or the codec cannot be
            written.

    Examples:
        >>> from seglog_format import build_batch, decode_batch, encode_batch, new_record
        >>> data = encode_batch(build_batch([new_record(key=b"k", value=b"v")]))
        >>> len(data), decode_batch(data).records[0].key
        (70, b'k')
    """
    require_instance("batch", batch, RecordBatch)
    encoders = _encoders(Engine(engine))
    try:
        if isinstance(batch.header, RecordBatchHeader):
            return _encode_record_batch(batch.header, batch.records, encoders)
        return _encode_message_entry(batch.header, batch.records, encoders)
    except (struct.error, ConstructError, TypeError) as error:
        msg = f"batch: a field of header or records cannot hold its value: {error}"
        raise UsageError(msg) from error


def _encoders(engine: Engine) -> Encoders:
    if engine is not Engine.REFERENCE:
        return PLAIN
    from seglog_format.codec.reference.building import BY_DECLARATION  # noqa: PLC0415 - loads all declarations

    return BY_DECLARATION


def _encode_record_batch(header: RecordBatchHeader, records: Sequence[Record | Message], encoders: Encoders) -> bytes:
    section = b"".join(map(encoders.record, _only(Record, records)))
    stored = compress(codec_named(header.codec_id), section, magic=header.magic)
    return encoders.batch(header, stored)


def encode_record_batch(header: RecordBatchHeader, stored: bytes) -> bytes:
    """Return the bytes of a batch; ``stored`` is all that follows the header, whose size and checksum are ignored."""
    size = RECORD_BATCH_HEADER_SIZE + len(stored) - ENTRY_PREFIX_SIZE
    data = bytearray(RECORD_BATCH_HEADER.pack(*HEADER_VALUES(replace(header, batch_length=size))) + stored)
    BATCH_CRC.write(data, crc32c(memoryview(data)[ATTRIBUTES_POSITION:]))
    return bytes(data)


def _encode_message_entry(header: MessageHeader, records: Sequence[Record | Message], encoders: Encoders) -> bytes:
    messages = _only(Message, records)
    codec = codec_named(header.codec_id)
    if codec is not CompressionCodec.NONE:
        inner = b"".join(encoders.message(_stored_header(one), one.key, one.value) for one in messages)
        return encoders.message(header, None, compress(codec, inner, magic=header.magic))
    if len(messages) != 1:
        msg = f"an uncompressed message is one message, not {len(messages)}"
        raise UsageError(msg)
    return encoders.message(header, messages[0].key, messages[0].value)


def _stored_header(message: Message) -> MessageHeader:
    return MessageHeader(message.stored_offset, 0, 0, message.magic, message.attributes, message.stored_timestamp_ms)


def encode_message(header: MessageHeader, key: bytes | None, value: bytes | None) -> bytes:
    """Encode one message of magic 0 or 1; size and checksum in the header are ignored."""
    packer, values = MESSAGE_HEADERS[header.magic], MESSAGE_VALUES[header.magic]
    content = b"".join(
        BYTES_LENGTH.pack(-1) if data is None else BYTES_LENGTH.pack(len(data)) + data for data in (key, value)
    )
    size = packer.size + len(content) - ENTRY_PREFIX_SIZE
    data = bytearray(packer.pack(*values(replace(header, message_size=size))) + content)
    MESSAGE_CRCS[header.magic].write(data, crc32(memoryview(data)[MAGIC_POSITION:]))
    return bytes(data)


PLAIN: Final = Encoders(encode_record, encode_record_batch, encode_message)


def codec_named(codec_id: int) -> CompressionCodec:
    """Return the codec of an id.

    Raises:
        UsageError: the id names no codec (SEG-COD-001).
    """
    try:
        return CompressionCodec(codec_id)
    except ValueError:
        msg = f"codec {codec_id} is not defined (SEG-COD-001)"
        raise UsageError(msg) from None


def _only(kind: type[RecordT], records: Sequence[Record | Message]) -> list[RecordT]:
    """Check that all records are of the kind that the header requires, and return them.

    Raises:
        UsageError: one is of the other kind.
    """
    found = [record for record in records if isinstance(record, kind)]
    if len(found) != len(records):
        msg = f"header and records do not belong together: expected {kind.__name__} values only"
        raise UsageError(msg)
    return found
