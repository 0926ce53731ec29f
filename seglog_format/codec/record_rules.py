"""Meaning of the fields of a record, given the header of its batch (chapters 30 and 31); for every decoder."""

from __future__ import annotations

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.model import INT64_MAX, NO_SEQUENCE, RecordBatchHeader, TimestampType, add_sequence


def require_more(section: bytes, position: int, index: int, header: RecordBatchHeader, at: Location) -> None:
    """Refuse a section that ends before as many records as the header counts (SEG-BAT-008)."""
    if position == len(section):
        expected, found = f"{header.records_count} records", f"the end after {index}"
        raise CorruptRecordError(at.at("records", position), "SEG-BAT-008", expected=expected, found=found)


def require_end(section: bytes, position: int, header: RecordBatchHeader, at: Location) -> None:
    """Refuse a section with bytes after the records that the header counts (SEG-BAT-008)."""
    if left := len(section) - position:
        rest, expected = at.at("records", position, left), f"the end after {header.records_count} records"
        raise CorruptRecordError(rest, "SEG-BAT-008", expected=expected, found=f"{left} bytes")


def require_size(length: int, found: int, at: Location) -> None:
    """Refuse a record whose fields take more or fewer bytes than its length says (SEG-REC-001)."""
    if found != length:
        raise CorruptRecordError(at, "SEG-REC-001", expected=f"fields of {length} bytes", found=found)


def record_offset(header: RecordBatchHeader, offset_delta: int, at: Location) -> int:
    """Return the absolute offset of a record.

    Raises:
        CorruptRecordError: base offset and delta give no valid offset (SEG-REC-014).
    """
    offset = header.base_offset + offset_delta
    if not 0 <= offset <= INT64_MAX:
        raise CorruptRecordError(at, "SEG-REC-014", expected="an offset of 0 to 2^63 - 1", found=offset)
    return offset


def record_timestamp(header: RecordBatchHeader, timestamp_delta: int) -> int:
    """Return a record's time: the batch's maximum with LogAppendTime, else base plus delta (SEG-BAT-011, -012)."""
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp_ms
    return signed_64(header.base_timestamp_ms + timestamp_delta)


def signed_64(value: int) -> int:
    """Wrap a sum to 64-bit two's complement, as brokers and clients do."""
    return (value + 2**63) % 2**64 - 2**63


def record_sequence(header: RecordBatchHeader, offset_delta: int) -> int:
    """Return the sequence number of a record, or -1 (SEG-REC-015)."""
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return add_sequence(header.base_sequence, offset_delta)
