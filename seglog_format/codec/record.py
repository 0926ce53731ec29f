"""Records of a magic 2 batch: the decompressed records section to `Record` values (chapter 31)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from seglog_format.codec.parse import CONSTRUCT_ERRORS, explain
from seglog_format.errors import CorruptRecordError
from seglog_format.model import INT64_MAX, NO_SEQUENCE, RecordBatchHeader, TimestampType, add_sequence
from seglog_format.record_model import Record, RecordHeader
from seglog_format.schema.record import Record as RecordSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.errors import Location


def decode_records(section: bytes, header: RecordBatchHeader, at: Location) -> tuple[Record, ...]:
    """All records of a batch.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: where the section stands; positions of errors count from there.

    Raises:
        CorruptRecordError: a record is damaged, or count and section do not agree (SEG-BAT-008).
    """
    return tuple(_records(section, header, at))


def decode_first_record(section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """The first record of a batch that holds one, whatever follows it.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: where the section stands; positions of errors count from there.

    Raises:
        CorruptRecordError: the record is damaged.
    """
    return decode_record(io.BytesIO(section), section, header, at.at("records[0]", 0))


def _records(section: bytes, header: RecordBatchHeader, at: Location) -> Iterator[Record]:
    stream = io.BytesIO(section)
    for index in range(header.records_count):
        start = stream.tell()
        require_more(section, start, index, header, at)
        yield decode_record(stream, section, header, at.at(f"records[{index}]", start))
    require_end(section, stream.tell(), header, at)


def require_more(section: bytes, position: int, index: int, header: RecordBatchHeader, at: Location) -> None:
    """Refuse a section that ends before as many records as the header counts (SEG-BAT-008)."""
    if position == len(section):
        expected, found = f"{header.records_count} records", f"the end after {index}"
        raise CorruptRecordError(at.at("records", position), "SEG-BAT-008", expected=expected, found=found)


def require_end(section: bytes, position: int, header: RecordBatchHeader, at: Location) -> None:
    """Refuse a section that goes on behind the records that the header counts (SEG-BAT-008)."""
    if left := len(section) - position:
        rest, expected = at.at("records", position, left), f"the end after {header.records_count} records"
        raise CorruptRecordError(rest, "SEG-BAT-008", expected=expected, found=f"{left} bytes")


def decode_record(stream: io.BytesIO, section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """The record at which a stream over the section stands, for `decode_records`."""
    start = stream.tell()
    try:
        fields = RecordSchema.parse_stream(stream)
    except CONSTRUCT_ERRORS as problem:
        raise explain(RecordSchema, section[start:], at, problem, requirement="SEG-REC-006") from None
    if fields.end - fields.start != fields.length:
        found = fields.end - fields.start
        raise CorruptRecordError(at, "SEG-REC-001", expected=f"fields of {fields.length} bytes", found=found)
    return _to_record(fields, header, at, size=stream.tell() - start)


def _to_record(fields: Any, header: RecordBatchHeader, at: Location, *, size: int) -> Record:  # noqa: ANN401 - a construct container
    offset = header.base_offset + fields.offset_delta
    if not 0 <= offset <= INT64_MAX:
        raise CorruptRecordError(at, "SEG-REC-014", expected="an offset of 0 to 2^63 - 1", found=offset)
    return Record(
        offset=offset,
        timestamp_ms=record_timestamp(header, fields.timestamp_delta),
        key=fields.key,
        value=fields.value,
        headers=tuple(RecordHeader(pair.key, pair.value) for pair in fields.headers),
        sequence=record_sequence(header, fields.offset_delta),
        attributes=fields.attributes,
        timestamp_delta=fields.timestamp_delta,
        offset_delta=fields.offset_delta,
        size_in_bytes=size,
        timestamp_type=header.timestamp_type,
    )


def record_timestamp(header: RecordBatchHeader, timestamp_delta: int) -> int:
    """Milliseconds since 1970: the batch's maximum with LogAppendTime, else base plus delta (SEG-BAT-011, -012)."""
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp_ms
    return signed_64(header.base_timestamp_ms + timestamp_delta)


def signed_64(value: int) -> int:
    """A sum as 64-bit two's complement, which is how brokers and clients add."""
    return (value + 2**63) % 2**64 - 2**63


def record_sequence(header: RecordBatchHeader, offset_delta: int) -> int:
    """Sequence number of a record, or -1 (SEG-REC-015)."""
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return add_sequence(header.base_sequence, offset_delta)
