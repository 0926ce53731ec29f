"""The recovery plan of a broker when it starts: which segments it scans, what it keeps and what it loses (chapter 71).

Planning changes no file. A plan follows the checkpointed recovery point, as a broker does, or scans every segment. Both
are useful: a broker does not check the segments that the recovery point says are on disk.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.engine import Engine, engine_for, kernels_of
from seglog_format.errors import FormatError, Location, RefusedError, UnreadableError
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.entry_table import OffsetRange
from seglog_format.log.gaps import GapKind, end_in_range, overreach, watch_over
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.path_kind import require_partition, size_of_segments
from seglog_format.log.scanning import storage_for
from seglog_format.log.search import EntrySearch
from seglog_format.log.segment import LogSegment, OpenSegments, starts_at, trusted_next_offset
from seglog_format.model import GREATEST_OFFSET, Frame, MissingOffsets
from seglog_format.names import METADATA_TOPICS
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.salvage_placement import blocked_reports
from seglog_format.recovery.segment_scan import Cut, Remark, SegmentScan, scan_segment
from seglog_format.storage.byte_source import FirstBytes
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.engine import RecoveryKernels
    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionListing


WALKS_TO_END: Final = "brokers walk to here for the log end offset, and may not start"

KEEPS_LATER_SEGMENTS: Final = "brokers cut this segment while they load the log, and then keep the later segments"


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Effects of recovery on a partition.

    Attributes:
        is_full_scan: every segment was scanned, also those that checkpoints call flushed.
        recovery_point: the checkpointed one, which decided what was scanned.
        scanned: base offsets of the scanned segments.
        cuts: one for each truncated segment, ascending; only the last cut can have caused segments to be dropped.
        dropped: base offsets of the removed segments.
        log_end_offset: the offset that the next record gets.
        restarts: the log starts again, empty, at its log start offset (SEG-RCV-007).
        remarks: where brokers act otherwise or fail.
    """

    is_full_scan: bool
    recovery_point: int
    scanned: tuple[int, ...]
    cuts: tuple[Cut, ...]
    dropped: tuple[int, ...]
    log_end_offset: int
    restarts: bool = False
    remarks: tuple[Remark, ...] = ()

    @property
    def cut(self) -> Cut | None:
        """The first cut; None if nothing is cut."""
        return self.cuts[0] if self.cuts else None

    @property
    def changes_log(self) -> bool:
        """Return whether any byte of a `.log` file is removed."""
        return bool(self.cuts or self.dropped)


def plan_recovery(
    segments: Sequence[LogSegment],
    *,
    has_clean_shutdown: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    is_full_scan: bool = False,
    kernels: RecoveryKernels | None = None,
) -> RecoveryPlan:
    """Plan what recovery does to the segments of a partition.

    Args:
        segments: in order.
        has_clean_shutdown: whether the log directory was closed cleanly.
        recovery_point: everything below counts as on disk.
        log_start_offset: as checkpointed; 0 without a checkpoint.
        is_full_scan: scan every segment, and drop those after the first cut, whatever the checkpoints say.
        kernels: the fast path over sound entries; the plan is the same without it.
    """
    circumstances = Circumstances(has_clean_shutdown, recovery_point, log_start_offset)
    scan = partial(_scan, kernels=kernels)
    return plan_scans(segments, circumstances, scan, is_full_scan=is_full_scan)


def _scan(segment: LogSegment, *, kernels: RecoveryKernels | None) -> SegmentScan:
    return scan_segment(segment.source, segment.base_offset, segment.path, kernels=kernels)


def plan_scans(
    segments: Sequence[LogSegment],
    circumstances: Circumstances,
    scan: Callable[[LogSegment], SegmentScan],
    *,
    is_full_scan: bool,
) -> RecoveryPlan:
    """Plan like `plan_recovery`, but scan segments by the given function."""
    recovery_point, log_start_offset = circumstances.recovery_point, circumstances.log_start_offset
    unflushed = 0 if is_full_scan else first_unflushed(segments, circumstances.has_clean_shutdown, recovery_point)
    scans: list[SegmentScan] = []
    kept = segments
    for number, segment in enumerate(segments):
        if number >= unflushed or reason_to_scan(segment):
            scans.append(scan(segment))
            if scans[-1].cut is not None and number >= unflushed:
                kept = segments[: number + 1]
                break
    dropped = segments[len(kept) :]
    end, end_remarks = _log_end(kept, scans, log_start_offset)
    restarts = end < log_start_offset
    return RecoveryPlan(
        is_full_scan=is_full_scan,
        recovery_point=recovery_point,
        scanned=tuple(scan.base_offset for scan in scans),
        cuts=tuple(scan.cut for scan in scans if scan.cut is not None),
        dropped=tuple(segment.base_offset for segment in (segments if restarts else dropped)),
        log_end_offset=max(end, log_start_offset),
        restarts=restarts,
        remarks=(*(r for scan in scans for r in scan.remarks), *_drop_remarks(kept, dropped), *end_remarks),
    )


def first_unflushed(segments: Sequence[LogSegment], has_clean_shutdown: bool, recovery_point: int) -> int:  # noqa: FBT001
    """Return the number of the first segment that may not be on disk, by the recovery point (SEG-RCV-002)."""
    if has_clean_shutdown:
        return len(segments)
    return max(sum(segment.base_offset <= recovery_point for segment in segments) - 1, 0)


def reason_to_scan(segment: LogSegment) -> str:
    """Return the reason to scan a segment below the recovery point (SEG-RCV-006, SEG-RCV-034); empty if none."""
    if segment.paths.offset_index is None:
        return "SEG-PDR-012"
    transactions = segment.transaction_index.entries if segment.transaction_index is not None else ()
    return "SEG-TXN-003" if any(entry.last_offset < segment.base_offset for entry in transactions) else ""


def _drop_remarks(kept: Sequence[LogSegment], dropped: Sequence[LogSegment]) -> tuple[Remark, ...]:
    reason = reason_to_scan(kept[-1]) if dropped else ""
    return (Remark(Location(kept[-1].path), (reason,), KEEPS_LATER_SEGMENTS),) if reason else ()


def _log_end(
    kept: Sequence[LogSegment], scans: Sequence[SegmentScan], log_start_offset: int
) -> tuple[int, tuple[Remark, ...]]:
    if not kept:
        return log_start_offset, ()
    last = kept[-1]
    if scans and scans[-1].base_offset == last.base_offset:
        return scans[-1].next_offset, ()
    end = last.base_offset
    try:
        for frame in last.frames():
            end = frame.header.next_offset
    except FormatError as error:
        return end, (Remark(error.location, error.requirements, WALKS_TO_END),)
    return end, ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The facts from the log directory that recovery of a partition needs.

    Attributes:
        has_clean_shutdown: whether the log directory was closed cleanly, as the broker sees it.
        recovery_point: everything below counts as on disk.
        log_start_offset: as checkpointed; 0 without a checkpoint.
    """

    has_clean_shutdown: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


def circumstances_of(listing: PartitionListing, directory: LogDirectory) -> Circumstances:
    """Return the facts from the log directory about one of its partitions.

    The metadata log is always recovered as a whole: its loader uses no recovery point and no clean shutdown.
    """
    key = listing.topic_partition
    if key[0] in METADATA_TOPICS:
        return Circumstances()
    start = directory.log_start_offsets.get(key, 0)
    return Circumstances(directory.has_clean_shutdown, directory.recovery_point(key), start)


@dataclass(frozen=True, slots=True)
class PartitionRecovery:
    """The plans for one partition directory.

    Attributes:
        path: of the directory.
        has_clean_shutdown: whether the log directory was closed cleanly, as the broker sees it.
        plan: from the recovery point, as a broker would recover.
        full_scan: the plan of a scan of every segment.
    """

    path: Path
    has_clean_shutdown: bool
    plan: RecoveryPlan
    full_scan: RecoveryPlan


def plan_for_partition(
    path: str | os.PathLike[str], directory: LogDirectory | None = None, *, engine: Engine = Engine.AUTO
) -> PartitionRecovery:
    """Plan the recovery of one partition directory, with the facts from its log directory.

    Args:
        path: of the partition directory.
        directory: the log directory; the directory above by default.
        engine: the engine that reads the logs; the plans do not depend on it.

    Raises:
        UsageError: the path is not a partition directory (see `path_kind`), or cannot be read.
        UnreadableError: the disk refuses bytes that a plan depends on (SEG-PDR-022).
    """
    require_partition(path)
    directory = directory or log_directory_above(path)
    opened = OpenSegments(1)
    with ExitStack() as closing, raised_refusals():
        listing = list_partition(path)
        found = circumstances_of(listing, directory)
        choice = engine_for(engine, size_of_segments(listing.segments))
        segment = partial(LogSegment, opened=opened, storage=storage_for(choice.engine))
        segments = [closing.enter_context(segment(files)) for files in listing.segments]
        scan = cache(partial(_scan, kernels=kernels_of(choice)))
        plan = plan_scans(segments, found, scan, is_full_scan=False)
        full_scan = plan_scans(segments, replace(found, has_clean_shutdown=False), scan, is_full_scan=True)
    return PartitionRecovery(Path(path), found.has_clean_shutdown, plan, full_scan)


def plan_of_logs(path: str | os.PathLike[str], directory: LogDirectory | None = None) -> RecoveryPlan:
    """Plan the recovery of a partition from its logs alone, for a directory where a file cannot be read.

    Every log is scanned, up to the first that cannot be opened. A range that the disk refuses ends its log, as damage
    does. The checkpointed log start offset does not count.

    Args:
        path: of the partition directory.
        directory: the log directory; the directory above by default.

    Raises:
        UsageError: the path is not a partition directory (see `path_kind`).
    """
    require_partition(path)
    listing = list_partition(path)
    opened = OpenSegments(1)
    with ExitStack() as closing:
        blocked = min((each.next_offset for each in blocked_reports(listing)), default=GREATEST_OFFSET)
        logs = [each for each in listing.logs_alone().segments if each.base_offset < blocked]
        segments = [closing.enter_context(LogSegment(each, opened=opened)) for each in logs]
        found = circumstances_of(listing, directory or log_directory_above(path))
        known = replace(found, log_start_offset=0)
        return plan_scans(list(takewhile(_can_be_opened, segments)), known, _scan_readable, is_full_scan=True)


def _can_be_opened(segment: LogSegment) -> bool:
    try:
        return segment.source.size >= 0
    except (RefusedError, UnreadableError):
        return False


def _scan_readable(segment: LogSegment) -> SegmentScan:
    """Scan a log up to the first bytes that the disk refuses."""
    try:
        return _scan(segment, kernels=None)
    except UnreadableError as error:
        readable = FirstBytes(segment.source, error.location.position or 0)
        scan = scan_segment(readable, segment.base_offset, segment.path)
        end = readable.size if scan.cut is None else scan.cut.position
        lost = segment.source.size - end
        cut = Cut(segment.base_offset, segment.path, end, lost, scan.next_offset, error.requirements, str(error))
        return replace(scan, cut=cut)


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
    is_replaced = any(each.reason is LossReason.REPLACED for each in lost)
    missing = tuple(
        replace(gap, first_offset=first, next_offset=following)
        for gap in found
        for first, following in (_beside(gap.missing, lost) if gap.is_loss else ())  # a recovery does not touch those
    )
    is_whole = all(gap.kind is not GapKind.REPLACED for gap in found)
    is_compacted = is_replaced and is_whole and watch.is_compacted
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
        self._overreach = overreach(listing)

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
            if self._overreach is not None and files.is_replacement:
                return min(segment.next_offset, self._overreach.first_offset)
            return segment.next_offset


def _replaced(listing: PartitionListing) -> Iterator[LostOffsets]:
    """Yield the offsets in logs that `.swap` files replace; damaged ones are none."""
    for files in listing.replaced_logs:
        end = end_in_range(files, listing.storage)
        for one in _offsets_in(files, LossReason.REPLACED):
            first, following = one.missing
            if first < end:
                yield replace(one, missing=MissingOffsets(first, min(following, end)))


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


def _beside(missing: MissingOffsets, lost: Iterable[LostOffsets]) -> Iterator[MissingOffsets]:
    """Yield the parts of missing offsets that are not among lost ones."""
    first, following = missing
    for one, after in sorted(each.missing for each in lost):
        if one <= first <= after or first < one < following:
            if first < one:
                yield MissingOffsets(first, one)
            first = max(first, after)
            if first >= following:
                return
    yield MissingOffsets(first, following)
