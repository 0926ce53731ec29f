"""The writer of a partition: append, roll, flush, close (chapters 70 and 71).

The writer is thread-safe. One thread writes at a time, so batches are never interleaved and offsets have no gaps.
Threads that wait for the disk share a flush.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from seglog_format.errors import UsageError, WriteError
from seglog_format.model import NO_PARTITION_LEADER_EPOCH, Record, RecordBatch
from seglog_format.names import require_written_directory
from seglog_format.state.config import LogConfig
from seglog_format.state.producer_state import Origin, require_newest
from seglog_format.state.root_files import CheckpointedState, RootFiles
from seglog_format.storage.byte_source import Buffer, Closing
from seglog_format.storage.environment import Environment
from seglog_format.writing.append import Assignment, Checked, as_follower, as_leader, check_as_leader, encoded
from seglog_format.writing.partition_log import Appended, open_log, require_not_tiered

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.cleaning.retention import RetentionPlan
    from seglog_format.storage.environment import Condition
    from seglog_format.writing.append import Entry


# -- the guard that stops all writing to a log after a failure, or after it was closed (chapter 71) --------------------


class FailureGuard:
    """Stores the first failed file operation; nothing is written after it (SEG-FLS-008).

    Args:
        path: of the partition directory, for error messages.

    Attributes:
        is_closed: whether the log is closed.
    """

    def __init__(self, path: Path) -> None:
        self.is_closed = False
        self._path = path
        self._failure: OSError | None = None

    @property
    def has_failed(self) -> bool:
        """Return whether an operation failed."""
        return self._failure is not None

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Refuse all further writes if a file operation in this block fails (SEG-FLS-008).

        Raises:
            WriteError: an operation failed.
        """
        try:
            yield
        except OSError as error:
            self._failure = self._failure or error
            self.check()

    def check(self) -> None:
        """Raise an error after a failure.

        Raises:
            WriteError: an earlier operation failed.
        """
        if self._failure is not None:
            msg = f"{self._path}: {self._failure.strerror or self._failure}; nothing more is written to this log"
            raise WriteError(msg) from self._failure

    def check_open(self) -> None:
        """Raise an error after a failure, or if the log is closed.

        Raises:
            UsageError: the log is closed.
            WriteError: an earlier operation failed.
        """
        self.check()
        if self.is_closed:
            msg = f"{self._path} is closed"
            raise UsageError(msg)


# -- flushes shared by threads -----------------------------------------------------------------------------------------


class SharedFlush:
    """Flushes of one log, one at a time (SEG-FLS-003).

    Args:
        condition: protects the state of this object; it is not held during a flush.
        flush: flushes everything that was appended before the call.
        reached: returns the offset up to which the log is flushed.
        check: raises an error if the log has failed.
    """

    def __init__(
        self, condition: Condition, *, flush: Callable[[], None], reached: Callable[[], int], check: Callable[[], None]
    ) -> None:
        self._condition = condition
        self._flush = flush
        self._reached = reached
        self._check = check
        self._is_busy = False

    def wait_for(self, offset: int) -> None:
        """Wait until everything below an offset is on disk; flush, unless another thread does.

        Raises:
            WriteError: the log has failed.
        """
        while self._is_my_turn(offset):
            try:
                self._flush()
            finally:
                with self._condition:
                    self._is_busy = False
                    self._condition.notify_all()

    def _is_my_turn(self, offset: int) -> bool:
        """Wait; return True if this thread has to flush, False if nothing is left to flush."""
        with self._condition:
            while self._is_busy and self._reached() < offset:
                self._condition.wait()
            self._check()
            if self._reached() >= offset:
                return False
            self._is_busy = True
            return True

    def unless_busy(self, action: Callable[[], None]) -> None:
        """Run an action that must not run during a flush; skip it if a flush is running, which does it at its end."""
        with self._condition:
            if not self._is_busy:
                action()


# -- the writer of a partition -----------------------------------------------------------------------------------------


Acks: TypeAlias = Literal["written", "flushed"]
"""When an append returns: after its bytes are written, or after they are on disk."""


class PartitionWriter(Closing):
    """Appends to the log in one partition directory, which is created if it is missing.

    Use it as a context manager. Unless the caller passes `root`, it also manages the files of the log directory: the
    lock, the checkpoints and the clean-shutdown file. `LogWriter` does that for several partitions. A log that was not
    closed cleanly is recovered first (chapter 71).

    Args:
        path: of the partition directory, named ``<topic>-<partition>`` (SEG-PDR-001, SEG-PDR-002).
        config: settings of the log.
        leader_epoch: the leader epoch of batches that `append` writes; by default the newest in the log (SEG-APP-017).
        topic_id: 22 characters of base64url for `partition.metadata`; None to write no such file.
        environment: files, clock, random numbers and threads.
        root: the files of the log directory, if the caller manages them.

    Raises:
        UsageError: the name is not that of a partition directory, another process writes here, files of an interrupted
            replacement are left, the log has a newer leader epoch, or it is tiered.
        WriteError: a file could not be created.

    Examples:
        >>> from seglog_format import PartitionWriter, new_record
        >>> with PartitionWriter("written/orders-0") as writer:
        ...     appended = writer.append([new_record(key=b"alice", value=b"12 apples")], acks="flushed")
        >>> appended.first_offset, writer.log_end_offset
        (0, 1)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        leader_epoch: int | None = None,
        topic_id: str | None = None,
        environment: Environment | None = None,
        root: RootFiles | None = None,
    ) -> None:
        self.path = Path(path)
        self.config = config or LogConfig()
        self._leader_epoch = leader_epoch
        self.environment = environment or Environment()
        self.key = require_written_directory(self.path.name)
        require_newest(leader_epoch or 0, NO_PARTITION_LEADER_EPOCH, self.path)
        self._guard = FailureGuard(self.path)
        self._lock = self.environment.make_condition()
        self._flushes = SharedFlush(
            self.environment.make_condition(),
            flush=self._flush_now,
            reached=lambda: self._log.synced_offset,
            check=self._guard.check,
        )
        self._last_flush_ms = self.environment.clock()
        with self._guard.failing():
            require_not_tiered(self.environment.files, self.path, self.config)
            self._root = root or RootFiles(self.path.parent, self.environment)
        self._own_root = self._root if root is None else None
        try:
            with self._guard.failing():
                self._log = open_log(self.path, self.config, self.environment, self._root, topic_id)
        except BaseException:
            if self._own_root is not None:
                self._own_root.close()
            raise
        try:
            require_newest(self.leader_epoch, self._log.newest_epoch, self.path)
        except UsageError:
            self.close()
            raise

    # State

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of batches that `append` writes."""
        return max(self._log.newest_epoch, 0) if self._leader_epoch is None else self._leader_epoch

    @property
    def log_start_offset(self) -> int:
        """First offset that consumers may read."""
        return self._log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log.end_offset

    @property
    def recovery_point(self) -> int:
        """First offset that may not be on disk yet."""
        return self._log.synced_offset

    @property
    def last_stable_offset(self) -> int:
        """First offset of any open transaction, else the log end offset."""
        return self._log.last_stable_offset

    @property
    def has_failed(self) -> bool:
        """Return whether writing failed: the writer accepts no more appends, and the log needs recovery."""
        return self._guard.has_failed

    @property
    def is_open(self) -> bool:
        """Return whether the writer is not closed, has not failed, and was opened by this process."""
        return self._root.is_own_process and not self._guard.is_closed and not self.has_failed

    @property
    def checkpointed_state(self) -> CheckpointedState:
        """The state of this log for the checkpoints of the log directory."""
        first = self._log.first_base_offset
        return CheckpointedState(self.key, self.recovery_point, self.log_start_offset, first, self.log_end_offset)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Lock the log for writing, unless it is closed or has failed; if the block fails, the log has failed."""
        self._root.require_own_process()  # first: if a thread held the lock at a fork, it is never released here
        with self._lock:
            self._guard.check_open()
            with self._guard.failing():
                yield
                self._flushes.unless_busy(self._log.close_retired)

    # Append

    def append(
        self,
        records: Buffer | RecordBatch | Sequence[Record] | Checked,
        *,
        origin: Origin = Origin.CLIENT,
        acks: Acks = "written",
    ) -> Appended:
        """Append as a leader: check, assign offsets, write (SEG-APP-001).

        Args:
            records: a batch of magic 2 with base offset 0, messages of magic 0 or 1, records to encode as a batch, or
                the result of `check_as_leader` with the settings of this log.
            origin: a producer, or the broker itself.
            acks: when to return. Threads that wait for the disk at the same time share a flush (SEG-FLS-003).

        Returns:
            The offsets assigned to the records.

        Raises:
            FormatError: the bytes are damaged.
            UsageError: the records may not be appended; the text names the requirement.
            WriteError: writing failed, now or before.
        """
        self._guard.check_open()
        now_ms = self.environment.clock()
        if not isinstance(records, Checked):
            records = check_as_leader(encoded(records), self.config, now_ms=now_ms, origin=origin)
        with self._writing():
            require_newest(self.leader_epoch, self._log.newest_epoch, self.path)
            given = Assignment(self._log.end_offset, self.leader_epoch, now_ms)
            entries = as_leader(records.entries, self.config, given)
            appended = self._log.duplicate_of(entries[0], records.origin) or self._log.append(entries, records.origin)
        self._flush_if_asked(appended, acks)
        return appended

    def append_as_follower(
        self, data: Buffer, *, leader_epoch: int | None = None, acks: Acks = "written"
    ) -> Appended | None:
        """Append the entries of a leader unchanged; offsets may have gaps (SEG-APP-002).

        Args:
            data: entries in order.
            leader_epoch: the leader epoch under which they were fetched; batches of a later one are left out. None to
                append all.
            acks: when to return.

        Returns:
            First and last offset; None if nothing was appended.

        Raises:
            FormatError: the bytes are damaged.
            UsageError: offsets do not increase from the log end offset on.
            WriteError: writing failed, now or before.
        """
        with self._writing():
            entries = as_follower(data, self.config, next_offset=self._log.end_offset, leader_epoch=leader_epoch)
            appended = self._log.append(entries, Origin.REPLICATION) if entries else None
        if appended is not None:
            self._flush_if_asked(appended, acks)
        return appended

    def append_prepared(self, entries: Sequence[Entry]) -> Appended:
        """Append one or more entries that were made for this log, as a follower; they are not checked.

        Raises:
            UsageError: the writer is closed, or this process was forked since the log was opened.
            WriteError: writing failed, now or before.
        """
        with self._writing():
            appended = self._log.append(entries, Origin.REPLICATION)
        self._flush_if_asked(appended, "written")
        return appended

    def become_leader(self, leader_epoch: int) -> None:
        """Set the leader epoch of later appends, and record where it begins (SEG-APP-016).

        Brokers do so when they are elected, before they append.

        Args:
            leader_epoch: not below any leader epoch in the log.

        Raises:
            UsageError: the log has a newer leader epoch (SEG-APP-017).
            WriteError: writing failed, now or before.
        """
        with self._writing():
            require_newest(leader_epoch, self._log.newest_epoch, self.path)
            self._leader_epoch = leader_epoch
            self._log.begin_epoch(leader_epoch)

    # Rolling and retention

    def roll(self) -> int:
        """Begin a new segment; if the active segment is empty, create it again.

        Returns:
            The new segment's base offset.

        Raises:
            WriteError: writing failed, now or before.
        """
        with self._writing():
            self._log.roll(self._log.end_offset)
            return self._log.end_offset

    def apply_retention(self) -> RetentionPlan:
        """Remove the segments that retention does not keep (chapter 72).

        Their files are renamed to names that end in ``.deleted``; `remove_deleted` deletes them after a delay.

        Returns:
            The decision for each segment.

        Raises:
            FormatError: a segment has no time index, and its log cannot be read to its end.
            WriteError: writing failed, now or before.
        """
        with self._writing():
            return self._log.retain(lambda: self._root.write_checkpoints([self.checkpointed_state]))

    def remove_deleted(self) -> None:
        """Delete files that were renamed for removal at least `file.delete.delay.ms` ago (SEG-RET-009).

        Files that are left when this object is closed are deleted when the log is opened again.

        Raises:
            WriteError: writing failed, now or before.
        """
        with self._writing():
            self._log.remove_deleted()

    # Flush

    def flush(self) -> int:
        """Flush everything appended so far to disk (SEG-FLS-002).

        Returns:
            The recovery point: everything below is on disk.

        Raises:
            UsageError: this process was forked since the log was opened.
            WriteError: writing failed, now or before.
        """
        self._root.require_own_process()
        self._flushes.wait_for(self._log.end_offset)
        return self._log.synced_offset

    def flush_if_due(self) -> None:
        """Flush if `flush.messages` or `flush.ms` require it (SEG-FLS-001).

        Raises:
            WriteError: writing failed, now or before.
        """
        unflushed = self._log.end_offset - self._log.synced_offset
        waited_ms = self.environment.clock() - self._last_flush_ms
        if unflushed and (unflushed >= self.config.flush_messages or waited_ms >= self.config.flush_ms):
            self.flush()

    def _flush_if_asked(self, appended: Appended, acks: Acks) -> None:
        if acks == "flushed":
            self._flushes.wait_for(appended.last_offset + 1)
        self.flush_if_due()

    def _flush_now(self) -> None:
        """Sync files without blocking appends; only one thread at a time may call this."""
        with self._lock:
            end_offset, segment = self._log.end_offset, self._log.active
        with self._guard.failing():
            self._log.sync(segment)
        with self._lock:
            self._log.close_retired()
            self._log.synced_offset = max(self._log.synced_offset, end_offset)
            self._last_flush_ms = self.environment.clock()

    # Close

    def close(self) -> None:
        """Flush, store the producer states, trim the files, and mark the log as clean (SEG-FLS-004).

        After a failure, and in a forked process, files are closed without writing. Closing again does nothing.

        Raises:
            WriteError: a step failed; the log is left as after a crash of the process.
        """
        if self._guard.is_closed:
            return
        try:
            if self.is_open:
                self.flush()
                with self._lock, self._guard.failing():
                    self._log.seal()
        finally:
            is_whole, self._guard.is_closed = self.is_open, True
            self._close_root(is_whole=is_whole)

    def _close_root(self, *, is_whole: bool) -> None:
        try:
            if self._own_root is not None and is_whole:
                with self._guard.failing():
                    self._own_root.finish([self.checkpointed_state], [self.key], is_whole=True)
        finally:
            self._release()

    def _release(self) -> None:
        self._log.close()
        if self._own_root is not None:
            self._own_root.close()
