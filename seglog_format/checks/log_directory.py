"""Verifying a log directory: its partitions, its root files, and what they say of each other (chapter 11)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.checkpoints import OffsetsAndLogs
from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.partition import log_findings, partition_findings
from seglog_format.checks.text_files import read_partition_offsets, text_file_findings
from seglog_format.errors import Location
from seglog_format.log.listing import LogDirectoryListing, list_log_directory
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.checks.partition import Options


@dataclass(frozen=True, slots=True)
class BrokerDirectories:
    """The log directories of one broker: paths of the partitions in use, by topic and partition."""

    partitions: dict[tuple[str, int], tuple[str, ...]]


@checks("SEG-LDR-002")
def partition_stands_once(broker: BrokerDirectories) -> Iterator[Problem]:
    """Copies that wait for something have a name of their own."""
    for (topic, partition), paths in broker.partitions.items():
        for path in paths[1:]:
            yield Problem(Location(path), f"{topic}-{partition} in one directory", f"it also stands in {paths[0]}")


def log_directory_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Everything that is to be said about a log directory."""
    listing = list_log_directory(path)
    for error in listing.misnamed:
        yield Finding.of_error(error)
    for kind, root_file in listing.root_files.items():
        yield from text_file_findings(root_file, kind)
        if kind is FileKind.BOOTSTRAP_SNAPSHOT:
            yield from log_findings(root_file, 0, options)
    log_end_offsets = {}
    for partition in listing.partitions:
        log_end_offset = yield from partition_findings(partition.path, options)
        if log_end_offset is not None and not partition.name.state:
            log_end_offsets[partition.name.topic_partition] = log_end_offset
    yield from findings_of(broker_directories([listing]))
    yield from checkpointed_offset_findings(listing, log_end_offsets)


def checkpointed_offset_findings(
    listing: LogDirectoryListing, log_end_offsets: dict[tuple[str, int], int]
) -> Iterator[Finding]:
    """Hold the offset checkpoints of a log directory against its logs."""
    for kind, path in listing.root_files.items():
        if kind in OFFSET_CHECKPOINT_KINDS:
            checkpoint = read_partition_offsets(path)
            if checkpoint is not None:
                yield from findings_of(OffsetsAndLogs(checkpoint, log_end_offsets))


def broker_directories(listings: list[LogDirectoryListing]) -> BrokerDirectories:
    """The partitions in use of several log directories."""
    found: defaultdict[tuple[str, int], tuple[str, ...]] = defaultdict(tuple)
    for listing in listings:
        for partition in listing.partitions:
            if not partition.name.state:
                found[partition.name.topic_partition] += (str(partition.path),)
    return BrokerDirectories(dict(found))
