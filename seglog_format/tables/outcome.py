"""The outcome of an export: what was added, and what has become of the log since the last run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from seglog_format.errors import FormatError, UndecodedRecordError
    from seglog_format.model import MissingOffsets


class ChangeKind(Enum):
    """The kinds of changes.

    Attributes:
        CUT: the log ends before the table does.
        REWRITTEN: the log has another record where the table has its last one.
        DELETED: records were deleted from the log before the table had them.
        COMPACTED: records that the table has were compacted.
        MISSING: offsets are missing from the log before the ones that were added.
        DAMAGED: damage hides what follows: the table ends before it, and so does every further run.
    """

    CUT = "cut"
    REWRITTEN = "rewritten"
    DELETED = "deleted"
    COMPACTED = "compacted"
    MISSING = "missing"
    DAMAGED = "damaged"

    @property
    def is_reported_by_reader(self) -> bool:
        """Whether reading the log also reports it, by `on_gap` or by an error."""
        return self in {ChangeKind.MISSING, ChangeKind.DAMAGED}


class Change(NamedTuple):
    """A change of a partition behind its table.

    Attributes:
        kind: what has happened.
        topic: of the partition.
        partition: its number.
        text: what it means for the table.
        missing: the offsets that the log does not have, or hides; None where they are not known.
    """

    kind: ChangeKind
    topic: str
    partition: int
    text: str
    missing: MissingOffsets | None = None

    @property
    def is_end(self) -> bool:
        """Return whether the table cannot go on: it has rows that the log never had in this way."""
        return self.kind in {ChangeKind.CUT, ChangeKind.REWRITTEN}

    @property
    def is_loss(self) -> bool:
        """Return whether table and log disagree; compaction loses nothing that the table should have."""
        return self.kind is not ChangeKind.COMPACTED

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.text}"


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The outcome for one partition.

    Attributes:
        topic: its topic.
        partition: its number.
        first_offset: from which on offsets were read.
        next_offset: first offset that the table does not have.
        row_count: number of new rows.
        file_count: number of new files.
        size: bytes of them.
        undecoded_count: number of new rows in the table of what could not be decoded.
        changes: of the log since the last run, and what this one found missing or damaged.
        stopped_by: the error at which reading ended; None where it reached the end of the log.
    """

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    row_count: int = 0
    file_count: int = 0
    size: int = 0
    undecoded_count: int = 0
    changes: tuple[Change, ...] = ()
    stopped_by: FormatError | UndecodedRecordError | None = None
