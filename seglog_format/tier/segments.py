"""Remote segments: the records of `__remote_log_metadata`, replayed, and lookups by offset (chapter 46).

The decisions are those of Kafka's `RemoteLogMetadataCache`.
"""

from __future__ import annotations

import base64
from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.model import EpochStart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


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
    text = fields.get("customMetadata")  # in layouts since 3.6
    return None if text is None else base64.b64decode(text)


# -- the remote segments of a partition, replayed from the metadata topic, and lookups of them by offset (chapter 46) --


class Reason(Enum):
    """Why an event changes nothing."""

    UNKNOWN_SEGMENT = "no segment of this id is known"
    ILLEGAL_TRANSITION = "the state may not follow the current one"
    NO_START = "a segment begins with COPY_SEGMENT_STARTED"
    NO_UPDATE = "COPY_SEGMENT_STARTED is no update"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An event that changes nothing; brokers ignore it also (SEG-RLM-005).

    Attributes:
        event: as read.
        reason: why it changes nothing.
        state: of the segment before the event; None if there is no such segment.
    """

    event: RemoteSegment | SegmentUpdate
    reason: Reason
    state: SegmentState | None


class SegmentPart(NamedTuple):
    """A remote segment, and the range of offsets for which it is used.

    Attributes:
        segment: the remote segment.
        first_offset: first offset of the range.
        last_offset: last offset of the range, inclusive.
    """

    segment: RemoteSegment
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class _EpochSegments:
    """The remote segments with records of one leader epoch."""

    ids: dict[int, RemoteSegmentId] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    unreferenced: set[RemoteSegmentId] = field(default_factory=set)
    highest_offset: int | None = None

    def add(self, start: int, end: int, segment: RemoteSegmentId) -> None:
        """Add a finished segment; it replaces a segment with the same start, and the last ones that it covers."""
        while self.starts and self.starts[-1] >= start and (self.highest_offset or 0) <= end:
            self.unreferenced.add(self.ids.pop(self.starts.pop()))
        if start not in self.ids:
            insort(self.starts, start)
        self.ids[start] = segment
        self.unreferenced.discard(segment)
        if self.highest_offset is None or end > self.highest_offset:
            self.highest_offset = end

    def remove(self, start: int, segment: RemoteSegmentId) -> None:
        """Remove a segment from lookups, unless another segment with the same start has replaced it."""
        if self.ids.get(start) == segment:
            del self.ids[start]
            self.starts.remove(start)
        self.unreferenced.add(segment)

    def floor(self, offset: int) -> RemoteSegmentId | None:
        """Return the segment with the greatest start not above an offset."""
        number = bisect_right(self.starts, offset)
        return self.ids[self.starts[number - 1]] if number else None


@dataclass(slots=True)
class RemoteSegments:
    """The remote segments of one partition, after the events that were applied.

    Attributes:
        id: of the partition.
        segments: segments whose deletion has not finished, by id.
        deleted: segments whose deletion has finished, in their last state.
        dropped: events that changed nothing, in order.
        deletion: progress of the partition's deletion; None if it is not being deleted.
    """

    id: RemotePartitionId
    segments: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)
    deleted: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)
    deletion: PartitionDeleteState | None = None
    _epochs: dict[int, _EpochSegments] = field(default_factory=dict)

    @property
    def epochs(self) -> list[int]:
        """All leader epochs of segments, in order."""
        return sorted(self._epochs)

    def apply(self, event: RemoteEvent) -> None:
        """Apply the next record of the metadata topic (SEG-RLM-004, SEG-RLM-005)."""
        if isinstance(event, PartitionDeletion):
            self.deletion = event.state
            return
        reason = self._reason_against(event)
        if reason is not None:
            known = self.segments.get(event.id)
            self.dropped.append(Dropped(event, reason, None if known is None else known.state))
        elif isinstance(event, RemoteSegment):
            self._start(event)
        else:
            self._change(self.segments[event.id].updated(event))

    def _reason_against(self, event: RemoteSegment | SegmentUpdate) -> Reason | None:
        known = self.segments.get(event.id)
        state = None if known is None else known.state
        is_start = event.state is SegmentState.COPY_SEGMENT_STARTED
        if isinstance(event, RemoteSegment):
            if not is_start:
                return Reason.NO_START
        elif state is None:
            return Reason.UNKNOWN_SEGMENT
        if not may_follow(state, event.state):
            return Reason.ILLEGAL_TRANSITION
        return Reason.NO_UPDATE if is_start and isinstance(event, SegmentUpdate) else None

    def _start(self, segment: RemoteSegment) -> None:
        self.segments[segment.id] = segment
        for epoch, _ in segment.epochs:
            self._epoch(epoch).unreferenced.add(segment.id)

    def _change(self, segment: RemoteSegment) -> None:
        self.segments[segment.id] = segment
        for epoch, start in segment.epochs:
            of_epoch = self._epoch(epoch)
            match segment.state:
                case SegmentState.COPY_SEGMENT_FINISHED:
                    of_epoch.add(start, segment.end_of(epoch), segment.id)
                case SegmentState.DELETE_SEGMENT_STARTED:
                    of_epoch.remove(start, segment.id)
                case _:
                    of_epoch.unreferenced.discard(segment.id)
        if segment.state is SegmentState.DELETE_SEGMENT_FINISHED:
            self.deleted[segment.id] = self.segments.pop(segment.id)

    def _epoch(self, epoch: int) -> _EpochSegments:
        return self._epochs.setdefault(epoch, _EpochSegments())

    def segment_at(self, epoch: int, offset: int) -> RemoteSegment | None:
        """Return the segment to read an offset of a leader epoch from (SEG-RLM-009).

        Args:
            epoch: of the leader that wrote the offset, from the leader epoch checkpoint.
            offset: 0 or greater.

        Returns:
            The segment; None if no finished segment has the offset in this epoch.
        """
        of_epoch = self._epochs.get(epoch)
        found = None if of_epoch is None else of_epoch.floor(offset)
        segment = None if found is None else self.segments[found]
        return segment if segment is not None and offset <= segment.end_of(epoch) else None

    def segment_with_transactions(self, epoch: int, offset: int) -> RemoteSegment | None:
        """Return the first segment of a leader epoch from an offset on that may have aborted transactions.

        Args:
            epoch: of the leader that wrote the offset.
            offset: 0 or greater.

        Returns:
            The segment; None if there is none before the first gap between segments of the epoch.
        """
        segment = self.segment_at(epoch, offset)
        while segment is not None and segment.is_transaction_index_empty:
            segment = self.segment_at(epoch, segment.end_offset + 1)
        return segment

    def highest_offset(self, epoch: int) -> int | None:
        """Return the highest offset of a leader epoch that was ever copied; deletion keeps it (SEG-RLM-010)."""
        of_epoch = self._epochs.get(epoch)
        return None if of_epoch is None else of_epoch.highest_offset

    def parts(self, epoch: int) -> list[SegmentPart]:
        """Return the segments of a leader epoch with the offsets for which each is used, in order (SEG-RLM-009)."""
        of_epoch = self._epochs.get(epoch, _EpochSegments())
        found = []
        for start, after in zip_longest(of_epoch.starts, of_epoch.starts[1:]):
            segment = self.segments[of_epoch.ids[start]]
            end = segment.end_of(epoch)
            found.append(SegmentPart(segment, start, end if after is None else min(end, after - 1)))
        return found

    def of_epoch(self, epoch: int) -> list[RemoteSegment]:
        """Return all segments of a leader epoch that are not deleted yet, by start offset."""
        of_epoch = self._epochs.get(epoch, _EpochSegments())
        found = (self.segments.get(each) for each in {*of_epoch.ids.values(), *of_epoch.unreferenced})
        return sorted((each for each in found if each is not None), key=lambda each: (each.start_offset, each.id))


def replay(events: Iterable[RemoteEvent]) -> dict[RemotePartitionId, RemoteSegments]:
    """Apply events to their partitions.

    Args:
        events: in the order of the metadata topic; it has all events of a tiered partition in one of its partitions.

    Returns:
        The remote segments of each partition.
    """
    found: dict[RemotePartitionId, RemoteSegments] = {}
    for event in events:
        partition = event.id if isinstance(event, PartitionDeletion) else event.id.partition
        found.setdefault(partition, RemoteSegments(partition)).apply(event)
    return found


# -- the lineage of leader epochs: it decides which remote segments are part of the current log (chapter 46) -----------


@dataclass(frozen=True, slots=True)
class Lineage:
    """The leader epochs of a log, from the checkpoint of the leader.

    Attributes:
        epochs: with their first offset, in order; both increase.
        log_end_offset: the offset that the next record gets.
    """

    epochs: Sequence[EpochStart]
    log_end_offset: int

    def epoch_at(self, offset: int) -> int | None:
        """Return the leader epoch of an offset; None below the first epoch and from the log end offset on."""
        number = bisect_right(self.epochs, offset, key=lambda entry: entry.start_offset)
        return self.epochs[number - 1].epoch if number and offset < self.log_end_offset else None

    def end_of(self, epoch: int) -> int:
        """Return the offset at which a leader epoch ends: the start of the next higher one, else the log end offset."""
        return next((start for each, start in self.epochs if each > epoch), self.log_end_offset)

    def holds(self, segment: RemoteSegment) -> bool:
        """Return whether all of a remote segment belongs to this lineage, as retention requires (SEG-RLM-012).

        Epochs of the segment without a record do not count. Records below the first epoch of the checkpoint may have
        any epoch: they are below the log start offset.
        """
        starts = {entry.epoch: entry.start_offset for entry in self.epochs}
        parts = with_records(segment.epochs)
        if not starts or not min(starts) <= parts[-1].epoch <= max(starts):
            return False
        checked = [part for part in parts if part.epoch >= min(starts)]
        return (
            self._begins(checked[0], starts)
            and self._epochs_agree(checked, starts)
            and self._ends(segment, checked[-1])
        )

    @staticmethod
    def _begins(first: EpochStart, starts: dict[int, int]) -> bool:
        is_first = first.epoch == min(starts)
        return first.epoch in starts and (is_first or first.start_offset >= starts[first.epoch])

    @staticmethod
    def _epochs_agree(parts: Sequence[EpochStart], starts: dict[int, int]) -> bool:
        """Return whether in segment and checkpoint the same epoch follows each epoch, at the same offset."""
        following = dict(pairwise(sorted(starts)))
        return all(
            part.epoch in starts
            and following.get(part.epoch) == after.epoch
            and starts[after.epoch] == after.start_offset
            for part, after in pairwise(parts)
        )

    def _ends(self, segment: RemoteSegment, last: EpochStart) -> bool:
        return segment.end_offset < self.end_of(last.epoch) and segment.end_offset < self.log_end_offset

    def served(self, remote: RemoteSegments, log_start_offset: int) -> Iterator[SegmentPart]:
        """Yield the parts of remote segments to deliver to a reader of the current log (SEG-RLM-011).

        Offsets that no segment holds are skipped.

        Args:
            remote: the remote segments of the partition.
            log_start_offset: first offset that consumers may read.
        """
        for epoch, start in self.epochs:
            begin, end = max(log_start_offset, start), self.end_of(epoch) - 1
            for part in remote.parts(epoch):
                first, last = max(part.first_offset, begin), min(part.last_offset, end)
                if first <= last:
                    yield SegmentPart(part.segment, first, last)

    def highest_copied(self, remote: RemoteSegments) -> tuple[int, int] | None:
        """Return the offset up to which this lineage was copied, and its leader epoch (SEG-RLM-010).

        Copying continues after it. None if nothing was copied.
        """
        for epoch, _ in reversed(self.epochs):
            highest = remote.highest_offset(epoch)
            if highest is not None:
                return min(highest, self.end_of(epoch) - 1), epoch
        return None


def with_records(epochs: Sequence[EpochStart]) -> list[EpochStart]:
    """Return leader epochs without those that end where they begin: no record was written under them."""
    following = [*(entry.start_offset for entry in epochs[1:]), None]
    return [entry for entry, after in zip(epochs, following, strict=True) if entry.start_offset != after]
