"""Subjects of the checks of side files: an index or snapshot beside the content of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem
from seglog_format.codec.producer_snapshot import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import Location
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.log.index_file import OffsetIndex, TimeIndex, TransactionIndex
    from seglog_format.log.index_rules import Violation
    from seglog_format.log.log_outline import LogOutline
    from seglog_format.model import OffsetPosition, TimestampOffset
    from seglog_format.record_model import ProducerStateEntry


@dataclass(frozen=True, slots=True)
class OffsetIndexSubject:
    """An offset index and its log."""

    index: OffsetIndex
    entries: Sequence[OffsetPosition]
    log: LogOutline

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, self.index.layout.size)


@dataclass(frozen=True, slots=True)
class TimeIndexSubject:
    """A time index and its log; the index of a partition's last segment need not be complete."""

    index: TimeIndex
    entries: Sequence[TimestampOffset]
    log: LogOutline
    is_active: bool

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, self.index.layout.size)


@dataclass(frozen=True, slots=True)
class TransactionIndexSubject:
    """A transaction index, and producer ids by offset of the ABORT records in its segment; None if unknown."""

    index: TransactionIndex
    aborts: Mapping[int, int] | None

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, TRANSACTION_INDEX_ENTRY.size)


@dataclass(frozen=True, slots=True)
class SnapshotSubject:
    """The producers of a snapshot, and the offset in the name of its file."""

    path: str
    producers: Sequence[ProducerStateEntry]
    offset: int

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the snapshot file."""
        return located(violations, self.path, PRODUCER_SNAPSHOT_HEADER.size, PRODUCER_STATE_ENTRY.size)


def located(violations: Iterable[Violation], path: str, start: int, entry_size: int) -> Iterator[Problem]:
    """Convert violations by slot to problems by position."""
    for violation in violations:
        position = start + violation.slot * entry_size
        yield Problem(Location(path, position, violation.field, entry_size), violation.expected, violation.found)


def whole_slots(path: str, size: int, entry_size: int) -> Iterator[Problem]:
    """Yield a problem if a file does not have a whole number of entries."""
    rest = size % entry_size
    if rest:
        yield Problem(Location(path, size - rest, size=rest), f"a multiple of {entry_size} bytes", f"{rest} more bytes")


def zero_slots(path: str, position: int, count: int) -> Iterator[Problem]:
    """Yield a problem if slots at the end of an index are zero."""
    if count:
        yield Problem(Location(path, position), "the end of the index", f"{count} zero slots")
