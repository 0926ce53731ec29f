"""The topics and partitions that are served; a partition is opened at its first use.

At the start, directories are only listed: of a thousand partitions, only the names are read. Small files are read, and
the code that reads them is loaded, when a request needs them.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import open_partition
from seglog_format.log.path_kind import partitions_in_use
from seglog_format.names import COORDINATOR_TOPICS, parse_partition_directory, partition_directory_name
from seglog_format.serve.served_partition import ServedPartition
from seglog_format.serve.slices import Source
from seglog_format.storage.log_storage import stays_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.model import EpochStart
    from seglog_format.names import PartitionDirectoryName


class PartitionPaths(Mapping[int, "Path"]):
    """Directories of partitions by number, as paths made at first use.

    Args:
        known: for each number, a directory and the name of a subdirectory; an empty name for the directory itself.
    """

    def __init__(self, known: Mapping[int, tuple[Path, str]]) -> None:
        self._known = known

    def __getitem__(self, number: int) -> Path:
        directory, name = self._known[number]
        return directory / name

    def __contains__(self, number: object) -> bool:
        return number in self._known

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Topic(NamedTuple):
    """A topic and the directories of its partitions.

    Attributes:
        name: of the topic.
        partitions: directories by number.
    """

    name: str
    partitions: Mapping[int, Path]

    @property
    def is_internal(self) -> bool:
        """Return whether brokers created the topic for themselves."""
        return self.name in COORDINATOR_TOPICS


MAX_NEW_TOPICS: Final = 1000
"""Topics that clients may create in a directory that was empty."""

MAX_RESTING: Final = 64
"""Maximum number of partitions that keep their files open; beyond that, the least recently used ones close theirs."""


class NewTopics(NamedTuple):
    """A log directory that was empty at the start: a topic is created when a client first asks for it.

    Attributes:
        root: the directory.
        create: creates partition 0 of a topic there, and returns its directory.
    """

    root: Path
    create: Callable[[Path, str], Path]


class CatalogOptions(NamedTuple):
    """Options for serving partitions.

    Attributes:
        trust_indexes: see `open_partition`.
        is_raw: send bytes unchecked.
        remote: the store with the tiered segments of the partitions.
        end_of: for a topic and a partition with a writer in this process: returns a function for its readable end.
        new_topics: the only served directory, in which clients create topics; None if clients may not create any.
    """

    trust_indexes: bool = False
    is_raw: bool = False
    remote: RemoteStore | None = None
    end_of: Callable[[str, int], Callable[[], int]] | None = None
    new_topics: NewTopics | None = None


class Catalog:
    """The topics of the given directories. Names are looked up in a listing, so no request can name a path.

    Attributes:
        topics: by name.
    """

    def __init__(self, paths: Iterable[Path], options: CatalogOptions, on_finding: Callable[[str], None]) -> None:
        """List the directories; no log file is opened.

        Args:
            paths: of log directories or partition directories.
            options: how to serve them.
            on_finding: called with a message about anything that cannot be served.

        Raises:
            UsageError: a path is neither, or cannot be read.
        """
        self._on_finding = on_finding
        self._options = options
        self._served: OrderedDict[tuple[str, int], ServedPartition] = OrderedDict()
        self._lock = Lock()
        self._log_directories: list[Path] = []
        self._known_cluster_id: str | None = None
        self._known_topic_ids: TopicIds | None = None
        found: dict[str, dict[int, tuple[Path, str]]] = {}
        for path in paths:
            self._list(path, found)
        self.topics = {
            name: Topic(name, PartitionPaths(dict(sorted(numbers.items())))) for name, numbers in sorted(found.items())
        }

    def _list(self, path: Path, found: dict[str, dict[int, tuple[Path, str]]]) -> None:
        new_topics = self._options.new_topics
        listed = [] if new_topics is not None and path == new_topics.root else partitions_in_use(path)
        if listed is None:
            self._add(parse_partition_directory(path.absolute().name), (path, ""), found)
            return
        self._log_directories.append(path)
        for name in listed:
            partition = path / str(name)
            if partition.is_symlink() and not stays_inside(path, partition):
                self._on_finding(f"{partition}: not served, it is a link that leads out of {path}")
            else:
                self._add(name, (path, str(name)), found)

    def _add(
        self, name: PartitionDirectoryName, location: tuple[Path, str], found: dict[str, dict[int, tuple[Path, str]]]
    ) -> None:
        known = found.setdefault(name.topic, {}).setdefault(name.partition, location)
        if known is not location and (path := location[0] / location[1]) != (other := known[0] / known[1]):
            self._on_finding(f"{path}: not served, {other} is the same partition")

    def _open_inside(self, path: Path, **options: Any) -> Partition:
        """Open a partition, unless one of its files is a link that leads out of its log directory."""
        root = path.absolute().parent
        for file in list_partition(path).files:
            if file.path.is_symlink() and not stays_inside(root, file.path):
                msg = f"{file.path}: {path.name} is not served, this is a link that leads out of {root}"
                self._on_finding(msg)
                raise UsageError(msg)
        return open_partition(path, **options)

    def _source(self, topic: str, number: int, path: Path) -> Source:
        options = self._options
        end_of = options.end_of(topic, number) if options.end_of is not None else None
        opener = partial(self._open_inside, path, trust_indexes=options.trust_indexes, remote=options.remote)
        return Source(topic, number, path, opener, end_of, is_raw=options.is_raw)

    @property
    def cluster_id(self) -> str:
        """The cluster id that the directories name, or a generated one."""
        if self._known_cluster_id is None:
            self._known_cluster_id = cluster_id(self._log_directories)
        return self._known_cluster_id

    @property
    def _topic_ids(self) -> TopicIds:
        if self._known_topic_ids is None:
            self._known_topic_ids = TopicIds(self.topics.values())
        return self._known_topic_ids

    @property
    def is_fixed(self) -> bool:
        """Return whether no topics can be added."""
        return self._options.new_topics is None

    def id_of(self, topic: Topic) -> uuid.UUID:
        """Return the id of a topic: the one in its directories, or one made from its name."""
        return self._topic_ids.by_name[topic.name]

    def topic_of(self, topic_id: uuid.UUID | None) -> Topic | None:
        """Return the topic with an id; None if there is none."""
        name = self._topic_ids.names.get(topic_id) if topic_id is not None else None
        return None if name is None else self.topics[name]

    def topic_to_write(self, name: str) -> Topic | None:
        """Return a topic, created if clients may create it; None if there is none.

        Args:
            name: as a client sent it.
        """
        new_topics = self._options.new_topics
        if new_topics is None or name in self.topics:
            return self.topics.get(name)
        with self._lock:
            if name not in self.topics and len(self.topics) < MAX_NEW_TOPICS and _is_topic(name):
                self._create(new_topics, name)
        return self.topics.get(name)

    def _create(self, new_topics: NewTopics, name: str) -> None:
        try:
            path = new_topics.create(new_topics.root, name)
        except SeglogError as error:
            self._on_finding(f"{name}: not created, {error}")
            return
        topic = Topic(name, PartitionPaths({0: (path.parent, path.name)}))
        self.topics = {**self.topics, name: topic}  # other threads may be reading the old one
        self._known_topic_ids = None

    def partition(self, topic: str, number: int) -> ServedPartition | None:
        """Return a partition to read from; None if there is none."""
        key, known = (topic, number), self.topics.get(topic)
        if known is None or number not in known.partitions:
            return None
        with self._lock:
            served = self._served.get(key)
            if served is None:
                source = self._source(topic, number, known.partitions[number])
                served = self._served[key] = ServedPartition(source, self._on_finding)
            self._served.move_to_end(key)
            resting = self._longest_unused()
        if resting is not None:
            resting.rest()
        return served

    def _longest_unused(self) -> ServedPartition | None:
        """Return the least recently used partition beyond the limit, whose files the caller closes."""
        if len(self._served) <= MAX_RESTING:
            return None
        index = len(self._served) - MAX_RESTING - 1
        return list(self._served.values())[index]

    def leader_epochs(self, topic: str, number: int) -> tuple[EpochStart, ...]:
        """Return leader epochs and their first offsets, ascending; empty if the directory does not name any."""
        from seglog_format.log.side_files import leader_epochs_of  # noqa: PLC0415 - as above

        return leader_epochs_of(self.topics[topic].partitions[number])

    def close(self) -> None:
        """Close all files that are not in use."""
        with self._lock:
            for served in self._served.values():
                served.rest()


def _is_topic(name: str) -> bool:
    """Return whether a client's name is a valid topic name (SEG-PDR-002), which is safe in a path and in a message."""
    try:
        partition_directory_name(name, 0)
    except UsageError:
        return False
    return True


def open_catalog(
    paths: Iterable[Path], *, on_finding: Callable[[str], None], options: CatalogOptions | None = None
) -> Catalog:
    """List directories that hold at least one partition, unless clients may create topics.

    Raises:
        UsageError: a path cannot be read, or there is no partition to serve.
        FormatError: a path is neither a log directory nor named like a partition directory.
    """
    given = tuple(paths)
    catalog = Catalog(given, options or CatalogOptions(), on_finding)
    if not catalog.topics and catalog.is_fixed:
        msg = f"{', '.join(map(str, given))}: no partition directory to serve"
        raise UsageError(msg)
    return catalog


# -- ids of the cluster and of topics ----------------------------------------------------------------------------------


NAMESPACE: Final = uuid.UUID("5f5b1a0e-8b1f-4f0e-9d8e-5e6c0d7a4b21")
"""Namespace of the ids generated for topics whose directories name none: the same name gives the same id."""

DEFAULT_CLUSTER_ID: Final = "seglog-serve"


class TopicIds:
    """Ids of topics: the stored id, unless another topic has the same id (as in copies); else one made from the name.

    Attributes:
        by_name: the ids.
        names: the names, by id.
    """

    def __init__(self, topics: Iterable[Topic]) -> None:
        self.names: dict[uuid.UUID, str] = {}
        for topic in topics:
            said = (_topic_id(path) for path in topic.partitions.values())
            found = next((each for each in said if each is not None and each not in self.names), None)
            self.names[found or uuid.uuid5(NAMESPACE, topic.name)] = topic.name
        self.by_name: Mapping[str, uuid.UUID] = {name: topic_id for topic_id, name in self.names.items()}


def _topic_id(partition: Path) -> uuid.UUID | None:
    from seglog_format.log.side_files import topic_id_of  # noqa: PLC0415 - a start does without it

    text = topic_id_of(partition)
    return None if text is None else uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def cluster_id(log_directories: Iterable[Path]) -> str:
    """Return the cluster id of the last log directory that names one, or a generated one."""
    from seglog_format.log.side_files import meta_properties_of  # noqa: PLC0415 - as above

    found = DEFAULT_CLUSTER_ID
    for path in log_directories:
        properties = meta_properties_of(path)
        if properties is not None:
            found = properties.cluster_id or found
    return found
