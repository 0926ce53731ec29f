"""The partition directories below the paths of a query, and the choice among replicas.

A path is a partition directory, a log directory, or any tree that holds them, such as those of several brokers.
Each partition is then found once for each replica, and read once.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_partition_metadata
from seglog_format.errors import FormatError, Location, SeglogError, UsageError
from seglog_format.log.listing import SEGMENT_ENDINGS, list_partition, read_offset_checkpoint
from seglog_format.log.partition import Partition
from seglog_format.log.path_kind import directory_kind, path_kind
from seglog_format.names import FileKind, parse_partition_directory
from seglog_format.storage.log_storage import LOCAL, read_file
from seglog_format.storage.object_store import Store, is_address
from seglog_format.storage.remote_storage import RemoteStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.spark.offsets import TopicPartition
    from seglog_format.spark.options import ReadOptions
    from seglog_format.storage.log_storage import LogStorage

MAX_DEPTH: Final = 6
"""Maximum depth of directories below a path."""
PATTERN: Final = frozenset("*?[")
"""Characters that make a local path a pattern, unless a file has exactly this name."""


@dataclass(frozen=True)
class LogRoot:
    """A log directory, for planning; each property is read once.

    Attributes:
        path: of the directory.
        storage: the storage that holds it.
        remote: the store with the tiered segments of its partitions; None if there is none.
    """

    path: Path
    storage: LogStorage
    remote: RemoteStore | None = None

    @cached_property
    def log_start_offsets(self) -> dict[TopicPartition, int]:
        """Checkpointed log start offsets."""
        return read_offset_checkpoint(self.path / FileKind.LOG_START_OFFSET_CHECKPOINT.value, self.storage)


@dataclass(frozen=True)
class Replica:
    """A partition directory in use.

    Attributes:
        path: of the directory.
        topic, partition: as in its name.
        log_directory: the log directory that holds it.
    """

    path: Path
    topic: str
    partition: int
    log_directory: LogRoot

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def storage(self) -> LogStorage:
        """Return the storage that holds the directory."""
        return self.log_directory.storage

    @property
    def name(self) -> str:
        """Path or address of the directory."""
        return self.storage.name_of(self.path)

    @cached_property
    def topic_id(self) -> str | None:
        """The topic id in ``partition.metadata``; None if there is none that can be read."""
        path = self.path / FileKind.PARTITION_METADATA.value
        with suppress(SeglogError):
            return decode_partition_metadata(read_file(self.storage, path), Location(str(path))).topic_id
        return None

    def open(self, options: ReadOptions) -> Partition:
        """Open the partition for planning: lookups trust index entries that look right.

        Raises:
            UsageError: it does not exist, or cannot be read.
        """
        honours = options.log_start == "honour"
        listing = list_partition(self.path, self.storage)
        start = self.log_directory.log_start_offsets.get(self.key) if honours else None
        if self.log_directory.remote is not None:
            listing, start = self.log_directory.remote.joined(listing, start)
        return Partition(
            listing,
            log_start_checkpoint=start,
            trust_indexes=True,
            limit=options.limit,
        )


def find_replicas(
    paths: Sequence[str], settings: Mapping[str, str] | None = None, remote: RemoteStore | None = None
) -> tuple[Replica, ...]:
    """Find every partition directory in use at or below some paths, each once, in the order of paths and names.

    Args:
        paths: local paths, or addresses.
        settings: of the file systems of addresses; None to refuse addresses.
        remote: the store with the tiered segments of the partitions.

    Raises:
        UsageError: a path is not a directory, holds no partition directory, or cannot be read; or a pattern has no
            match that is or holds one.
    """
    found: dict[Path, Replica] = {}
    expanded = expanded_paths(paths)
    log_directories: dict[Path, LogRoot] = {}
    for path, depth in expanded:
        storage, root = _located(path, settings)
        directories = list(_partition_directories(storage, root, depth))
        if not directories and not depth:
            _refuse_foreign(storage, root)
        for directory in directories:
            parent = directory.parent
            if parent not in log_directories:
                log_directories[parent] = LogRoot(parent, storage, remote)
            name = parse_partition_directory(directory.name)
            replica = Replica(directory, name.topic, name.partition, log_directories[parent])
            found.setdefault(directory, replica)
    if not found and any(depth for _, depth in expanded):
        msg = f"seglog: no partition directory is below what matches {', '.join(paths)}"
        raise UsageError(msg)
    return tuple(found.values())


def expanded_paths(paths: Iterable[str]) -> list[tuple[str, int]]:
    """Return the paths of a query, with the directories that match a pattern in its place; links do not match.

    Returns:
        Each with its depth below what the query names: 1 for a directory that only matches, else 0.

    Raises:
        UsageError: a local path does not exist, or nothing matches a pattern.
    """
    found = []
    for path in paths:
        local = _local_path(path)
        if local is None or os.path.lexists(local):
            found.append((path, 0))
            continue
        is_pattern = not PATTERN.isdisjoint(local)
        matching = [each for each in map(Path, glob(local)) if each.is_dir() and not each.is_symlink()]  # noqa: PTH207 - of any root
        if not is_pattern or not matching:
            msg = f"seglog: {path}: {'no directory matches' if is_pattern else os.strerror(errno.ENOENT)}"
            raise UsageError(msg)
        found.extend((str(each), 1) for each in sorted(matching))
    return found


def _local_path(path: str) -> str | None:
    """Return a path without ``file:``; None for an address."""
    scheme, colon, rest = path.partition(":")
    if colon and rest.startswith("/") and scheme == "file":
        return "/" + rest.lstrip("/")
    return None if is_address(path) else path


def _located(path: str, settings: Mapping[str, str] | None) -> tuple[LogStorage, Path]:
    """Return the storage of a path that a caller gave, and the path in it."""
    local = _local_path(path)
    if local is not None:
        return LOCAL, Path(local).absolute()
    if settings is None:
        msg = f"seglog: {path}: only local paths can be read"
        raise UsageError(msg)
    store = Store(path, settings)
    remote = RemoteStorage(store, store.listed())
    return remote, remote.root


def _refuse_foreign(storage: LogStorage, path: Path) -> None:
    """Refuse a path without files of Kafka.

    Raises:
        UsageError: there are none.
    """
    if storage.is_local:
        path_kind(path)
    else:
        directory_kind(path, storage)


def _partition_directories(storage: LogStorage, path: Path, depth: int) -> Iterator[Path]:
    files, directories = _scanned(storage, path)
    if any(name.endswith(SEGMENT_ENDINGS) for name in files) or (_is_partition_name(path.name) and not directories):
        if _is_partition_name(path.name):
            yield path
        elif depth == 0:
            shown = storage.name_of(path)
            msg = f"seglog: {shown} holds segments, but its name is not <topic>-<partition>: rename it, or a copy of it"
            raise UsageError(msg)
    elif depth < MAX_DEPTH:
        for name in directories:
            yield from _partition_directories(storage, path / name, depth + 1)


def _scanned(storage: LogStorage, path: Path) -> tuple[list[str], list[str]]:
    """List the names of files and of directories; directories that are links are left out, so none is followed."""
    try:
        entries = storage.entries(path)
    except SeglogError as error:
        msg = f"seglog: {str(error).removeprefix('seglog: ')}"
        raise UsageError(msg) from error
    names = [*entries.files, *(entry.name for entry in entries.skipped)]
    return names, [name for name in entries.directories if not storage.is_link(path / name)]


def _is_partition_name(name: str) -> bool:
    """Return whether a directory of that name is a partition in use, and not marked as deleted, future or stray."""
    try:
        return not parse_partition_directory(name).state
    except FormatError:
        return False


def choose(replicas: Sequence[Replica], options: ReadOptions) -> tuple[Replica, ...]:
    """Choose the directories to read: one for each partition, unless all replicas are wanted.

    Raises:
        UsageError: directories of one partition have several topic ids, which the options refuse.
    """
    groups: dict[tuple[str, int, str | None], list[Replica]] = {}
    wanted = sorted((each for each in replicas if options.wants(*each.key)), key=lambda each: each.key)
    _refuse_recreated(wanted, options)
    ids = _ids(wanted)
    for replica in wanted:
        topic_id = replica.topic_id if len(ids[replica.topic]) > 1 else None
        groups.setdefault((*replica.key, topic_id), []).append(replica)
    return tuple(replica for group in groups.values() for replica in _chosen(group, options))


def _ids(replicas: Iterable[Replica]) -> dict[str, set[str]]:
    ids: dict[str, set[str]] = {}
    for replica in replicas:
        ids.setdefault(replica.topic, set()).update({replica.topic_id} - {None})  # type: ignore[arg-type]
    return ids


def _refuse_recreated(replicas: Iterable[Replica], options: ReadOptions) -> None:
    for topic, ids in _ids(replicas).items():
        if len(ids) > 1 and options.recreated == "refuse":
            msg = (
                f"seglog: topic {topic} was created again: directories have the topic ids {', '.join(sorted(ids))}."
                " Leave some out, or set recreatedTopics to keep, which adds a column topicId"
            )
            raise UsageError(msg)


def _chosen(group: list[Replica], options: ReadOptions) -> list[Replica]:
    if len(group) == 1 or options.replicas == "all":
        return group
    return [group[0] if options.replicas == "first" else max(group, key=lambda each: _length(each, options))]


def _length(replica: Replica, options: ReadOptions) -> tuple[int, int]:
    """Return a sort key: greatest end offset, then least start offset; the first of equal replicas is chosen."""
    with replica.open(options) as partition:
        return partition.log_end_offset, -partition.log_start_offset
