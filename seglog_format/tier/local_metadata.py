"""The metadata topic in local log directories: remote segments without the store, and which are deleted next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.cleaning.retention import RetentionLimits
from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_partition_metadata
from seglog_format.errors import CorruptRecordError, FormatError, Location, UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.log.listing import checkpointed_offset
from seglog_format.log.remote_store import RemoteOffsets
from seglog_format.names import REMOTE_LOG_METADATA_TOPIC, FileKind
from seglog_format.state.config import UNLIMITED
from seglog_format.storage.log_storage import LOCAL, read_file
from seglog_format.tier.joining import copies_of, gaps_between, served_parts
from seglog_format.tier.segments import Lineage, SegmentState, remote_event, replay, with_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seglog_format.log.directory import LogDirectories
    from seglog_format.log.listing import PartitionEntry, PartitionListing
    from seglog_format.log.remote_store import RemoteCopies
    from seglog_format.model import MissingOffsets
    from seglog_format.tier.segments import (
        RemoteEvent,
        RemotePartitionId,
        RemoteSegment,
        RemoteSegmentId,
        RemoteSegments,
    )


# -- the metadata topic and the local parts of tiered logs, read from log directories for an audit ---------------------


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
    from seglog_format.codec.coordinator_records import decode_application_record  # noqa: PLC0415 - loads declarations

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
        # 3.6 leaves tiered logs out of the checkpoint; their leader epochs begin where they do
        start = starts.get((whose.topic, whose.partition), min([local_start, *(each.start_offset for each in epochs)]))
        sizes = tuple((each.base_offset, each.log.stat().st_size) for each in partition.listing.segments)
        return LocalLog(entry.path, Lineage(epochs, partition.log_end_offset), start, local_start, sizes)


def _topic_id(path: Path) -> str | None:
    file = path / FileKind.PARTITION_METADATA.value
    if not file.is_file():
        return None
    return decode_partition_metadata(read_file(LOCAL, file), Location(str(file))).topic_id


# -- the decision which remote segments a broker deletes next (chapter 46) ---------------------------------------------


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """The values that decide how long remote segments are kept.

    Attributes:
        log_start_offset: first offset that consumers may read.
        retention_ms: of the topic, -1 for no limit.
        retention_size: of the topic, in bytes, local and remote; -1 for no limit.
        now_ms: the current time.
        local_size: size of the segments that are only local.
        at_limit: whether a segment that is exactly `retention_ms` old is deleted, as up to Kafka 4.1; later versions
            keep it.
    """

    log_start_offset: int = 0
    retention_ms: int = UNLIMITED
    retention_size: int = UNLIMITED
    now_ms: int = 0
    local_size: int = 0
    at_limit: bool = False

    @property
    def limits(self) -> RetentionLimits:
        """The limits of the whole log."""
        return RetentionLimits(self.retention_ms, self.retention_size)

    def is_too_old(self, segment: RemoteSegment) -> bool:
        """Return whether the newest record of a segment is past the retention time."""
        age_ms = self.now_ms - segment.max_timestamp_ms + self.at_limit
        return self.now_ms >= self.retention_ms and self.limits.is_past(age_ms)


@dataclass(slots=True)
class _Expiry:
    remote: RemoteSegments
    lineage: Lineage
    rules: RetentionRules
    size_left: int = 0
    taken: dict[RemoteSegmentId, RemoteSegment] = field(default_factory=dict)

    def run(self) -> None:
        self.size_left = self._size()
        for segment in self._in_order():
            if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
                self.taken[segment.id] = segment
            elif segment.id not in self.taken and not self._take_if_due(segment):
                break
        self._take_below_first_epoch()

    def _in_order(self) -> Iterator[RemoteSegment]:
        return (segment for epoch, _ in self.lineage.epochs for segment in self.remote.of_epoch(epoch))

    def _size(self) -> int:
        """Return the size of the whole log: of its remote segments, and of those that are only local."""
        counted = {
            segment.id: segment.size
            for segment in self._in_order()
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED and self.lineage.holds(segment)
        }
        return sum(counted.values()) + self.rules.local_size

    def _take_if_due(self, segment: RemoteSegment) -> bool:
        """Take a segment if it is due for deletion; return whether later segments have to be checked also."""
        is_held = False
        is_due = self._is_below_log_start(segment)
        if not is_due:
            is_held = self.lineage.holds(segment)
            is_due = is_held and (self._is_too_old(segment) or self._is_too_much(segment))
        if is_due:
            self.taken[segment.id] = segment
        return is_due or not is_held

    def _is_below_log_start(self, segment: RemoteSegment) -> bool:
        first = self.lineage.epochs[0].epoch
        is_older = all(epoch <= first for epoch, _ in segment.epochs)
        return is_older and segment.end_offset < self.rules.log_start_offset

    def _is_too_old(self, segment: RemoteSegment) -> bool:
        is_too_old = self.rules.is_too_old(segment)
        if is_too_old:
            self.size_left -= segment.size
        return is_too_old

    def _is_too_much(self, segment: RemoteSegment) -> bool:
        is_too_much = self.rules.limits.is_over(self.size_left - segment.size)
        if is_too_much:
            self.size_left -= segment.size
        return is_too_much

    def _take_below_first_epoch(self) -> None:
        """Take the segments whose last leader epoch is below the first epoch of the log."""
        first = self.lineage.epochs[0].epoch
        epochs = {epoch for segment in self.remote.segments.values() for epoch, _ in segment.epochs}
        listed = (segment for epoch in sorted(epochs) if epoch < first for segment in self.remote.of_epoch(epoch))
        for segment in listed:
            if segment.epochs[-1].epoch < first:
                self.taken[segment.id] = segment


def expired(remote: RemoteSegments, lineage: Lineage, rules: RetentionRules) -> list[RemoteSegment]:
    """Return the remote segments that the leader deletes in its next run (SEG-RLM-013).

    Args:
        remote: the remote segments of the partition.
        lineage: leader epochs and end of the log; without leader epochs no segment is deleted.
        rules: log start offset and retention settings.

    Returns:
        The segments, each once, in the order in which they are found.
    """
    if not lineage.epochs:
        return []
    expiry = _Expiry(remote, Lineage(with_records(lineage.epochs), lineage.log_end_offset), rules)
    expiry.run()
    return list(expiry.taken.values())


# -- the remote segments in the local partitions of the metadata topic, read without the store -------------------------


class LocalMetadataTopic:
    """The partitions of `__remote_log_metadata` in the log directories of partitions; each log directory is read once.

    They show which remote segments hold tiered offsets (`located`), and what brokers have copied (`copies`), but not
    whether the objects of these exist.
    """

    def __init__(self) -> None:
        self._known: dict[Path, Mapping[RemotePartitionId, RemoteSegments] | None] = {}

    def of(self, listing: PartitionListing) -> Mapping[RemotePartitionId, RemoteSegments] | None:
        """Return the remote segments in the topic; None if the log directory has no partition of the topic.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        if not listing.storage.is_local:
            return None
        directory = listing.path.absolute().parent
        if directory not in self._known:
            self._known[directory] = _read(directory)
        return self._known[directory]

    def copies(self, listing: PartitionListing, log_end_offset: int) -> RemoteCopies | None:
        """Return what the remote store holds of a partition by the records of the topic; None if it has none of it.

        Args:
            listing: of the directory.
            log_end_offset: of the local log.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        return copies_of(listing, log_end_offset, None, self.of(listing))

    def located(self, listing: PartitionListing, tiered: MissingOffsets) -> RemoteOffsets | None:
        """Return the remote segments in the topic that hold offsets; None if it has none of the partition.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        start = checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT)
        served = served_parts(listing, start, None, self.of(listing))
        if served is None:
            return None
        where = f"a remote store, by {REMOTE_LOG_METADATA_TOPIC}"
        return RemoteOffsets(where, len(served.parts), gaps_between(served.parts, tiered))


def _read(directory: Path) -> Mapping[RemotePartitionId, RemoteSegments] | None:
    if not any(directory.glob(f"{REMOTE_LOG_METADATA_TOPIC}-*")):
        return None
    try:
        logs = open_log_directory(directory)
    except UsageError:  # a partition directory outside of a log directory
        return None
    if not any(topic == REMOTE_LOG_METADATA_TOPIC for topic, _ in logs.partitions):
        return None
    return read_metadata_topic(logs).partitions
