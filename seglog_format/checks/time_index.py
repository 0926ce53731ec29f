"""Checks of chapter 41."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.checks.side_files import whole_slots, zero_slots
from seglog_format.log import index_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.side_files import TimeIndexSubject


@checks("SEG-TIX-001")
def size_is_whole(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole slot."""
    yield from whole_slots(subject.index.path, subject.index.file_size, subject.index.layout.size)


@checks("SEG-TIX-002")
def timestamps_increase(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report a timestamp not above that of the slot before."""
    yield from subject.problems(index_rules.timestamps_increase(subject.entries))


@checks("SEG-TIX-003")
def offsets_do_not_decrease(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an offset below that of the slot before, or below the base offset."""
    base_offset = subject.index.base_offset
    yield from subject.problems(index_rules.time_offsets_do_not_decrease(subject.entries, base_offset))


@checks("SEG-TIX-004")
def later_timestamps_follow(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry if an earlier record has a later timestamp; every lookup relies on there being none."""
    yield from subject.problems(index_rules.later_timestamps_follow(subject.entries, subject.log))


@checks("SEG-TIX-005")
def timestamps_match_log(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry whose timestamp does not occur at its offset."""
    yield from subject.problems(index_rules.timestamps_match_log(subject.entries, subject.log))


@checks("SEG-TIX-006")
def last_timestamp_is_largest(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report a complete index whose last timestamp is not the largest; brokers use it as the segment's age."""
    if not subject.is_active and not subject.index.trailing_zero_count:
        yield from subject.problems(index_rules.last_timestamp_is_largest(subject.entries, subject.log))


@checks("SEG-TIX-007")
def zero_tail(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report slots of zeros: a killed broker leaves them at the end of its preallocated file."""
    index = subject.index
    yield from zero_slots(index.path, len(subject.entries) * index.layout.size, index.trailing_zero_count)
