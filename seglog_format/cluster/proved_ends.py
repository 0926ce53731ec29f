"""How far a log had reached, and the end that the new node's log gets: no offset is given twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.cluster.comparison import Standing, end_of_epoch
from seglog_format.codec.encode import encode_batch
from seglog_format.log.side_files import leader_epochs_of
from seglog_format.model import (
    INT64_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RecordBatchHeader,
)
from seglog_format.names import FileKind, segment_file_name
from seglog_format.record_model import RecordBatch
from seglog_format.storage.new_directory import write_new_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.cluster.coordinators import CommittedOffset
    from seglog_format.cluster.new_image import NewImage
    from seglog_format.cluster.whole_log import WholeLog
    from seglog_format.log.directory import TopicPartition

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
    key: TopicPartition,
    made: NewImage,
    cluster: Cluster,
    copies: Sequence[Replica],
    positions: Sequence[Position],
) -> Iterator[ProvedEnd]:
    """Yield ends that a partition had, as far as they lie in the history of the chosen replica."""
    chosen, election = made.logs.get(key), made.elections.get(key)
    has_all = chosen is not None and election is not None and election.standing(election.chosen) > Standing.OTHER
    for copy in copies:
        is_chosen = chosen is not None and copy.path == chosen.path
        of = "" if is_chosen else f" beside {copy.path}"
        limit = _limit(chosen, copy.latest_epoch)
        yield ProvedEnd(min(copy.high_watermark, limit), f"{FileKind.REPLICATION_OFFSET_CHECKPOINT.value}{of}")
        end = chosen.log_end_offset if chosen is not None and is_chosen else copy.log_end_offset
        if end is None or copy.log_start_offset <= end:  # else the checkpoint is of another log
            yield ProvedEnd(min(copy.log_start_offset, limit), f"the log start offset of {copy.path}")
            yield from (ProvedEnd(min(gap.next_offset, limit), gap.path) for gap in copy.gaps)
        if is_chosen:
            yield ProvedEnd(copy.recovery_point, FileKind.RECOVERY_POINT_CHECKPOINT.value)
        for epoch, start in leader_epochs_of(copy.path) if is_chosen or not has_all else ():
            of = "" if is_chosen else f" of {copy.path}"
            yield ProvedEnd(min(start, _limit(chosen, epoch)), f"{FileKind.LEADER_EPOCH_CHECKPOINT.value}{of}")
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
