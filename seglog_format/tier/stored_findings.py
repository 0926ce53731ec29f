"""Verification of stored segments: it compares their files with one another, and their objects with their records."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.partition import Options, listed_findings
from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.listing import list_partition
from seglog_format.names import FileKind, segment_file_name
from seglog_format.requirements import Severity
from seglog_format.tier.audit_checks import ComparedSegment, StoredLog
from seglog_format.tier.records import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.tier.layout import OpenedSegment
    from seglog_format.tier.metadata_topic import MetadataTopic
    from seglog_format.tier.records import RemoteSegment, RemoteSegmentId
    from seglog_format.tier.tier import Tier


COPY_SIZE: Final = 2**20
KEY_RULE: Final = "SEG-TIR-009"


@checks("SEG-RLM-023")
def log_has_the_offsets(subject: StoredLog) -> Iterator[Problem]:
    """Report a log that does not end where its segment does."""
    if subject.log_end_offset is not None and subject.log_end_offset != subject.end_offset + 1:
        yield Problem(Location(subject.name), f"a log up to offset {subject.end_offset}", subject.log_end_offset - 1)


def stored_findings(tier: Tier, segment: RemoteSegmentId, record: RemoteSegment | None = None) -> Iterator[Finding]:
    """Read a stored segment whole, and yield findings about its files.

    The files are written to a temporary directory.

    Args:
        tier: the store.
        segment: id of the segment.
        record: the segment from the metadata topic; None without it.

    Raises:
        UsageError: the store does not answer.
    """
    try:
        opened = tier.open(segment)
        with tempfile.TemporaryDirectory(prefix="seglog-tier-") as scratch:
            yield from _file_findings(opened, Path(scratch), record)
    except FormatError as error:
        yield Finding.of_error(error)
    except UsageError as error:
        if isinstance(error.__cause__, OSError):
            raise
        yield _unreadable_for(error, tier.name_of(segment, FileKind.LOG))


def _file_findings(opened: OpenedSegment, directory: Path, record: RemoteSegment | None) -> Iterator[Finding]:
    """Yield findings about the files of a segment, with the names of the objects that hold them."""
    end = opened.facts.end_offset if record is None else record.end_offset
    names = {_file_name(kind, opened.facts.start_offset, end): opened.name_of(kind) for kind in opened.kinds}
    for kind in opened.kinds:
        _fetch(opened, kind, directory / _file_name(kind, opened.facts.start_offset, end))
    start = {FileKind.LOG_START_OFFSET_CHECKPOINT: opened.facts.start_offset}  # lower offsets are in other segments
    findings = listed_findings(list_partition(directory), Options(DEFAULT_OUTPUT_LIMIT), start)
    log_end = None
    while True:
        try:
            finding = next(findings)
        except StopIteration as ended:
            log_end = ended.value
            break
        if finding.severity is not Severity.NOTE:
            name = Path(finding.location.path).name
            yield replace(finding, location=replace(finding.location, path=names.get(name, name)))
    if end is not None:
        yield from findings_of(StoredLog(opened.name_of(FileKind.LOG), end, log_end))


def _file_name(kind: FileKind, start_offset: int, end_offset: int | None) -> str:
    """Return the name that a file of a segment has in a partition directory.

    The producer snapshot is that of the segment's end; if the end is not known, the snapshot gets a name that is
    ignored.
    """
    if kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        return str(kind.value)
    if kind is FileKind.PRODUCER_SNAPSHOT:
        return "snapshot" if end_offset is None else segment_file_name(end_offset + 1, kind)
    return segment_file_name(start_offset, kind)


def _fetch(opened: OpenedSegment, kind: FileKind, target: Path) -> None:
    """Fetch a file of a segment, and write it."""
    with opened.open(kind) as source, target.open("wb") as file:
        for position in range(0, source.size, COPY_SIZE):
            file.write(source.view(position, min(position + COPY_SIZE, source.size)))


def _unreadable_for(error: UsageError, name: str) -> Finding:
    """Return the finding for a segment that was not checked because its decryption key is missing."""
    problem = Problem(Location(name), "a private key for the data key", str(error))
    return replace(Finding.of(KEY_RULE, problem), severity=Severity.WARNING)


def compared_findings(tier: Tier, segment: RemoteSegment) -> Iterator[Finding]:
    """Compare the record and the manifest of a segment, without reading its log, and yield findings.

    Raises:
        UsageError: the store does not answer.
    """
    try:
        opened = tier.open(segment.id)
        with opened.open(FileKind.LOG):  # opening compares its size with the manifest
            yield from findings_of(ComparedSegment(name_in(tier, segment.id), segment, opened.facts))
    except FormatError as error:
        yield Finding.of_error(error)


def name_in(tier: Tier, segment: RemoteSegmentId) -> str:
    """Return the name of a segment in the store, without the suffixes of its objects."""
    objects = tier.objects_of(segment)
    if not objects:
        topic, _, partition = segment.partition
        return f"{tier.address}: {topic}-{partition}, segment {segment.segment_id}"
    stored = next(iter(objects.values()))
    return tier.files.name_of(stored.path.removesuffix(stored.kind.value))


# -- verification of all segments of a remote store, with or without the metadata topic --------------------------------


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
