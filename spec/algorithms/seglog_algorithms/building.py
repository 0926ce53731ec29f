"""Records, batches and messages as bytes (chapters 30, 31 and 33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_algorithms.entries import BATCH, HEADER_SIZE, MESSAGE_HEADERS, Entry, crc_of, walk
from seglog_algorithms.records import NO_CODEC
from seglog_format.schema.message_set import MESSAGES
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.record_batch import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seglog_algorithms.records import Record

Compress: TypeAlias = Callable[[int, bytes, int], bytes]
"""Returns bytes compressed: codec, bytes, magic."""

_BEFORE_LENGTH_END: Final = 12


def build_record(record: Record, base_offset: int, base_timestamp_ms: int) -> bytes:
    """Return the bytes of a record of a batch with these bases (chapter 31)."""
    fields: dict[str, Any] = {
        "length": 0,
        "attributes": record.attributes,
        "timestamp_delta": record.timestamp_ms - base_timestamp_ms,
        "offset_delta": record.offset - base_offset,
        "key": record.key,
        "value": record.value,
        "headers_count": len(record.headers),
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }
    after_length = RecordSchema.build(fields)[1:]
    return bytes(RecordSchema.build(fields | {"length": len(after_length)}))  # SEG-REC-001


def build_batch(fields: Mapping[str, Any], records: Sequence[Record], compress: Compress) -> bytes:
    """Return a batch (chapter 30): the header with these fields, then the records.

    Args:
        fields: of the declared header; length, magic, checksum and count are computed here. The codec is that of the
            attributes. The records are relative to its base offset and base timestamp.
        records: with absolute offsets and timestamps.
        compress: compresses the records section if the attributes name a codec.
    """
    bases = fields["base_offset"], fields["base_timestamp_ms"]
    section = b"".join(build_record(record, *bases) for record in records)
    codec = fields["attributes"] & 7
    if codec != NO_CODEC:
        section = compress(codec, section, BATCH)
    header = {
        **fields,
        "batch_length": HEADER_SIZE - _BEFORE_LENGTH_END + len(section),  # SEG-LOG-001
        "magic": BATCH,
        "crc": 0,
        "records_count": len(records),  # SEG-BAT-008
    }
    return with_fields(sole(RecordBatchHeader.build(header) + section), seals=True).data


def build_message(magic: int, fields: Mapping[str, int], key: bytes | None, value: bytes | None) -> bytes:
    """Return a message or a wrapper (chapter 33): its size and checksum are computed here."""
    stored = {**fields, "message_size": 0, "crc": 0, "magic": magic, "key": key, "value": value}
    stored["message_size"] = len(MESSAGES[magic].build(stored)) - _BEFORE_LENGTH_END  # SEG-MSG-003
    return with_fields(sole(MESSAGES[magic].build(stored)), seals=True).data


def sole(data: bytes) -> Entry:
    """Return the entry that bytes are."""
    return next(walk(data))


def with_fields(entry: Entry, *, seals: bool = False, **fields: int) -> Entry:
    """Return an entry with other header fields; `seals` computes its checksum again (SEG-BAT-003, SEG-MSG-004)."""
    declaration: Any = RecordBatchHeader if entry.is_batch else MESSAGE_HEADERS[entry.magic]
    data = declaration.build({**entry.header, **fields}) + entry.data[declaration.sizeof() :]
    changed = Entry(entry.position, data, declaration.parse(data))
    return with_fields(changed, crc=crc_of(changed)) if seals else changed
