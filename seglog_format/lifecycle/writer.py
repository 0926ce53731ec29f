"""Writing a partition: append, roll, flush, close (chapters 70 and 71).

Any number of threads may append to one log. One of them writes at a time, so that batches are whole and offsets dense;
those that wait for the disk share a flush.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from seglog_format.codec.build import build_batch
from seglog_format.codec.checkpoints import encode_leader_epoch_checkpoint, encode_partition_metadata
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import UsageError, WriteError
from seglog_format.lifecycle.active_segment import ActiveSegment
from seglog_format.lifecycle.append import Assignment, Entry, as_follower, as_leader, incoming
from seglog_format.lifecycle.config import LogConfig
from seglog_format.lifecycle.environment import Environment
from seglog_format.lifecycle.files import LocalFiles, replace_file, write_file
from seglog_format.lifecycle.leader_epochs import LeaderEpochs
from seglog_format.lifecycle.load import LogLoader
from seglog_format.lifecycle.producer_state import Origin, ProducerStates
from seglog_format.lifecycle.recovery_apply import RecoveryOptions, recover_partition
from seglog_format.lifecycle.roll import RollReason, jitter_ms, new_base_offset, roll_reason
from seglog_format.lifecycle.root_files import CheckpointedState, RootFiles
from seglog_format.model import RecordBatch, RecordBatchHeader
from seglog_format.names import FileKind, parse_partition_directory, segment_file_name

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from seglog_format.lifecycle.active_segment import SegmentStart
    from seglog_format.model import Buffer, Record

Acks: TypeAlias = Literal["written", "flushed"]
"""When an append returns: once its bytes are written, or once they are on the disk."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an append.

    Attributes:
        first_offset: of its first record.
        last_offset: of its last record.
        rolled: why a new segment was begun for it; None where none was.
        is_duplicate: the log had the batch already, at these offsets, and nothing was written.
    """

    first_offset: int
    last_offset: int
    rolled: RollReason | None = None
    is_duplicate: bool = False


class PartitionWriter:
    """Appends to the log in one partition directory, which is made if it is not there.

    Use it as a context manager. By itself it also takes care of the log directory around it: the lock, the
    checkpoints and the clean-shutdown file. `LogWriter` does that for several partitions at once. A log that was not
    closed cleanly is recovered first (chapter 71).

    Args:
        path: of the partition directory, named ``<topic>-<partition>``.
        config: settings of the log.
        leader_epoch: under which `append` writes; 0 or more.
        topic_id: 22 characters of base64url for `partition.metadata`; None writes none.
        environment: files, time, chance and threads.
        root: the log directory's files, if somebody else takes care of them.

    Raises:
        UsageError: the name is no partition directory's, somebody else writes here, or files are left of a
            replacement that did not end.
        WriteError: a file could not be made.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        leader_epoch: int = 0,
        topic_id: str | None = None,
        environment: Environment | None = None,
        root: RootFiles | None = None,
    ) -> None:
        self.path = Path(path)
        self.config = config or LogConfig()
        self.leader_epoch = leader_epoch
        self.environment = environment or Environment()
        self.key = parse_partition_directory(self.path.name).topic_partition
        self._files = self.environment.files
        self._lock = self.environment.make_condition()
        self._commit = self.environment.make_condition()
        self._failure: OSError | None = None
        self._is_flushing = False
        self._is_closed = False
        self._retired: list[ActiveSegment] = []
        self._last_flush_ms = self.environment.clock()
        self._own_root = RootFiles(self.path.parent, self.environment) if root is None else None
        self._root = root or self._own_root
        assert self._root is not None
        self._log_start_offset = self._root.log_start_offsets.get(self.key, 0)
        try:
            with self._failing():
                self._open(self._root, topic_id)
        except BaseException:
            self._release()
            raise

    def _open(self, root: RootFiles, topic_id: str | None) -> None:
        is_new = not self._files.exists(self.path)
        if is_new:
            self._files.make_directory(self.path)
            self._files.fsync_directory(self.path.parent)
        has_state = self.config.generation.has_producer_state
        loader = LogLoader(self._files, self.path)
        if not is_new and not root.was_clean:
            self._recover()
        loaded = None if is_new else loader.load(self._log_start_offset, has_producer_state=has_state)
        if loaded is None:
            self._begin()
        else:
            self._producers, self._epochs = loaded.producers, loaded.epochs
            self._first_base_offset, self._end_offset = loaded.base_offsets[0], loaded.end_offset
            self._active = self._segment(loaded.base_offsets[-1], loaded.start)
        self._recovery_point = self._end_offset
        if topic_id is not None and is_new:
            replace_file(self._files, self._side(FileKind.PARTITION_METADATA), encode_partition_metadata(topic_id))

    def _recover(self) -> None:
        """What was not closed cleanly is made whole before it is written to, as a broker does when it starts."""
        if not isinstance(self._files, LocalFiles):
            msg = f"{self.path} was not closed cleanly, and recovery reads local files only"
            raise UsageError(msg)
        interval, generation = self.config.index_interval_bytes, self.config.generation
        options = RecoveryOptions(interval_bytes=interval, generation=generation)
        recover_partition(self.path, options=options, files=self._files, holds_lock=True)
        self._sync_all()

    def _sync_all(self) -> None:
        """What is readable after a crash of the process only need not be on the disk yet."""
        for name in self._files.names(self.path):
            handle = self._files.open_append(self.path / name)
            try:
                handle.fsync()
            finally:
                handle.close()
        self._files.fsync_directory(self.path)

    def _begin(self) -> None:
        """A log without segments begins at its log start offset."""
        start = self._log_start_offset
        self._producers, self._epochs = ProducerStates(end_offset=start), LeaderEpochs()
        self._first_base_offset = self._end_offset = start
        self._active = self._segment(start, None)
        self._active.ensure_indexes()
        if self.config.generation.has_producer_state:
            write_file(self._files, self._side(FileKind.LEADER_EPOCH_CHECKPOINT), b"")

    def _segment(self, base_offset: int, start: SegmentStart | None) -> ActiveSegment:
        segment = ActiveSegment(
            self._files,
            self.path,
            base_offset,
            self.config,
            opened_ms=self.environment.clock(),
            jitter_ms=jitter_ms(self.config, self.environment.random()),
            start=start,
        )
        if not self.config.generation.has_lazy_indexes:
            segment.ensure_indexes()
        return segment

    def _side(self, kind: FileKind) -> Path:
        return self.path / kind.value

    # State

    @property
    def log_start_offset(self) -> int:
        """Where the log begins for its readers."""
        return max(self._log_start_offset, self._first_base_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._end_offset

    @property
    def recovery_point(self) -> int:
        """Everything below is on the disk."""
        return self._recovery_point

    @property
    def last_stable_offset(self) -> int:
        """Everything below has its fate decided: committed, aborted, or in no transaction."""
        unstable = self._producers.first_unstable_offset
        return self._end_offset if unstable is None else unstable

    @property
    def has_failed(self) -> bool:
        """Writing failed: nothing more is taken, and the log has to be recovered."""
        return self._failure is not None

    @property
    def checkpointed_state(self) -> CheckpointedState:
        """What the checkpoints of the log directory say of this log."""
        return CheckpointedState(
            self.key, self._recovery_point, self.log_start_offset, self._first_base_offset, self._end_offset
        )

    # Append

    def append(
        self,
        records: Buffer | RecordBatch | Sequence[Record],
        *,
        origin: Origin = Origin.CLIENT,
        acks: Acks = "written",
    ) -> Appended:
        """Append as a leader: check, give offsets, write (SEG-APP-001).

        Args:
            records: a batch of magic 2 with base offset 0, messages of magic 0 or 1, or records to make a batch of.
            origin: a producer, or the broker itself.
            acks: when to return. Threads that wait for the disk at the same time share a flush (SEG-FLS-003).

        Returns:
            The offsets that the records got.

        Raises:
            FormatError: the bytes are damaged.
            UsageError: they may not be appended; the text names the requirement.
            WriteError: writing failed, now or before.
        """
        data = _encoded(records)
        with self._lock:
            self._check_open()
            given = Assignment(self._end_offset, self.leader_epoch, self.environment.clock(), origin)
            entries = as_leader(data, self.config, given)
            appended = self._duplicate(entries[0], origin) or self._append(entries, origin)
        self._flush_if_asked(appended, acks)
        return appended

    def append_as_follower(
        self, data: Buffer, *, leader_epoch: int | None = None, acks: Acks = "written"
    ) -> Appended | None:
        """Append what a leader wrote, as it is; offsets may have gaps (SEG-APP-002).

        Args:
            data: entries in order.
            leader_epoch: under which they were fetched; batches of a later one are left out. None takes all.
            acks: when to return.

        Returns:
            First and last offset; None where nothing was to be taken.

        Raises:
            FormatError: the bytes are damaged.
            UsageError: offsets do not increase from the log end offset on.
            WriteError: writing failed, now or before.
        """
        with self._lock:
            self._check_open()
            entries = as_follower(data, self.config, next_offset=self._end_offset, leader_epoch=leader_epoch)
            appended = self._append(entries, Origin.REPLICATION) if entries else None
        if appended is not None:
            self._flush_if_asked(appended, acks)
        return appended

    def become_leader(self, leader_epoch: int) -> None:
        """Append under another leader epoch from here on, and note where it begins (SEG-APP-016).

        Brokers do so when they are elected, before anything is appended.

        Args:
            leader_epoch: 0 or more.

        Raises:
            WriteError: writing failed, now or before.
        """
        with self._lock:
            self._check_open()
            self.leader_epoch = leader_epoch
            with self._failing():
                if self._epochs.assign(leader_epoch, self._end_offset):
                    self._write_epochs()

    def _duplicate(self, entry: Entry, origin: Origin) -> Appended | None:
        """Where the log has a batch already that a producer sends again (SEG-APP-008)."""
        if origin is not Origin.CLIENT or not isinstance(entry.header, RecordBatchHeader):
            return None
        known = self._producers.duplicate_of(entry.header)
        return Appended(known.first_offset, known.last_offset, is_duplicate=True) if known else None

    def _append(self, entries: Sequence[Entry], origin: Origin) -> Appended:
        headers = [(e.header, e.marker) for e in entries if isinstance(e.header, RecordBatchHeader)]
        changes = self._producers.changes(headers, origin)
        end_offset = entries[-1].last_offset + 1
        with self._failing():
            reason = self._roll_if_due(entries)
            self._assign_epochs(entries)
            self._active.append(entries)
            self._active.add_aborted(self._producers.apply(changes, end_offset))
        self._end_offset = end_offset
        return Appended(entries[0].first_offset, entries[-1].last_offset, reason)

    def _assign_epochs(self, entries: Sequence[Entry]) -> None:
        changed = False
        for entry in entries:
            header = entry.header
            if isinstance(header, RecordBatchHeader):
                changed |= self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            else:
                changed |= self._epochs.clear()
        if changed:
            self._write_epochs()

    def _write_epochs(self) -> None:
        data = encode_leader_epoch_checkpoint(self._epochs.entries)
        replace_file(self._files, self._side(FileKind.LEADER_EPOCH_CHECKPOINT), data)

    # Roll

    def roll(self) -> int:
        """Begin a new segment; where the active one is empty, it is made anew.

        Returns:
            The new segment's base offset.

        Raises:
            WriteError: writing failed, now or before.
        """
        with self._lock:
            self._check_open()
            with self._failing():
                self._roll(self._end_offset)
            return self._active.base_offset

    def _roll_if_due(self, entries: Sequence[Entry]) -> RollReason | None:
        coming = incoming(entries)
        reason = roll_reason(self._active.state, coming, self.config, self.environment.clock())
        if reason is not None:
            self._roll(new_base_offset(self._end_offset, coming, self.config.generation))
        return reason

    def _roll(self, base_offset: int) -> None:
        if base_offset == self._active.base_offset:
            self._active.remove()
        else:
            self._retire(self._active)
        self._active = self._segment(base_offset, None)
        self._producers.end_offset = base_offset
        self._recovery_point = base_offset
        self._take_snapshot()

    def _retire(self, segment: ActiveSegment) -> None:
        """Put a segment on the disk as a whole before another one follows it (SEG-FLS-009).

        Otherwise a power cut may keep the next one and take entries off the end of this one. Nobody would notice,
        since a log may have gaps between segments.
        """
        segment.seal()
        self._sync(segment)
        self._retired.append(segment)
        with self._commit:
            if not self._is_flushing:  # else the thread that syncs its files lets them go
                self._close_retired()

    def _close_retired(self) -> None:
        for segment in self._retired:
            segment.close()
        self._retired.clear()

    def _take_snapshot(self) -> None:
        """Store what is known of the producers, unless the newest snapshot goes as far (SEG-ROL-015)."""
        states = self._producers
        if self.config.generation.has_producer_state and states.end_offset > states.snapshot_offset:
            name = segment_file_name(states.end_offset, FileKind.PRODUCER_SNAPSHOT)
            write_file(self._files, self.path / name, states.snapshot())
            states.snapshot_offset = states.end_offset

    # Flush

    def flush(self) -> int:
        """Wait until everything that is appended by now is on the disk (SEG-FLS-002).

        Returns:
            The recovery point: everything below is on the disk.

        Raises:
            WriteError: writing failed, now or before.
        """
        self._flush_below(self._end_offset)
        return self._recovery_point

    def flush_if_due(self) -> None:
        """Flush if `flush.messages` or `flush.ms` ask for it (SEG-FLS-001).

        Raises:
            WriteError: writing failed, now or before.
        """
        unflushed = self._end_offset - self._recovery_point
        waited_ms = self.environment.clock() - self._last_flush_ms
        if unflushed and (unflushed >= self.config.flush_messages or waited_ms >= self.config.flush_ms):
            self.flush()

    def _flush_if_asked(self, appended: Appended, acks: Acks) -> None:
        if acks == "flushed":
            self._flush_below(appended.last_offset + 1)
        self.flush_if_due()

    def _flush_below(self, offset: int) -> None:
        """Wait for a flush that reaches an offset; do it, unless another thread is at it (SEG-FLS-003)."""
        while True:
            with self._commit:
                while self._is_flushing and self._recovery_point < offset:
                    self._commit.wait()
                self._check_failure()
                if self._recovery_point >= offset:
                    return
                self._is_flushing = True
            try:
                self._flush_now()
            finally:
                with self._commit:
                    self._is_flushing = False
                    self._commit.notify_all()

    def _flush_now(self) -> None:
        """Sync files without keeping appends from going on; only one thread at a time comes here."""
        with self._lock:
            end_offset, segment = self._end_offset, self._active
        with self._failing():
            self._sync(segment)
        with self._lock:
            self._close_retired()
            self._recovery_point = max(self._recovery_point, end_offset)
            self._last_flush_ms = self.environment.clock()

    def _sync(self, segment: ActiveSegment) -> None:
        """Return when a segment's files, and their names, are on the disk."""
        name_count = segment.name_count
        segment.fsync()
        if segment.synced_name_count < name_count:
            self._files.fsync_directory(self.path)
            segment.synced_name_count = name_count

    # Failure and end

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Nothing is taken any more after an operation on files has failed (SEG-FLS-008)."""
        try:
            yield
        except OSError as error:
            self._failure = self._failure or error
            self._check_failure()

    def _check_failure(self) -> None:
        if self._failure is not None:
            msg = f"{self.path}: {self._failure.strerror or self._failure}; nothing more is written to this log"
            raise WriteError(msg) from self._failure

    def _check_open(self) -> None:
        self._check_failure()
        if self._is_closed:
            msg = f"{self.path} is closed"
            raise UsageError(msg)

    def close(self) -> None:
        """Flush, store the producers, trim the files, and say that all is well (SEG-FLS-004).

        After a failure the files are only let go. Closing again does nothing.

        Raises:
            WriteError: something of that failed; the log is then as if the process had ended.
        """
        if self._is_closed:
            return
        try:
            if not self.has_failed:
                self.flush()
                self._seal()
        finally:
            self._is_closed = True
            self._close_root()

    def _seal(self) -> None:
        with self._lock, self._failing():
            self._active.ensure_indexes()
            self._take_snapshot()
            self._active.seal()
            self._active.fsync()
            self._files.fsync_directory(self.path)

    def _close_root(self) -> None:
        try:
            if self._own_root is not None and not self.has_failed:
                with self._failing():
                    self._own_root.write_checkpoints([self.checkpointed_state])
                    if self._own_root.may_be_clean([self.key]):
                        self._own_root.mark_clean()
        finally:
            self._release()

    def _release(self) -> None:
        for segment in [*self._retired, *([self._active] if hasattr(self, "_active") else [])]:
            segment.close()
        if self._own_root is not None:
            self._own_root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _encoded(records: Buffer | RecordBatch | Sequence[Record]) -> Buffer:
    if isinstance(records, bytes | bytearray | memoryview):
        return records
    return encode_batch(records if isinstance(records, RecordBatch) else build_batch(records))
