"""The entries of a log as this package reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proofs.dissecting.entry import Entry
from seglog_format import TimestampType, decode_batch, walk
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    from seglog_format.types import Message, Record, RecordBatch

TIMESTAMP_TYPE_BIT: Final = 0x08


def our_entries(data: bytes) -> list[Entry]:
    """Return the entries of log bytes, each decoded."""
    return [_entry(decode_batch(frame.data)) for frame in walk(data)]


def _entry(batch: RecordBatch) -> Entry:
    return _batch(batch, batch.header) if isinstance(batch.header, RecordBatchHeader) else _outermost(batch)


def _batch(batch: RecordBatch, header: RecordBatchHeader) -> Entry:
    fields = {
        "offset": header.base_offset,
        "size": header.batch_length,
        "partition_leader_epoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "codec": header.codec_id,
        "timestamp_type": int(header.timestamp_type is TimestampType.LOG_APPEND_TIME),
        "is_transactional": int(header.is_transactional),
        "is_control": int(header.is_control),
        "last_offset_delta": header.last_offset_delta,
        "base_timestamp_ms": header.base_timestamp_ms,
        "max_timestamp_ms": header.max_timestamp_ms,
        "base_timestamp_text": header.base_timestamp_ms,
        "max_timestamp_text": header.max_timestamp_ms,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "records_count": header.records_count,
    }
    return Entry(fields, [_record(record, header) for record in batch.records])  # type: ignore[arg-type] - magic 2


def _record(record: Record, header: RecordBatchHeader) -> Entry:
    fields = {
        "attributes": record.attributes,
        "timestamp_ms": record.timestamp_ms,
        "offset": record.offset,
        "key": record.key,
        "value": record.value,
        "headers": [(each.key, each.value) for each in record.headers],
    }
    return Entry(fields, (), {"stored_timestamp_ms": header.base_timestamp_ms + record.timestamp_delta})


def _outermost(batch: RecordBatch) -> Entry:
    """Return a plain message, or a wrapper with its messages as stored."""
    header: Any = batch.header
    if not header.codec_id:
        [message] = batch.records
        return _message(message, header.message_size)  # type: ignore[arg-type] - of magic 0 or 1
    fields = {"offset": header.offset, "size": header.message_size, "magic": header.magic, "crc": header.crc}
    fields |= _attributes(header.magic, header.attributes, header.timestamp_ms)
    return Entry(fields, [_message(each, each.size_in_bytes - 12) for each in batch.records])  # type: ignore[arg-type]


def _message(message: Message, size: int) -> Entry:
    fields = {"offset": message.stored_offset, "size": size, "magic": message.magic, "crc": message.crc}
    fields |= _attributes(message.magic, message.attributes, message.stored_timestamp_ms)
    return Entry({**fields, "key": message.key, "value": message.value})


def _attributes(magic: int, attributes: int, timestamp_ms: int) -> dict[str, int]:
    found = {"codec": attributes & 7, "timestamp_type": int(bool(attributes & TIMESTAMP_TYPE_BIT))}
    return found | ({"timestamp_ms": timestamp_ms} if magic else {})
