"""Log directories: their partitions, and the content of their root files (chapters 11 and 51)."""

from __future__ import annotations

import os
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, Unpack

from seglog_format import engine
from seglog_format.errors import UsageError
from seglog_format.log.directory_lock import is_locked
from seglog_format.log.listing import (
    REACHED,
    LogDirectoryListing,
    PartitionEntry,
    greatest,
    list_log_directory,
    list_partition,
    read_offset_checkpoint,
)
from seglog_format.log.partition import Partition
from seglog_format.log.path_kind import require_log_directory
from seglog_format.log.scanning import DEFAULT_COLUMNS
from seglog_format.model import DEFAULT_OUTPUT_LIMIT
from seglog_format.names import FileKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from seglog_format.log.scanning import ScanKeywords

TopicPartition: TypeAlias = tuple[str, int]
PathOrPaths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"


class ScannedPartitions(Protocol):
    """A set of partitions that can be scanned one after the other."""

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionEntry]:
        """The partitions in use, by topic and number."""

    def opened(self, entry: PartitionEntry) -> Partition:
        """Open one of the partitions.

        Raises:
            UsageError: it does not exist, or cannot be read.
        """

    def scan(
        self,
        columns: Sequence[str] = ("topic", "partition", *DEFAULT_COLUMNS),
        *,
        topics: Collection[str] | None = None,
        layout: str = "view",
        **options: Unpack[ScanKeywords],
    ) -> pa.RecordBatchReader:
        """Read the partitions in use as Arrow batches, one partition after the other, as `Partition.scan` does.

        Args:
            columns: any columns of `Partition.scan`, and ``topic`` and ``partition``.
            topics: names of the topics to read; all by default.
            layout: of keys, values and headers.
            options: the other options of `Partition.scan` that apply to any number of partitions.

        Raises:
            UsageError: an invalid option, or the engine is not installed.
            FormatError: while reading: at the first entry that is damaged or refused.
        """
        wanted = (
            (*key, partial(self._scanned, entry, layout, options))
            for key, entry in sorted(self.partitions.items())
            if topics is None or key[0] in topics
        )
        return engine.scan_partitions(wanted, tuple(columns), layout)

    def _scanned(
        self, entry: PartitionEntry, layout: str, options: ScanKeywords, columns: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        with self.opened(entry) as partition:
            yield from partition.scan(columns, layout=layout, **options)


class LogDirectory(ScannedPartitions):
    """One log directory of a broker: partition directories, and the root files about them.

    Root files are read at first use, as a broker reads them at start: a root file that is missing or cannot be read
    counts as empty.

    Attributes:
        listing: the content of the directory.
    """

    def __init__(self, listing: LogDirectoryListing) -> None:
        self.listing = listing

    @property
    def path(self) -> Path:
        """The directory."""
        return self.listing.path

    @property
    def has_clean_shutdown(self) -> bool:
        """Return whether the broker closed the directory cleanly (SEG-LDR-003)."""
        return self.listing.has_clean_shutdown

    @property
    def is_locked(self) -> bool:
        """Return whether a broker is using the directory now."""
        return is_locked(self.path)

    @cached_property
    def partitions(self) -> Mapping[TopicPartition, PartitionEntry]:
        """The partitions in use, by topic and number."""
        return {entry.name.topic_partition: entry for entry in self.listing.partitions if not entry.name.state}

    def renamed(self, state: str) -> tuple[PartitionEntry, ...]:
        """Return the partition directories that a broker renamed to a state: ``delete``, ``future`` or ``stray``."""
        return tuple(entry for entry in self.listing.partitions if entry.name.state == state)

    @property
    def recovery_points(self) -> Mapping[TopicPartition, int]:
        """The recovery point of each partition: the first offset that may not be on disk (SEG-CKP-011)."""
        return self._checkpoints[FileKind.RECOVERY_POINT_CHECKPOINT]

    @property
    def log_start_offsets(self) -> Mapping[TopicPartition, int]:
        """The log start offset of each partition for which it is above the first base offset (SEG-CKP-010)."""
        return self._checkpoints[FileKind.LOG_START_OFFSET_CHECKPOINT]

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """The high watermark of each partition: the first offset that is not on all in-sync replicas."""
        return self._checkpoints[FileKind.REPLICATION_OFFSET_CHECKPOINT]

    @property
    def cleaner_offsets(self) -> Mapping[TopicPartition, int]:
        """The first offset that was not compacted, for each compacted partition."""
        return self._checkpoints[FileKind.CLEANER_OFFSET_CHECKPOINT]

    @cached_property
    def _checkpoints(self) -> Mapping[FileKind, Mapping[TopicPartition, int]]:
        return {kind: read_offset_checkpoint(self.path / kind.value) for kind in REACHED}

    def checkpointed_end(self, partition: TopicPartition) -> int:
        """Return the greatest offset that a partition had reached by the checkpoints; 0 without any."""
        return greatest(each.get(partition) for each in self._checkpoints.values())

    def recovery_point(self, partition: TopicPartition) -> int:
        """Return the recovery point of a partition; 0 without a checkpoint (SEG-CKP-011)."""
        return self.recovery_points.get(partition, 0)

    def open(
        self,
        entry: PartitionEntry,
        *,
        trust_indexes: bool = False,
        limit: int = DEFAULT_OUTPUT_LIMIT,
        mapped: bool = False,
    ) -> Partition:
        """Open one of its partition directories, which may be a renamed one, as `open_partition` does.

        Raises:
            UsageError: it does not exist, or cannot be read.
        """
        key = None if entry.name.state else entry.name.topic_partition
        return Partition(
            list_partition(entry.path),
            log_start_checkpoint=None if key is None else self.log_start_offsets.get(key),
            high_watermark=None if key is None else self.high_watermarks.get(key),
            checkpointed_end=0 if key is None else self.checkpointed_end(key),
            trust_indexes=trust_indexes,
            limit=limit,
            mapped=mapped,
        )

    def opened(self, entry: PartitionEntry) -> Partition:
        """Open one of its partition directories; see `open`."""
        return self.open(entry)

    def __repr__(self) -> str:
        return f"LogDirectory({str(self.path)!r})"


class LogDirectories(ScannedPartitions):
    """All log directories of one broker.

    Attributes:
        directories: in the order given.
    """

    def __init__(self, directories: Iterable[LogDirectory]) -> None:
        self.directories = tuple(directories)

    @cached_property
    def partitions(self) -> Mapping[TopicPartition, PartitionEntry]:
        """The partitions in use, by topic and number; of several directories of one partition, the first."""
        return {key: entries[0] for key, entries in sorted(self._by_partition().items())}

    @cached_property
    def repeated(self) -> Mapping[TopicPartition, tuple[PartitionEntry, ...]]:
        """Partitions that are in more than one directory, which is invalid (SEG-LDR-002)."""
        return {key: tuple(entries) for key, entries in self._by_partition().items() if len(entries) > 1}

    def _by_partition(self) -> dict[TopicPartition, list[PartitionEntry]]:
        found: dict[TopicPartition, list[PartitionEntry]] = {}
        for directory in self.directories:
            for key, entry in directory.partitions.items():
                found.setdefault(key, []).append(entry)
        return found

    def renamed(self, state: str) -> tuple[PartitionEntry, ...]:
        """Return the partition directories that a broker renamed to a state: ``delete``, ``future`` or ``stray``."""
        return tuple(entry for directory in self.directories for entry in directory.renamed(state))

    def directory_of(self, entry: PartitionEntry) -> LogDirectory:
        """Return the log directory of an entry.

        Raises:
            UsageError: it is in none of these log directories.
        """
        for directory in self.directories:
            if entry in directory.listing.partitions:
                return directory
        msg = f"{entry.path} is in none of these log directories"
        raise UsageError(msg)

    def open(
        self,
        topic: str,
        partition: int,
        *,
        trust_indexes: bool = False,
        limit: int = DEFAULT_OUTPUT_LIMIT,
        mapped: bool = False,
    ) -> Partition:
        """Open a partition in use, as `open_partition` does.

        Raises:
            UsageError: there is no such partition.
        """
        entry = self.partitions.get((topic, partition))
        if entry is None:
            msg = f"no partition {topic}-{partition} in {', '.join(str(each.path) for each in self.directories)}"
            raise UsageError(msg)
        directory = self.directory_of(entry)
        return directory.open(entry, trust_indexes=trust_indexes, limit=limit, mapped=mapped)

    def opened(self, entry: PartitionEntry) -> Partition:
        """Open one of the partitions, in the directory that holds it."""
        return self.directory_of(entry).open(entry)


def open_log_directory(path_or_paths: PathOrPaths) -> LogDirectories:
    """Open one or several log directories of a broker for reading; nothing is created, repaired or locked.

    Args:
        path_or_paths: path of a log directory, or paths of several.

    Raises:
        UsageError: a path is not a log directory (see `path_kind`), or cannot be read.

    Examples:
        >>> from seglog_format import open_log_directory
        >>> directories = open_log_directory("demo/kafka-4.3.0")
        >>> sorted(directories.partitions)[:2]
        [('__cluster_metadata', 0), ('__consumer_offsets', 0)]
        >>> with directories.open("segs", 0) as log:
        ...     print(log.log_end_offset)
        450
    """
    paths = [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths)
    for path in paths:
        require_log_directory(path)
    return LogDirectories(LogDirectory(list_log_directory(path)) for path in paths)


def log_directory_above(path: str | os.PathLike[str]) -> LogDirectory:
    """Return the directory that a partition directory is in as a log directory, without checking that it is one.

    Args:
        path: of the partition directory.

    Raises:
        UsageError: the directory above cannot be read.
    """
    return LogDirectory(list_log_directory(Path(path).absolute().parent, is_subject=False))
