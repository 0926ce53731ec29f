"""The offsets that a recovery makes unreadable, and those that were missing before it (chapter 71)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from seglog_format.log.entry_table import OffsetRange
from seglog_format.log.gaps import watch_over
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.search import EntrySearch
from seglog_format.log.segment import LogSegment, starts_at, trusted_next_offset
from seglog_format.model import MissingOffsets
from seglog_format.recovery.entry_walk import recoverable_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionListing
    from seglog_format.model import Frame
    from seglog_format.recovery.plan import RecoveryPlan
    from seglog_format.recovery.segment_scan import Cut


class LossReason(Enum):
    """Why offsets cannot be read after a recovery."""

    CUT = "is cut"
    DROPPED = "is dropped"
    REPLACED = "is replaced by .swap files"
    HIDDEN = "holds offsets of the segment after it"
    UNREACHED = "ends too early for a broker, which does not scan it"


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """Offsets of one file that cannot be read after a recovery.

    Attributes:
        file: name of the log.
        missing: the offsets.
        reason: what the recovery does to the file; for hidden offsets, what hides them before and after the recovery.
    """

    file: str
    missing: MissingOffsets
    reason: LossReason


@dataclass(frozen=True, slots=True)
class Losses:
    """The offsets that a recovery makes unreadable, and those that it does not bring back.

    Attributes:
        lost: offsets that stop being readable, or are hidden, and that no other segment holds.
        missing: offsets that are missing before and after; none if the log is known to be compacted.
        is_compacted: whether a `.swap` file may hold fewer offsets than the segments it replaces.
    """

    lost: tuple[LostOffsets, ...] = ()
    missing: tuple[Gap, ...] = ()
    is_compacted: bool = False

    @property
    def removed(self) -> tuple[LostOffsets, ...]:
        """The offsets that the recovery removes."""
        return tuple(one for one in self.lost if one.reason not in {LossReason.HIDDEN, LossReason.UNREACHED})

    @property
    def unreached(self) -> tuple[LostOffsets, ...]:
        """The offsets that are lost when a broker starts after the recovery."""
        return tuple(one for one in self.lost if one.reason is LossReason.UNREACHED)

    @property
    def hidden(self) -> tuple[LostOffsets, ...]:
        """The offsets that no reader finds, before the recovery and after it, though a log holds them."""
        return tuple(one for one in self.lost if one.reason is LossReason.HIDDEN)

    @property
    def is_loss(self) -> bool:
        """Return whether the recovery may lose records that no compaction meant to remove."""
        return any(each.reason is not LossReason.REPLACED or not self.is_compacted for each in self.lost)


def losses_of(path: Path, plan: RecoveryPlan) -> Losses:
    """Count the offsets that a recovery makes unreadable (SEG-RCV-031). Every log of the partition is walked.

    Args:
        path: of the partition directory.
        plan: of the recovery, which must not have been carried out yet.

    Raises:
        UnreadableError: the disk refuses a file.
    """
    listing = list_partition(path)
    watch = watch_over(listing)
    kept = KeptOffsets(listing, plan)
    gone = kept.lost((*_replaced(listing), *_cut_or_dropped(listing, plan), *kept.hidden()))
    lost = (*gone, *kept.unreached(plan))
    found = watch.gaps({base: base for base in listing.base_offsets})
    gaps = [gap for gap in found if gap.is_loss]  # a recovery does not touch those
    missing = tuple(gap for gap in gaps if not _is_among(gap.missing, lost))
    is_compacted = any(each.reason is LossReason.REPLACED for each in lost) and watch.is_compacted
    return Losses(lost, missing, is_compacted)


def replaced_or_hidden(path: Path, plan: RecoveryPlan) -> tuple[LostOffsets, ...]:
    """Return the offsets that a recovery does not cut or drop, but that no reader finds after it in that file.

    Offsets of a replaced file that other files hold are left out; those that the next segment hides are not, because a
    log with both files would have them twice.

    Args:
        path: of the partition directory.
        plan: of the recovery.
    """
    listing = list_partition(path)
    kept = KeptOffsets(listing, plan)
    return (*kept.lost(_replaced(listing)), *kept.hidden())


class KeptOffsets:
    """The offsets that readers find after a recovery. A log is walked when its offsets are first needed.

    Args:
        listing: of the partition directory.
        plan: of the recovery.
    """

    def __init__(self, listing: PartitionListing, plan: RecoveryPlan) -> None:
        self._segments = [files for files in listing.segments if files.base_offset not in plan.dropped]
        self._base_offsets = [files.base_offset for files in self._segments]
        self._ends = {cut.base_offset: cut.next_offset for cut in plan.cuts}

    def hidden(self) -> Iterator[LostOffsets]:
        """Yield offsets that a log holds at or above the base offset of the segment after it (SEG-PDR-013)."""
        for number, files in enumerate(self._segments[:-1]):
            following = self._base_offsets[number + 1]
            with LogSegment(files) as segment:
                end = self._ends.get(files.base_offset)
                if end is None:
                    end = trusted_next_offset(segment) or segment.next_offset
            if end > following:
                yield LostOffsets(files.log.name, MissingOffsets(following, end), LossReason.HIDDEN)

    def unreached(self, plan: RecoveryPlan) -> Iterator[LostOffsets]:
        """Yield the offsets of the last log above its end, which a recovery that does not scan it finds too early.

        Where a segment was scanned, the last one was: above its end is what a running broker has appended since.
        """
        if not self._segments or plan.scanned:
            return
        start, end = plan.log_end_offset, self._next_offset(len(self._segments) - 1)
        if end > start:
            yield LostOffsets(self._segments[-1].log.name, MissingOffsets(start, end), LossReason.UNREACHED)

    def lost(self, candidates: Iterable[LostOffsets]) -> Iterator[LostOffsets]:
        """Yield the parts of lost offsets that no segment holds, by ascending offset within each file."""
        for one in candidates:
            for missing in self._unheld_parts(one.missing):
                yield replace(one, missing=missing)

    def _unheld_parts(self, extent: MissingOffsets) -> Iterator[MissingOffsets]:
        if not extent.offset_count:
            yield extent
            return
        start = extent.first_offset
        first = max(bisect_right(self._base_offsets, start) - 1, 0)
        for number in range(first, bisect_left(self._base_offsets, extent.next_offset)):
            base_offset, next_offset = self._base_offsets[number], self._next_offset(number)
            if next_offset > max(base_offset, start):
                if base_offset > start:
                    yield MissingOffsets(start, base_offset)
                start = next_offset
        if start < extent.next_offset:
            yield MissingOffsets(start, extent.next_offset)

    @cache  # noqa: B019 - the object lives as long as one report
    def _next_offset(self, number: int) -> int:
        """Return the first offset after those that readers find in a segment."""
        files, following = self._segments[number], (*self._base_offsets[number + 1 :], None)[0]
        if files.base_offset in self._ends:
            return self._ends[files.base_offset]
        with LogSegment(files, next_base_offset=following) as segment:
            return segment.next_offset


def _replaced(listing: PartitionListing) -> Iterator[LostOffsets]:
    """Yield the offsets in logs that `.swap` files replace."""
    for files in listing.replaced_logs:
        yield from _offsets_in(files, LossReason.REPLACED)


def _cut_or_dropped(listing: PartitionListing, plan: RecoveryPlan) -> Iterator[LostOffsets]:
    cuts = {cut.base_offset: cut for cut in plan.cuts}
    for files, following in zip(listing.segments, [*listing.base_offsets, 0][1:], strict=True):
        cut = cuts.get(files.base_offset)
        if files.base_offset in plan.dropped:
            yield from _offsets_in(files, LossReason.DROPPED)
        elif cut is not None:
            for missing in _cut_offsets(files, cut, following):
                yield LostOffsets(files.log.name, missing, LossReason.CUT)


def _offsets_in(files: SegmentFiles, reason: LossReason) -> Iterator[LostOffsets]:
    """Yield the offsets of all whole entries of a log, whatever their order."""
    with LogSegment(files) as segment:
        first = next(recoverable_frames(segment.source), None)
        if first is None:
            return
        start, end = starts_at(first), segment.next_offset
        if first.header.base_offset is None:  # a wrapper, which names only its last offset
            start = min(start, files.base_offset)
        is_in_order = segment.walked.damage is None
        runs = [MissingOffsets(start, end)] if is_in_order else _runs(recoverable_frames(segment.source), start)
    for missing in runs:
        yield LostOffsets(files.log.name, missing, reason)


def _cut_offsets(files: SegmentFiles, cut: Cut, following: int) -> Iterator[MissingOffsets]:
    """Yield the offsets after a cut, up to the next segment; without whole entries there, an open range.

    Entries count also if damage before them hides where they begin.

    An open range begins after the kept entries and has no offsets: how many were lost is not known.
    """
    with LogSegment(files) as segment:
        runs = _runs(_frames_behind(segment, cut), cut.next_offset)
    end = max([run.next_offset for run in runs], default=cut.next_offset)
    if following > end:
        runs.append(MissingOffsets(end, following))
    yield from runs or [MissingOffsets(end, end)]


def _frames_behind(segment: LogSegment, cut: Cut) -> Iterator[Frame]:
    source, end = segment.source, cut.position
    search = EntrySearch(source, OffsetRange(cut.next_offset, segment.allowed.last), source.path)
    while end < source.size:
        for frame in recoverable_frames(source, start=end):
            yield frame
            end = frame.end
        end = next(search.candidates(end + 1), source.size)


def _runs(frames: Iterable[Frame], start: int) -> list[MissingOffsets]:
    """Return the ranges of the offsets of entries; where offsets increase, a range includes the gaps between entries.

    Args:
        frames: in file order.
        start: the offset at which the first range begins.
    """
    runs, greatest = [MissingOffsets(start, start)], start
    for frame in frames:
        first, end = starts_at(frame), frame.header.next_offset
        first = min(first, greatest)
        if first == runs[-1].next_offset:
            runs[-1] = MissingOffsets(runs[-1].first_offset, end)
        else:
            runs.append(MissingOffsets(first, end))
        greatest = max(greatest, end)
    return [run for run in runs if run.offset_count > 0]


def _is_among(missing: MissingOffsets, lost: Iterable[LostOffsets]) -> bool:
    return any(
        one.missing.first_offset <= missing.first_offset and missing.next_offset <= one.missing.next_offset
        for one in lost
    )
