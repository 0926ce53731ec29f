"""Decoded contents of an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from seglog_format.model import NO_SEQUENCE, NO_TIMESTAMP, TimestampType

if TYPE_CHECKING:
    from seglog_format.model import BatchHeader, ControlRecordType


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


# -- contents of control records and of small files, apart from `model`: only some programs need them ------------------


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
