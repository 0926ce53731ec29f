"""The partitions to export, at paths of log directories or partition directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.log.broker_lock import is_locked
from seglog_format.log.listing import list_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.log.path_kind import PathKind, path_kind, require_directory
from seglog_format.names import parse_partition_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator

    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.tables.progress import TopicPartition


@dataclass(frozen=True, slots=True)
class Source:
    """A partition to export.

    Attributes:
        key: topic and number.
        path: the directory.
    """

    key: TopicPartition
    path: Path

    @property
    def is_live(self) -> bool:
        """Return whether a broker uses the directory."""
        return is_locked(self.path.absolute().parent)

    def open(self, remote: RemoteStore | None = None) -> Partition:
        """Open the partition as it is now.

        Args:
            remote: the store with its tiered segments.
        """
        return open_partition(self.path, remote=remote)


def sources_at(
    paths: Iterable[str | os.PathLike[str]],
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
) -> tuple[Source, ...]:
    """Return the partitions at some paths, by topic and number.

    Args:
        paths: of log directories or partition directories.
        topics: to return; None for all.
        partitions: numbers of those to return; None for all.

    Raises:
        UsageError: a path is not such a directory, a partition occurs twice, or a topic, a number or any partition
            is missing.
    """
    found: dict[TopicPartition, Source] = {}
    for source in (each for path in paths for each in _sources(Path(path))):
        topic, number = source.key
        if (topics is not None and topic not in topics) or (partitions is not None and number not in partitions):
            continue
        other = found.setdefault(source.key, source)
        if other is not source:
            msg = f"{source.path} and {other.path} are the same partition: name one of them"
            raise UsageError(msg)
    _require_all([*(topics or ()), *(partitions or ())], found)
    return tuple(found[key] for key in sorted(found))


def _sources(path: Path) -> Iterator[Source]:
    require_directory(path)
    if path_kind(path) is PathKind.LOG_DIRECTORY:
        for entry in list_log_directory(path).partitions:
            if not entry.name.state:
                yield Source(entry.name.topic_partition, entry.path)
        return
    name = parse_partition_directory(path.absolute().name)
    yield Source(name.topic_partition, path)


def _require_all(wanted: Iterable[str | int], found: Collection[TopicPartition]) -> None:
    """Refuse a topic or a number that no partition has, and no partition at all."""
    missing = next((each for each in wanted if not any(each in key for key in found)), None)
    if missing is not None or not found:
        of = f" of topic {missing!r}" if isinstance(missing, str) else f" with the number {missing}"
        msg = f"no partition{'' if missing is None else of} is there"
        raise UsageError(msg)
