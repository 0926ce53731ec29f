"""The remote segments of a partition, replayed from the metadata topic: which one answers for an offset (chapter 46).

The decisions are those of Kafka's `RemoteLogMetadataCache`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.tier.records import PartitionDeletion, RemoteSegment, SegmentUpdate
from seglog_format.tier.states import SegmentState, may_follow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.tier.ids import RemotePartitionId, RemoteSegmentId
    from seglog_format.tier.records import RemoteEvent
    from seglog_format.tier.states import PartitionDeleteState


class Reason(Enum):
    """Why an event changes nothing."""

    UNKNOWN_SEGMENT = "no segment of this id is known"
    ILLEGAL_TRANSITION = "the state may not follow the present one"
    NO_START = "a segment begins with COPY_SEGMENT_STARTED"
    NO_UPDATE = "COPY_SEGMENT_STARTED is no update"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An event that changes nothing, as brokers drop it (SEG-RLM-005).

    Attributes:
        event: as it was read.
        reason: why it changes nothing.
        state: of the segment when the event came; None where there is no such segment.
    """

    event: RemoteSegment | SegmentUpdate
    reason: Reason
    state: SegmentState | None


class SegmentPart(NamedTuple):
    """A remote segment, and offsets that it answers for.

    Attributes:
        segment: the remote segment.
        first_offset: the first of the offsets.
        last_offset: the last of them, inclusive.
    """

    segment: RemoteSegment
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class _Epoch:
    """What one leader epoch has in the remote store."""

    ids: dict[int, RemoteSegmentId] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    unreferenced: set[RemoteSegmentId] = field(default_factory=set)
    highest_offset: int | None = None

    def put(self, start: int, end: int, segment: RemoteSegmentId) -> None:
        """Add a finished segment; it replaces the one with the same start, and those that it covers at the end."""
        while self.starts and self.starts[-1] >= start and (self.highest_offset or 0) <= end:
            self.unreferenced.add(self.ids.pop(self.starts.pop()))
        if start not in self.ids:
            insort(self.starts, start)
        self.ids[start] = segment
        self.unreferenced.discard(segment)
        if self.highest_offset is None or end > self.highest_offset:
            self.highest_offset = end

    def take_out(self, start: int, segment: RemoteSegmentId) -> None:
        """Answer with a segment no more, unless another one has its start by now."""
        if self.ids.get(start) == segment:
            del self.ids[start]
            self.starts.remove(start)
        self.unreferenced.add(segment)

    def floor(self, offset: int) -> RemoteSegmentId | None:
        """Return the segment with the greatest start that is not above an offset."""
        number = bisect_right(self.starts, offset)
        return self.ids[self.starts[number - 1]] if number else None


@dataclass(slots=True)
class RemoteSegments:
    """The remote segments of one partition, as far as events were applied.

    Attributes:
        id: which partition.
        segments: those whose deletion has not finished, by id.
        deleted: those whose deletion has finished, as they were then.
        dropped: events that changed nothing, in order.
        deletion: how far the deletion of the partition has come; None where it is not deleted.
    """

    id: RemotePartitionId
    segments: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)
    deleted: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)
    deletion: PartitionDeleteState | None = None
    _epochs: dict[int, _Epoch] = field(default_factory=dict)

    @property
    def epochs(self) -> list[int]:
        """Leader epochs that a segment has named, in order."""
        return sorted(self._epochs)

    def apply(self, event: RemoteEvent) -> None:
        """Apply what the next record of the metadata topic says (SEG-RLM-004, SEG-RLM-005)."""
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
                    of_epoch.put(start, segment.end_of(epoch), segment.id)
                case SegmentState.DELETE_SEGMENT_STARTED:
                    of_epoch.take_out(start, segment.id)
                case _:
                    of_epoch.unreferenced.discard(segment.id)
        if segment.state is SegmentState.DELETE_SEGMENT_FINISHED:
            self.deleted[segment.id] = self.segments.pop(segment.id)

    def _epoch(self, epoch: int) -> _Epoch:
        return self._epochs.setdefault(epoch, _Epoch())

    def segment_at(self, epoch: int, offset: int) -> RemoteSegment | None:
        """Return the segment that answers for an offset of a leader epoch (SEG-RLM-009).

        Args:
            epoch: of the leader that wrote the offset, as the leader epoch checkpoint has it.
            offset: 0 or greater.

        Returns:
            The segment; None where no finished one has the offset in this epoch.
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
            The segment; None where the segments of the epoch that follow each other have none.
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
        """Return which segment answers for which offsets of a leader epoch, in order (SEG-RLM-009)."""
        of_epoch = self._epochs.get(epoch, _Epoch())
        found = []
        for start, after in zip_longest(of_epoch.starts, of_epoch.starts[1:]):
            segment = self.segments[of_epoch.ids[start]]
            end = segment.end_of(epoch)
            found.append(SegmentPart(segment, start, end if after is None else min(end, after - 1)))
        return found

    def of_epoch(self, epoch: int) -> list[RemoteSegment]:
        """Return all segments of a leader epoch that are not deleted yet, by start offset."""
        of_epoch = self._epochs.get(epoch, _Epoch())
        found = (self.segments.get(each) for each in {*of_epoch.ids.values(), *of_epoch.unreferenced})
        return sorted((each for each in found if each is not None), key=lambda each: (each.start_offset, each.id))


def replay(events: Iterable[RemoteEvent]) -> dict[RemotePartitionId, RemoteSegments]:
    """Apply events to the partitions that they are about.

    Args:
        events: in the order of the metadata topic; all of a partition are in one of its partitions.

    Returns:
        The remote segments of each partition.
    """
    found: dict[RemotePartitionId, RemoteSegments] = {}
    for event in events:
        partition = event.id if isinstance(event, PartitionDeletion) else event.id.partition
        found.setdefault(partition, RemoteSegments(partition)).apply(event)
    return found
