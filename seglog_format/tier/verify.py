"""Verification of all segments of a remote store, with or without the metadata topic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem
from seglog_format.errors import Location
from seglog_format.requirements import Severity
from seglog_format.tier.states import SegmentState
from seglog_format.tier.stored_findings import compared_findings, name_in, stored_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.tier.ids import RemoteSegmentId
    from seglog_format.tier.metadata_topic import MetadataTopic
    from seglog_format.tier.records import RemoteSegment
    from seglog_format.tier.tier import Tier


@dataclass(slots=True)
class TierExtent:
    """Counts what a verification has read, while it runs.

    Attributes:
        segments: number of segments in the store.
        verified: number of segments whose files were read whole.
        objects: number of objects in the store.
    """

    segments: int = 0
    verified: int = 0
    objects: int = 0


def verify_tier(
    tier: Tier, topic: MetadataTopic | None = None, *, extent: TierExtent | None = None
) -> Iterator[Finding]:
    """Read every segment of a store whole, and compare its log, indexes, manifest and record with one another.

    Args:
        tier: the store.
        topic: content of the metadata topic; None to use the objects alone.
        extent: updated while the verification runs.

    Yields:
        Findings, in the order of partitions and segments.

    Raises:
        UsageError: the store does not answer.
    """
    counted = TierExtent() if extent is None else extent
    counted.objects = len(tier.files.files)
    records = {} if topic is None else _finished(topic)
    for of_partition in tier.segments.values():
        for segment in of_partition:
            counted.segments += 1
            if not tier.is_finished(segment):
                yield _unfinished(tier, segment)
                continue
            record = records.get(segment.segment_id)
            compared = [] if record is None else list(compared_findings(tier, record))
            yield from compared
            if not compared:
                counted.verified += 1
                yield from stored_findings(tier, segment, record)


def _finished(topic: MetadataTopic) -> dict[str, RemoteSegment]:
    """Return the finished segments by segment id, which is unique among all segments."""
    segments = (segment for remote in topic.partitions.values() for segment in remote.segments.values())
    return {each.id.segment_id: each for each in segments if each.state is SegmentState.COPY_SEGMENT_FINISHED}


def _unfinished(tier: Tier, segment: RemoteSegmentId) -> Finding:
    """Return the finding for a segment with missing objects; only its record shows whether its upload was finished."""
    required = " ".join(sorted(kind.value for kind in tier.layout.required(has_aborted=False)))
    present = " ".join(sorted(kind.value for kind in tier.objects_of(segment)))
    problem = Problem(Location(name_in(tier, segment)), f"objects {required}", f"objects {present}")
    return replace(Finding.of("SEG-RLM-015", problem), severity=Severity.WARNING)
