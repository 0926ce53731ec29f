"""Encoder of `RecordBatch` values, the inverse of `codec.decode` (chapters 30 to 33).

The encoder computes sizes and checksums, and writes all other values of the model unchanged, unknown attribute bits
included. So an uncompressed batch encodes to the bytes that it was decoded from.
"""

from __future__ import annotations

import struct
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Final, TypeVar

from construct import ConstructError

from seglog_format.arguments import require_instance
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compress import compress
from seglog_format.errors import UsageError
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, CompressionCodec, MessageHeader, RecordBatchHeader
from seglog_format.record_model import Message, Record, RecordBatch
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
)
from seglog_format.schema.message_set import MESSAGES
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.varint import varint_size

if TYPE_CHECKING:
    from collections.abc import Sequence

RecordT = TypeVar("RecordT", Record, Message)

MESSAGE_CRCS: Final = {0: MESSAGE_V0_HEADER_LAYOUT.slot("crc"), 1: MESSAGE_V1_HEADER_LAYOUT.slot("crc")}
"""By magic."""
LENGTH_SIZE: Final = 4


def encode_batch(batch: RecordBatch) -> bytes:
    """Encode one entry of a log.

    Args:
        batch: a record batch, or an outermost message of magic 0 or 1 with its content. Sizes, byte counts and
            the checksum in its header are ignored.

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
    try:
        if isinstance(batch.header, RecordBatchHeader):
            return _encode_record_batch(batch.header, batch.records)
        return _encode_message_entry(batch.header, batch.records)
    except (struct.error, ConstructError) as error:
        msg = f"batch: a field of header or records cannot hold its value: {error}"
        raise UsageError(msg) from error


def _encode_record_batch(header: RecordBatchHeader, records: Sequence[Record | Message]) -> bytes:
    section = b"".join(encode_record(record) for record in _only(Record, records))
    stored = compress(codec_named(header.codec_id), section, magic=header.magic) if records else section
    size = RECORD_BATCH_HEADER_SIZE + len(stored) - ENTRY_PREFIX_SIZE
    unsealed = RECORD_BATCH_HEADER.pack(*astuple(replace(header, batch_length=size))) + stored
    crc = crc32c(unsealed[ATTRIBUTES_POSITION:])
    return RECORD_BATCH_HEADER.pack(*astuple(replace(header, batch_length=size, crc=crc))) + stored


def encode_record(record: Record) -> bytes:
    """Encode one record of magic 2 from its deltas, with the shortest varints (SEG-REC-005)."""
    headers = [{"key": header.key, "value": header.value} for header in record.headers]
    fields = {
        "length": body_size(record),
        "attributes": record.attributes,
        "timestamp_delta": record.timestamp_delta,
        "offset_delta": record.offset_delta,
        "key": record.key,
        "value": record.value,
        "headers_count": len(headers),
        "headers": headers,
    }
    return bytes(RecordSchema.build(fields))


def body_size(record: Record) -> int:
    """Return the size of a record after its length field, with the shortest varints."""
    size = 1 + varint_size(record.timestamp_delta) + varint_size(record.offset_delta)
    size += _nullable_size(record.key) + _nullable_size(record.value) + varint_size(len(record.headers))
    return size + sum(_nullable_size(header.key) + _nullable_size(header.value) for header in record.headers)


def _nullable_size(data: bytes | None) -> int:
    return varint_size(-1) if data is None else varint_size(len(data)) + len(data)


def _encode_message_entry(header: MessageHeader, records: Sequence[Record | Message]) -> bytes:
    messages = _only(Message, records)
    codec = codec_named(header.codec_id)
    if codec is not CompressionCodec.NONE:
        inner = b"".join(encode_message(_stored_header(message), message.key, message.value) for message in messages)
        return encode_message(header, None, compress(codec, inner, magic=header.magic))
    if len(messages) != 1:
        msg = f"an uncompressed message is one message, not {len(messages)}"
        raise UsageError(msg)
    return encode_message(header, messages[0].key, messages[0].value)


def _stored_header(message: Message) -> MessageHeader:
    return MessageHeader(message.stored_offset, 0, 0, message.magic, message.attributes, message.stored_timestamp_ms)


def encode_message(header: MessageHeader, key: bytes | None, value: bytes | None) -> bytes:
    """Encode one message of magic 0 or 1; size and checksum in the header are ignored."""
    body = sum(len(data) for data in (key, value) if data is not None)
    size = MESSAGE_HEADERS[header.magic].size - ENTRY_PREFIX_SIZE + 2 * LENGTH_SIZE + body
    fields = {
        "offset": header.offset,
        "message_size": size,
        "crc": 0,
        "magic": header.magic,
        "attributes": header.attributes,
        "timestamp_ms": header.timestamp_ms,
        "key": key,
        "value": value,
    }
    data = bytearray(MESSAGES[header.magic].build(fields))
    MESSAGE_CRCS[header.magic].write(data, crc32(memoryview(data)[MAGIC_POSITION:]))
    return bytes(data)


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
