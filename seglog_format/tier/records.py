"""Records of `__remote_log_metadata` as values: descriptions and changes of remote segments (chapter 46)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.record_model import EpochStart

if TYPE_CHECKING:
    from collections.abc import Mapping


# -- the identities of tiered partitions and of their remote segments (chapter 46) -------------------------------------


class RemotePartitionId(NamedTuple):
    """A partition of a topic with an id; a topic that is deleted and created again has another id.

    Attributes:
        topic: name of the topic.
        topic_id: 22 characters of base64url.
        partition: number of the partition.
    """

    topic: str
    topic_id: str
    partition: int


class RemoteSegmentId(NamedTuple):
    """The identity of one attempt to copy a segment.

    Attributes:
        partition: the partition of the segment.
        segment_id: 22 characters of base64url; each attempt has its own.
    """

    partition: RemotePartitionId
    segment_id: str


# -- states of remote segments and of remote partitions, and the allowed transitions (chapter 46) ----------------------


class SegmentState(IntEnum):
    """The progress of copying or deleting a remote segment, with the numbers that records use."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """The progress of deleting a remote partition, with the numbers that records use."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


_NEXT: Final[Mapping[SegmentState | None, frozenset[SegmentState]]] = MappingProxyType(
    {
        None: frozenset({SegmentState.COPY_SEGMENT_STARTED}),
        SegmentState.COPY_SEGMENT_STARTED: frozenset(
            {SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED}
        ),
        SegmentState.COPY_SEGMENT_FINISHED: frozenset({SegmentState.DELETE_SEGMENT_STARTED}),
        SegmentState.DELETE_SEGMENT_STARTED: frozenset({SegmentState.DELETE_SEGMENT_FINISHED}),
        SegmentState.DELETE_SEGMENT_FINISHED: frozenset(),
    }
)


def may_follow(state: SegmentState | None, target: SegmentState) -> bool:
    """Return whether one state may follow another; each state may also follow itself (SEG-RLM-004).

    Args:
        state: the current state; None for an unknown segment.
        target: the next state.
    """
    return state is target or target in _NEXT[state]


# -- records of `__remote_log_metadata` as values ----------------------------------------------------------------------


VALUE: Final = Location(field="value")


@dataclass(frozen=True, slots=True)
class SegmentUpdate:
    """A change of a remote segment's state.

    Attributes:
        id: of the segment.
        state: the new state.
        broker_id: of the broker that changes it.
        event_timestamp_ms: time of the change.
        custom_metadata: data that the storage plug-in stores with the segment; None for none.
    """

    id: RemoteSegmentId
    state: SegmentState
    broker_id: int = -1
    event_timestamp_ms: int = -1
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """A remote segment as the metadata topic describes it.

    Attributes:
        id: of the segment.
        state: progress of copying or deletion.
        start_offset: first offset of the segment.
        end_offset: last offset of the segment, inclusive (SEG-RLM-006).
        epochs: leader epochs with their first offset in the segment, in order; never empty.
        size: of the log file before any transformation, in bytes.
        max_timestamp_ms: greatest timestamp in the segment, control records included.
        broker_id: of the broker that changed the state last.
        event_timestamp_ms: time of the last change.
        custom_metadata: data that the storage plug-in stores with the segment; None for none.
        is_transaction_index_empty: whether the segment has no aborted transaction; False if that is not known.
    """

    id: RemoteSegmentId
    state: SegmentState
    start_offset: int
    end_offset: int
    epochs: tuple[EpochStart, ...]
    size: int = 0
    max_timestamp_ms: int = -1
    broker_id: int = -1
    event_timestamp_ms: int = -1
    custom_metadata: bytes | None = None
    is_transaction_index_empty: bool = False

    def end_of(self, epoch: int) -> int:
        """Return the last offset that the segment may hold of a leader epoch or a lower one (SEG-RLM-008)."""
        return next((start - 1 for each, start in self.epochs if each > epoch), self.end_offset)

    def updated(self, update: SegmentUpdate) -> RemoteSegment:
        """Return the segment after a change of its state; the change also sets the custom metadata (SEG-RLM-007)."""
        return replace(
            self,
            state=update.state,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
        )


@dataclass(frozen=True, slots=True)
class PartitionDeletion:
    """A change of state in the deletion of a remote partition.

    Attributes:
        id: of the partition.
        state: progress of the deletion.
    """

    id: RemotePartitionId
    state: PartitionDeleteState


RemoteEvent: TypeAlias = RemoteSegment | SegmentUpdate | PartitionDeletion
"""The value of one record of the metadata topic."""

_State = TypeVar("_State", bound="IntEnum")


def remote_event(record: Mapping[str, Any]) -> RemoteEvent | None:
    """Turn a decoded record of `__remote_log_metadata` into a value.

    Args:
        record: as `decode_application_record` returns it.

    Returns:
        The value; None for an unknown type or version (SEG-RLM-001), and for a snapshot of segments, which brokers do
        not write to the topic.

    Raises:
        CorruptRecordError: the record could not be decoded (SEG-RLM-001), or it has an invalid state (SEG-RLM-002),
            invalid offsets (SEG-RLM-006) or no leader epochs (SEG-RLM-024).
    """
    if "error" in record:
        raise CorruptRecordError(VALUE, "SEG-RLM-001", expected="a record of the metadata topic", found=record["error"])
    fields = record.get("data")
    if fields is None:
        return None
    match record["type"]:
        case "REMOTE_LOG_SEGMENT_METADATA_RECORD":
            return _segment(fields)
        case "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD":
            return _update(fields)
        case "REMOTE_PARTITION_DELETE_METADATA_RECORD":
            state = _state(PartitionDeleteState, "remotePartitionDeleteState", fields)
            return PartitionDeletion(_partition_id(fields["topicIdPartition"]), state)
    return None


def _segment(fields: Mapping[str, Any]) -> RemoteSegment:
    start, end = fields["startOffset"], fields["endOffset"]
    if not 0 <= start <= end:
        at = VALUE.at("value.endOffset")
        expected = "a start offset of 0 or more, and an end offset not below it"
        raise CorruptRecordError(at, "SEG-RLM-006", expected=expected, found=f"{start} and {end}")
    epochs = {each["leaderEpoch"]: each["offset"] for each in fields["segmentLeaderEpochs"]}
    if not epochs:
        at = VALUE.at("value.segmentLeaderEpochs")
        raise CorruptRecordError(at, "SEG-RLM-024", expected="at least one leader epoch", found="none")
    return RemoteSegment(
        _segment_id(fields["remoteLogSegmentId"]),
        _state(SegmentState, "remoteLogSegmentState", fields),
        start,
        end,
        tuple(EpochStart(*each) for each in sorted(epochs.items())),
        fields["segmentSizeInBytes"],
        fields["maxTimestampMs"],
        fields["brokerId"],
        fields["eventTimestampMs"],
        _custom_metadata(fields),
        bool(fields.get("txnIndexEmpty", False)),
    )


def _update(fields: Mapping[str, Any]) -> SegmentUpdate:
    return SegmentUpdate(
        _segment_id(fields["remoteLogSegmentId"]),
        _state(SegmentState, "remoteLogSegmentState", fields),
        fields["brokerId"],
        fields["eventTimestampMs"],
        _custom_metadata(fields),
    )


def _segment_id(fields: Mapping[str, Any]) -> RemoteSegmentId:
    return RemoteSegmentId(_partition_id(fields["topicIdPartition"]), fields["id"])


def _partition_id(fields: Mapping[str, Any]) -> RemotePartitionId:
    return RemotePartitionId(fields["name"], fields["id"], fields["partition"])


def _state(states: type[_State], field: str, fields: Mapping[str, Any]) -> _State:
    try:
        return states(fields[field])
    except ValueError as error:
        at = VALUE.at(f"value.{field}")
        expected = f"0 to {len(states) - 1}"
        raise CorruptRecordError(at, "SEG-RLM-002", expected=expected, found=fields[field]) from error


def _custom_metadata(fields: Mapping[str, Any]) -> bytes | None:
    text = fields["customMetadata"]
    return None if text is None else base64.b64decode(text)
