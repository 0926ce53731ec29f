"""Checks of chapter 10: names, files that belong together, and the order of segments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.errors import Location
from seglog_format.names import (
    EARLY_METADATA_TOPIC,
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
    """A file whose name has an offset."""

    path: str
    name: FileName

    def problem(self, expected: str, found: object) -> Problem:
        """Return a problem with the name."""
        return Problem(Location(self.path, field="name"), expected, found)


@dataclass(frozen=True, slots=True)
class DirectoryName:
    """A partition directory and its parsed name."""

    path: str
    name: PartitionDirectoryName


@dataclass(frozen=True, slots=True)
class SegmentState:
    """A segment of a partition: its files, and where its log ends.

    Attributes:
        path: of the log.
        base_offset: from the file name.
        next_offset: the first offset after its last intact entry; the base offset without one.
        missing: kinds of missing index files.
        is_end_known: whether the last entry is intact, and the bytes after it cannot be another.
        has_tail: whether bytes that are not a whole entry follow the last one.
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
        missing: offsets that no other segment holds; None if another one does, or another file reports them.
    """

    path: str
    missing: MissingOffsets | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The content of a partition directory.

    Attributes:
        path: of the directory.
        segments: by ascending base offset.
        orphans: index files without a log.
        has_metadata_snapshot: whether it has a metadata snapshot.
    """

    path: str
    segments: tuple[SegmentState, ...]
    orphans: tuple[Orphan, ...]
    has_metadata_snapshot: bool = False


@checks("SEG-PDR-002")
def legal_topic(directory: DirectoryName) -> Iterator[Problem]:
    """Report an illegal topic name, which brokers check only when a topic is created."""
    if not is_legal_topic(directory.name.topic) and directory.name.topic != EARLY_METADATA_TOPIC:
        expected = f"a topic of 1 to {MAX_TOPIC_SIZE} of the characters a-z A-Z 0-9 . _ -"
        yield Problem(Location(directory.path, field="topic"), expected, printable(directory.name.topic))


@checks("SEG-PDR-004")
def usual_unique_part(directory: DirectoryName) -> Iterator[Problem]:
    """Report an unusual unique part of a renamed directory's name."""
    name = directory.name
    if name.state and not is_usual_unique(name.unique):
        location = Location(directory.path, field="unique")
        yield Problem(location, "32 lower-case hexadecimal digits", printable(name.unique))


@checks("SEG-PDR-017")
def plain_partition(directory: DirectoryName) -> Iterator[Problem]:
    """Report a partition number in a form that brokers accept but do not write."""
    if not directory.name.has_plain_partition:
        location = Location(directory.path, field="partition")
        yield Problem(location, str(directory.name.partition), printable(directory.name.digits))


@checks("SEG-PDR-005")
def twenty_digits(file: NumberedName) -> Iterator[Problem]:
    """Report an offset without exactly 20 digits: a broker opens the 20-digit name, and creates that file."""
    if not file.name.has_twenty_digits:
        yield file.problem("an offset in 20 digits", printable(file.name.digits))


@checks("SEG-PDR-006")
def ascii_digits(file: NumberedName) -> Iterator[Problem]:
    """Report digits other than ASCII; brokers write them under some locales."""
    if not file.name.has_ascii_digits:
        yield file.problem("ASCII digits", printable(file.name.digits))


@checks("SEG-PDR-008")
def index_has_log(partition: PartitionState) -> Iterator[Problem]:
    """Report an index without a log; brokers delete such an index."""
    for orphan in partition.orphans:
        yield Problem(Location(orphan.path), "a .log file of the same base offset", "none", orphan.missing)


@checks("SEG-PDR-012")
def index_files_exist(partition: PartitionState) -> Iterator[Problem]:
    """Report a missing index; a broker may create it later, or rebuild it."""
    for segment in partition.segments:
        if segment.missing:
            yield Problem(Location(segment.path), "index files beside it", f"no {' and no '.join(segment.missing)}")


@checks("SEG-PDR-013")
def segments_do_not_overlap(partition: PartitionState) -> Iterator[Problem]:
    """Report a segment whose offsets reach into the next."""
    for segment, following in pairwise(partition.segments):
        if segment.next_offset > following.base_offset:
            expected = f"offsets below {following.base_offset}, where the next segment begins"
            yield Problem(Location(segment.path, field="offset"), expected, segment.next_offset - 1)


@checks("SEG-PDR-016")
def segments_exist(partition: PartitionState) -> Iterator[Problem]:
    """Report a directory without a segment, unless its node was formatted but never started."""
    if not partition.segments and not partition.has_metadata_snapshot:
        yield Problem(Location(partition.path), "a .log file", "none")
