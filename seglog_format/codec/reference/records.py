"""Decoder of the records of a magic 2 batch by their declarations (chapter 31)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from seglog_format.codec.parse import explain
from seglog_format.codec.record_rules import (
    record_offset,
    record_sequence,
    record_timestamp,
    require_end,
    require_more,
    require_size,
)
from seglog_format.record_model import Record, RecordHeader
from seglog_format.schema.fields import CONSTRUCT_ERRORS
from seglog_format.schema.record import Record as RecordSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.errors import Location
    from seglog_format.model import RecordBatchHeader


def decode_first_record(section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """Return the first record of a batch with at least one; ignore the bytes after it.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: the record is damaged.
    """
    return decode_record(io.BytesIO(section), section, header, at.at("records[0]", 0))


def read_records(section: bytes, header: RecordBatchHeader, at: Location) -> Iterator[Record]:
    """Yield the records of a batch.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: while iterating: a record is damaged, or the section does not hold the counted records
            (SEG-BAT-008).
    """
    stream = io.BytesIO(section)
    for index in range(header.records_count):
        start = stream.tell()
        require_more(section, start, index, header, at)
        yield decode_record(stream, section, header, at.at(f"records[{index}]", start))
    require_end(section, stream.tell(), header, at)


def decode_record(stream: io.BytesIO, section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """Return the record at the current position of a stream over the section, for `read_records`."""
    start = stream.tell()
    try:
        fields = RecordSchema.parse_stream(stream)
    except CONSTRUCT_ERRORS as problem:
        raise explain(RecordSchema, section[start:], at, problem, requirement="SEG-REC-006") from None
    require_size(fields.length, fields.end - fields.start, at)
    return _to_record(fields, header, at, size=stream.tell() - start)


def _to_record(fields: Any, header: RecordBatchHeader, at: Location, *, size: int) -> Record:  # noqa: ANN401 - a construct container
    return Record(
        offset=record_offset(header, fields.offset_delta, at),
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
