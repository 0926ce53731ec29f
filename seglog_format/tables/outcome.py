"""The outcome of an export: the added rows, and the changes of the log since the last run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from seglog_format.errors import FormatError, UndecodedRecordError
    from seglog_format.model import MissingOffsets


class ChangeKind(Enum):
    """The kinds of changes of a log since the last export.

    Attributes:
        CUT: the log ends before the table does.
        REWRITTEN: at the offset of the table's last row, the log has a different record.
        DELETED: records were deleted from the log before the table had them.
        COMPACTED: records that the table has were compacted.
        MISSING: offsets are missing from the log before the added ones.
        DAMAGED: damage hides the records after it: the table ends before it, and so does every later run.
    """

    CUT = "cut"
    REWRITTEN = "rewritten"
    DELETED = "deleted"
    COMPACTED = "compacted"
    MISSING = "missing"
    DAMAGED = "damaged"

    @property
    def is_reported_by_reader(self) -> bool:
        """Whether reading the log also reports the change, by `on_gap` or by an error."""
        return self in {ChangeKind.MISSING, ChangeKind.DAMAGED}


class Change(NamedTuple):
    """A change of a partition since its table was written.

    Attributes:
        kind: of the change.
        topic: of the partition.
        partition: its number.
        text: the change, and its meaning for the table.
        missing: the offsets that the log lacks or hides; None if they are unknown.
    """

    kind: ChangeKind
    topic: str
    partition: int
    text: str
    missing: MissingOffsets | None = None

    @property
    def is_end(self) -> bool:
        """Return whether no export can continue the table: it has rows that differ from the log."""
        return self.kind in {ChangeKind.CUT, ChangeKind.REWRITTEN}

    @property
    def is_loss(self) -> bool:
        """Return whether the table lacks records, or differs from the log; compaction is no loss for the table."""
        return self.kind is not ChangeKind.COMPACTED

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.text}"


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The outcome for one partition.

    Attributes:
        topic: its topic.
        partition: its number.
        first_offset: the first offset to read.
        next_offset: first offset that the table does not have.
        row_count: number of new rows.
        file_count: number of new files.
        size: of the new files, in bytes.
        undecoded_count: number of new rows in the table of records that cannot be decoded.
        changes: of the log since the last run, and the gaps and the damage that this run found.
        stopped_by: the error at which reading ended; None if it reached the end of the log.
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
