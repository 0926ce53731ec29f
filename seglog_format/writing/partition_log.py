"""Writing to the log in one partition directory: open, append, roll, close; not thread-safe (chapter 70)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.cleaning.deletion import DeletedFiles, removal_steps
from seglog_format.cleaning.retention import plan_retention
from seglog_format.codec.checkpoints import encode_leader_epoch_checkpoint, encode_partition_metadata
from seglog_format.errors import UsageError
from seglog_format.model import NO_PARTITION_LEADER_EPOCH, RecordBatchHeader
from seglog_format.names import FileKind, parse_file_name, parse_partition_directory, segment_file_name
from seglog_format.recovery.apply import RecoveryOptions, recover_partition
from seglog_format.state.producer_state import LeaderEpochs, Origin, ProducerStates
from seglog_format.storage.files import Rename, replace_file, write_file
from seglog_format.writing.active_segment import ActiveSegment
from seglog_format.writing.append import Entry, RollReason, incoming, jitter_ms, new_base_offset, roll_reason
from seglog_format.writing.loaded_log import ClosedSegments, load_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_format.cleaning.retention import RetentionPlan
    from seglog_format.state.config import LogConfig
    from seglog_format.state.root_files import RootFiles
    from seglog_format.storage.environment import Environment
    from seglog_format.writing.active_segment import SegmentStart


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append.

    Attributes:
        first_offset: offset of the first record.
        last_offset: offset of the last record.
        rolled: why a new segment was begun for the append; None if none was begun.
        is_duplicate: whether the log already had the batch at these offsets, so nothing was written.
    """

    first_offset: int
    last_offset: int
    rolled: RollReason | None = None
    is_duplicate: bool = False


class PartitionLog:
    """A log that is open for writing. Every method may raise `OSError`; the log cannot be used after that.

    Args:
        path: of the partition directory; it is created if it is missing.
        config: settings of the log.
        environment: files, clock, random numbers.
        log_start_offset: as checkpointed, or 0.
        was_clean: whether the log directory was closed cleanly; if not, the log is recovered first.

    Attributes:
        end_offset: the offset that the next record gets.
        first_base_offset: of its first segment.
        synced_offset: everything below is on disk.
        active: the active segment.
        retired: closed segments whose files are still open.
        is_new: whether the directory was created.
        newest_epoch: the newest leader epoch in the checkpoint or in a batch; -1 if there is none.

    Raises:
        UsageError: files of an interrupted replacement are left.
        WriteError: recovery failed.
    """

    def __init__(
        self, path: Path, config: LogConfig, environment: Environment, *, log_start_offset: int, was_clean: bool
    ) -> None:
        self.path = path
        self.config = config
        self.retired: list[ActiveSegment] = []
        self._environment = environment
        self._files = environment.files
        self._start_offset = log_start_offset
        self._deleted = DeletedFiles(environment.files, config.file_delete_delay_ms)
        self.is_new = not self._files.exists(path)
        if self.is_new:
            self._files.make_directory(path)
            self._files.fsync_directory(path.parent)
        elif not was_clean:
            self._recover()
        has_producer_state = config.generation.has_producer_state
        loaded = load_log(self._files, path, log_start_offset, has_producer_state=has_producer_state)
        if loaded is None:
            self._begin(log_start_offset)
        else:
            self._producers, self._epochs = loaded.producers, loaded.epochs
            self.newest_epoch = loaded.newest_epoch
            if loaded.has_other_epochs:
                self._write_epochs()
            self.first_base_offset, self.end_offset = loaded.base_offsets[0], loaded.end_offset
            self._closed = ClosedSegments(self._files, path, loaded.base_offsets)
            self.active = self._segment(loaded.base_offsets[-1], loaded.start)
        self.synced_offset = self.end_offset

    def _recover(self) -> None:
        """Recover a log that was not closed cleanly, as a broker does when it starts."""
        if not self._files.is_local:
            msg = f"{self.path} was not closed cleanly, and is not on a local disk: recover it first"
            raise UsageError(msg)
        interval, generation = self.config.index_interval_bytes, self.config.generation
        options = RecoveryOptions(interval_bytes=interval, generation=generation)
        done = recover_partition(self.path, options=options, files=self._files, holds_lock=True)
        if done.failure is not None:
            raise UsageError(str(done.failure))
        self._sync_all()

    def _sync_all(self) -> None:
        """Sync all files: after a crash of the process, files may be readable but not yet on disk."""
        for name in self._files.names(self.path):
            if parse_file_name(name) is not None:
                handle = self._files.open_append(self.path / name)
                try:
                    handle.fsync()
                finally:
                    handle.close()
        self._files.fsync_directory(self.path)

    def _begin(self, start: int) -> None:
        """Create the first segment at the log start offset if there is none."""
        self._producers, self._epochs = ProducerStates(end_offset=start), LeaderEpochs()
        self.newest_epoch = NO_PARTITION_LEADER_EPOCH
        self.first_base_offset = self.end_offset = start
        self._closed = ClosedSegments(self._files, self.path, ())
        if self.config.generation.has_producer_state:
            write_file(self._files, self._partition_file(FileKind.LEADER_EPOCH_CHECKPOINT), b"")
        self.active = self._segment(start, None)
        self.active.ensure_indexes()

    def _segment(self, base_offset: int, start: SegmentStart | None) -> ActiveSegment:
        segment = ActiveSegment(
            self._files,
            self.path,
            base_offset,
            self.config,
            opened_ms=self._environment.clock(),
            jitter_ms=jitter_ms(self.config, self._environment.random()),
            start=start,
        )
        if not self.config.generation.has_lazy_indexes:
            segment.ensure_indexes()
        return segment

    def _partition_file(self, kind: FileKind) -> Path:
        return self.path / kind.value

    def name_topic(self, topic_id: str) -> None:
        """Write the topic id (SEG-CKP-009)."""
        replace_file(
            self._files, self._partition_file(FileKind.PARTITION_METADATA), encode_partition_metadata(topic_id)
        )

    @property
    def log_start_offset(self) -> int:
        """First offset that consumers may read."""
        return max(self._start_offset, self.first_base_offset)

    @property
    def last_stable_offset(self) -> int:
        """First offset of any open transaction, else the log end offset."""
        unstable = self._producers.first_unstable_offset
        return self.end_offset if unstable is None else unstable

    def duplicate_of(self, entry: Entry, origin: Origin) -> Appended | None:
        """Return the earlier append of a batch that a producer sends again, if there is one (SEG-APP-008)."""
        if origin is not Origin.CLIENT or not isinstance(entry.header, RecordBatchHeader):
            return None
        known = self._producers.duplicate_of(entry.header)
        return Appended(known.first_offset, known.last_offset, is_duplicate=True) if known else None

    def append(self, entries: Sequence[Entry], origin: Origin) -> Appended:
        """Append entries, in a new segment if one is due.

        Raises:
            UsageError: the state of a producer does not allow the append; nothing has changed.
        """
        headers = [(e.header, e.marker) for e in entries if isinstance(e.header, RecordBatchHeader)]
        changes = self._producers.changes(headers, origin)
        end_offset = entries[-1].last_offset + 1
        reason = self._roll_if_due(entries)
        self._assign_epochs(entries)
        self.active.append(entries)
        self.active.add_aborted(self._producers.apply(changes, end_offset))
        self.end_offset = end_offset
        return Appended(entries[0].first_offset, entries[-1].last_offset, reason)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record that a leader epoch begins at the log end offset (SEG-APP-016)."""
        self.newest_epoch = max(self.newest_epoch, leader_epoch)
        if self._epochs.assign(leader_epoch, self.end_offset):
            self._write_epochs()

    def _assign_epochs(self, entries: Sequence[Entry]) -> None:
        changed = False
        for entry in entries:
            header = entry.header
            if isinstance(header, RecordBatchHeader):
                self.newest_epoch = max(self.newest_epoch, header.partition_leader_epoch)
                changed |= self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            else:
                changed |= self._epochs.clear()
        if changed:
            self._write_epochs()

    def _write_epochs(self) -> None:
        data = encode_leader_epoch_checkpoint(self._epochs.entries)
        replace_file(self._files, self._partition_file(FileKind.LEADER_EPOCH_CHECKPOINT), data)

    def _roll_if_due(self, entries: Sequence[Entry]) -> RollReason | None:
        summary = incoming(entries)
        reason = roll_reason(self.active.state, summary, self.config, self._environment.clock())
        reason = reason or self.active.lacks_room_for(entries)
        if reason is not None:
            self.roll(new_base_offset(self.end_offset, summary, self.config.generation))
        return reason

    def roll(self, base_offset: int) -> None:
        """Begin a segment at the log end offset or above; if the active segment begins there, create it again."""
        if base_offset == self.active.base_offset:
            self.active.close()
        else:
            self._retire(self.active)
        self.active = self._segment(base_offset, None)
        self._producers.end_offset = base_offset
        self.synced_offset = base_offset
        self._take_snapshot()

    def _retire(self, segment: ActiveSegment) -> None:
        """Sync a segment completely before the next segment is created (SEG-FLS-009).

        Otherwise a power cut may keep the next segment, but lose entries of this one. No reader would notice that,
        because a log may have gaps between segments.
        """
        segment.seal()
        self.sync(segment)
        self.retired.append(segment)
        self._closed.add(segment.base_offset, self.end_offset)

    def close_retired(self) -> None:
        """Close the files of retired segments; they need no further sync."""
        for segment in self.retired:
            segment.close()
        self.retired.clear()

    def _take_snapshot(self) -> None:
        """Store the producer states, unless the newest snapshot already has the same end offset (SEG-ROL-015)."""
        states = self._producers
        if self.config.generation.has_producer_state and states.end_offset > states.snapshot_offset:
            name = segment_file_name(states.end_offset, FileKind.PRODUCER_SNAPSHOT)
            write_file(self._files, self.path / name, states.snapshot())
            states.snapshot_offset = states.end_offset

    def retain(self, checkpoint: Callable[[], None]) -> RetentionPlan:
        """Remove the segments that retention does not keep; the whole log counts as replicated.

        Args:
            checkpoint: stores the log start offset on disk before anything is removed (SEG-RET-012).

        Raises:
            FormatError: a segment has no time index, and its log cannot be read to its end.
        """
        now_ms = self._environment.clock()
        segments = [*self._closed.segments(), self.active.retained(self.end_offset)]
        plan = plan_retention(segments, self.config, now_ms=now_ms, log_start_offset=self.log_start_offset)
        if plan.removed:
            if plan.rolls_first:
                self.roll(self.end_offset)
            self._start_offset = plan.log_start_offset
            checkpoint()
            self._deleted.add(self._rename(plan), now_ms)
        return plan

    def _rename(self, plan: RetentionPlan) -> list[Path]:
        """Rename the files of the segments that a plan removes."""
        if self._epochs.start_at(plan.log_start_offset):
            self._write_epochs()
        renamed = []
        for step in removal_steps(self._files, self.path, [segment.base_offset for segment in plan.removed]):
            step.apply(self._files)
            if isinstance(step, Rename):
                renamed.append(step.target)
        for segment in plan.removed:
            self._closed.remove(segment.base_offset)
        self.first_base_offset = next(iter(self._closed.base_offsets), self.active.base_offset)
        return renamed

    def remove_deleted(self) -> None:
        """Delete files that were renamed for removal, if their delay has ended."""
        self._deleted.remove_due(self._environment.clock())

    def sync(self, segment: ActiveSegment) -> None:
        """Sync a segment's files and their names to disk (SEG-FLS-002, SEG-FLS-012)."""
        name_count = segment.name_count
        segment.fsync()
        if segment.synced_name_count < name_count:
            self._files.fsync_directory(self.path)
            segment.synced_name_count = name_count

    def seal(self) -> None:
        """Store the producer states, and close the active segment as a roll does (SEG-FLS-004, 015, 016)."""
        self.active.ensure_indexes()
        self._take_snapshot()
        self.active.seal()
        self.active.fsync()
        self._files.fsync_directory(self.path)

    def close(self) -> None:
        """Close all files without writing."""
        self.close_retired()
        self.active.close()


def open_log(
    path: Path, config: LogConfig, environment: Environment, root: RootFiles, topic_id: str | None
) -> PartitionLog:
    """Open the log of a partition for writing, with the state from its log directory.

    Args:
        path: of the partition directory; it is created if it is missing.
        config: settings of the log.
        environment: files, clock, random numbers.
        root: root files of the log directory.
        topic_id: for `partition.metadata` of a new partition; None to write no such file.

    Raises:
        UsageError: files of an interrupted replacement are left.
        OSError: an operation on files failed.
    """
    start_offset = root.log_start_offsets.get(parse_partition_directory(path.name).topic_partition, 0)
    log = PartitionLog(path, config, environment, log_start_offset=start_offset, was_clean=root.was_clean)
    if topic_id is not None and log.is_new:
        log.name_topic(topic_id)
    return log
