"""Batches in answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_algorithms.records import records_of, sequence_of

from seglog_conformance.specification.answers import decompress
from seglog_conformance.specification.reading import record_of

if TYPE_CHECKING:
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.records import Record

    from seglog_conformance.protocol import Json

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def batch_of(entry: Entry) -> Json:
    """Return a batch of an answer."""
    records = records_of(entry, decompress)
    header, is_batch = entry.header, entry.is_batch
    horizon = entry.delete_horizon_ms
    stamped = "NoTimestampType" if entry.magic == 0 else "CreateTime"
    base = header.base_offset if is_batch else records[0].offset
    return {
        "position": entry.position,
        "sizeInBytes": len(entry.data),
        "magic": entry.magic,
        "baseOffset": str(base),
        "lastOffset": str(entry.last_offset),
        "nextOffset": str(entry.last_offset + 1),
        "crc": header.crc,
        "codec": CODECS[entry.codec],
        "timestampType": "LogAppendTime" if entry.is_log_append_time else stamped,
        "baseTimestamp": str(header.base_timestamp_ms) if is_batch else None,
        "maxTimestamp": str(entry.max_timestamp_ms),
        "deleteHorizonMs": None if horizon is None else str(horizon),
        "recordsCount": header.records_count if is_batch else None,
        "producerId": str(entry.producer_id),
        "producerEpoch": header.producer_epoch if is_batch else -1,
        "baseSequence": header.base_sequence if is_batch else -1,
        "lastSequence": sequence_of(header.base_sequence, header.last_offset_delta) if is_batch else -1,
        "isTransactional": entry.is_transactional,
        "isControl": entry.is_control,
        "partitionLeaderEpoch": entry.leader_epoch,
        "isValid": True,
        "records": [record_of(record) | _message_fields(record) for record in records],
    }


def _message_fields(record: Record) -> Json:
    return {} if record.magic > 1 else {"innerMagic": record.magic, "isValid": True}
