"""Checks of chapter 40."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.checks.side_files import whole_slots, zero_slots
from seglog_format.log import index_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.side_files import OffsetIndexSubject


@checks("SEG-IDX-001")
def size_is_whole(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole slot."""
    yield from whole_slots(subject.index.path, subject.index.file_size, subject.index.layout.size)


@checks("SEG-IDX-002")
def relative_offsets_not_negative(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset below the base offset in the file name."""
    yield from subject.problems(index_rules.relative_offsets_not_negative(subject.entries, subject.index.base_offset))


@checks("SEG-IDX-003")
def positions_start_entries(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position past the end of the log or inside an entry."""
    yield from subject.problems(index_rules.positions_start_entries(subject.entries, subject.log))


@checks("SEG-IDX-004")
def offsets_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset not above that of the slot before."""
    yield from subject.problems(index_rules.offsets_increase(subject.entries))


@checks("SEG-IDX-005")
def positions_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position not above that of the slot before."""
    yield from subject.problems(index_rules.positions_increase(subject.entries))


@checks("SEG-IDX-006")
def offsets_match_positions(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset that is not in the entry at its position; every lookup relies on that."""
    base_offset = subject.index.base_offset
    yield from subject.problems(index_rules.offsets_match_positions(subject.entries, base_offset, subject.log))


@checks("SEG-IDX-007")
def zero_tail(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report slots of zeros: a killed broker leaves them at the end of its preallocated file."""
    index = subject.index
    yield from zero_slots(index.path, len(subject.entries) * index.layout.size, index.trailing_zero_count)
