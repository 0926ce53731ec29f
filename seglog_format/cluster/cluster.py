"""A cluster as the log directories of its brokers show it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.cluster.coordinators import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorState,
)
from seglog_format.cluster.image import MetadataImage, TopicImage
from seglog_format.cluster.metadata_log import METADATA_TOPIC, MetadataLog, snapshot_state
from seglog_format.errors import FormatError
from seglog_format.log.directory import open_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.log.side_files import leader_epochs_of, meta_properties_of, topic_id_of
from seglog_format.names import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seglog_format.cluster.metadata_state import MetadataState
    from seglog_format.log.directory import LogDirectories, LogDirectory, PathOrPaths, TopicPartition
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.small_model import EpochStart, MetaProperties

COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)


class Replica(NamedTuple):
    """A copy of a partition in one of the directories.

    Attributes:
        path: the partition directory.
        node_id: of the broker that it belonged to; None where `meta.properties` does not say.
        topic_id: as the directory names it; None without one.
        epochs: leader epochs and the first offset of each, ascending, as the leader epoch checkpoint names them.
        log_start_offset: the first offset that may be read.
        log_end_offset: the offset after the last whole entry; None where the log cannot be read.
        size: bytes of its segments.
        damage: why the log ends before its files do; empty where it was not examined, or is whole.
    """

    path: Path
    node_id: int | None
    topic_id: str | None
    epochs: tuple[EpochStart, ...]
    log_start_offset: int
    log_end_offset: int | None
    size: int
    damage: str = ""

    @property
    def leader_epoch(self) -> int:
        """The highest leader epoch; -1 where none is known."""
        return self.epochs[-1].epoch if self.epochs else -1


Replicas: TypeAlias = "Mapping[TopicPartition, tuple[Replica, ...]]"


class Cluster:
    """What the log directories of brokers say about their cluster. Nothing is created, repaired or locked.

    Attributes:
        directories: the log directories, in the order given.
    """

    def __init__(self, directories: LogDirectories) -> None:
        self.directories = directories

    @cached_property
    def properties(self) -> Mapping[Path, MetaProperties | None]:
        """Whose each directory is."""
        return {each.path: meta_properties_of(each.path) for each in self.directories.directories}

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster; None where no directory names one."""
        named = (each.cluster_id for each in self.properties.values() if each is not None)
        return next((each for each in named if each), None)

    @cached_property
    def metadata_logs(self) -> tuple[MetadataLog, ...]:
        """The copies of the metadata log."""
        entries = (each.partitions.get((METADATA_TOPIC, 0)) for each in self.directories.directories)
        return tuple(MetadataLog(entry.path) for entry in entries if entry is not None)

    def metadata(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataState | None:
        """Return what the metadata log says, from the copy that an election would prefer.

        Args:
            at_offset: the last record to replay; all by default.
            at_time_ms: leave out records that were written later.

        Returns:
            The state of the copy of the highest epoch, and among those of the longest; without a metadata log that
            of ``bootstrap.checkpoint``; None for directories of a cluster that used ZooKeeper.
        """
        states = [log.state(at_offset=at_offset, at_time_ms=at_time_ms) for log in self.metadata_logs]
        states = states or [snapshot_state(path) for path in self._bootstrap_files()]
        return max(states, key=lambda state: (state.epoch, state.end_offset), default=None)

    def _bootstrap_files(self) -> list[Path]:
        files = (each.listing.root_files.get(FileKind.BOOTSTRAP_SNAPSHOT) for each in self.directories.directories)
        return [path for path in files if path is not None]

    @cached_property
    def replicas(self) -> Replicas:
        """The copies of each partition but the metadata log, by topic and number."""
        found: dict[TopicPartition, list[Replica]] = {}
        for directory in self.directories.directories:
            for key, entry in directory.partitions.items():
                if key[0] != METADATA_TOPIC:
                    found.setdefault(key, []).append(self._replica(directory, entry))
        return {key: tuple(copies) for key, copies in sorted(found.items())}

    def _replica(self, directory: LogDirectory, entry: PartitionEntry) -> Replica:
        properties = self.properties[directory.path]
        with directory.open(entry) as partition:
            start, size = partition.log_start_offset, sum(segment.size for segment in partition.segments)
            try:
                end = partition.log_end_offset
            except FormatError:
                end = None
        epochs = leader_epochs_of(entry.path)
        node_id = None if properties is None else properties.node_id
        return Replica(entry.path, node_id, topic_id_of(entry.path), epochs, start, end, size)

    @cached_property
    def coordinators(self) -> CoordinatorState:
        """Groups, transactions and share groups, from the longest copy of each partition of their topics."""
        state = CoordinatorState()
        for (topic, _), copies in self.replicas.items():
            if topic in COORDINATOR_TOPICS:
                with open_partition(best_of(copies).path) as partition:
                    state.replay(topic, partition.batches())
        return state

    def image(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataImage:
        """Return the image of `metadata`; without any, topics as the directories show them."""
        state = self.metadata(at_offset=at_offset, at_time_ms=at_time_ms)
        return image_of(self.replicas) if state is None else state.image

    def lag(self, group: str) -> dict[TopicPartition, int | None]:
        """Return how many offsets each position of a group lies before the log end offset.

        Returns:
            By topic and partition; None where no directory holds the log.

        Raises:
            KeyError: there is no such group.
        """
        offsets = self.coordinators.groups[group].offsets
        return {key: self._distance(key, committed.offset) for key, committed in sorted(offsets.items())}

    def _distance(self, key: TopicPartition, offset: int) -> int | None:
        copies = self.replicas.get(key)
        end = None if copies is None else best_of(copies).log_end_offset
        return None if end is None else max(end - offset, 0)


def best_of(copies: Iterable[Replica]) -> Replica:
    """Return the copy of the highest leader epoch, and among those the longest, as an election prefers them."""
    return max(copies, key=lambda copy: (copy.leader_epoch, -1 if copy.log_end_offset is None else copy.log_end_offset))


def image_of(replicas: Replicas) -> MetadataImage:
    """Return topics and partitions as directories show them, for clusters whose metadata is not at hand.

    The number of partitions is at least the highest seen, plus one; a topic without an id goes by its name.
    """
    image = MetadataImage()
    for (name, number), copies in replicas.items():
        topic_id = next((copy.topic_id for copy in copies if copy.topic_id), name)
        topic = image.topics.setdefault(topic_id, TopicImage(name, topic_id))
        nodes = sorted({copy.node_id for copy in copies if copy.node_id is not None})
        topic.partitions[number] = {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": nodes,
            "leaderEpoch": max(copy.leader_epoch for copy in copies),
        }
    return image


def open_cluster(path_or_paths: PathOrPaths) -> Cluster:
    """Open the log directories of one or several brokers as what remains of their cluster.

    Args:
        path_or_paths: of a log directory, or of several, of one broker or of many.

    Raises:
        UsageError: a path is not a log directory, or cannot be read.

    Examples:
        >>> from seglog_format import open_cluster
        >>> cluster = open_cluster("demo/kafka-4.3.0")
        >>> image = cluster.image()
        >>> image.features["metadata.version"], image.topic_named("txn").partitions[0]["leaderEpoch"]
        (30, 0)
        >>> cluster.metadata().end_offset
        596
    """
    return Cluster(open_log_directory(path_or_paths))
