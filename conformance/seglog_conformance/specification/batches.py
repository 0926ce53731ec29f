"""Batches in answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import check_crc, check_offsets, walk
from seglog_algorithms.records import records_of, sequence_of

from seglog_conformance.specification.answers import decompress, rejection
from seglog_conformance.specification.reading import record_of
from seglog_format.model import DEFAULT_OUTPUT_LIMIT

if TYPE_CHECKING:
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.records import Decompress, Record

    from seglog_conformance.protocol import Json

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def decode(request: Json) -> Json:
    """Return the batches of a log, up to its end or to the first refused one."""
    data, options = bytes.fromhex(request["data"]), request.get("options", {})
    within = partial(decompress, limit=options.get("limit", DEFAULT_OUTPUT_LIMIT))
    batches: list[Json] = []
    end = 0
    try:
        for entry in walk(data):
            if options.get("crc", True):
                check_crc(entry)
            check_offsets(entry)
            batches.append(batch_of(entry, within))
            end = entry.end
    except Damage as damage:
        return {**rejection(damage), "batches": batches}
    return {"ok": True, "batches": batches, "consumed": end, "tail": {"at": end} if end < len(data) else None}


def batch_of(entry: Entry, within: Decompress = decompress) -> Json:
    """Return a batch of an answer."""
    records = records_of(entry, within)
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
        "records": [_record_of(entry, record) for record in records],
    }


def _record_of(entry: Entry, record: Record) -> Json:
    known = record if entry.producer_id >= 0 else replace(record, sequence=-1)
    return record_of(known) | _message_fields(record)


def _message_fields(record: Record) -> Json:
    return {} if record.magic > 1 else {"innerMagic": record.magic, "isValid": True}
