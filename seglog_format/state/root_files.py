"""The root files of a log directory during writing: lock, clean-shutdown file, checkpoints (chapters 11, 51, 71)."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from seglog_format.codec.checkpoints import decode_offset_checkpoint, encode_clean_shutdown, encode_offset_checkpoint
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.log.listing import simple_offsets
from seglog_format.model import CheckpointedOffset, CleanShutdown
from seglog_format.names import FileKind, parse_partition_directory
from seglog_format.storage.files import read_small, replace_file, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.storage.environment import Environment
    from seglog_format.storage.files import Files


TopicPartition = tuple[str, int]

DELETED = "delete"


@dataclass(frozen=True, slots=True)
class CheckpointedState:
    """The values of one log in the checkpoints of a log directory.

    Attributes:
        key: topic and partition.
        recovery_point: everything below is on disk (SEG-CKP-011).
        log_start_offset: first offset that consumers may read.
        first_base_offset: base offset of its first segment.
        high_watermark: the offset up to which the log is replicated; without followers, its log end offset.
    """

    key: TopicPartition
    recovery_point: int
    log_start_offset: int
    first_base_offset: int
    high_watermark: int


class RootFiles:
    """The root files of a log directory.

    Opening takes the lock, reads the checkpoints, and removes the clean-shutdown file before any log is opened, so no
    broker finds it if the process ends early (SEG-FLS-006).

    Args:
        path: of the log directory; it is created if it is missing.
        environment: files, clock, random numbers and threads.

    Attributes:
        was_clean: whether the last writer closed every log.
        recovery_points, log_start_offsets, high_watermarks: as checkpointed, by topic and partition.

    Raises:
        UsageError: another process holds the lock.
        OSError: an operation on files failed.
    """

    def __init__(self, path: Path, environment: Environment) -> None:
        self.path = path
        self._process_id = os.getpid()
        self._files = environment.files
        self._checkpointing = environment.make_condition()
        self._make_directory(path)
        self._lock = DirectoryLock(path) if environment.locks_directory else None
        try:
            self.was_clean = self._files.exists(self._path(FileKind.CLEAN_SHUTDOWN))
            self.recovery_points = self._read(FileKind.RECOVERY_POINT_CHECKPOINT)
            self.log_start_offsets = self._read(FileKind.LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = self._read(FileKind.REPLICATION_OFFSET_CHECKPOINT)
            self._take_over()
        except BaseException:
            self.close()
            raise

    @property
    def is_own_process(self) -> bool:
        """Return whether this process opened the directory, and was not forked afterwards."""
        return os.getpid() == self._process_id

    def require_own_process(self) -> None:
        """Refuse to write in a forked process: it does not see the writes of its parent.

        Raises:
            UsageError: this process was forked since the directory was opened.
        """
        if not self.is_own_process:
            msg = f"{self.path} was opened before a fork: only process {self._process_id} writes to it (SEG-FLS-011)"
            raise UsageError(msg)

    def _take_over(self) -> None:
        """Remove the clean-shutdown file, and sync names: a process that died may have left unsynced changes."""
        if self.was_clean:
            self._files.remove(self._path(FileKind.CLEAN_SHUTDOWN))
        self._files.fsync_directory(self.path)

    def _make_directory(self, path: Path) -> None:
        """Create a directory and those above it, and sync their names."""
        new = list(takewhile(lambda each: not self._files.exists(each), (path, *path.parents)))
        self._files.make_directory(path)
        for each in reversed(new):
            self._files.fsync_directory(each.parent)

    def _path(self, kind: FileKind) -> Path:
        return self.path / kind.value

    def _read(self, kind: FileKind) -> dict[TopicPartition, int]:
        """Read a checkpoint; an unreadable one counts as missing: then recovery takes longer, but loses nothing."""
        if not self._files.exists(self._path(kind)):
            return {}
        try:
            data = read_small(self._files, self._path(kind))
            found = simple_offsets(data)
            return decode_offset_checkpoint(data).by_partition if found is None else found
        except FormatError:
            return {}

    def write_checkpoints(self, states: Iterable[CheckpointedState]) -> None:
        """Write the three checkpoints, keeping the lines of other partitions (SEG-FLS-005, SEG-FLS-013, SEG-FLS-014).

        Raises:
            OSError: an operation on files failed; the old files stay.
            UsageError: this process was forked since the directory was opened.
        """
        self.require_own_process()
        with self._checkpointing:
            for state in states:
                self._store_values(state)
            self._write(FileKind.RECOVERY_POINT_CHECKPOINT, self.recovery_points)
            self._write(FileKind.LOG_START_OFFSET_CHECKPOINT, self.log_start_offsets)
            self._write(FileKind.REPLICATION_OFFSET_CHECKPOINT, self.high_watermarks)

    def _store_values(self, state: CheckpointedState) -> None:
        self.recovery_points[state.key] = state.recovery_point
        self.high_watermarks[state.key] = state.high_watermark
        if state.log_start_offset > state.first_base_offset:
            self.log_start_offsets[state.key] = state.log_start_offset
        else:
            self.log_start_offsets.pop(state.key, None)

    def _write(self, kind: FileKind, offsets: dict[TopicPartition, int]) -> None:
        lines = (
            CheckpointedOffset(topic, partition, offsets[topic, partition]) for topic, partition in sorted(offsets)
        )
        replace_file(self._files, self._path(kind), encode_offset_checkpoint(lines))

    def may_be_clean(self, closed: Iterable[TopicPartition]) -> bool:
        """Return whether every log is known to be whole, given the logs that were opened and closed (SEG-FLS-007)."""
        return self.was_clean or self._partitions() <= set(closed)

    def _partitions(self) -> set[TopicPartition]:
        found = set()
        for name in self._files.names(self.path):
            try:
                parsed = parse_partition_directory(name)
            except FormatError:
                continue
            if parsed.state != DELETED:
                found.add(parsed.topic_partition)
        return found

    def mark_clean(self) -> None:
        """Write the clean-shutdown file; everything else must be on disk.

        Raises:
            OSError: an operation on files failed.
        """
        write_file(self._files, self._path(FileKind.CLEAN_SHUTDOWN), encode_clean_shutdown(CleanShutdown()))
        self._files.fsync_directory(self.path)

    def finish(self, states: Iterable[CheckpointedState], closed: Iterable[TopicPartition], *, is_whole: bool) -> None:
        """Write the checkpoints after all logs are closed, and the clean-shutdown file if all logs are whole.

        Args:
            states: of the logs that were open.
            closed: topic and partition of the logs that were opened and closed.
            is_whole: whether none of these logs has failed.

        Raises:
            OSError: an operation on files failed.
        """
        self.write_checkpoints(states)
        if is_whole and self.may_be_clean(closed):
            self.mark_clean()

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()


# -- handling of the clean-shutdown file while a closed log directory is changed (chapter 71) --------------------------


@contextmanager
def opened_for_change(root: Path, partition: Path, files: Files, *, is_changed: bool = True) -> Iterator[None]:
    """Remove the clean-shutdown file, and write it again after all changes are on disk (SEG-FLS-010).

    After a failed change it is not written, so the next broker that starts recovers the log.

    Args:
        root: the log directory.
        partition: the directory in which files are changed; its names are synced here, their content by the caller.
        files: the file layer that changes go through.
        is_changed: whether anything will change.

    Raises:
        OSError: an operation on files failed.
        RefusedError: the clean-shutdown file is far larger than brokers write it; nothing was changed (SEG-PDR-020).
    """
    path = root / FileKind.CLEAN_SHUTDOWN.value
    if not is_changed or not files.exists(path):
        yield
        return
    data = read_small(files, path)
    files.remove(path)
    files.fsync_directory(root)
    yield
    files.fsync_directory(partition)
    replace_file(files, path, data)
