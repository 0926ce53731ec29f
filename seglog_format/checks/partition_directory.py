"""Checks of chapter 10: names, companions, and how segments follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.errors import Location
from seglog_format.names import (
    MAX_TOPIC_SIZE,
    FileName,
    PartitionDirectoryName,
    is_legal_topic,
    is_usual_unique,
    printable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.model import MissingOffsets


@dataclass(frozen=True, slots=True)
class NumberedName:
    """A file whose name holds an offset."""

    path: str
    name: FileName

    def problem(self, expected: str, found: object) -> Problem:
        """A problem with the name."""
        return Problem(Location(self.path, field="name"), expected, found)


@dataclass(frozen=True, slots=True)
class DirectoryName:
    """A partition directory and what its name says."""

    path: str
    name: PartitionDirectoryName


@dataclass(frozen=True, slots=True)
class SegmentState:
    """A segment of a partition: its files, and how far its log goes.

    Attributes:
        path: of the log.
        base_offset: from the file name.
        next_offset: the first offset after its last intact entry; the base offset without one.
        missing: kinds of index files that are not there.
        is_end_known: the last entry is intact, and nothing behind it could be one.
        has_tail: bytes that are no whole entry follow the last one.
    """

    path: str
    base_offset: int
    next_offset: int
    missing: tuple[str, ...] = ()
    is_end_known: bool = True
    has_tail: bool = False


@dataclass(frozen=True, slots=True)
class Orphan:
    """An index file without a log.

    Attributes:
        path: of the file.
        missing: offsets that no other segment holds; None where another one does, or another file tells of them.
    """

    path: str
    missing: MissingOffsets | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a partition directory holds.

    Attributes:
        path: of the directory.
        segments: by ascending base offset.
        orphans: index files without a log.
    """

    path: str
    segments: tuple[SegmentState, ...]
    orphans: tuple[Orphan, ...]


@checks("SEG-PDR-002")
def legal_topic(directory: DirectoryName) -> Iterator[Problem]:
    """Brokers ask for it when a topic is created, and never again."""
    if not is_legal_topic(directory.name.topic):
        expected = f"a topic of 1 to {MAX_TOPIC_SIZE} of the characters a-z A-Z 0-9 . _ -"
        yield Problem(Location(directory.path, field="topic"), expected, printable(directory.name.topic))


@checks("SEG-PDR-004")
def usual_unique_part(directory: DirectoryName) -> Iterator[Problem]:
    """Of a directory that waits for its deletion, is being built, or has strayed."""
    name = directory.name
    if name.state and not is_usual_unique(name.unique):
        place = Location(directory.path, field="unique")
        yield Problem(place, "32 lower-case hexadecimal digits", printable(name.unique))


@checks("SEG-PDR-017")
def plain_partition(directory: DirectoryName) -> Iterator[Problem]:
    """Brokers read other numbers too, and keep the name."""
    if not directory.name.has_plain_partition:
        place = Location(directory.path, field="partition")
        yield Problem(place, str(directory.name.partition), printable(directory.name.digits))


@checks("SEG-PDR-005")
def twenty_digits(file: NumberedName) -> Iterator[Problem]:
    """A broker opens the 20-digit name beside it, and creates it where it is missing."""
    if not file.name.has_twenty_digits:
        yield file.problem("an offset in 20 digits", printable(file.name.digits))


@checks("SEG-PDR-006")
def ascii_digits(file: NumberedName) -> Iterator[Problem]:
    """Some locales make brokers write others."""
    if not file.name.has_ascii_digits:
        yield file.problem("ASCII digits", printable(file.name.digits))


@checks("SEG-PDR-008")
def index_has_log(partition: PartitionState) -> Iterator[Problem]:
    """Brokers delete such an index, and miss nothing."""
    for orphan in partition.orphans:
        yield Problem(Location(orphan.path), "a .log file of the same base offset", "none", orphan.missing)


@checks("SEG-PDR-012")
def index_files_exist(partition: PartitionState) -> Iterator[Problem]:
    """They are created late, and can be computed."""
    for segment in partition.segments:
        if segment.missing:
            yield Problem(Location(segment.path), "index files beside it", f"no {' and no '.join(segment.missing)}")


@checks("SEG-PDR-013")
def segments_do_not_overlap(partition: PartitionState) -> Iterator[Problem]:
    """The offsets of one end before the next begins."""
    for segment, following in pairwise(partition.segments):
        if segment.next_offset > following.base_offset:
            expected = f"offsets below {following.base_offset}, where the next segment begins"
            yield Problem(Location(segment.path, field="offset"), expected, segment.next_offset - 1)


@checks("SEG-PDR-016")
def segments_exist(partition: PartitionState) -> Iterator[Problem]:
    """A broker creates one when it opens the directory."""
    if not partition.segments:
        yield Problem(Location(partition.path), "a .log file", "none")
