"""A writer for several partitions of one log directory, which behaves as a broker does (chapter 71)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.closing import Closing
from seglog_format.errors import FormatError, UsageError, WriteError
from seglog_format.names import partition_directory_name
from seglog_format.state.config import LogConfig
from seglog_format.state.root_files import RootFiles
from seglog_format.storage.environment import Environment
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    import os

CHECKPOINT_INTERVAL_MS: Final = 60_000
"""Longest interval between writes of the checkpoints."""

RETENTION_INTERVAL_MS: Final = 300_000
"""Interval at which retention is applied to each log."""

SCHEDULER_INTERVAL_MS: Final = 3_000


class LogWriter(Closing):
    """Appends to any number of partitions of a log directory, which is created if missing.

    Use it as a context manager: closing flushes all logs, and then writes the checkpoints and the clean-shutdown file.

    Args:
        path: of the log directory.
        config: settings of logs opened without their own.
        environment: files, clock, random numbers and threads.

    Raises:
        UsageError: a broker or another writer uses the directory.
        WriteError: a file of its root could not be made.

    Examples:
        >>> from seglog_format import LogWriter, new_record
        >>> with LogWriter("written") as log:
        ...     appended = log.open("payments", 0).append([new_record(key=b"alice", value=b"3.20")])
        >>> appended.last_offset
        0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        environment: Environment | None = None,
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
        """Return the writer of a partition; it is closed with this object.

        Args:
            topic: name of the topic.
            partition: 0 or more.
            config: settings of the log; by default the common ones.
            leader_epoch: under which it appends; by default the newest that the log knows (SEG-APP-017).
            topic_id: for `partition.metadata` of a new partition.

        Raises:
            UsageError: it is open already, has to be recovered first, or knows a newer leader epoch; the topic or the
                partition cannot be (SEG-PDR-001, SEG-PDR-002); or this process was forked since.
            WriteError: a file could not be made.
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
            WriteError: a checkpoint could not be written; the one before stands.
        """
        self._root.require_own_process()
        with self._lock:
            try:
                self._root.write_checkpoints(writer.checkpointed_state for writer in self.writers)
            except OSError as error:
                raise _write_error(self.path, error) from error
            self._last_checkpoint_ms = self.environment.clock()

    def run_due(self) -> None:
        """Do what is due: flushes by `flush.ms`, checkpoints once a minute, retention every five minutes.

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
        """Run what is due in a thread of its own, until this object is closed.

        Args:
            interval_ms: how often it checks.
        """
        if self._scheduler is None:
            self._scheduler = _Scheduler(self, interval_ms)
            self._scheduler.start()

    def close(self) -> None:
        """Close every log, then write the checkpoints, and finally the clean-shutdown file (SEG-FLS-004).

        The clean-shutdown file is left out where a log has failed, or where one was neither known to be whole nor
        opened (SEG-FLS-007). Closing again does nothing. In a forked process files are closed without writing.

        Raises:
            WriteError: the first failure; the other logs are closed all the same.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._scheduler is not None and self._root.is_own_process:
            self._scheduler.stop()
        failures = [error for error in map(_closed, self.writers) if error is not None]
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


def _closed(writer: PartitionWriter) -> WriteError | None:
    try:
        writer.close()
    except WriteError as error:
        return error
    return None


def _write_error(path: Path, error: OSError) -> WriteError:
    return WriteError(f"{path}: {error.strerror or error}")


class _Scheduler(threading.Thread):
    """Runs what is due at intervals; a log that fails raises to its own callers."""

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
