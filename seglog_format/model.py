"""The decoded values that all other modules pass around, frozen.

The model keeps all values that a byte-exact re-encoding needs: raw attributes with unknown bits, deltas beside the
absolute values that follow from them, stored checksums. This module reads no bytes and imports no third-party package.

Records and batches are in `record_model`: a walk from entry to entry does not need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.storage.byte_source import ByteSource

"""Readable bytes; functions that take them neither keep nor change them."""

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

GREATEST_OFFSET: Final = INT64_MAX - 1
"""Maximum offset of a record: the log end offset after it must fit an int64 (SEG-LOG-013)."""

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

ENTRY_PREFIX_SIZE: Final = 12
"""Bytes of the offset and size fields at the start of every entry of a `.log` file."""

KEPT_SIZE: Final = 4 * 2**20
"""Size of the largest entry kept in memory after reading, so checksum and records use the same copy."""


class CompressionCodec(IntEnum):
    """Codec ids of attribute bits 0 to 2; 5, 6 and 7 are undefined (SEG-COD-001).

    Examples:
        >>> from seglog_format import CompressionCodec, build_batch, encode_batch, new_record
        >>> records = [new_record(value=b"again and again " * 100)]
        >>> len(encode_batch(build_batch(records))), len(encode_batch(build_batch(records, codec=CompressionCodec.LZ4)))
        (1670, 114)
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @staticmethod
    def fits(codec_id: int, magic: int) -> bool:
        """Return whether an entry of a magic may name a codec, if it is defined: zstd needs magic 2 (SEG-MSG-018)."""
        return codec_id != CompressionCodec.ZSTD or magic > 1

    @property
    def label(self) -> str:
        """The name that Kafka's configuration uses: ``none``, ``gzip``, ..."""
        return self.name.lower()


class TimestampType(Enum):
    """Origin of the timestamps. Magic 0 has none.

    Examples:
        >>> from seglog_format import LogConfig, TimestampType
        >>> LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME).message_timestamp_type.value
        'LogAppendTime'
    """

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class ControlRecordType(IntEnum):
    """Types of control records, as numbered since 3.0 (SEG-CTL-008 for the numbers before).

    Examples:
        >>> from seglog_format import ControlRecordType
        >>> ControlRecordType.COMMIT.value
        1
    """

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


END_MARKER_TYPES: Final = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
"""Types of control records that end a transaction."""


def add_sequence(sequence: int, increment: int) -> int:
    """Add to a sequence number, wrapping to 0 after 2147483647 (SEG-BAT-017)."""
    total = sequence + increment
    return total - 2**31 if total > INT32_MAX else total  # a negative one, of a damaged batch, stays negative


class MissingOffsets(NamedTuple):
    """Offsets that are missing from a log.

    Attributes:
        first_offset: the first of them.
        next_offset: the first offset after them; equal to the first one if their number is unknown.
    """

    first_offset: int
    next_offset: int

    @property
    def offset_count(self) -> int:
        """Number of the offsets, an upper limit for the number of records."""
        return self.next_offset - self.first_offset

    @property
    def span(self) -> str:
        """Number and range of the offsets, as text."""
        if not self.offset_count:
            return f"offsets from {self.first_offset} on"
        if self.offset_count == 1:
            return f"offset {self.first_offset}"
        return f"{self.offset_count} offsets, {self.first_offset} to {self.next_offset - 1}"

    def as_object(self) -> dict[str, int]:
        """Return them for JSON."""
        return {"firstOffset": self.first_offset, "nextOffset": self.next_offset, "offsetCount": self.offset_count}

    def __str__(self) -> str:
        many, _, which = self.span.partition(", ")
        return f"{many} {'is' if self.offset_count == 1 else 'are'} missing{f', {which}' if which else ''}"


@dataclass(frozen=True, slots=True)
class RecordBatchHeader:
    """The 61 bytes before the records of a magic 2 batch; names and order as in the schema."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the whole batch, its with its 12-byte prefix."""
        return ENTRY_PREFIX_SIZE + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the original batch, whether or not that record still exists."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset after this batch (SEG-BAT-016)."""
        return self.last_offset + 1

    @property
    def codec_id(self) -> int:
        """Attribute bits 0 to 2, even if they name no codec."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Attribute bit 3."""
        log_append = self.attributes & TIMESTAMP_TYPE_BIT
        return TimestampType.LOG_APPEND_TIME if log_append else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Attribute bit 4."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Attribute bit 5."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return when tombstones and markers of this batch expire; None unless attribute bit 6 is set (SEG-BAT-013)."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record of the original batch, or -1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def unknown_attribute_bits(self) -> int:
        """Attribute bits 7 to 15, which no version defines (SEG-BAT-014)."""
        return self.attributes & 0xFF80


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The fixed fields of an outermost magic 0 or 1 message: a plain one, or a compressed wrapper.

    It has the properties of `RecordBatchHeader`; fields that these formats lack have the values that Kafka uses.
    """

    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp_ms: int = NO_TIMESTAMP

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the whole message, its with its 12-byte prefix."""
        return ENTRY_PREFIX_SIZE + self.message_size

    @property
    def base_offset(self) -> int | None:
        """The offset of a plain message; None for a wrapper, which must be decompressed to find it."""
        return None if self.codec_id else self.offset

    @property
    def last_offset(self) -> int:
        """The stored offset: of the message, or of the last message in the wrapper."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """The first offset after this message."""
        return self.offset + 1

    @property
    def codec_id(self) -> int:
        """Attribute bits 0 to 2, even if they name no codec."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """None in magic 0; attribute bit 3 in magic 1."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        log_append = self.attributes & TIMESTAMP_TYPE_BIT
        return TimestampType.LOG_APPEND_TIME if log_append else TimestampType.CREATE_TIME

    @property
    def max_timestamp_ms(self) -> int:
        """The message's or wrapper's own timestamp, -1 in magic 0."""
        return self.timestamp_ms

    base_timestamp_ms = None
    records_count = None
    delete_horizon_ms = None
    is_transactional = False
    is_control = False
    producer_id = NO_PRODUCER_ID
    producer_epoch = NO_PRODUCER_EPOCH
    base_sequence = NO_SEQUENCE
    last_sequence = NO_SEQUENCE
    partition_leader_epoch = NO_PARTITION_LEADER_EPOCH

    @property
    def unknown_attribute_bits(self) -> int:
        """Attribute bits that the message's magic does not define (SEG-MSG-020)."""
        return self.attributes & (0xF8 if self.magic == 0 else 0xF0)


BatchHeader: TypeAlias = RecordBatchHeader | MessageHeader


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a log, found by its size field and not yet decoded.

    Attributes:
        position: byte position in the file.
        header: its header fields, of which only size and magic were checked.
        data: the bytes of the whole entry, prefix included.
    """

    position: int
    header: BatchHeader
    data: memoryview

    @property
    def end(self) -> int:
        """Position of the byte after this entry."""
        return self.position + self.header.size_in_bytes

    def pieces(self, start: int) -> Iterator[memoryview]:
        """Yield the bytes of the entry from a given byte on, in order, in the pieces in which they are read.

        Args:
            start: number of the first byte, counted from the start of the entry.
        """
        yield self.data[start:]


class StoredFrame(Frame):
    """An entry whose bytes are read on demand, because it may be too large for memory."""

    __slots__ = ("_data", "_source")
    _data: memoryview | None
    _source: ByteSource

    def __init__(self, position: int, header: BatchHeader, source: ByteSource) -> None:
        """Store the position of the entry.

        Args:
            position: byte position in the file.
            header: its fixed fields.
            source: the bytes of the file.
        """
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_data", None)

    @property
    def data(self) -> memoryview:
        """The bytes of the whole entry in one piece; a small entry is read only once.

        Raises:
            UnreadableError: the disk refuses to read one of them.
        """
        data = self._data
        if data is None:
            data = self._source.view(self.position, self.end)
            if len(data) <= KEPT_SIZE:
                object.__setattr__(self, "_data", data)
        return data

    def pieces(self, start: int) -> Iterator[memoryview]:
        """Yield the bytes of the entry from a given byte on; those of a large entry window by window."""
        if self.header.size_in_bytes <= KEPT_SIZE:
            yield self.data[start:]
            return
        position, end = self.position + start, self.end
        while position < end:
            first, data = self._source.window(position, 1)
            piece = data[position - first : end - first]
            yield piece
            position += len(piece)


class TailKind(Enum):
    """Bytes after the last whole entry of a log."""

    NONE = "nothing"
    ZEROS = "zeros"
    TRAILING = "trailing bytes"
    PARTIAL = "partial entry"


TAIL_RULES: Final = {
    TailKind.ZEROS: "SEG-LOG-005",
    TailKind.TRAILING: "SEG-LOG-002",
    TailKind.PARTIAL: "SEG-LOG-004",
}
"""The requirement about each kind of bytes after the last whole entry."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The bytes after the last whole entry of a log (SEG-LOG-002, SEG-LOG-004, SEG-LOG-005)."""

    kind: TailKind
    position: int
    size: int

    @property
    def requirement(self) -> str:
        """The requirement about bytes of this kind: zeros, stray bytes, or an entry cut short."""
        return TAIL_RULES[self.kind]


@dataclass(frozen=True, slots=True)
class OffsetPosition:
    """An offset-index entry, absolute: a log offset and a byte position in the `.log` file."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """A time-index entry, absolute; also the answer to a timestamp lookup."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class AbortedTxn:
    """A transaction-index entry: one aborted transaction (absolute offsets)."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
