"""The audit of a remote store, and the verification of its segments (chapter 46).

The metadata topic, the objects, the leader epochs, the log start offsets and the stored files are compared.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.partition import Options, listed_findings
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.listing import list_partition
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, MissingOffsets
from seglog_format.names import FileKind, ObjectKind, segment_file_name
from seglog_format.requirements import Severity
from seglog_format.tier.local_metadata import expired, read_local_log, read_metadata_topic
from seglog_format.tier.segments import SegmentState
from seglog_format.tier.tier import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.log.directory import LogDirectories
    from seglog_format.tier.layout import OpenedSegment, SegmentFacts
    from seglog_format.tier.local_metadata import LocalLog, MetadataTopic, RetentionRules
    from seglog_format.tier.segments import Dropped, RemoteSegment, RemoteSegmentId, RemoteSegments
    from seglog_format.tier.tier import Tier


# -- checks of a remote store against the metadata topic and the local log (chapter 46) --------------------------------


FINISHED: Final = SegmentState.COPY_SEGMENT_FINISHED
UNREADABLE_WITHOUT: Final = frozenset({ObjectKind.LOG, ObjectKind.MANIFEST})
"""Objects without which no record of a segment can be read."""


@checks("SEG-RLM-004")
def record_follows_state(subject: DroppedRecord) -> Iterator[Problem]:
    """Report a record that the current state of its segment does not allow, such as a second deletion."""
    dropped = subject.dropped
    state = "no such segment" if dropped.state is None else f"the state {dropped.state.name}"
    at = Location(subject.name, field="remoteLogSegmentState")
    yield Problem(at, "a record that its segment's state allows", f"{dropped.event.state.name} after {state}")


@checks("SEG-RLM-014")
def copying_has_ended(subject: StoredObjects) -> Iterator[Problem]:
    """Report a segment whose copying never finished."""
    if subject.segment.state is SegmentState.COPY_SEGMENT_STARTED:
        found = f"COPY_SEGMENT_STARTED, {_shown(subject.present)}"
        yield Problem(Location(subject.name), "a segment that was finished or deleted", found)


@checks("SEG-RLM-015")
def objects_are_there(subject: StoredObjects) -> Iterator[Problem]:
    """Report missing objects of a finished segment."""
    missing = subject.required - subject.present
    if subject.segment.state is FINISHED and missing:
        at, lost = Location(subject.name), missing & UNREADABLE_WITHOUT
        offsets = _offsets_of(subject.segment) if lost else None
        yield Problem(at, _shown(subject.required), f"no object {_suffixes(missing)}", offsets)


@checks("SEG-RLM-016")
def deletion_has_ended(subject: StoredObjects) -> Iterator[Problem]:
    """Report a segment whose deletion has not ended, or has left objects."""
    state = subject.segment.state
    if state is SegmentState.DELETE_SEGMENT_STARTED or (state > FINISHED and subject.present):
        yield Problem(
            Location(subject.name), "no object of a deleted segment", f"{state.name}, {_shown(subject.present)}"
        )


@checks("SEG-RLM-017")
def objects_are_named(subject: StrayObjects) -> Iterator[Problem]:
    """Report objects for whose segment the metadata topic has no record."""
    whose = "segment" if subject.is_topic_known else "topic id"
    yield Problem(Location(subject.name), f"a {whose} that the metadata topic names", _shown(subject.present))


@checks("SEG-RLM-018")
def every_offset_is_covered(subject: TieredLog) -> Iterator[Problem]:
    """Report offsets below the local log that no remote segment holds."""
    log = subject.log
    reached = log.log_start_offset
    for part in subject.log.lineage.served(subject.remote, log.log_start_offset):
        if reached < min(part.first_offset, log.local_start_offset):
            yield _gap(subject, reached, min(part.first_offset, log.local_start_offset))
        reached = max(reached, part.last_offset + 1)
    if reached < log.local_start_offset:
        yield _gap(subject, reached, log.local_start_offset)


def _gap(subject: TieredLog, start: int, end: int) -> Problem:
    expected = f"segments for the offsets up to {subject.log.local_start_offset}, where the local log begins"
    return Problem(Location(subject.name), expected, f"none from {start} to {end - 1}", MissingOffsets(start, end))


@checks("SEG-RLM-019")
def segments_are_of_the_lineage(subject: TieredLog) -> Iterator[Problem]:
    """Report finished segments outside the lineage of leader epochs; as a note if an election has superseded them."""
    lineage = subject.log.lineage
    due = {segment.id for segment in expired(subject.remote, lineage, subject.rules)}
    known = {epoch for epoch, _ in lineage.epochs}
    for segment in _finished(subject):
        if segment.id not in due and not lineage.holds(segment):
            last = segment.epochs[-1].epoch
            is_void = last in known and lineage.end_of(last) < lineage.log_end_offset
            expected = f"leader epochs of the log, {_epochs(lineage.epochs)}"
            found = f"offsets {segment.start_offset} to {segment.end_offset} of {_epochs(segment.epochs)}"
            yield Problem(_at(subject, segment), expected, found, is_explained=is_void)


@checks("SEG-RLM-020")
def segments_do_not_overlap(subject: TieredLog) -> Iterator[Problem]:
    """Report finished segments of the lineage that hold the same offsets."""
    held = [segment for segment in _finished(subject) if subject.log.lineage.holds(segment)]
    before: RemoteSegment | None = None
    for segment in sorted(held, key=lambda each: (each.start_offset, each.end_offset)):
        if before is not None and segment.start_offset <= before.end_offset:
            expected = f"a start offset above {before.end_offset}, the end of segment {before.id.segment_id}"
            yield Problem(_at(subject, segment), expected, segment.start_offset)
        if before is None or segment.end_offset > before.end_offset:
            before = segment


@checks("SEG-RLM-021")
def nothing_is_due(subject: TieredLog) -> Iterator[Problem]:
    """Report segments that the leader should have deleted."""
    for segment in expired(subject.remote, subject.log.lineage, subject.rules):
        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:
            expected = f"no segment below the log start offset {subject.rules.log_start_offset}, or past retention"
            found = f"offsets {segment.start_offset} to {segment.end_offset}, {segment.state.name}"
            yield Problem(_at(subject, segment), expected, found)


@checks("SEG-RLM-022")
def objects_agree_with_record(subject: ComparedSegment) -> Iterator[Problem]:
    """Report where the objects of a segment contradict its record."""
    segment, facts = subject.segment, subject.facts
    pairs = (
        ("startOffset", segment.start_offset, facts.start_offset),
        ("endOffset", segment.end_offset, facts.end_offset),
        ("segmentLeaderEpochs", _epochs(segment.epochs), _epochs(facts.epochs) if facts.epochs else None),
        ("segmentSizeInBytes", segment.size, facts.size),
    )
    for field, expected, found in pairs:
        if found is not None and found != expected:
            at = Location(subject.name, field=field)
            yield Problem(at, f"{expected}, as the metadata topic says", found)


def _offsets_of(segment: RemoteSegment) -> MissingOffsets:
    """Return the offsets of a segment, as offsets that cannot be read."""
    return MissingOffsets(segment.start_offset, segment.end_offset + 1)


def _finished(subject: TieredLog) -> list[RemoteSegment]:
    return [segment for segment in subject.remote.segments.values() if segment.state is FINISHED]


def _at(subject: TieredLog, segment: RemoteSegment) -> Location:
    return Location(f"{subject.name}/{segment.start_offset:020}-{segment.id.segment_id}")


def _epochs(epochs: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{epoch} from {offset}" for epoch, offset in epochs) or "none"


def _shown(kinds: Iterable[ObjectKind]) -> str:
    shown = _suffixes(kinds)
    return f"objects {shown}" if shown else "no objects"


def _suffixes(kinds: Iterable[ObjectKind]) -> str:
    return " ".join(sorted(kind.value for kind in kinds))


# -- the subjects of an audit of a remote store: one class for each kind of subject that checks take -------------------


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record of the metadata topic that changes nothing.

    Attributes:
        name: of the segment.
        dropped: the record.
    """

    name: str
    dropped: Dropped


@dataclass(frozen=True, slots=True)
class StoredObjects:
    """The objects of one segment of the metadata topic.

    Attributes:
        name: of the segment in the store.
        segment: from the metadata topic.
        present: kinds of the existing objects.
        required: kinds of objects that a finished segment must have.
    """

    name: str
    segment: RemoteSegment
    present: frozenset[ObjectKind]
    required: frozenset[ObjectKind]


@dataclass(frozen=True, slots=True)
class StrayObjects:
    """The objects of a segment that is not in the metadata topic.

    Attributes:
        name: of the segment in the store.
        is_topic_known: whether another segment of the same partition is in the metadata topic.
        present: kinds of the objects.
    """

    name: str
    is_topic_known: bool
    present: frozenset[ObjectKind]


@dataclass(frozen=True, slots=True)
class ComparedSegment:
    """A finished segment, once from its record and once from its objects.

    Attributes:
        name: of the segment in the store.
        segment: from the metadata topic.
        facts: from the objects.
    """

    name: str
    segment: RemoteSegment
    facts: SegmentFacts


@dataclass(frozen=True, slots=True)
class TieredLog:
    """A tiered partition: its remote segments and its local log.

    Attributes:
        name: of the partition.
        remote: its remote segments.
        log: its local part.
        rules: retention settings.
    """

    name: str
    remote: RemoteSegments
    log: LocalLog
    rules: RetentionRules


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The log of a stored segment, which was read whole.

    Attributes:
        name: of the object.
        end_offset: last offset of the segment, inclusive.
        log_end_offset: the offset after the last entry of the log; None if the log has none.
    """

    name: str
    end_offset: int
    log_end_offset: int | None


# -- verification of stored segments: it compares their files with one another, and their objects with their records ---


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
            log_end = None if ended.value is None else ended.value[0]
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
    records = {} if topic is None else _finished_by_id(topic)
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


def _finished_by_id(topic: MetadataTopic) -> dict[str, RemoteSegment]:
    """Return the finished segments by segment id, which is unique among all segments."""
    segments = (segment for remote in topic.partitions.values() for segment in remote.segments.values())
    return {each.id.segment_id: each for each in segments if each.state is SegmentState.COPY_SEGMENT_FINISHED}


def _unfinished(tier: Tier, segment: RemoteSegmentId) -> Finding:
    """Return the finding for a segment with missing objects; only its record shows whether its upload was finished."""
    required = " ".join(sorted(kind.value for kind in tier.layout.required(has_aborted=False)))
    present = " ".join(sorted(kind.value for kind in tier.objects_of(segment)))
    problem = Problem(Location(name_in(tier, segment)), f"objects {required}", f"objects {present}")
    return replace(Finding.of("SEG-RLM-015", problem), severity=Severity.WARNING)


# -- the audit of a remote store: it compares the metadata topic, objects, leader epochs and log start offsets ---------


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
