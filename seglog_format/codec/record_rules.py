"""Meaning of the fields of a record, given the header of its batch (chapters 30 and 31); for every decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    INT64_MAX,
    NO_SEQUENCE,
    RecordBatchHeader,
    TimestampType,
    add_sequence,
)
from seglog_format.schema.fixed_fields import BYTES_LENGTH, MAGIC_POSITION, MESSAGE_HEADERS, MESSAGE_MIN_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import MessageHeader


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


# -- rules for single messages of magic 0 and 1 that hold for every parser of them (chapter 33) ------------------------


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as stored, before its wrapper's offset and timestamp are applied.

    Attributes:
        header: fixed fields.
        key: bytes, or None for null.
        value: bytes, or None for null.
        trailing_size: bytes after the value.
        is_valid: whether the checksum is right.
    """

    header: MessageHeader
    key: bytes | None
    value: bytes | None
    trailing_size: int
    is_valid: bool


class MessageReader(NamedTuple):
    """Parsers of the stored fields of messages.

    Attributes:
        message: parses one message, given all its bytes and its location.
        size: returns the size field of the message that starts at the first byte.
    """

    message: Callable[[memoryview, Location], StoredMessage]
    size: Callable[[memoryview], int]


def field_location(at: Location, name: str, position: int = 0, size: int = 0) -> Location:
    """Return the location of a field of a message: by position, or only by name if the message was in a wrapper."""
    return at.at(f"{at.field}.{name}") if at.field else at.at(name, position, size)


def check_message(data: memoryview, magic: int, at: Location) -> None:
    """Refuse a message of another magic (SEG-MSG-026), or one that is too small for its fixed fields (SEG-MSG-003)."""
    if magic not in MESSAGE_HEADERS:
        where = field_location(at, "magic", MAGIC_POSITION, 1)
        raise CorruptRecordError(where, "SEG-MSG-026", expected="0 or 1", found=magic)
    if (size := len(data) - ENTRY_PREFIX_SIZE) < MESSAGE_MIN_SIZES[magic]:
        where, least = field_location(at, "message_size", 8, 4), f"at least {MESSAGE_MIN_SIZES[magic]}"
        raise CorruptRecordError(where, "SEG-MSG-003", expected=least, found=size)


def refuse_cut_short(data: memoryview, position: int, name: str, at: Location) -> NoReturn:
    """Refuse a key or value that does not fit into its message (SEG-MSG-005).

    Args:
        data: the message.
        position: of the field's length.
        name: of the field.
        at: location of the message.
    """
    start = position + BYTES_LENGTH.size
    if start > len(data):
        where, left = field_location(at, name, position), f"{len(data) - position} bytes"
        raise CorruptRecordError(where, "SEG-MSG-005", expected="a length of 4 bytes", found=left)
    (size,) = BYTES_LENGTH.unpack_from(data, position)
    where, most = field_location(at, name, position, BYTES_LENGTH.size), f"at most the {len(data) - start} bytes left"
    raise CorruptRecordError(where, "SEG-MSG-005", expected=most, found=size)
