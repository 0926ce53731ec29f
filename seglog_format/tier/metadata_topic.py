"""The metadata topic and the local parts of tiered logs, read from log directories for an audit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_partition_metadata
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.errors import CorruptRecordError, FormatError, Location, UsageError
from seglog_format.names import REMOTE_LOG_METADATA_TOPIC, FileKind
from seglog_format.storage.log_storage import LOCAL, read_file
from seglog_format.tier.records import remote_event
from seglog_format.tier.segments import Lineage, replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seglog_format.log.directory import LogDirectories
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.tier.records import RemoteEvent, RemotePartitionId
    from seglog_format.tier.segments import RemoteSegments


class MetadataTopic(NamedTuple):
    """The content of the metadata topic's local partitions.

    Attributes:
        partitions: the remote segments of each partition.
        errors: errors of records that cannot be read.
        partition_count: number of local partitions of the topic.
    """

    partitions: Mapping[RemotePartitionId, RemoteSegments]
    errors: list[FormatError]
    partition_count: int


class LocalLog(NamedTuple):
    """The local part of a tiered log.

    Attributes:
        path: of its directory.
        lineage: its leader epochs and its log end offset.
        log_start_offset: first offset of the whole log that consumers may read.
        local_start_offset: first offset in the directory.
        sizes: base offset and size in bytes of each of its local segments.
    """

    path: Path
    lineage: Lineage
    log_start_offset: int
    local_start_offset: int
    sizes: tuple[tuple[int, int], ...]

    def only_local_size(self, remote: RemoteSegments) -> int:
        """Return the size of the local segments that begin above the highest copied offset (SEG-RLM-013)."""
        highest = self.lineage.highest_copied(remote)
        copied = -1 if highest is None else highest[0]
        return sum(size for base_offset, size in self.sizes if base_offset > copied)


def read_metadata_topic(logs: LogDirectories) -> MetadataTopic:
    """Replay the partitions of the metadata topic in log directories.

    Args:
        logs: the log directories.

    Raises:
        UsageError: there is no partition of the metadata topic.
        FormatError: a log of the metadata topic is damaged.
    """
    entries = [entry for (topic, _), entry in sorted(logs.partitions.items()) if topic == REMOTE_LOG_METADATA_TOPIC]
    if not entries:
        msg = f"no partition of {REMOTE_LOG_METADATA_TOPIC} in the log directories: only it shows which objects count"
        raise UsageError(msg)
    errors: list[FormatError] = []
    events = (event for entry in entries for event in _events(logs, entry, errors))
    return MetadataTopic(replay(events), errors, len(entries))


def _events(logs: LogDirectories, entry: PartitionEntry, errors: list[FormatError]) -> Iterator[RemoteEvent]:
    with logs.opened(entry) as partition:
        for record in partition.records(partition.log_start_offset):
            decoded = decode_application_record(REMOTE_LOG_METADATA_TOPIC, record.key, record.value)
            try:
                event = None if decoded is None else remote_event(decoded)
            except CorruptRecordError as error:
                errors.append(_located(error, entry.path, record.offset))
                continue
            if event is not None:
                yield event


def _located(error: FormatError, path: Path, offset: int) -> FormatError:
    """Return an error about a record with the location of the record."""
    at = replace(error.location, path=str(path), field=f"offset {offset}: {error.location.field}")
    return type(error)(at, *error.requirements, expected=error.expected, found=error.found)


def read_local_log(logs: LogDirectories, whose: RemotePartitionId) -> LocalLog | None:
    """Read the local part of a tiered log.

    Args:
        logs: the log directories.
        whose: the partition.

    Returns:
        The log; None if there is no directory of the partition with this topic id, or it has no leader epochs.

    Raises:
        FormatError: a file is damaged.
        UsageError: a file cannot be read.
    """
    entry = logs.partitions.get((whose.topic, whose.partition))
    if entry is None or _topic_id(entry.path) != whose.topic_id:
        return None
    checkpoint = entry.path / FileKind.LEADER_EPOCH_CHECKPOINT.value
    if not checkpoint.is_file():
        return None
    epochs = decode_leader_epoch_checkpoint(read_file(LOCAL, checkpoint), Location(str(checkpoint))).entries
    starts = logs.directory_of(entry).log_start_offsets
    with logs.opened(entry) as partition:
        local_start = partition.segments[0].base_offset if partition.segments else partition.log_end_offset
        start = starts.get((whose.topic, whose.partition), local_start)
        sizes = tuple((each.base_offset, each.log.stat().st_size) for each in partition.listing.segments)
        return LocalLog(entry.path, Lineage(epochs, partition.log_end_offset), start, local_start, sizes)


def _topic_id(path: Path) -> str | None:
    file = path / FileKind.PARTITION_METADATA.value
    if not file.is_file():
        return None
    return decode_partition_metadata(read_file(LOCAL, file), Location(str(file))).topic_id
