"""The whole log of a replica with its remote segments: its files, what is missing, and how far it had reached.

Damaged files give every intact entry, and other replicas give those that one lacks: a node gets what salvage makes of
them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.cluster.comparison import Standing, end_of_epoch
from seglog_format.cluster.merged_replicas import merged_log
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.gaps import GapKind
from seglog_format.log.listing import SegmentFiles, checkpointed_offset, list_partition
from seglog_format.log.partition import Partition
from seglog_format.log.side_files import leader_epochs_of
from seglog_format.log.transactions import Transactions, read_on
from seglog_format.model import (
    INT64_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    EpochStart,
    RecordBatch,
    RecordBatchHeader,
)
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.planned_files import opened_segments, read_leader_epochs
from seglog_format.recovery.salvage import salvaged_log, salvaged_segment
from seglog_format.state.producer_state import LeaderEpochs
from seglog_format.storage.new_directory import write_new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster, CommittedOffset
    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.cluster.new_image import NewImage
    from seglog_format.log.directory import TopicPartition
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.salvage import SalvagedLog
    from seglog_format.recovery.salvage_placement import SalvagedSegment


# -- how far a log had reached, and the end that the new node's log gets: no offset is given twice ---------------------


MAX_END: Final = INT64_MAX // 2
"""Higher log ends count as damage: a log would have too few offsets left above them."""

NO_TOPIC_IDS: Final = ("", "A" * 22)
"""Topic ids of positions that name no topic id."""


Position: TypeAlias = "tuple[str, CommittedOffset]"
"""A group, and a position that it committed."""


class ProvedEnd(NamedTuple):
    """An offset that a log had reached.

    Attributes:
        offset: the first offset that is not known to have existed.
        source: what proves it.
    """

    offset: int
    source: str


def raise_ends(
    made: NewImage, cluster: Cluster, replicas: Replicas, whole_logs: Mapping[TopicPartition, WholeLog]
) -> None:
    """Let each log of the node end where the old one had ended at least, and note the offsets that are lost.

    Args:
        made: gets the ends, and the notes.
        cluster: the old cluster.
        replicas: of the partitions, as examined.
        whole_logs: the logs of the new node.
    """
    positions = _positions(cluster)
    for topic in sorted(made.image.topics.values(), key=lambda each: each.name):
        for number in topic.partitions:
            key = (topic.name, number)
            log = whole_logs.get(key)
            end = 0 if log is None else log.log_end_offset
            copies = [copy for copy in replicas.get(key, ()) if copy.topic_id in {None, topic.topic_id}]
            of_topic = [each for each in positions.get(key, ()) if each[1].topic_id in {*NO_TOPIC_IDS, topic.topic_id}]
            known = [ProvedEnd(0, ""), *_proved_ends(key, made, cluster, copies, of_topic)]
            for absurd in {each for each in known if each.offset > MAX_END}:
                text = f"{absurd.source} says that the log had reached {absurd.offset}, above which too few offsets are"
                made.note(f"{topic.name}-{number}", f"{text} left; it does not count")
            offset, source = max((each for each in known if each.offset <= MAX_END), key=lambda each: each.offset)
            if offset <= end:
                for gap in made.logs[key].gaps if key in made.logs else ():
                    if gap.kind is GapKind.MISSING_LOG and gap.first_offset == end:
                        made.note(f"{topic.name}-{number}", f"{gap.missing}, and their number is unknown: {gap.path}")
                continue
            made.ends[key] = offset
            what = "lost"
            if log is None or not log.listing.segments:
                what = "not in the directory, but in a remote store, or lost"
            if log is not None and not log.listing.segments:
                made.logs[key] = made.logs[key]._replace(log_start_offset=offset)
            text = f"offsets {end} to {offset - 1} are {what}: by {source} the log had reached {offset}"
            made.note(f"{topic.name}-{number}", text)


def _positions(cluster: Cluster) -> dict[TopicPartition, list[Position]]:
    """Return the committed positions of all groups by partition."""
    found: dict[TopicPartition, list[Position]] = {}
    for name, group in cluster.coordinators.groups.items():
        for key, position in group.offsets.items():
            found.setdefault(key, []).append((name, position))
    return found


def _proved_ends(
    key: TopicPartition, made: NewImage, cluster: Cluster, copies: Sequence[Replica], positions: Sequence[Position]
) -> Iterator[ProvedEnd]:
    """Yield ends that a partition had, as far as they lie in the history of the chosen replica."""
    chosen, election = made.logs.get(key), made.elections.get(key)
    has_all = chosen is not None and election is not None and election.standing(election.chosen) > Standing.OTHER
    for copy in copies:
        is_chosen = chosen is not None and copy.path == chosen.path
        of = "" if is_chosen else f" beside {copy.path}"
        limit = _limit(chosen, copy.latest_epoch)
        yield ProvedEnd(min(copy.high_watermark, limit), f"{FileKind.REPLICATION_OFFSET_CHECKPOINT.value}{of}")
        for epoch, start in leader_epochs_of(copy.path) if is_chosen or not has_all else ():
            of = "" if is_chosen else f" of {copy.path}"
            yield ProvedEnd(min(start, _limit(chosen, epoch)), f"{FileKind.LEADER_EPOCH_CHECKPOINT.value}{of}")
        end = chosen.log_end_offset if chosen is not None and is_chosen else copy.log_end_offset
        if end is None or copy.log_start_offset <= end:  # else the checkpoint is of another log
            yield ProvedEnd(min(copy.log_start_offset, limit), f"the log start offset of {copy.path}")
            with_offsets = (gap for gap in copy.gaps if gap.first_offset < gap.next_offset)
            yield from (ProvedEnd(min(gap.next_offset, limit), gap.path) for gap in with_offsets)
        if is_chosen:
            yield ProvedEnd(copy.recovery_point, FileKind.RECOVERY_POINT_CHECKPOINT.value)
    for directory in cluster.directories.directories:
        if key not in directory.partitions:
            source = f"{FileKind.REPLICATION_OFFSET_CHECKPOINT.value} in {directory.path}"
            yield ProvedEnd(directory.high_watermarks.get(key, 0), source)
    for name, position in positions:
        # A client may commit any number; with a leader epoch, it has read a record there.
        if position.leader_epoch >= 0 or not has_all:
            end = min(position.offset, _limit(chosen, position.leader_epoch))
            yield ProvedEnd(end, f"the position of group {name}")


def _limit(chosen: Replica | None, epoch: int) -> int:
    """Return the offset at which the chosen history leaves that of a leader epoch."""
    return INT64_MAX if chosen is None else end_of_epoch(chosen, epoch)


def write_end(directory: Path, start: int, end: int, leader_epoch: int) -> None:
    """Write a last segment, with which a log ends where the old one did at least.

    It is empty if the log is. Else it has a batch without records at the last offset, such as compaction leaves: a
    consumer that reads over the lost offsets goes on from there. At an empty segment it would wait for the next record.

    Args:
        directory: of the partition.
        start: log start offset.
        end: log end offset.
        leader_epoch: of the batch.
    """
    batches = [] if start == end else [_batch_without_records(end - 1, leader_epoch)]
    name = segment_file_name(end - len(batches), FileKind.LOG)
    (directory / name).unlink(missing_ok=True)  # the last segment of the old log, which was empty
    write_new_file(directory, name, batches)


def _batch_without_records(offset: int, leader_epoch: int) -> bytes:
    header = RecordBatchHeader(
        base_offset=offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=0,
    )
    return encode_batch(RecordBatch(0, header, ()))


# -- a replica together with its segments in a remote store: the files of the whole log, and what is missing -----------


MAX_RANGES: Final = 100
"""Maximum number of lost ranges of one log that are described."""


class WholeLog(NamedTuple):
    """The files of a log, on a disk or in a store.

    Attributes:
        listing: of the files. For segments in the store, and those that salvage puts together, only the logs, because a
            broker builds the other files.
        log_start_offset: the first offset that may be read.
        log_end_offset: the offset after the last existing one.
        open_offsets: first offsets of transactions that are open at the end of the segments in the store, by producer
            id.
        on_disk: the files of the listing that are whole in the directory.
        remote_count: number of segments from the store; they are the first of the listing.
        size: number of bytes of all logs.
        epochs: leader epochs and the first offset of each, ascending.
        missing: descriptions of offsets that are neither on the disk nor in the store, or are damaged.
        taken: descriptions of what is taken from other replicas.
    """

    listing: PartitionListing
    log_start_offset: int
    log_end_offset: int
    open_offsets: Mapping[int, int]
    on_disk: frozenset[Path]
    remote_count: int
    size: int
    epochs: tuple[EpochStart, ...]
    missing: tuple[str, ...]
    taken: tuple[str, ...] = ()


class _StoredLogs(NamedTuple):
    """The result of reading the segments of a store."""

    files: list[SegmentFiles]
    spans: list[tuple[int, int]]
    damages: list[str]
    open_offsets: Mapping[int, int]
    listing: PartitionListing


def complete_logs(made: NewImage, remote: RemoteStore | None) -> dict[TopicPartition, WholeLog]:
    """Extend the logs by their segments in the store, and note what is still missing."""
    found = {}
    for key, replica in sorted(made.logs.items()):
        others = [each for each in made.elections[key].copies if each is not replica]
        log = found[key] = whole_log(replica, remote, others)
        for text in (*log.taken, *log.missing):
            made.note(f"{key[0]}-{key[1]}", text)
        start, end = log.log_start_offset, log.log_end_offset
        made.logs[key] = replica._replace(log_start_offset=start, log_end_offset=end, size=log.size, epochs=log.epochs)
    return found


def whole_log(replica: Replica, remote: RemoteStore | None = None, others: Sequence[Replica] = ()) -> WholeLog:
    """Return the files of a log.

    Each log in the store is read whole. Of damaged logs, in the store or on the disk, every intact entry is taken.

    Args:
        replica: the local replica, as examined.
        remote: the store; None to use the directory alone.
        others: replicas of the partition that have what damage took from this one.

    Raises:
        UsageError: the store does not answer, or a decryption key is missing.
        FormatError: an object that describes the partition's segments cannot be read.
    """
    local = list_partition(replica.path)
    checkpoint = checkpointed_offset(local, FileKind.LOG_START_OFFSET_CHECKPOINT)
    joined, checkpoint = (local, checkpoint or 0) if remote is None else remote.joined(local, checkpoint)
    with Partition(joined, log_start_checkpoint=checkpoint, trust_indexes=remote is not None) as partition:
        stored = _read((each for each in partition.segments if each.base_offset not in local.base_offsets), joined)
        begin = _first_offset(partition)
    listing = local.logs_alone() if replica.has_logs_alone else local
    listing = listing._replace(storage=stored.listing.storage)
    salvaged = _rescued(listing, others) if replica.damage else None
    listing = listing if salvaged is None else salvaged.listing
    files = (*stored.files, *listing.segments)
    whole = listing._replace(segments=files, base_offsets=tuple(each.base_offset for each in files))
    end = _end(replica, salvaged, stored, checkpoint, has_segments=bool(local.segments))
    start, moved = _start(whole, checkpoint, end)
    bases = sorted((*local.base_offsets[:1], *listing.base_offsets[:1]))  # salvage makes no empty first segment
    gaps = _gaps(min(begin, start), [*stored.spans, *((base, base) for base in bases[:1])])
    return WholeLog(
        whole,
        start,
        max(start, end),
        stored.open_offsets,
        frozenset(file.path for file in local.files),
        len(stored.files),
        sum(whole.storage.status(each.log).size for each in files),
        replica.epochs if salvaged is None else _epochs(local, whole, end),
        (*stored.damages, *gaps, *(salvaged.lost if salvaged else ()), *moved),
        () if salvaged is None else salvaged.taken,
    )


class _Rescued(NamedTuple):
    """The intact entries of a damaged replica, with those that others have: the log, its end, and texts."""

    listing: PartitionListing
    next_offset: int
    lost: Sequence[str]
    taken: tuple[str, ...] = ()


def _rescued(listing: PartitionListing, others: Sequence[Replica]) -> _Rescued:
    """Return what salvage makes of a damaged replica and the others; of it alone if they do not fit together."""
    refused: tuple[str, ...] = ()
    if others:
        try:
            merged, report = merged_log([listing, *(list_partition(each.path) for each in others)])
        except UsageError as error:
            refused = (f"nothing is taken from other replicas: {error}",)
        else:
            lost = [f"{missing.span} are lost, or had no record: no replica has them" for missing in report.lost]
            counts = ((each.taken_count, each.path) for each in report.replicas[1:] if each.taken_count)
            taken = (f"batches that it lacks are taken from {path}: {count}" for count, path in counts)
            return _Rescued(merged, report.next_offset, at_most(lost), tuple(taken))
    alone = salvaged_log(listing)
    ends = (each.next_offset for each in alone.reports if each.entry_count)
    return _Rescued(alone.listing, max(ends, default=0), _lost_ranges(alone.reports), refused)


def _end(
    replica: Replica, salvaged: _Rescued | None, stored: _StoredLogs, checkpoint: int, *, has_segments: bool
) -> int:
    """Return the offset after the last record of a log; the checkpointed log start offset if it has no segment."""
    if salvaged is not None and salvaged.listing.segments:
        return max(salvaged.listing.base_offsets[-1], salvaged.next_offset)
    if salvaged is None and has_segments:
        return replica.log_end_offset or 0
    return max((end for _, end in stored.spans[-1:]), default=checkpoint)


def _start(whole: PartitionListing, checkpoint: int, end: int) -> tuple[int, list[str]]:
    """Return the first offset that may be read, and a text if the checkpoint is not obeyed."""
    first = whole.base_offsets[0] if whole.segments else checkpoint
    if checkpoint <= end or not whole.segments:
        return max(first, checkpoint), []
    text = f"its log start offset, {checkpoint}, is above its end, {end}: that checkpoint is of another log"
    return first, [f"{text}; the log starts at its first record, {first}"]


def _epochs(local: PartitionListing, whole: PartitionListing, end: int) -> tuple[EpochStart, ...]:
    """Return the leader epochs of a salvaged log: those of the checkpoint, then later ones of its batches."""
    epochs = LeaderEpochs(read_leader_epochs(local.path / FileKind.LEADER_EPOCH_CHECKPOINT.value) or ())
    with opened_segments(whole, storage=whole.storage) as segments:
        for header in (frame.header for segment in segments for frame in segment.frames()):
            epoch, offset = header.partition_leader_epoch, header.base_offset
            if offset is not None and epoch > max((each.epoch for each in epochs.entries[-1:]), default=-1):
                epochs.assign(epoch, offset)
    epochs.truncate_to(end)
    return epochs.entries


def _read(segments: Iterable[LogSegment], joined: PartitionListing) -> _StoredLogs:
    """Read each log in a store whole, once; a damaged one gives its intact entries."""
    stored = _StoredLogs([], [], [], {}, joined)
    for segment in segments:
        found = Transactions(open_offsets=dict(stored.open_offsets))
        read_on(found, (segment,), 0)
        files: tuple[SegmentFiles, ...] = (SegmentFiles(segment.base_offset, segment.paths.log),)
        if found.damage is not None:
            salvaged = _salvaged(stored.listing, segment)
            if salvaged is None:
                stored.damages.append(f"{found.damage}; this segment is left out")
                continue
            stored.damages.append(f"{found.damage}; every intact batch of this segment is taken")
            stored.damages.extend(_lost_ranges(salvaged.reports))
            files, stored = salvaged.listing.segments, stored._replace(listing=salvaged.listing)
            found = Transactions(open_offsets=dict(stored.open_offsets))
            with opened_segments(salvaged.listing, storage=salvaged.listing.storage) as intact:
                read_on(found, intact, 0)
        stored.files.extend(files)
        stored.spans.append((segment.base_offset, found.end_offset))
        stored = stored._replace(open_offsets=found.open_offsets)
    return stored


def _salvaged(listing: PartitionListing, segment: LogSegment) -> SalvagedLog | None:
    """Return the intact entries of a damaged segment of a store; None if there are none."""
    with suppress(SeglogError):
        salvaged = salvaged_segment(listing, segment)
        if any(report.entry_count for report in salvaged.reports):
            return salvaged
    return None


def _lost_ranges(reports: Iterable[SalvagedSegment]) -> list[str]:
    """Return texts about ranges that are not salvaged and have offsets, or are whole files; at most `MAX_RANGES`."""
    lost = []
    for report in reports:
        for damage in report.damaged:
            if damage.missing is not None:
                lost.append(f"{report.log.name}: {damage.missing.span} are lost, or had no record: {damage.reason}")
            elif not report.entry_count:
                lost.append(f"{report.log.name}: {damage.reason}")
    return at_most(lost)


def at_most(lost: list[str]) -> list[str]:
    """Return the first `MAX_RANGES` texts about lost ranges, and one about the others."""
    more = len(lost) - MAX_RANGES
    return [*lost[:MAX_RANGES], *([f"{more:,} more ranges are lost"] if more > 0 else ())]


def _first_offset(partition: Partition) -> int:
    """Return the first offset that the partition had, whether local or remote."""
    tiered = partition.tiered_offsets
    return partition.log_start_offset if tiered is None else tiered.first_offset


def _gaps(first: int, spans: list[tuple[int, int]]) -> list[str]:
    """Return texts about the offsets from a first one on that are not in any of the given ranges."""
    gaps = []
    for start, end in spans:
        if first < start:
            gaps.append(f"offsets {first} to {start - 1} are not in the directory, but in a remote store, or lost")
        first = max(first, end)
    return gaps
