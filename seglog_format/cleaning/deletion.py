"""Execution of retention: removed segments are renamed to `.deleted`, and deleted later (chapter 72).

The log start offset is raised first. From then on no reader sees the removed records, and files that a crash leaves are
removed by the next retention.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy as copied
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.cleaning.retention import RetainedSegment, is_copied, plan_retention, tiered_or_not
from seglog_format.codec.checkpoints import encode_leader_epoch_checkpoint, encode_offset_checkpoint
from seglog_format.errors import write_errors
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.listing import DELETED, LOG_DIRECTORY_KINDS, list_partition, read_offset_checkpoint
from seglog_format.model import CheckpointedOffset
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.apply import writing
from seglog_format.recovery.planned_files import opened_segments, read_leader_epochs
from seglog_format.state.producer_state import LeaderEpochs, producers_at_end
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.environment import system_clock
from seglog_format.storage.file_reader import raised_refusals
from seglog_format.storage.files import LOCAL_FILES, Rename, Replace, Settle, apply_steps
from seglog_format.storage.log_storage import Plan, require_unchanged

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from seglog_format.cleaning.retention import RetentionPlan
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.log.segment import LogSegment
    from seglog_format.state.config import LogConfig
    from seglog_format.storage.files import Files, FileStep

REMOVAL_ORDER = (
    FileKind.PRODUCER_SNAPSHOT,
    FileKind.TRANSACTION_INDEX,
    FileKind.TIME_INDEX,
    FileKind.OFFSET_INDEX,
    FileKind.LOG,
)
"""Order of removal: the log is last, so no other file is left without its log."""


# Renaming and deleting files


def removal_steps(files: Files, directory: Path, base_offsets: Iterable[int]) -> Iterator[FileStep]:
    """Yield the renaming of segment files for removal (SEG-RET-009, SEG-RET-010).

    Each removal is on disk before the next segment is removed, so a power cut leaves no hole. Before the first removal,
    the names of the remaining files are on disk (SEG-RET-012).

    Args:
        files: file layer of the directory.
        directory: of the partition.
        base_offsets: of the segments, ascending.
    """
    present = set(files.names(directory))
    yield Settle(directory)
    for base_offset in base_offsets:
        for kind in REMOVAL_ORDER:
            name = segment_file_name(base_offset, kind)
            if name in present:
                rule = "SEG-RET-010" if kind is FileKind.PRODUCER_SNAPSHOT else "SEG-RET-009"
                yield Rename(directory / name, directory / (name + DELETED), rule)
        yield Settle(directory)


class DeletedFiles:
    """Files that were renamed for removal, and are deleted after a delay (SEG-RET-009).

    The times are kept in memory only. Files that are left when the program ends are deleted when the log is opened
    again.

    Args:
        files: file layer of the directory.
        delay_ms: `file.delete.delay.ms`.
    """

    def __init__(self, files: Files, delay_ms: int) -> None:
        self._files = files
        self._delay_ms = delay_ms
        self._due_ms: dict[Path, int] = {}

    def add(self, paths: Iterable[Path], now_ms: int) -> None:
        """Add files that were just renamed; for a name that is already waiting, the delay starts again."""
        self._due_ms.update(dict.fromkeys(paths, now_ms + self._delay_ms))

    def remove_due(self, now_ms: int) -> tuple[Path, ...]:
        """Delete the files whose delay has ended; files that do not exist any more are skipped.

        Returns:
            The deleted files.

        Raises:
            OSError: an operation on files failed.
        """
        due = tuple(path for path, due_ms in self._due_ms.items() if due_ms <= now_ms)
        for path in due:
            if self._files.exists(path):
                self._files.remove(path)
            del self._due_ms[path]
        return due


# Retention of a directory to which no other process writes


@dataclass(frozen=True, slots=True)
class PreparedRetention(Plan["PreparedRetention"]):
    """The planned retention of a partition directory.

    Attributes:
        path: of the directory.
        plan: the decision for each segment.
        high_watermark: the offset up to which the log counts as replicated.
        log_end_offset: the offset that the next record gets.
        steps: the file changes, in order.
    """

    path: Path
    plan: RetentionPlan
    high_watermark: int
    log_end_offset: int
    steps: tuple[FileStep, ...]


def prepare_retention(
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int | None = None,
    directory: LogDirectory | None = None,
    remote: KnowsTiered | None = None,
) -> PreparedRetention:
    """Plan the retention of a partition directory, including its file changes. No file is changed.

    The log start offset and the high watermark are those of the checkpoints; if no high watermark is checkpointed, the
    whole log counts as replicated.

    Args:
        path: of the partition directory.
        config: the settings of the log.
        now_ms: the time, in milliseconds since 1970; by default the current time.
        directory: the log directory; the directory above by default.
        remote: knows what a remote store holds of a tiered log; without it no segment is removed from such a log that
            consumers may still read.

    Raises:
        UsageError: a path is not a directory or cannot be read, there is no segment, the log has to be recovered
            first, the store does not answer, or the log may be tiered and `config` does not say whether it is.
        FormatError: a log cannot be walked to its end, so its age is unknown.
    """
    directory = directory or log_directory_above(path)
    listing = list_partition(path)
    listing.require_settled()
    with raised_refusals(), opened_segments(listing) as segments:
        rows = [retained_segment(segment) for segment in segments]
    key, end = listing.topic_partition, rows[-1].next_offset
    config = tiered_or_not(config, listing, directory)
    known = directory.log_start_offsets.get(key, 0)
    start = known if config.remote_storage_enable else max(known, listing.base_offsets[0])  # as a broker loads the log
    mark = max(min(directory.high_watermarks.get(key, end), end), start)  # a broker that loads the log raises it
    plan = plan_retention(
        rows,
        config,
        now_ms=system_clock() if now_ms is None else now_ms,
        log_start_offset=start,
        high_watermark=mark,
        copies=remote.copies(listing, end) if remote is not None and is_copied(config) else None,
    )
    steps = tuple(retention_steps(listing, directory, plan, end, config))
    return PreparedRetention(Path(path), plan, mark, end, steps)


def retained_segment(segment: LogSegment) -> RetainedSegment:
    """Return the values of a segment that retention needs, from its log (SEG-RET-003, SEG-RET-004).

    Raises:
        FormatError: the log cannot be walked to its end.
    """
    if segment.damage is not None:
        raise copied(segment.damage)
    return RetainedSegment(
        segment.base_offset,
        segment.next_offset,
        segment.size,
        segment.largest_timestamp_ms,
        LOCAL_FILES.modified_ms(segment.paths.log),
    )


def retain_partition(  # noqa: PLR0913 - how to retain
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int | None = None,
    directory: LogDirectory | None = None,
    files: Files = LOCAL_FILES,
    holds_lock: bool = False,
    remote: KnowsTiered | None = None,
    planned: PreparedRetention | None = None,
) -> PreparedRetention:
    """Remove the segments of a partition directory that retention does not keep.

    Their files are renamed to names that end in ``.deleted``; the next program that opens the log deletes them.

    Args:
        path: of the partition directory.
        config: the settings of the log.
        now_ms: the time, in milliseconds since 1970; by default the current time.
        directory: the log directory; the directory above by default.
        files: the file layer that changes go through.
        holds_lock: whether the caller already holds the lock of the log directory.
        remote: as for `prepare_retention`.
        planned: the plan to carry out; nothing is changed if the current plan differs.

    Returns:
        The plan that was carried out.

    Raises:
        UsageError: as for `prepare_retention`; or the current plan differs from `planned`; or another process holds the
            lock of the log directory.
        FormatError: a log cannot be walked to its end.
        WriteError: a file change failed; changes so far are safe, and a second call continues from there.
    """
    directory = directory or log_directory_above(path)
    with nullcontext() if holds_lock else writing(directory):
        prepared = prepare_retention(path, config, now_ms=now_ms, directory=directory, remote=remote)
        require_unchanged(planned, prepared, path)
        with (
            write_errors("retention"),
            opened_for_change(directory.path, Path(path), files, is_changed=bool(prepared.steps)),
        ):
            apply_steps(prepared.steps, files)
    return prepared


def retention_steps(
    listing: PartitionListing, directory: LogDirectory, plan: RetentionPlan, log_end_offset: int, config: LogConfig
) -> Iterator[FileStep]:
    """Yield the file changes of a plan, and that of leader epochs which begin below the log start offset.

    Args:
        listing: of the partition directory.
        directory: the log directory.
        plan: the plan.
        log_end_offset: of the log.
        config: the settings of the log.
    """
    if plan.rolls_first:
        rule = "SEG-RET-006" if len(plan.removed) == len(plan.fates) else "SEG-RET-017"
        yield from _new_segment(listing, log_end_offset, config, rule)
    is_moved, known = plan.removed and not is_copied(config), directory.log_start_offsets
    start = plan.log_start_offset if is_moved else known.get(listing.topic_partition, 0)
    if is_moved:
        yield from _log_start_steps(directory, listing.topic_partition, start)
    yield from _epoch_steps(listing, start)
    if plan.removed or plan.rolls_first:
        yield from removal_steps(LOCAL_FILES, listing.path, (segment.base_offset for segment in plan.removed))


def _new_segment(listing: PartitionListing, base_offset: int, config: LogConfig, rule: str) -> Iterator[FileStep]:
    """Yield the steps that create an empty segment, after a snapshot of the producer states (SEG-ROL-015)."""
    snapshot = listing.path / segment_file_name(base_offset, FileKind.PRODUCER_SNAPSHOT)
    if config.generation.has_producer_state and not snapshot.exists():
        with raised_refusals(), opened_segments(listing) as segments:
            states = producers_at_end(segments, listing.snapshots, base_offset)
        yield Replace(snapshot, states.snapshot(), "SEG-ROL-015")
    yield Replace(listing.path / segment_file_name(base_offset, FileKind.LOG), b"", rule)


def _log_start_steps(directory: LogDirectory, key: tuple[str, int], offset: int) -> Iterator[FileStep]:
    """Yield the step that writes the log start offset checkpoint, if there is a log directory (SEG-RET-012)."""
    if LOG_DIRECTORY_KINDS.isdisjoint(directory.listing.root_files):
        return
    path = directory.path / FileKind.LOG_START_OFFSET_CHECKPOINT.value
    offsets = read_offset_checkpoint(path)  # read again: other partitions may have changed it since the listing
    if offsets.get(key) != offset:
        offsets[key] = offset
        lines = (CheckpointedOffset(*each, offset) for each, offset in sorted(offsets.items()))
        yield Replace(path, encode_offset_checkpoint(lines), "SEG-RET-012")


def _epoch_steps(listing: PartitionListing, offset: int) -> Iterator[FileStep]:
    path = listing.path / FileKind.LEADER_EPOCH_CHECKPOINT.value
    epochs = LeaderEpochs(read_leader_epochs(path) or ())
    if epochs.start_at(offset):
        yield Replace(path, encode_leader_epoch_checkpoint(epochs.entries), "SEG-RET-011")
