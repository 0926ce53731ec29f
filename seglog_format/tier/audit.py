"""The audit of a remote store: it compares the metadata topic, objects, leader epochs and log start offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, findings_of
from seglog_format.tier import audit_checks  # noqa: F401 - registers the checks
from seglog_format.tier.audit_checks import DroppedRecord, StoredObjects, StrayObjects, TieredLog
from seglog_format.tier.metadata_topic import read_local_log, read_metadata_topic
from seglog_format.tier.records import SegmentState
from seglog_format.tier.stored_findings import compared_findings, name_in, stored_findings
from seglog_format.tier.tier import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.directory import LogDirectories
    from seglog_format.tier.expiry import RetentionRules
    from seglog_format.tier.segments import RemoteSegments
    from seglog_format.tier.tier import Tier


@dataclass(slots=True)
class AuditExtent:
    """Counts what an audit has read, while it runs.

    Attributes:
        metadata_partitions: number of partitions of the metadata topic.
        partitions: number of tiered partitions in the metadata topic.
        logs: number of these partitions that have a local log.
        segments: number of segments in the metadata topic, deleted ones included.
        objects: number of objects in the store.
    """

    metadata_partitions: int = 0
    partitions: int = 0
    logs: int = 0
    segments: int = 0
    objects: int = 0


def audit_tier(
    tier: Tier,
    logs: LogDirectories,
    rules: RetentionRules,
    *,
    has_content: bool = False,
    extent: AuditExtent | None = None,
) -> Iterator[Finding]:
    """Check a remote store against the metadata topic and the local logs.

    Args:
        tier: the store.
        logs: log directories with all partitions of the metadata topic, and those of the tiered topics.
        rules: retention settings of the topics; their log start offsets are read.
        has_content: whether to read also every finished segment, as `verify_tier` does.
        extent: updated while the audit runs.

    Yields:
        Findings: about the metadata topic, then about each partition, then about objects that it does not list.

    Raises:
        UsageError: there is no metadata topic, or the store does not answer.
        FormatError: a log or a checkpoint of the log directories is damaged.
    """
    topic = read_metadata_topic(logs)
    counted = AuditExtent() if extent is None else extent
    counted.metadata_partitions, counted.objects = topic.partition_count, len(tier.files.files)
    yield from map(Finding.of_error, topic.errors)
    for whose in sorted(topic.partitions):
        remote = topic.partitions[whose]
        counted.partitions += 1
        counted.segments += len(remote.segments) + len(remote.deleted)
        yield from _segment_findings(tier, remote, has_content=has_content)
        log = read_local_log(logs, whose)
        if log is not None:
            counted.logs += 1
            own = replace(rules, log_start_offset=log.log_start_offset, local_size=log.only_local_size(remote))
            yield from findings_of(TieredLog(f"{whose.topic}-{whose.partition}", remote, log, own))
    yield from _stray_findings(tier, list(topic.partitions.values()))


def _segment_findings(tier: Tier, remote: RemoteSegments, *, has_content: bool) -> Iterator[Finding]:
    for dropped in remote.dropped:
        yield from findings_of(DroppedRecord(name_in(tier, dropped.event.id), dropped))
    for segment in (*remote.segments.values(), *remote.deleted.values()):
        is_finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
        present = frozenset(tier.objects_of(segment.id))
        required = tier.layout.required(has_aborted=False)
        yield from findings_of(StoredObjects(name_in(tier, segment.id), segment, present, required))
        if is_finished and required <= present:
            compared = list(compared_findings(tier, segment))
            yield from compared
            if has_content and not compared:
                yield from stored_findings(tier, segment.id, segment)


def _stray_findings(tier: Tier, known: list[RemoteSegments]) -> Iterator[Finding]:
    named = {(key_of(each), each.segment_id) for remote in known for each in (*remote.segments, *remote.deleted)}
    topic_ids = {key.topic_id for key, _ in named}
    for key, of_partition in sorted(tier.segments.items()):
        for segment, objects in sorted(of_partition.items()):
            if (key, segment.segment_id) not in named:
                stray = StrayObjects(name_in(tier, segment), key.topic_id in topic_ids, frozenset(objects))
                yield from findings_of(stray)
