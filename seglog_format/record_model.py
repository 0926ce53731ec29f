"""Decoded contents of an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from seglog_format.model import NO_SEQUENCE, NO_TIMESTAMP, TimestampType

if TYPE_CHECKING:
    from seglog_format.model import BatchHeader


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """One header of a record. Keys may repeat and may be empty; only the value can be null."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a magic 2 batch.

    Attributes:
        offset: absolute logical offset.
        timestamp_ms: milliseconds since 1970, or -1; the batch's maximum if the broker set the time.
        key: bytes, empty bytes, or None for null.
        value: the same; None is a tombstone in a compacted topic.
        headers: in stored order.
        sequence: producer sequence number, or -1.
        attributes, timestamp_delta, offset_delta: as stored.
        size_in_bytes: size of the record with its length field; 0 if it was not read from bytes.
        timestamp_type: whether the producer or the broker set the timestamp, as the batch says.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_SEQUENCE
    attributes: int = 0
    timestamp_delta: int = 0
    offset_delta: int = 0
    size_in_bytes: int = 0
    timestamp_type: TimestampType = TimestampType.CREATE_TIME


@dataclass(frozen=True, slots=True)
class Message:
    """One magic 0 or 1 message, taken out of its wrapper if it had one.

    Attributes:
        offset: absolute logical offset.
        timestamp_ms: the wrapper's if the broker set the time, else its own; -1 in magic 0.
        magic: of this message, which may differ from its wrapper's (SEG-MSG-017).
        crc: as stored.
        is_valid: whether size and checksum of this message are right.
        attributes, stored_offset, stored_timestamp_ms: as stored.
        size_in_bytes: size of the message with its 12-byte prefix; 0 if it was not read from bytes.
        timestamp_type: whether the producer or the broker set the timestamp, by the wrapper if the message had one;
            `NO_TIMESTAMP_TYPE` if the message or its wrapper is of magic 0.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    magic: int
    crc: int
    is_valid: bool
    attributes: int = 0
    stored_offset: int = 0
    stored_timestamp_ms: int = NO_TIMESTAMP
    size_in_bytes: int = 0
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    headers: ClassVar[tuple[RecordHeader, ...]] = ()
    """Messages have no headers."""
    sequence: ClassVar[int] = NO_SEQUENCE
    """Messages have no producer, so no sequence number."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A decoded entry of a log: a magic 2 batch, or an outermost magic 0 or 1 message with its content.

    Attributes:
        position: byte position in the file.
        header: fixed fields as stored.
        records: records or messages with absolute offsets, in stored order; may be empty (SEG-BAT-018).
    """

    position: int
    header: BatchHeader
    records: tuple[Record | Message, ...]

    @property
    def base_offset(self) -> int:
        """The stored base offset; for a wrapper the offset of its first message."""
        stored = self.header.base_offset
        return self.records[0].offset if stored is None else stored

    @property
    def last_offset(self) -> int:
        """Last offset of the original entry, whether or not that record still exists."""
        return self.header.last_offset

    @property
    def next_offset(self) -> int:
        """The first offset after this entry."""
        return self.header.next_offset
