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
    """Bytes after the last whole slot."""
    yield from whole_slots(subject.index.path, subject.index.file_size, subject.index.layout.size)


@checks("SEG-TIX-002")
def timestamps_increase(subject: TimeIndexSubject) -> Iterator[Problem]:
    """From slot to slot."""
    yield from subject.problems(index_rules.timestamps_increase(subject.entries))


@checks("SEG-TIX-003")
def offsets_do_not_decrease(subject: TimeIndexSubject) -> Iterator[Problem]:
    """From slot to slot, starting at the base offset."""
    base_offset = subject.index.base_offset
    yield from subject.problems(index_rules.time_offsets_do_not_decrease(subject.entries, base_offset))


@checks("SEG-TIX-004")
def younger_records_follow(subject: TimeIndexSubject) -> Iterator[Problem]:
    """The one claim that a lookup rests on."""
    yield from subject.problems(index_rules.younger_records_follow(subject.entries, subject.log))


@checks("SEG-TIX-005")
def timestamps_match_log(subject: TimeIndexSubject) -> Iterator[Problem]:
    """An entry names the offset at which its timestamp was seen."""
    yield from subject.problems(index_rules.timestamps_match_log(subject.entries, subject.log))


@checks("SEG-TIX-006")
def last_timestamp_is_largest(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Brokers take it for the age of the segment. An index with preallocated zeros was not finished."""
    if not subject.is_active and not subject.index.trailing_zero_count:
        yield from subject.problems(index_rules.last_timestamp_is_largest(subject.entries, subject.log))


@checks("SEG-TIX-007")
def zero_tail(subject: TimeIndexSubject) -> Iterator[Problem]:
    """What a killed broker leaves of its preallocated file."""
    index = subject.index
    yield from zero_slots(index.path, len(subject.entries) * index.layout.size, index.trailing_zero_count)
