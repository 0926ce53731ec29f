"""The decoded values that all other modules pass around, frozen.

The model keeps all values that a byte-exact re-encoding needs: raw attributes with unknown bits, deltas beside the
absolute values that follow from them, stored checksums. This module reads no bytes and imports no third-party package.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.storage.byte_source import ByteSource

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

DEFAULT_OUTPUT_LIMIT: Final = 256 * 2**20
"""Default maximum of bytes that one batch or wrapper may decompress to."""


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


# -- decoded contents of entries and of the files beside them ----------------------------------------------------------


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


# -- contents of control records and of small files --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """The state of one producer in a snapshot file; -1 marks an absent value."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A control record's key and value, decoded as far as its type is known.

    Attributes:
        version: of the key; versions above 0 are read as 0 (SEG-CTL-002).
        type_id: as stored.
        type: None if the number is unknown (SEG-CTL-003).
        fields: decoded value, camelCase names as in Kafka's message definitions; empty for an unknown type.
    """

    version: int
    type_id: int
    type: ControlRecordType | None
    fields: dict[str, object]

    @property
    def label(self) -> str:
        """``ABORT``, ``COMMIT``, ..., or ``UNKNOWN``."""
        return self.type.name if self.type is not None else "UNKNOWN"


class CheckpointedOffset(NamedTuple):
    """A line of an offset checkpoint: the offset of one partition."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class OffsetCheckpoint:
    """One of the offset checkpoints in a log directory's root; the file's name says which offsets they are."""

    version: int
    entries: tuple[CheckpointedOffset, ...]

    @property
    def by_partition(self) -> dict[tuple[str, int], int]:
        """The offset of each topic and partition; the last one if there are several."""
        return {(entry.topic, entry.partition): entry.offset for entry in self.entries}


class EpochStart(NamedTuple):
    """A line of a leader epoch checkpoint: the first offset that was written under an epoch."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LeaderEpochCheckpoint:
    """The leader epochs of a partition, in file order."""

    version: int
    entries: tuple[EpochStart, ...]


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The topic that a partition directory belongs to; the id is 22 characters of base64url."""

    version: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The cluster and the node that a log directory belongs to.

    Attributes:
        version: 0 (ZooKeeper) or 1 (KRaft).
        cluster_id: None if the file does not name it.
        node_id: `node.id`, or `broker.id` in version 0; None if the file does not name it.
        directory_id: of this log directory, since 3.7.
        properties: every key and value in file order.
    """

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """Contents of the clean-shutdown file since 3.7; without a version it is 0, without a broker epoch that is -1."""

    version: int = 0
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class QuorumState:
    """State of elections that a node of a KRaft quorum stores; -1 for a number that the file lacks.

    A static quorum (data version 0) lists its voters here. A dynamic one (data version 1) keeps them in its log, so
    `voter_ids` is empty; `voted_directory_id` is the log directory of the node that got the vote.
    """

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voter_ids: tuple[int, ...] = ()
    voted_directory_id: str | None = None
