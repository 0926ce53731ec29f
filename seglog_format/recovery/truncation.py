"""Truncation of a log to an offset: a plan, its file changes, and their execution (chapter 71)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from seglog_format.codec.checkpoints import (
    decode_offset_checkpoint,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
)
from seglog_format.errors import Location, SeglogError, UsageError, write_errors
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.gaps import tiered_gap
from seglog_format.log.index_file import encode_offset_index, encode_time_index
from seglog_format.log.listing import list_partition
from seglog_format.model import OffsetPosition, TimestampOffset
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.apply import writing
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.plan import circumstances_of
from seglog_format.recovery.planned_files import opened_segments, read_leader_epochs
from seglog_format.recovery.producer_states import forgets_producers, snapshot_steps
from seglog_format.recovery.segment_scan import encode_transaction_index, removal_steps
from seglog_format.state.producer_state import LeaderEpochs
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.byte_source import read_whole
from seglog_format.storage.file_reader import raised_refusals
from seglog_format.storage.files import LOCAL_FILES, Remove, Replace, Truncate, apply_steps, settled
from seglog_format.storage.log_storage import Plan, require_unchanged

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from seglog_format.log.index_file import IndexFile
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.storage.files import Files, FileStep

EntryT = TypeVar("EntryT", OffsetPosition, TimestampOffset)

LOWERED: Final = (FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.LOG_START_OFFSET_CHECKPOINT)
"""Checkpoints to lower, in this order. A recovery point that is lower than necessary is harmless."""


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """Effects of truncating a log to an offset.

    Attributes:
        offset: the log end offset afterwards.
        dropped: base offsets of the removed segments.
        base_offset: of the last segment afterwards.
        position: number of bytes of that segment that stay.
        restarts: everything is removed, and an empty segment begins at the offset.
    """

    offset: int
    dropped: tuple[int, ...]
    base_offset: int
    position: int
    restarts: bool = False

    @property
    def changes_log(self) -> bool:
        """Return whether anything is removed."""
        return self.position >= 0


@dataclass(frozen=True, slots=True)
class PreparedTruncation(Plan["PreparedTruncation"]):
    """The planned truncation of a partition directory.

    Attributes:
        path: of the directory.
        plan: the changes of the log.
        steps: the file changes, in order.
    """

    path: Path
    plan: TruncationPlan
    steps: tuple[FileStep, ...]


UNCHANGED: Final = -1
"""Position in a plan that changes nothing."""


def plan_truncation(segments: Sequence[LogSegment], offset: int) -> TruncationPlan:
    """Plan to truncate a log (SEG-TRN-001, SEG-TRN-002).

    Args:
        segments: in order; at least one.
        offset: the first to remove, 0 or more.

    Raises:
        UsageError: a negative offset, or no segment.
    """
    if offset < 0 or not segments:
        msg = f"cannot truncate to offset {offset}" if segments else "there is no segment to truncate"
        raise UsageError(msg)
    last = segments[-1]
    end = _next_offset(last)
    if offset >= end:
        return TruncationPlan(end, (), last.base_offset, UNCHANGED)
    kept = [segment for segment in segments if segment.base_offset <= offset]
    dropped = tuple(segment.base_offset for segment in segments[len(kept) :])
    if not kept:
        return TruncationPlan(offset, dropped, offset, 0, restarts=True)
    return TruncationPlan(offset, dropped, kept[-1].base_offset, _position(kept[-1], offset))


def _next_offset(segment: LogSegment) -> int:
    next_offset = segment.base_offset
    for frame in recoverable_frames(segment.source, path=segment.path):
        next_offset = frame.header.next_offset
    return next_offset


def _position(segment: LogSegment, offset: int) -> int:
    """Return the start of the first entry that ends at an offset or above; the end of the file if none does."""
    frames = recoverable_frames(segment.source, path=segment.path)
    return next((frame.position for frame in frames if frame.header.last_offset >= offset), segment.source.size)


def prepare_truncation(
    path: str | os.PathLike[str], offset: int, *, directory: LogDirectory | None = None
) -> PreparedTruncation:
    """Plan to truncate a partition directory, including its file changes. Changes nothing.

    Args:
        path: of the partition directory.
        offset: the first to remove, 0 or more.
        directory: the log directory; the directory above by default.

    Raises:
        UsageError: a negative offset, no segment, the path cannot be read, or the log would end in the part of it that
            only a remote store holds.
        UnreadableError: the disk refuses bytes that the plan depends on (SEG-PDR-022).
    """
    directory = directory or log_directory_above(path)
    listing = list_partition(path)
    _require_local(listing, directory, offset)
    with raised_refusals(), opened_segments(listing) as segments:
        plan = plan_truncation(segments, offset)
        return PreparedTruncation(Path(path), plan, truncation_steps(listing, directory, segments, plan))


def _require_local(listing: PartitionListing, directory: LogDirectory, offset: int) -> None:
    """Refuse to truncate a tiered log to an offset below its first segment: its leader epochs would be lost."""
    gap = tiered_gap(listing, directory.log_start_offsets.get(listing.topic_partition, 0))
    if gap is not None and 0 <= offset < gap.next_offset:
        msg = f"cannot truncate to offset {offset}: {gap}; the log would not lead to its remote segments any more"
        raise UsageError(msg)


def truncate_to(
    path: str | os.PathLike[str],
    offset: int,
    *,
    directory: LogDirectory | None = None,
    files: Files = LOCAL_FILES,
    planned: PreparedTruncation | None = None,
) -> PreparedTruncation:
    """Truncate a partition: afterwards the given offset is its log end offset.

    The files of removed segments are renamed: their names end in ``.deleted``.

    Args:
        path: of the partition directory.
        offset: the first to remove, 0 or more.
        directory: the log directory; the directory above by default.
        files: the file layer that changes go through.
        planned: the plan to carry out; nothing is changed if the current plan differs.

    Returns:
        The plan that was carried out.

    Raises:
        UsageError: a negative offset, no segment, the current plan differs from `planned`, or another process holds the
            lock of the log directory.
        WriteError: a file change failed; changes so far are safe, and a second truncation continues from there.
    """
    directory = directory or log_directory_above(path)
    with writing(directory):
        prepared = prepare_truncation(path, offset, directory=directory)
        require_unchanged(planned, prepared, path)
        with (
            write_errors("truncation"),
            opened_for_change(directory.path, Path(path), files, is_changed=prepared.plan.changes_log),
        ):
            apply_steps(prepared.steps, files)
    return prepared


def truncation_steps(
    listing: PartitionListing, directory: LogDirectory, segments: Sequence[LogSegment], plan: TruncationPlan
) -> tuple[FileStep, ...]:
    """Return the file changes of a plan.

    The log is changed last: as long as it extends beyond the offset, a second truncation finishes the work.

    Args:
        listing: of the partition directory.
        directory: the log directory.
        segments: of the partition.
        plan: the plan.
    """
    if not plan.changes_log:
        return ()
    return (
        *_checkpoint_steps(listing, directory, plan),
        *_epoch_steps(listing, plan),
        *settled(_snapshot_removals(listing, segments, plan), listing.path),
        *_producers(listing, directory, segments, plan),
        *_new_segment(listing, plan),
        *_removals(listing, segments, plan),
        *_cut_steps(segments, plan),
    )


def _removals(listing: PartitionListing, segments: Sequence[LogSegment], plan: TruncationPlan) -> Iterator[FileStep]:
    """Remove the last segment first, and sync each removal before the next, so a power cut leaves no hole."""
    for segment in reversed(segments):
        if segment.base_offset in plan.dropped:
            yield from settled(removal_steps(segment.paths, "SEG-TRN-001"), listing.path)


def _checkpoint_steps(listing: PartitionListing, directory: LogDirectory, plan: TruncationPlan) -> Iterator[FileStep]:
    key = listing.topic_partition
    for kind in LOWERED:
        path = directory.path / kind.value
        try:
            entries = decode_offset_checkpoint(read_whole(path), Location(str(path))).entries
        except SeglogError:
            continue  # a missing or unreadable checkpoint has nothing to lower
        new = [e._replace(offset=min(e.offset, plan.offset)) if (e.topic, e.partition) == key else e for e in entries]
        if new != list(entries):
            yield Replace(path, encode_offset_checkpoint(new), "SEG-TRN-005")


def _new_segment(listing: PartitionListing, plan: TruncationPlan) -> Iterator[FileStep]:
    if plan.restarts:
        yield Replace(listing.path / segment_file_name(plan.offset, FileKind.LOG), b"", "SEG-TRN-002")


def _cut_steps(segments: Sequence[LogSegment], plan: TruncationPlan) -> Iterator[FileStep]:
    for segment in segments:
        if segment.base_offset == plan.base_offset:
            yield from _index_cuts(segment, plan.offset)
            yield Truncate(segment.paths.log, plan.position, "SEG-TRN-001")


def _index_cuts(segment: LogSegment, offset: int) -> Iterator[FileStep]:
    """Remove the index entries from an offset on, before the log is cut: an index with fewer entries is harmless."""
    base, paths = segment.base_offset, segment.paths
    if segment.offset_index is not None and paths.offset_index is not None:
        data = encode_offset_index(_below(segment.offset_index, offset), base)
        yield Replace(paths.offset_index, data, "SEG-TRN-003")
    if segment.time_index is not None and paths.time_index is not None:
        data = encode_time_index(_below(segment.time_index, offset), base)
        yield Replace(paths.time_index, data, "SEG-TRN-003")
    if segment.transaction_index is not None and paths.transaction_index is not None:
        aborted = [entry for entry in segment.transaction_index.entries if entry.last_offset < offset]
        yield Replace(paths.transaction_index, encode_transaction_index(aborted), "SEG-TRN-006")


def _below(index: IndexFile[EntryT], offset: int) -> Sequence[EntryT]:
    """Return the entries below an offset; preallocated zeros are none."""
    written = index.entries[: len(index.raw_entries())]
    return written[: bisect_left(written, offset, key=lambda entry: entry.offset)]


def _snapshot_removals(
    listing: PartitionListing, segments: Sequence[LogSegment], plan: TruncationPlan
) -> Iterator[FileStep]:
    gone = {segment.paths.snapshot for segment in segments if segment.base_offset in plan.dropped}
    for file in listing.snapshots:
        if file.base_offset > plan.offset and file.path not in gone:
            yield Remove(file.path, "SEG-TRN-004")


def _producers(
    listing: PartitionListing, directory: LogDirectory, segments: Sequence[LogSegment], plan: TruncationPlan
) -> Iterator[FileStep]:
    """Write a snapshot of the producers if none remains, and a broker would forget them (SEG-PSN-010)."""
    circumstances = circumstances_of(listing, directory)
    kept = [segment for segment in segments if segment.base_offset <= plan.base_offset and not plan.restarts]
    remaining = [file for file in listing.snapshots if file.base_offset <= plan.offset]
    if forgets_producers(kept, remaining, circumstances):
        ends = ((segment, plan.position if segment is kept[-1] else segment.source.size) for segment in kept)
        path = listing.path / segment_file_name(plan.offset, FileKind.PRODUCER_SNAPSHOT)
        yield from snapshot_steps(path, ends, circumstances.log_start_offset)


def _epoch_steps(listing: PartitionListing, plan: TruncationPlan) -> Iterator[FileStep]:
    path = listing.path / FileKind.LEADER_EPOCH_CHECKPOINT.value
    known = read_leader_epochs(path)
    epochs = LeaderEpochs(known or ())
    if epochs.clear() if plan.restarts else epochs.truncate_to(plan.offset):
        yield Replace(path, encode_leader_epoch_checkpoint(epochs.entries), "SEG-TRN-007")
