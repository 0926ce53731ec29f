"""The decision which remote segments a broker deletes next (chapter 46).

It is the decision of Kafka's `RemoteLogManager`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_format.cleaning.retention import RetentionLimits
from seglog_format.state.config import UNLIMITED
from seglog_format.tier.records import SegmentState
from seglog_format.tier.segments import Lineage, with_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.tier.records import RemoteSegment, RemoteSegmentId
    from seglog_format.tier.segments import RemoteSegments


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """The values that decide how long remote segments are kept.

    Attributes:
        log_start_offset: first offset that consumers may read.
        retention_ms: of the topic, -1 for no limit.
        retention_size: of the topic, in bytes, local and remote; -1 for no limit.
        now_ms: the current time.
        local_size: size of the segments that are only local.
        at_limit: whether a segment that is exactly `retention_ms` old is deleted, as up to Kafka 4.1; later versions
            keep it.
    """

    log_start_offset: int = 0
    retention_ms: int = UNLIMITED
    retention_size: int = UNLIMITED
    now_ms: int = 0
    local_size: int = 0
    at_limit: bool = False

    @property
    def limits(self) -> RetentionLimits:
        """The limits of the whole log."""
        return RetentionLimits(self.retention_ms, self.retention_size)

    def is_too_old(self, segment: RemoteSegment) -> bool:
        """Return whether the newest record of a segment is past the retention time."""
        age_ms = self.now_ms - segment.max_timestamp_ms + self.at_limit
        return self.now_ms >= self.retention_ms and self.limits.is_past(age_ms)


@dataclass(slots=True)
class _Expiry:
    remote: RemoteSegments
    lineage: Lineage
    rules: RetentionRules
    size_left: int = 0
    taken: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)

    def run(self) -> None:
        self.size_left = self._size()
        for segment in self._in_order():
            if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
                self.taken[segment.id] = segment
            elif segment.id not in self.taken and not self._take_if_due(segment):
                break
        self._take_below_first_epoch()

    def _in_order(self) -> Iterator[RemoteSegment]:
        return (segment for epoch, _ in self.lineage.epochs for segment in self.remote.of_epoch(epoch))

    def _size(self) -> int:
        """Return the size of the whole log: of its remote segments, and of those that are only local."""
        counted = {
            segment.id: segment.size
            for segment in self._in_order()
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED and self.lineage.holds(segment)
        }
        return sum(counted.values()) + self.rules.local_size

    def _take_if_due(self, segment: RemoteSegment) -> bool:
        """Take a segment if it is due for deletion; return whether later segments have to be checked also."""
        is_held = False
        is_due = self._is_below_log_start(segment)
        if not is_due:
            is_held = self.lineage.holds(segment)
            is_due = is_held and (self._is_too_old(segment) or self._is_too_much(segment))
        if is_due:
            self.taken[segment.id] = segment
        return is_due or not is_held

    def _is_below_log_start(self, segment: RemoteSegment) -> bool:
        first = self.lineage.epochs[0].epoch
        is_older = all(epoch <= first for epoch, _ in segment.epochs)
        return is_older and segment.end_offset < self.rules.log_start_offset

    def _is_too_old(self, segment: RemoteSegment) -> bool:
        is_too_old = self.rules.is_too_old(segment)
        if is_too_old:
            self.size_left -= segment.size
        return is_too_old

    def _is_too_much(self, segment: RemoteSegment) -> bool:
        is_too_much = self.rules.limits.is_over(self.size_left - segment.size)
        if is_too_much:
            self.size_left -= segment.size
        return is_too_much

    def _take_below_first_epoch(self) -> None:
        """Take the segments whose last leader epoch is below the first epoch of the log."""
        first = self.lineage.epochs[0].epoch
        epochs = {epoch for segment in self.remote.segments.values() for epoch, _ in segment.epochs}
        listed = (segment for epoch in sorted(epochs) if epoch < first for segment in self.remote.of_epoch(epoch))
        for segment in listed:
            if segment.epochs[-1].epoch < first:
                self.taken[segment.id] = segment


def expired(remote: RemoteSegments, lineage: Lineage, rules: RetentionRules) -> list[RemoteSegment]:
    """Return the remote segments that the leader deletes in its next run (SEG-RLM-013).

    Args:
        remote: the remote segments of the partition.
        lineage: leader epochs and end of the log; without leader epochs no segment is deleted.
        rules: log start offset and retention settings.

    Returns:
        The segments, each once, in the order in which they are found.
    """
    if not lineage.epochs:
        return []
    expiry = _Expiry(remote, Lineage(with_records(lineage.epochs), lineage.log_end_offset), rules)
    expiry.run()
    return list(expiry.taken.values())
