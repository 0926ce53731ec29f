"""Why segments of a tiered partition are not in the remote store, as far as the files show a reason."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import Location
from seglog_format.log.side_files import topic_id_of
from seglog_format.names import FileKind, segment_file_name
from seglog_format.tier.records import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import KnowsTiered, RemoteCopies
    from seglog_format.tier.local_metadata import LocalMetadataTopic
    from seglog_format.tier.records import RemoteSegment


def uncopied(
    entry: PartitionEntry,
    directory: LogDirectory,
    partition: Partition,
    remote: KnowsTiered,
    topic: LocalMetadataTopic,
) -> Iterator[Statement]:
    """Yield the segments that brokers have not copied and do not remove, except those that are copied next.

    Args:
        entry: of the partition.
        directory: the log directory.
        partition: opened.
        remote: knows what the store holds.
        topic: the metadata topic in the log directories, which knows which copies have begun.

    Raises:
        UsageError: the store does not answer.
        FormatError: the log of the metadata topic is damaged.
    """
    copies = remote.copies(partition.listing, partition.log_end_offset)
    if copies is None:
        yield from _nothing_of_it(entry, partition, topic)
        return
    begun = _begun(entry, partition, topic)
    for segment, following in pairwise(partition.segments):
        first, last = max(segment.base_offset, partition.log_start_offset), following.base_offset - 1
        missing = copies.missing(first, last) if first <= last else None
        reason = None if missing is None else _reason(partition, copies, begun, first, last)
        snapshots = {each.base_offset for each in partition.listing.snapshots}
        if missing is not None and reason is None and following.base_offset not in snapshots:
            name = segment_file_name(following.base_offset, FileKind.PRODUCER_SNAPSHOT)
            reason = f"{name} is not here, which brokers copy with it", "SEG-ROL-015"
        if reason is not None:
            why, rule = reason
            what = f"offsets {first} to {last} are not in the remote store, so retention keeps this segment: {why}"
            step = typed("retain", entry.path, "--config", "remote.storage.enable=true")
            if rule == "SEG-LKP-012":
                step = typed("transactions", directory.path)
            where, hurt = Location(segment.path), (Hurt.UPLOADER, Hurt.RETENTION)
            rules = tuple(dict.fromkeys(("SEG-RET-014", rule)))
            yield Statement(Kind.TIER, what, where, rules, hurt, step, None, first)


def _nothing_of_it(entry: PartitionEntry, partition: Partition, topic: LocalMetadataTopic) -> Iterator[Statement]:
    """Yield that the store has segments of other partitions of the topic, and none of this one, which has some."""
    name, number = entry.name.topic_partition
    others = sorted({each.partition for each in topic.of(partition.listing) or () if each.topic == name} - {number})
    if others and len(partition.segments) > 1:
        count = len(partition.segments) - 1
        what = (
            f"no segment of this partition is in the remote store, {count} could be, and segments of partition"
            f" {others[0]} of its topic are: look for errors of copying in the log of its leader"
        )
        step = typed("retain", entry.path, "--config", "remote.storage.enable=true")
        hurt = (Hurt.UPLOADER, Hurt.RETENTION)
        yield Statement(Kind.TIER, what, Location(str(entry.path)), ("SEG-RET-014",), hurt, step)


def _begun(entry: PartitionEntry, partition: Partition, topic: LocalMetadataTopic) -> list[RemoteSegment]:
    """Return the segments of which a copy has begun and not ended, the newest first."""
    known, topic_id = topic.of(partition.listing) or {}, topic_id_of(entry.path)
    of_partition = (
        segments
        for each, segments in known.items()
        if (each.topic, each.partition) == entry.name.topic_partition and topic_id in {None, each.topic_id}
    )
    found = (each for segments in of_partition for each in segments.segments.values())
    begun = (each for each in found if each.state is SegmentState.COPY_SEGMENT_STARTED)
    return sorted(begun, key=lambda each: -each.event_timestamp_ms)


def _reason(
    partition: Partition, copies: RemoteCopies, begun: list[RemoteSegment], first: int, last: int
) -> tuple[str, str] | None:
    """Return why a segment is not copied, and the rule; None if it is only not copied yet."""
    stable = partition.last_stable_offset
    if last >= stable and partition.transactions.open_offsets:
        return f"it ends above the last stable offset, {stable}, and a transaction is open there", "SEG-LKP-012"
    attempt = next((each for each in begun if each.start_offset <= last and each.end_offset >= first), None)
    if attempt is not None:
        return f"broker {attempt.broker_id} has begun to copy it, and has not ended", "SEG-RLM-014"
    if last <= copies.highest_offset:
        return f"{copies.where} has had offsets up to {copies.highest_offset}, and does not have these", "SEG-RET-014"
    return None
