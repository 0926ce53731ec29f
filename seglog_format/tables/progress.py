"""The progress of a table in each partition, with the facts by which a later run notices changes of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from seglog_format.model import INT64_MAX, MissingOffsets

if TYPE_CHECKING:
    from seglog_format.errors import FormatError, UndecodedRecordError


TopicPartition: TypeAlias = tuple[str, int]
SegmentSize: TypeAlias = tuple[int, int]
"""Base offset of a segment, and the size of its log in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a table in one partition.

    Attributes:
        next_offset: first offset that the table does not have.
        leader_epoch: of the last row; -1 if unknown.
        last_offset: of the last row; None without rows.
        last_row: digest of the last row; empty without rows.
        file_count: number of files.
        row_count: number of rows.
        size: of the files, in bytes.
        segments: closed segments, at the last run, whose records the table has.
    """

    next_offset: int = 0
    leader_epoch: int = -1
    last_offset: int | None = None
    last_row: str = ""
    file_count: int = 0
    row_count: int = 0
    size: int = 0
    segments: tuple[SegmentSize, ...] = ()

    def after(self, **changes: Any) -> Progress:  # noqa: ANN401 - attributes of this class
        """Return a copy with some attributes replaced."""
        return replace(self, **changes)

    def as_json(self) -> dict[str, Any]:
        """Return the progress as the manifest holds it."""
        return {
            "nextOffset": self.next_offset,
            "leaderEpoch": self.leader_epoch,
            "lastOffset": self.last_offset,
            "lastRow": self.last_row,
            "files": self.file_count,
            "rows": self.row_count,
            "bytes": self.size,
            "segments": [list(segment) for segment in self.segments],
        }


def progress_of_json(value: object) -> Progress:
    """Return the progress that a manifest holds.

    Raises:
        ValueError: the value is not a progress.
    """
    if not isinstance(value, dict):
        raise ValueError("partition")  # noqa: EM101, TRY004 - the name of the field is enough
    last = value.get("lastOffset")
    return Progress(
        next_offset=_number(value, "nextOffset"),
        leader_epoch=_number(value, "leaderEpoch", -1),
        last_offset=None if last is None else _number(value, "lastOffset"),
        last_row=_text(value, "lastRow"),
        file_count=_number(value, "files"),
        row_count=_number(value, "rows"),
        size=_number(value, "bytes"),
        segments=_segments(value.get("segments")),
    )


def _number(value: dict[str, Any], name: str, least: int = 0) -> int:
    found = value.get(name)
    if type(found) is not int or not least <= found <= INT64_MAX:
        raise ValueError(name)
    return found


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise ValueError(name)  # noqa: TRY004 - as above
    return found


def _segments(value: object) -> tuple[SegmentSize, ...]:
    try:
        pairs = [(base, size) for base, size in value]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ValueError("segments") from None  # noqa: EM101 - as above
    if not all(type(number) is int for pair in pairs for number in pair):
        raise ValueError("segments")  # noqa: EM101 - as above
    return tuple(pairs)


# -- the outcome of an export: the added rows, and the changes of the log since the last run ---------------------------


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


class OpenTransaction(NamedTuple):
    """The first open transaction of a partition, before which an export of committed records ends.

    Attributes:
        producer_id: of its producer.
        first_offset: of its first record.
        open_count: number of open transactions, with this one.
        end_offset: where the export would have ended without them.
    """

    producer_id: int
    first_offset: int
    open_count: int
    end_offset: int

    def __str__(self) -> str:
        others = f" and {self.open_count - 1} more" if self.open_count > 1 else ""
        return (
            f"waits at offset {self.first_offset} for the open transaction of producer {self.producer_id}{others}:"
            f" offsets {self.first_offset} to {self.end_offset - 1} are not exported"
        )


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
        undecoded_count: number of records that could not be decoded: they are in the table beside this one.
        undecoded_reason: why the first of them could not be; None if there is none.
        changes: of the log since the last run, and the gaps and the damage that this run found.
        stopped_by: the error at which reading ended; None if it reached the end of the log.
        waits_for: the open transaction at which an export of committed records ended; None if there is none.
    """

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    row_count: int = 0
    file_count: int = 0
    size: int = 0
    undecoded_count: int = 0
    undecoded_reason: str | None = None
    changes: tuple[Change, ...] = ()
    stopped_by: FormatError | UndecodedRecordError | None = None
    waits_for: OpenTransaction | None = None

    def is_complete(self, *, allows_undecoded: bool = False) -> bool:
        """Return whether the table now has every record that the log has for it.

        Args:
            allows_undecoded: whether records that could not be decoded count as records that the table has.
        """
        return (
            self.stopped_by is None
            and self.waits_for is None
            and (allows_undecoded or not self.undecoded_count)
            and not any(change.is_loss for change in self.changes)
        )
