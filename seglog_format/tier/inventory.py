"""The list of all segments in a remote store, including unreadable ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.record_model import EpochStart
    from seglog_format.tier.layout import StoredObject
    from seglog_format.tier.records import RemotePartitionId, RemoteSegmentId
    from seglog_format.tier.segments import RemoteSegments
    from seglog_format.tier.tier import Tier


class StoredSummary(NamedTuple):
    """A segment of a store.

    Attributes:
        id: from the names of the objects, or from the manifest.
        start_offset: from the names of the objects.
        end_offset: last offset, inclusive; None if neither the manifest nor a record has it.
        epochs: leader epochs with their first offset in the segment.
        state: name of its state in the metadata topic; None without a record.
        size: size of the original log in bytes; None if unknown.
        stored_size: size of all its objects in bytes.
        objects: its objects, in the order of their paths.
        problem: why it cannot be read; None if no problem is known.
    """

    id: RemoteSegmentId
    start_offset: int
    end_offset: int | None
    epochs: tuple[EpochStart, ...]
    state: str | None
    size: int | None
    stored_size: int
    objects: tuple[StoredObject, ...]
    problem: str | None


def inventory(
    tier: Tier, known: Mapping[RemotePartitionId, RemoteSegments] | None = None, topic: str | None = None
) -> Iterator[StoredSummary]:
    """Yield the segments of a store, sorted by partition and start offset; only manifests are fetched.

    Args:
        tier: the store.
        known: remote segments from the metadata topic; None without it.
        topic: name of the only topic to list; None to list all.

    Raises:
        UsageError: the store does not answer.
    """
    for _, of_partition in sorted(tier.segments.items()):
        found = [_summary(tier, id_, known or {}) for id_ in of_partition]
        for each in sorted(found, key=lambda one: (one.start_offset, one.id)):
            if topic is None or each.id.partition.topic == topic:
                yield each


def _summary(tier: Tier, id_: RemoteSegmentId, known: Mapping[RemotePartitionId, RemoteSegments]) -> StoredSummary:
    objects = tuple(sorted(tier.objects_of(id_).values(), key=lambda stored: stored.path))
    size = sum(tier.files.size(stored.path) for stored in objects)
    try:
        facts, problem = tier.open(id_).facts, None
        found = StoredSummary(
            facts.id, facts.start_offset, facts.end_offset, facts.epochs, None, facts.size, size, objects, problem
        )
    except (FormatError, UsageError) as error:
        if isinstance(error.__cause__, OSError):
            raise
        found = StoredSummary(id_, objects[0].start_offset, None, (), None, None, size, objects, str(error))
    return _with_record(found, known)


def _with_record(found: StoredSummary, known: Mapping[RemotePartitionId, RemoteSegments]) -> StoredSummary:
    """Add the values from the record of a segment."""
    of_partition = known.get(found.id.partition)
    if of_partition is None:
        return found
    record = of_partition.segments.get(found.id) or of_partition.deleted.get(found.id)
    if record is None:
        return found
    end = record.end_offset if found.end_offset is None else found.end_offset
    return found._replace(end_offset=end, epochs=found.epochs or record.epochs, state=record.state.name)
