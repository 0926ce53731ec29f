"""The subjects of an audit of a remote store: one class for each kind of subject that checks take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglog_format.object_names import ObjectKind
    from seglog_format.tier.expiry import RetentionRules
    from seglog_format.tier.layout import SegmentFacts
    from seglog_format.tier.metadata_topic import LocalLog
    from seglog_format.tier.records import RemoteSegment
    from seglog_format.tier.segments import Dropped, RemoteSegments


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
