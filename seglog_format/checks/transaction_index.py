"""Checks of chapter 42. The decoder reports an entry of another version (SEG-TXN-002)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.checks.side_files import whole_slots
from seglog_format.log import index_rules
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.side_files import TransactionIndexSubject


@checks("SEG-TXN-001")
def size_is_whole(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole entry."""
    yield from whole_slots(subject.index.path, subject.index.file_size, TRANSACTION_INDEX_ENTRY.size)


@checks("SEG-TXN-003")
def not_below_segment(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an offset below the segment's base offset: brokers then recover the segment."""
    yield from subject.problems(index_rules.aborts_not_below_segment(subject.index.entries, subject.index.base_offset))


@checks("SEG-TXN-004")
def last_offsets_increase(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report entries that are not in the order of their markers."""
    yield from subject.problems(index_rules.aborts_in_order(subject.index.entries))


@checks("SEG-TXN-005")
def first_to_last(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report a transaction that starts after its marker."""
    yield from subject.problems(index_rules.aborted_from_first_to_last(subject.index.entries))


@checks("SEG-TXN-006")
def markers_exist(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an entry without a marker, if the whole log could be read."""
    if subject.aborts is not None:
        yield from subject.problems(index_rules.aborts_have_markers(subject.index.entries, subject.aborts))


@checks("SEG-TXN-008")
def last_stable_offsets(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an invalid last stable offset; brokers end a search at it."""
    yield from subject.problems(index_rules.last_stable_offsets_in_range(subject.index.entries))
