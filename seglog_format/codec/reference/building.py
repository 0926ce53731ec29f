"""Encoders of entries and producer snapshots by their declarations and crcmod (chapters 30 to 33 and 50).

Each structure is built twice: without its checksum, and with the one of the bytes that it covers.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.encoders import Encoders, body_size
from seglog_format.codec.producer_snapshot import PRODUCER_SNAPSHOT_VERSION
from seglog_format.codec.reference.checksum import crc32, crc32c
from seglog_format.model import ENTRY_PREFIX_SIZE
from seglog_format.schema.fields import position_of
from seglog_format.schema.message_set import MESSAGES
from seglog_format.schema.producer_snapshot import ProducerSnapshot
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from construct import Struct

    from seglog_format.model import MessageHeader, RecordBatchHeader
    from seglog_format.record_model import ProducerStateEntry, Record


def encode_record(record: Record) -> bytes:
    """Return the bytes of a record from its deltas, with the shortest varints (SEG-REC-005)."""
    headers = [{"key": header.key, "value": header.value} for header in record.headers]
    values = {
        "length": body_size(record),
        "attributes": record.attributes,
        "timestamp_delta": record.timestamp_delta,
        "offset_delta": record.offset_delta,
        "key": record.key,
        "value": record.value,
        "headers_count": len(headers),
        "headers": headers,
    }
    return bytes(RecordSchema.build(values))


def encode_record_batch(header: RecordBatchHeader, stored: bytes) -> bytes:
    """Return the bytes of a batch; ``stored`` is all that follows the header (SEG-BAT-002, SEG-BAT-003)."""
    size = RecordBatchHeaderSchema.sizeof() + len(stored) - ENTRY_PREFIX_SIZE
    values = {**asdict(header), "batch_length": size}
    return _sealed(RecordBatchHeaderSchema, values, stored, covered_from="attributes", checksum=crc32c)


def encode_message(header: MessageHeader, key: bytes | None, value: bytes | None) -> bytes:
    """Return the bytes of a message of magic 0 or 1 (SEG-MSG-003, SEG-MSG-004, SEG-MSG-005)."""
    declaration = MESSAGES[header.magic]
    values = {**asdict(header), "key": key, "value": value, "message_size": 0, "crc": 0}
    values["message_size"] = len(declaration.build(values)) - ENTRY_PREFIX_SIZE
    return _sealed(declaration, values, b"", covered_from="magic", checksum=crc32)


def encode_producer_snapshot(producers: Iterable[ProducerStateEntry]) -> bytes:
    """Return the bytes of a snapshot of these producers, in this order (SEG-PSN-002, SEG-PSN-003)."""
    entries = [asdict(producer) for producer in producers]
    values = {"version": PRODUCER_SNAPSHOT_VERSION, "count": len(entries), "producers": entries}
    return _sealed(ProducerSnapshot, values, b"", covered_from="count", checksum=crc32c)


def _sealed(
    declaration: Struct, values: Mapping[str, Any], rest: bytes, *, covered_from: str, checksum: Callable[[bytes], int]
) -> bytes:
    """Build a structure whose ``crc`` covers everything from a field on, and the bytes that follow the structure."""
    unsealed = declaration.build({**values, "crc": 0}) + rest
    crc = checksum(unsealed[position_of(declaration, covered_from) :])
    return bytes(declaration.build({**values, "crc": crc})) + rest


BY_DECLARATION: Final = Encoders(encode_record, encode_record_batch, encode_message)
