"""The recovery plan of a broker when it starts: which segments it scans, and what it keeps (chapter 71).

Planning changes no file. A plan follows the checkpointed recovery point, as a broker does, or scans every segment. Both
are useful: a broker does not check the segments that the recovery point says are on disk.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.engine import Engine, engine_for, kernels_of
from seglog_format.errors import FormatError, Location, RefusedError, UnreadableError
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import require_partition, size_of_segments
from seglog_format.log.scanning import storage_for
from seglog_format.log.segment import LogSegment, OpenSegments
from seglog_format.model import GREATEST_OFFSET
from seglog_format.names import METADATA_TOPICS
from seglog_format.recovery.salvage_placement import blocked_reports
from seglog_format.recovery.segment_scan import Cut, Remark, SegmentScan, scan_segment
from seglog_format.storage.byte_source import FirstBytes
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from seglog_format.engine import RecoveryKernels
    from seglog_format.log.listing import PartitionListing

DELETE_STATE: Final = "delete"
"""Brokers remove directories in these states without reading them."""

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
