"""The lineage of leader epochs: it decides which remote segments are part of the current log (chapter 46).

The decisions are those of Kafka's `RemoteLogManager` and `LeaderEpochFileCache`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.tier.segments import SegmentPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.state_model import EpochStart
    from seglog_format.tier.records import RemoteSegment
    from seglog_format.tier.segments import RemoteSegments


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
