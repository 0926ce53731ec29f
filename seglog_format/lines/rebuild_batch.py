"""Conversion of a batch's line and its record lines to a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.model import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    MessageHeader,
    RecordBatchHeader,
    TimestampType,
)
from seglog_format.record_model import Message, Record, RecordBatch, RecordHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.lines.read import LineReader

MAGIC_2: Final = 2
CODECS: Final = {codec.label: codec for codec in CompressionCodec}


def rebuilt_batch(line: LineReader, records: Sequence[LineReader]) -> RecordBatch:
    """Build a batch from its lines.

    Args:
        line: of the batch.
        records: of its records, in order.

    Raises:
        UsageError: a value is invalid, the batch is damaged, or records are missing.
    """
    if not line.flag("isValid") or "invalid" in line or "refused" in line:
        line.refuse("this batch is damaged or was not read; it cannot be rebuilt")
    magic = line.number("magic", bits=8)
    if magic == MAGIC_2:
        return _record_batch(line, records)
    if magic not in {0, 1}:
        line.refuse(f"magic {magic} is not known")
    return _message_entry(line, records, magic)


def _attributes(line: LineReader) -> int:
    codec = CODECS.get(line.text("codec"))
    if codec is None:
        line.refuse(f"codec {line.text('codec')!r} is not known")
    is_stamped = line.text("timestampType") == TimestampType.LOG_APPEND_TIME.value
    return codec | (TIMESTAMP_TYPE_BIT if is_stamped else 0)


def _record_batch(line: LineReader, records: Sequence[LineReader]) -> RecordBatch:
    base_offset = line.number("baseOffset")
    if line.number_or("recordsCount", len(records)) != len(records):
        line.refuse(f"recordsCount is {line.number('recordsCount')}, and {len(records)} records follow")
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=line.number("partitionLeaderEpoch", bits=32),
        magic=MAGIC_2,
        crc=0,
        attributes=_attributes(line)
        | (TRANSACTIONAL_BIT if line.flag("isTransactional") else 0)
        | (CONTROL_BIT if line.flag("isControl") else 0)
        | (DELETE_HORIZON_BIT if "deleteHorizonMs" in line else 0),
        last_offset_delta=line.difference("lastOffset", line.number("lastOffset"), base_offset),
        base_timestamp_ms=line.number("baseTimestamp"),
        max_timestamp_ms=line.number("maxTimestamp"),
        producer_id=line.number("producerId"),
        producer_epoch=line.number("producerEpoch", bits=16),
        base_sequence=line.number("baseSequence", bits=32),
        records_count=len(records),
    )
    return RecordBatch(0, header, tuple(_record(record, header) for record in records))


def _record(line: LineReader, header: RecordBatchHeader) -> Record:
    offset, timestamp_ms = line.number("offset"), line.number("timestamp")
    is_stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    apart_ms = 0 if is_stamped else line.difference("timestamp", timestamp_ms, header.base_timestamp_ms, bits=64)
    return Record(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=line.data("key"),
        value=line.data("value"),
        headers=tuple(RecordHeader(key, value) for key, value in line.headers()),
        attributes=line.number_or("attributes", 0, bits=8),
        timestamp_delta=line.number_or("timestampDelta", apart_ms),
        offset_delta=line.difference("offset", offset, header.base_offset),
        timestamp_type=header.timestamp_type,
    )


def _message_entry(line: LineReader, records: Sequence[LineReader], magic: int) -> RecordBatch:
    if not records:
        line.refuse("no record follows: a message of magic 0 or 1 needs a record line")
    header = MessageHeader(
        offset=line.number("lastOffset"),
        message_size=0,
        crc=0,
        magic=magic,
        attributes=_attributes(line),
        timestamp_ms=line.number("maxTimestamp") if magic else NO_TIMESTAMP,
    )
    first_offset = records[0].number("offset")
    return RecordBatch(0, header, tuple(_message(record, header, first_offset) for record in records))


def _message(line: LineReader, header: MessageHeader, first_offset: int) -> Message:
    if not line.flag("isValid"):
        line.refuse("this message is damaged; it cannot be rebuilt")
    offset, timestamp_ms = line.number("offset"), line.number("timestamp")
    is_inner = bool(header.codec_id)
    magic = line.number("innerMagic", bits=8) if is_inner else header.magic
    if magic not in {0, 1}:
        line.refuse(f"innerMagic {magic} is not known")
    return Message(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=line.data("key"),
        value=line.data("value"),
        magic=magic,
        crc=0,
        is_valid=True,
        attributes=line.number_or("attributes", 0, bits=8) if is_inner else header.attributes,
        stored_offset=offset - first_offset if is_inner and header.magic else offset,  # SEG-MSG-012
        stored_timestamp_ms=timestamp_ms,
        timestamp_type=header.timestamp_type if magic else TimestampType.NO_TIMESTAMP_TYPE,
    )
