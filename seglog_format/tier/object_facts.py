"""Remote segments from their objects alone, without the metadata topic; which of them count is then a guess."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, UsageError
from seglog_format.names import FileKind, printable
from seglog_format.record_model import EpochStart
from seglog_format.tier.records import RemotePartitionId, RemoteSegment, SegmentState, SegmentUpdate
from seglog_format.tier.segments import RemoteSegments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.tier.layout import OpenedSegment
    from seglog_format.tier.records import RemoteSegmentId
    from seglog_format.tier.tier import Tier

MAX_THREADS: Final = 8
"""Maximum number of manifests that are fetched concurrently."""


def remote_segments_of(tier: Tier, topic: str, topic_id: str | None, partition: int) -> RemoteSegments | None:
    """Return the remote segments of a partition, from the objects of finished segments; None if there are none.

    Args:
        tier: the remote store.
        topic: name of the topic.
        topic_id: its id; None to find it by the name.
        partition: number of the partition.

    Raises:
        FormatError: an object does not follow the layout.
        UsageError: the store does not answer, or several topics or topic ids match the name.
    """
    ids = [id_ for key, of_partition in tier.segments.items() for id_ in of_partition if key.partition == partition]
    whole = list(filter(tier.is_finished, ids))
    wanted = [id_ for id_ in whole if id_.partition.topic_id == topic_id] if topic_id else _named(whole, topic)
    if not wanted:
        return None
    with ThreadPoolExecutor(MAX_THREADS) as pool:
        opened = list(pool.map(tier.open, wanted))
    found = RemoteSegments(RemotePartitionId(topic, topic_id or wanted[0].partition.topic_id, partition))
    for segment in sorted(filter(None, map(segment_of, wanted, opened)), key=_noted):
        finished = SegmentUpdate(segment.id, SegmentState.COPY_SEGMENT_FINISHED)
        found.apply(segment)
        found.apply(finished)
    return found


def _named(ids: Sequence[RemoteSegmentId], topic: str) -> list[RemoteSegmentId]:
    """Return the segments of a topic by its name; if no object has exactly that name, a prefix may precede it."""
    exact = [id_ for id_ in ids if id_.partition.topic == topic]
    found = exact or [id_ for id_ in ids if id_.partition.topic.endswith(topic)]
    topics = sorted({(id_.partition.topic, id_.partition.topic_id) for id_ in found})
    if len(topics) > 1:
        listed = ", ".join(f"{printable(name)} ({topic_id})" for name, topic_id in topics)
        msg = (
            f"{topic}: {len(topics)} topics of the remote store fit this name: {listed}; the topic id, which "
            "partition.metadata has, is missing or cannot be read"
        )
        raise UsageError(msg)
    return found


def segment_of(id_: RemoteSegmentId, opened: OpenedSegment) -> RemoteSegment | None:
    """Return a segment from its objects, in the state of a begun upload; None if its end offset is not known."""
    facts = opened.facts
    end = _last_offset(opened) if facts.end_offset is None else facts.end_offset
    if end is None or end < facts.start_offset:
        return None
    return RemoteSegment(
        id_,
        SegmentState.COPY_SEGMENT_STARTED,
        facts.start_offset,
        end,
        facts.epochs or (EpochStart(0, facts.start_offset),),
        size=facts.size or 0,
        event_timestamp_ms=-1 if facts.noted_ms is None else facts.noted_ms,
        is_transaction_index_empty=FileKind.TRANSACTION_INDEX not in opened.kinds,
    )


def _noted(segment: RemoteSegment) -> tuple[int, int, int]:
    """Return a sort key for the order of uploads, as far as the objects show it."""
    return segment.event_timestamp_ms, segment.epochs[-1].epoch, segment.start_offset


def _last_offset(opened: OpenedSegment) -> int | None:
    """Walk the headers of a log, and return its last offset; None if there is no entry."""
    if FileKind.LOG not in opened.kinds:
        return None
    last = None
    try:
        with opened.open(FileKind.LOG) as source:
            for frame in walk(source, path=source.path):
                last = frame.header.last_offset
    except FormatError:
        return last
    return last
