"""Checks of a remote store against the metadata topic and the local log (chapter 46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.checks.finding import Problem, checks
from seglog_format.errors import Location
from seglog_format.model import MissingOffsets
from seglog_format.object_names import ObjectKind
from seglog_format.tier.expiry import expired
from seglog_format.tier.records import SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.tier.expiry import RetentionRules
    from seglog_format.tier.layout import SegmentFacts
    from seglog_format.tier.metadata_topic import LocalLog
    from seglog_format.tier.records import RemoteSegment
    from seglog_format.tier.segments import Dropped, RemoteSegments


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
