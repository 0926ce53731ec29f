"""What is served: topics and partitions of the directories given, opened when somebody asks for them."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_partition_metadata
from seglog_format.codec.properties import decode_meta_properties
from seglog_format.errors import Location, SeglogError, UsageError
from seglog_format.log.directory import LogDirectory
from seglog_format.log.file_bytes import read_whole
from seglog_format.log.listing import PartitionEntry, is_log_directory, list_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.names import FileKind, parse_partition_directory
from seglog_format.serve.served_partition import ServedPartition, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from seglog_format.model import EpochStart

NAMESPACE: Final = uuid.UUID("5f5b1a0e-8b1f-4f0e-9d8e-5e6c0d7a4b21")
"""Of the ids that topics get here when their directories name none: the same name, the same id."""

MAX_RESTING: Final = 64
"""So many partitions keep their files open; those that nobody has asked for longest close theirs."""

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
DEFAULT_CLUSTER_ID: Final = "seglog-serve"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and where its partitions stand.

    Attributes:
        name: of the topic.
        topic_id: as its directories say, or made from the name.
        partitions: directories by number.
    """

    name: str
    topic_id: uuid.UUID
    partitions: Mapping[int, Path]

    @property
    def is_internal(self) -> bool:
        """Whether brokers made it for themselves."""
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """How partitions are served.

    Attributes:
        trust_indexes: see `open_partition`.
        is_raw: send bytes whatever they are.
        end_of: for a topic and a partition that somebody writes to here: what tells how far it may be read.
    """

    trust_indexes: bool = False
    is_raw: bool = False
    end_of: Callable[[str, int], Callable[[], int]] | None = None


class Catalog:
    """The topics of some directories. Names are looked up in what was listed: no request can name a path.

    Attributes:
        topics: by name.
        cluster_id: as the directories say, or a name of our own.
    """

    def __init__(self, paths: Iterable[Path], options: CatalogOptions, on_finding: Callable[[str], None]) -> None:
        """List the directories; no log file is opened.

        Args:
            paths: of log directories or partition directories.
            options: how to serve them.
            on_finding: told of what cannot be served.

        Raises:
            UsageError: a path is neither, or cannot be read.
        """
        self._on_finding = on_finding
        self._options = options
        self._sources: dict[tuple[str, int], Source] = {}
        self._served: OrderedDict[tuple[str, int], ServedPartition] = OrderedDict()
        self._lock = Lock()
        self.cluster_id = DEFAULT_CLUSTER_ID
        found: dict[str, dict[int, Path]] = {}
        for path in paths:
            for entry in self._entries(path):
                self._add(entry, found)
        self._names: dict[uuid.UUID, str] = {}
        self.topics = {name: self._topic(name, numbers) for name, numbers in sorted(found.items())}

    def _entries(self, path: Path) -> list[PartitionEntry]:
        if not is_log_directory(path):
            return [PartitionEntry(path, parse_partition_directory(path.absolute().name))]
        directory = LogDirectory(list_log_directory(path))
        self.cluster_id = _cluster_id(directory) or self.cluster_id
        return list(directory.partitions.values())

    def _add(self, entry: PartitionEntry, found: dict[str, dict[int, Path]]) -> None:
        topic, number = entry.name.topic_partition
        other = found.setdefault(topic, {}).setdefault(number, entry.path)
        if other != entry.path:
            self._on_finding(f"{entry.path}: not served, {other} is the same partition")
            return
        options = self._options
        end_of = options.end_of(topic, number) if options.end_of is not None else None
        copy = False if end_of is not None else None  # the lock is ours then, and nothing is cut short
        opener = partial(open_partition, entry.path, trust_indexes=options.trust_indexes, copy=copy)
        self._sources[topic, number] = Source(topic, number, entry.path, opener, end_of, is_raw=options.is_raw)

    def _topic(self, name: str, partitions: Mapping[int, Path]) -> Topic:
        """A topic with the id that its directories say, unless another topic has that, as copies have."""
        ids = (_topic_id(path) for _, path in sorted(partitions.items()))
        topic_id = next((found for found in ids if found is not None and found not in self._names), None)
        topic = Topic(name, topic_id or uuid.uuid5(NAMESPACE, name), dict(sorted(partitions.items())))
        self._names[topic.topic_id] = name
        return topic

    def topic_of(self, topic_id: uuid.UUID | None) -> Topic | None:
        """The topic with an id; None where there is none."""
        name = self._names.get(topic_id) if topic_id is not None else None
        return None if name is None else self.topics[name]

    def partition(self, topic: str, number: int) -> ServedPartition | None:
        """A partition to read from; None where there is none."""
        key = (topic, number)
        source = self._sources.get(key)
        if source is None:
            return None
        with self._lock:
            served = self._served.get(key)
            if served is None:
                served = self._served[key] = ServedPartition(source, self._on_finding)
            self._served.move_to_end(key)
            resting = self._longest_unused()
        if resting is not None:
            resting.rest()
        return served

    def _longest_unused(self) -> ServedPartition | None:
        """The partition that is one too many, taken out of the row; its files close, what is known of it stays."""
        if len(self._served) <= MAX_RESTING:
            return None
        place = len(self._served) - MAX_RESTING - 1
        return list(self._served.values())[place]

    def leader_epochs(self, topic: str, number: int) -> tuple[EpochStart, ...]:
        """Leader epochs and their first offsets, ascending; none where the directory does not tell."""
        path = self.topics[topic].partitions[number] / FileKind.LEADER_EPOCH_CHECKPOINT.value
        try:
            return decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries
        except SeglogError:
            return ()

    def close(self) -> None:
        """Close all files that nobody is using."""
        with self._lock:
            for served in self._served.values():
                served.rest()


def _topic_id(path: Path) -> uuid.UUID | None:
    file = path / FileKind.PARTITION_METADATA.value
    try:
        text = decode_partition_metadata(read_whole(file), Location(str(file))).topic_id
    except SeglogError:
        return None
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def _cluster_id(directory: LogDirectory) -> str | None:
    path = directory.path / FileKind.META_PROPERTIES.value
    try:
        return decode_meta_properties(read_whole(path), Location(str(path))).cluster_id
    except SeglogError:
        return None


def open_catalog(
    paths: Iterable[Path], *, on_finding: Callable[[str], None], options: CatalogOptions | None = None
) -> Catalog:
    """List directories, of which at least one partition has to come.

    Raises:
        UsageError: a path cannot be read, or nothing is there to serve.
        FormatError: a path is neither a log directory nor named like a partition directory.
    """
    given = tuple(paths)
    catalog = Catalog(given, options or CatalogOptions(), on_finding)
    if not catalog.topics:
        msg = f"{', '.join(map(str, given))}: no partition directory to serve"
        raise UsageError(msg)
    return catalog
