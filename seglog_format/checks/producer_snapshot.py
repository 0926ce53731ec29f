"""Checks of chapter 50. The decoder checks version, checksum and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.log import index_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.side_files import SnapshotSubject


@checks("SEG-PSN-004")
def producers_are_sound(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report repeated producer ids, and numbers below -1."""
    yield from subject.problems(index_rules.producers_are_sound(subject.producers))


@checks("SEG-PSN-006")
def offsets_below_name(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report an offset at or above the one in the file's name."""
    yield from subject.problems(index_rules.snapshot_offsets_below_name(subject.producers, subject.offset))
