"""Partitions with writers: one writer each, under the lock of its log directory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from seglog_format.errors import SeglogError, UsageError
from seglog_format.names import partition_directory_name
from seglog_format.state.config import UNLIMITED, LogConfig
from seglog_format.storage.byte_source import Closing
from seglog_format.writing.append import check_as_leader
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seglog_format.serve.catalog import Topic
    from seglog_format.writing.append import AppendLimits, Checked
    from seglog_format.writing.partition_log import Appended
    from seglog_format.writing.writer import PartitionWriter

    Acknowledged = Literal["written", "flushed"]

KEEP_ALL = LogConfig(retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
"""Retention that removes nothing by age: old logs are served."""


class Writers(Closing):
    """The writers of partitions. A context manager: its end closes the logs as a broker does.

    Args:
        acknowledged: when a producer gets its answer: when a crash of this process cannot lose the records,
            or when a power failure cannot lose them either. Readers see only records that are acknowledged.
        config: settings of the logs.
    """

    def __init__(self, acknowledged: Acknowledged = "flushed", config: LogConfig = KEEP_ALL) -> None:
        self._acknowledged: Acknowledged = acknowledged
        self._config = config
        self._roots: dict[Path, LogWriter] = {}
        self._writers: dict[tuple[str, int], PartitionWriter] = {}

    def open(self, topics: Mapping[str, Topic]) -> None:
        """Take the locks, and recover logs that were not closed properly.

        Raises:
            UsageError: another process writes there, or a directory's name is not that of a partition in use.
            WriteError: a file could not be written.
        """
        for topic in topics.values():
            for number, path in topic.partitions.items():
                if path.absolute().name != partition_directory_name(topic.name, number):
                    msg = f"{path}: a renamed directory cannot be written"
                    raise UsageError(msg)
                self._writers[topic.name, number] = self._opened(topic.name, number, path)
        for root in self._roots.values():
            root.start_scheduler()

    def create(self, root: Path, topic: str) -> Path:
        """Create partition 0 of a topic, take the lock of its log directory if this is the first, and return its path.

        Raises:
            UsageError: another process writes there, or the topic has no valid name (SEG-PDR-002).
            WriteError: a file could not be written.
        """
        path = root.absolute() / partition_directory_name(topic, 0)
        self._writers[topic, 0] = self._opened(topic, 0, path)
        self._roots[path.parent].start_scheduler()
        return path

    def _opened(self, topic: str, number: int, path: Path) -> PartitionWriter:
        parent = path.absolute().parent
        if parent not in self._roots:
            self._roots[parent] = LogWriter(parent, self._config)
        return self._roots[parent].open(topic, number)

    def end_of(self, topic: str, number: int) -> Callable[[], int]:
        """Return a function that gives the offset up to which a partition may be read."""
        return partial(self._end, topic, number)

    def _end(self, topic: str, number: int) -> int:
        writer = self._writers[topic, number]
        return writer.log_end_offset if self._acknowledged == "written" else writer.recovery_point

    def find(self, topic: str, number: int) -> PartitionWriter | None:
        """Return the writer of a partition; None if there is none."""
        return self._writers.get((topic, number))

    def check(self, writer: PartitionWriter, data: bytes, limits: AppendLimits) -> Checked:
        """Check a batch from a producer; other threads may write meanwhile.

        Raises:
            RefusedError: its check takes more than the limits allow.
            FormatError: the bytes are damaged.
            UsageError: the batch may not be appended.
        """
        return check_as_leader(data, writer.config, now_ms=writer.environment.clock(), limits=limits)

    def append(self, writer: PartitionWriter, checked: Checked) -> Appended:
        """Append a checked batch, and return when it is as safe as configured.

        Raises:
            UsageError: the batch may not be appended.
            WriteError: writing failed, now or before.
        """
        return writer.append(checked, acks=self._acknowledged)

    def make_safe(self, writer: PartitionWriter) -> None:
        """Return when everything appended so far is as safe as configured.

        Raises:
            WriteError: writing failed, now or before.
        """
        if self._acknowledged == "flushed":
            writer.flush()

    def close(self) -> None:
        """Close all logs properly.

        Raises:
            WriteError: a log could not be closed; the others are closed nevertheless.
        """
        failures: list[SeglogError] = []
        for root in self._roots.values():
            try:
                root.close()
            except SeglogError as error:
                failures.append(error)
        self._roots.clear()
        if failures:
            raise failures[0]
