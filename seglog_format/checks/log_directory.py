"""Verification of a log directory: its partitions, its root files, and whether they agree (chapter 11)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from seglog_format.checks.checkpoints import OffsetsAndLogs, PartitionOffsets
from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.partition import metadata_snapshot_findings, partition_findings
from seglog_format.checks.text_files import read_partition_offsets, text_file_findings
from seglog_format.errors import Location
from seglog_format.log.listing import LogDirectoryListing, list_log_directory, list_partition
from seglog_format.log.side_files import meta_properties_of
from seglog_format.names import METADATA_TOPICS, OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.recovery.start_problems import without_topic_id, without_topic_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.checks.partition import Options


@dataclass(frozen=True, slots=True)
class BrokerDirectories:
    """The log directories of one broker: paths of the partitions in use, by topic and partition."""

    partitions: dict[tuple[str, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class WithoutTopicIds:
    """The partition directories of a log directory that lack the ids of their topics, and have to have them."""

    paths: Sequence[Path]


class Checkpoints:
    """The readable offset checkpoints of a log directory.

    Read them before the logs: a running broker appends to the logs in the meantime, so their end offsets only grow.
    """

    def __init__(self, found: Mapping[FileKind, PartitionOffsets]) -> None:
        self._found = found
        self._offsets = {
            kind: {(entry.topic, entry.partition): entry.offset for entry in checkpoint.entries}
            for kind, checkpoint in found.items()
        }

    @classmethod
    def beside(cls, directory: Path) -> Self:
        """Read the checkpoints of a directory."""
        read = {kind: read_partition_offsets(directory / kind.value) for kind in OFFSET_CHECKPOINT_KINDS}
        return cls({kind: checkpoint for kind, checkpoint in read.items() if checkpoint is not None})

    def of(self, partition: tuple[str, int] | None) -> dict[FileKind, int]:
        """Return the offset of a partition in each checkpoint; nothing for a directory without a partition in use."""
        return {kind: offsets[partition] for kind, offsets in self._offsets.items() if partition in offsets}

    def findings(self, log_end_offsets: Mapping[tuple[str, int], int]) -> Iterator[Finding]:
        """Yield findings about offsets above the log end offsets."""
        for checkpoint in self._found.values():
            yield from findings_of(OffsetsAndLogs(checkpoint, log_end_offsets))


@checks("SEG-LDR-002")
def partition_is_held_once(broker: BrokerDirectories) -> Iterator[Problem]:
    """Report a partition in two log directories; the broker gives copies for other purposes other names."""
    for (topic, partition), paths in broker.partitions.items():
        for path in paths[1:]:
            yield Problem(Location(path), f"{topic}-{partition} in one directory", f"it is also in {paths[0]}")


@checks("SEG-LDR-008")
def topics_have_ids(directories: WithoutTopicIds) -> Iterator[Problem]:
    """Report partition directories that a broker takes for those of deleted topics."""
    for error in map(without_topic_id, directories.paths):
        yield Problem(error.location, error.expected, error.found)


def log_directory_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about a log directory."""
    listing = list_log_directory(path)
    checkpoints = Checkpoints.beside(path)
    options.extent.files += len(listing.root_files)
    for error in (*listing.misnamed, *listing.blocked):
        yield Finding.of_error(error)
    for kind, root_file in listing.root_files.items():
        yield from text_file_findings(root_file, kind)
        if kind is FileKind.BOOTSTRAP_SNAPSHOT:
            yield from metadata_snapshot_findings(root_file, options)
    log_end_offsets = {}
    for partition in listing.partitions:
        is_in_use, key = not partition.name.state, partition.name.topic_partition
        log_end_offset = yield from partition_findings(
            partition.path,
            options,
            checkpoints.of(key) if is_in_use else {},
            is_closed=is_in_use and _is_closed(path, key[0]),
        )
        if log_end_offset is not None and is_in_use:
            log_end_offsets[key] = log_end_offset
    yield from findings_of(WithoutTopicIds(without_topic_ids(listing)))
    yield from findings_of(broker_directories([listing]))
    yield from checkpoints.findings(log_end_offsets)


def lone_partition_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about a partition directory, and about its end offset in the checkpoints of its parent."""
    name = list_partition(path).name
    key = None if name is None or name.state else name.topic_partition
    checkpoints = Checkpoints.beside(path.absolute().parent)
    is_closed = key is not None and _is_closed(path.absolute().parent, key[0])
    log_end_offset = yield from partition_findings(path, options, checkpoints.of(key), is_closed=is_closed)
    if log_end_offset is not None and key is not None:
        yield from checkpoints.findings({key: log_end_offset})


def _is_closed(log_directory: Path, topic: str) -> bool:
    """Return whether a log counts as closed cleanly; the loader of the metadata log recovers it always."""
    return topic not in METADATA_TOPICS and (log_directory / FileKind.CLEAN_SHUTDOWN.value).exists()


def repeated_partitions(paths: Sequence[Path]) -> Iterator[Finding]:
    """Yield a finding for each partition that is in several log directories of one broker (SEG-LDR-002).

    Directories whose `meta.properties` name different brokers are not compared with each other. A directory that names
    no broker is compared with all.

    Args:
        paths: log directories. `log_directory_findings` reports a partition that is twice in one of them.
    """
    nodes = {path: _node_of(path) for path in dict.fromkeys(path.resolve() for path in paths)}
    brokers: list[int | None] = [*sorted({node for node in nodes.values() if node is not None})]
    shown = {path.resolve(): path for path in reversed(paths)}
    for node in brokers or [None]:
        mates = [shown[path] for path, of in nodes.items() if of in {node, None}]
        yield from findings_of(_first_of_each([list_log_directory(path) for path in mates]))


def _node_of(directory: Path) -> int | None:
    """Return the id of the broker that a log directory belongs to; None if no readable file names it."""
    properties = meta_properties_of(directory)
    return None if properties is None else properties.node_id


def _first_of_each(listings: list[LogDirectoryListing]) -> BrokerDirectories:
    """Return the paths of each partition, one for each log directory."""
    found: defaultdict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for number, listing in enumerate(listings):
        for partition in listing.partitions:
            if not partition.name.state:
                found[partition.name.topic_partition].setdefault(number, str(partition.path))
    return BrokerDirectories({key: tuple(paths.values()) for key, paths in found.items()})


def broker_directories(listings: list[LogDirectoryListing]) -> BrokerDirectories:
    """Return the partitions in use of several log directories."""
    found: defaultdict[tuple[str, int], tuple[str, ...]] = defaultdict(tuple)
    for listing in listings:
        for partition in listing.partitions:
            if not partition.name.state:
                found[partition.name.topic_partition] += (str(partition.path),)
    return BrokerDirectories(dict(found))
