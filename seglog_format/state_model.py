"""Contents of control records and of small files, apart from `model`: only some programs need them.

Like `model`, this module reads no bytes and imports no third-party package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from seglog_format.model import ControlRecordType


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
