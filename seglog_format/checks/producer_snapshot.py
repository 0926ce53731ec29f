"""Checks of chapter 50. Version, checksum and size are held by the decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.log import index_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.side_files import SnapshotSubject


@checks("SEG-PSN-004")
def producers_are_sound(subject: SnapshotSubject) -> Iterator[Problem]:
    """Ids occur once; nothing is below -1."""
    yield from subject.problems(index_rules.producers_are_sound(subject.producers))


@checks("SEG-PSN-006")
def offsets_below_name(subject: SnapshotSubject) -> Iterator[Problem]:
    """A snapshot stops short of the offset in its name."""
    yield from subject.problems(index_rules.snapshot_offsets_below_name(subject.producers, subject.offset))
