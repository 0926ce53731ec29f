"""A writer for several partitions of one log directory; it behaves as a broker does (chapter 71)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, UsageError, WriteError
from seglog_format.names import partition_directory_name
from seglog_format.state.config import LogConfig
from seglog_format.state.root_files import RootFiles
from seglog_format.storage.byte_source import Closing
from seglog_format.storage.environment import Environment
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    import os

CHECKPOINT_INTERVAL_MS: Final = 60_000
"""Interval at which the checkpoints are written."""

RETENTION_INTERVAL_MS: Final = 300_000
"""Interval at which retention is applied to each log."""

SCHEDULER_INTERVAL_MS: Final = 3_000


class LogWriter(Closing):
    """Appends to any number of partitions of a log directory, which is created if it is missing.

    Use it as a context manager: closing flushes all logs, and then writes the checkpoints and the clean-shutdown file.

    Args:
        path: of the log directory.
        config: settings of logs that are opened without settings.
        environment: files, clock, random numbers and threads.

    Raises:
        UsageError: a broker or another writer uses the directory.
        WriteError: a root file could not be created.

    Examples:
        >>> from seglog_format import LogWriter, new_record
        >>> with LogWriter("written") as log:
        ...     appended = log.open("payments", 0).append([new_record(key=b"alice", value=b"3.20")])
        >>> appended.last_offset
        0
    """

    def __init__(
        self, path: str | os.PathLike[str], config: LogConfig | None = None, *, environment: Environment | None = None
    ) -> None:
        self.path = Path(path)
        self.config = config or LogConfig()
        self.environment = environment or Environment()
        self._writers: dict[tuple[str, int], PartitionWriter] = {}
        self._lock = self.environment.make_condition()
        self._is_closed = False
        self._scheduler: _Scheduler | None = None
        self._last_checkpoint_ms = self._last_retention_ms = self.environment.clock()
        try:
            self._root = RootFiles(self.path, self.environment)
        except OSError as error:
            raise _write_error(self.path, error) from error

    @property
    def writers(self) -> tuple[PartitionWriter, ...]:
        """Writers of all opened partitions, in the order of opening."""
        return tuple(self._writers.values())

    def open(
        self,
        topic: str,
        partition: int,
        config: LogConfig | None = None,
        *,
        leader_epoch: int | None = None,
        topic_id: str | None = None,
    ) -> PartitionWriter:
        """Open a partition, and return its writer; closing this object closes it also.

        Args:
            topic: name of the topic.
            partition: 0 or more.
            config: settings of the log; by default those of this object.
            leader_epoch: the leader epoch of appended batches; by default the newest in the log (SEG-APP-017).
            topic_id: for `partition.metadata` of a new partition.

        Raises:
            UsageError: the partition is open already, has to be recovered first, or has a newer leader epoch; the topic
                or the partition number is not valid (SEG-PDR-001, SEG-PDR-002); or this process was forked since.
            WriteError: a file could not be created.
        """
        self._root.require_own_process()
        with self._lock:
            if self._is_closed or (topic, partition) in self._writers:
                msg = f"{topic}-{partition} is open already" if not self._is_closed else f"{self.path} is closed"
                raise UsageError(msg)
            writer = PartitionWriter(
                self.path / partition_directory_name(topic, partition),
                config or self.config,
                leader_epoch=leader_epoch,
                topic_id=topic_id,
                environment=self.environment,
                root=self._root,
            )
            self._writers[topic, partition] = writer
            return writer

    def checkpoint(self) -> None:
        """Write the recovery point and log start offset of every log (SEG-FLS-005).

        Raises:
            WriteError: a checkpoint could not be written; the previous one remains.
        """
        self._root.require_own_process()
        with self._lock:
            try:
                self._root.write_checkpoints(writer.checkpointed_state for writer in self.writers)
            except OSError as error:
                raise _write_error(self.path, error) from error
            self._last_checkpoint_ms = self.environment.clock()

    def run_due(self) -> None:
        """Do the periodic work that is due: flush by `flush.ms`, write checkpoints, apply retention, delete files.

        Checkpoints are due once a minute, retention every five minutes.

        Raises:
            FormatError: a log cannot be read, so its age is unknown.
            WriteError: a log or a checkpoint could not be written.
        """
        for writer in self.writers:
            if writer.is_open:
                writer.flush_if_due()
                writer.remove_deleted()
        now_ms = self.environment.clock()
        if now_ms - self._last_retention_ms >= RETENTION_INTERVAL_MS:
            self._last_retention_ms = now_ms
            self.apply_retention()
        if now_ms - self._last_checkpoint_ms >= CHECKPOINT_INTERVAL_MS:
            self.checkpoint()

    def apply_retention(self) -> None:
        """Remove the segments of all logs that retention does not keep (chapter 72).

        Raises:
            FormatError: a log cannot be read, so its age is unknown.
            WriteError: a log could not be written.
        """
        for writer in self.writers:
            if writer.is_open:
                writer.apply_retention()

    def start_scheduler(self, interval_ms: int = SCHEDULER_INTERVAL_MS) -> None:
        """Start a thread that calls `run_due` at intervals, until this object is closed.

        Args:
            interval_ms: time between calls.
        """
        if self._scheduler is None:
            self._scheduler = _Scheduler(self, interval_ms)
            self._scheduler.start()

    def close(self) -> None:
        """Close every log, then write the checkpoints, and finally the clean-shutdown file (SEG-FLS-004).

        The clean-shutdown file is not written if a log has failed, or if a log was not closed cleanly before and was
        never opened by this object (SEG-FLS-007). Closing again does nothing. In a forked process files are closed
        without writing.

        Raises:
            WriteError: the first failure; the other logs are closed also.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._scheduler is not None and self._root.is_own_process:
            self._scheduler.stop()
        failures = [error for error in map(_close_failure, self.writers) if error is not None]
        try:
            if self._root.is_own_process:
                is_whole = not failures and not any(writer.has_failed for writer in self.writers)
                states = (writer.checkpointed_state for writer in self.writers)
                self._root.finish(states, self._writers, is_whole=is_whole)
        except OSError as error:
            failures.append(_write_error(self.path, error))
        finally:
            self._root.close()
        if failures:
            raise failures[0]


def _close_failure(writer: PartitionWriter) -> WriteError | None:
    try:
        writer.close()
    except WriteError as error:
        return error
    return None


def _write_error(path: Path, error: OSError) -> WriteError:
    return WriteError(f"{path}: {error.strerror or error}")


class _Scheduler(threading.Thread):
    """Calls `run_due` at intervals; it ignores errors, because a failed log raises at its next use."""

    def __init__(self, writer: LogWriter, interval_ms: int) -> None:
        super().__init__(name="seglog-scheduler", daemon=True)
        self._writer = writer
        self._interval_s = interval_ms / 1000
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                self._writer.run_due()
            except (FormatError, WriteError):
                continue

    def stop(self) -> None:
        self._stopped.set()
        self.join()
