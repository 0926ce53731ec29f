"""Checks of metadata snapshots: each is a log between a header and a footer (chapter 32)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.control_record import control_records
from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.subjects import Batch, decode_subject
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location
from seglog_format.model import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.model import Frame
    from seglog_format.storage.log_storage import LogStorage


@dataclass(frozen=True, slots=True)
class SnapshotEnds:
    """The first and the last entry of a metadata snapshot.

    Attributes:
        first_at: location of the first entry.
        first: type of the first record of the first entry; None if that is not a control record.
        last_at: location of the last entry.
        last: type of the last record of the last entry; None if that is not a control record.
    """

    first_at: Location
    first: ControlRecordType | None
    last_at: Location
    last: ControlRecordType | None


@checks("SEG-CTL-014")
def begins_with_header(ends: SnapshotEnds) -> Iterator[Problem]:
    """Report a snapshot that does not begin with a header."""
    if ends.first is not ControlRecordType.SNAPSHOT_HEADER:
        yield Problem(ends.first_at, "a SNAPSHOT_HEADER first", _shown(ends.first))


@checks("SEG-CTL-015")
def ends_with_footer(ends: SnapshotEnds) -> Iterator[Problem]:
    """Report a snapshot that does not end with a footer: its writer did not finish it."""
    if ends.last is not ControlRecordType.SNAPSHOT_FOOTER:
        yield Problem(ends.last_at, "a SNAPSHOT_FOOTER last", _shown(ends.last))


def snapshot_ends_findings(path: Path, storage: LogStorage, limit: int) -> Iterator[Finding]:
    """Yield findings about the ends of a metadata snapshot whose entries are all intact."""
    yield from findings_of(_ends_of(path, storage, limit))


def _ends_of(path: Path, storage: LogStorage, limit: int) -> SnapshotEnds:
    first = last = None
    with storage.open(path) as source:
        for frame in walk(source, path=source.path):
            first, last = first or frame, frame
        start, end = Location(str(path), 0), Location(str(path), last.position if last else 0)
        heads, feet = _types(first, start, limit), _types(last, end, limit)
    return SnapshotEnds(start, next(iter(heads), None), end, next(reversed(feet), None))


def _types(frame: Frame | None, at: Location, limit: int) -> list[ControlRecordType | None]:
    """Return the types of the control records of an entry; none for data."""
    with suppress(FormatError):
        subject = None if frame is None else decode_subject(frame, at, limit)
        return [record.type for record in control_records(subject)] if isinstance(subject, Batch) else []
    return []


def _shown(found: ControlRecordType | None) -> str:
    return "none" if found is None else found.name
