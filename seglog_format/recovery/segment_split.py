"""Splitting of a segment whose offsets are too far above its base offset for an index (SEG-LOG-009, chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location
from seglog_format.log.listing import CLEANED, DELETED, SWAP
from seglog_format.model import INT32_MAX, INT64_MAX
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.entry_walk import indexed_rows
from seglog_format.recovery.segment_scan import Remark
from seglog_format.storage.files import Copy, Remove, Rename, settled

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.segment import LogSegment
    from seglog_format.state.index_build import IndexedRow
    from seglog_format.storage.files import FileStep

SPLIT: Final = "SEG-RCV-022"


@dataclass(frozen=True, slots=True)
class Part:
    """A segment that results from a split: bytes ``start`` to ``end`` of the old segment."""

    base_offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Split:
    """A segment and the parts that replace it.

    Attributes:
        files: of the segment.
        parts: by ascending base offset.
    """

    files: SegmentFiles
    parts: tuple[Part, ...]


def split_of(segment: LogSegment) -> Split | None:
    """Split a segment so the offsets of each part can be stored relative to its base offset.

    The first part keeps the name of the segment, even if it is empty: so a crash at any moment leaves
    either the old segment or all its replacements. Brokers name the first part after its first entry.

    Returns:
        The parts; None if one entry alone spans too many offsets.
    """
    parts, base, start, end = [], segment.base_offset, 0, 0
    for row in indexed_rows(segment.source, path=segment.path, has_first_offsets=True):
        if row.last_offset - base > INT32_MAX:
            parts.append(Part(base, start, row.position))
            base, start = row.first_offset, row.position
        if row.last_offset - base > INT32_MAX:
            return None
        end = row.position + row.size
    return Split(segment.paths, (*parts, Part(base, start, end)))


def broker_split_of(segment: LogSegment) -> Split | Remark:
    """Split a segment as brokers do; if they cannot, return why they do not start."""
    at = Location(segment.path)
    try:
        frames = walk(segment.source, path=segment.path)
        last = max((frame.header.next_offset for frame in frames), default=0)
    except FormatError as error:
        return Remark(error.location, error.requirements, "brokers fail on damage in a segment that they have to split")
    if frames.tail.size:
        text = "brokers fail on bytes after the last entry of a segment that they have to split"
        return Remark(Location(segment.path, frames.tail.position), (frames.tail.requirement,), text)
    final = _last_next_offset(segment)
    if final > INT64_MAX or not final - 1 - segment.base_offset > INT32_MAX:  # for brokers negative above 2^63 - 1
        text = f"brokers fail on offsets too far from the base offset, up to {last - 1}, before a smaller one"
        return Remark(at, ("SEG-LOG-009",), text)
    rows = list(indexed_rows(segment.source, path=segment.path, has_first_offsets=True))
    if not all(0 <= row.last_offset - row.first_offset <= INT32_MAX for row in rows):
        return Remark(at, ("SEG-LOG-009",), "brokers fail on an entry that spans too many offsets for any segment")
    parts = _broker_parts(rows)
    bases = [part.base_offset for part in parts]
    if bases != sorted(set(bases)) or bases[0] < 0:
        return Remark(at, ("SEG-LOG-006",), "brokers fail on offsets out of order in a segment that they have to split")
    return Split(segment.paths, tuple(parts))


def _last_next_offset(segment: LogSegment) -> int:
    next_offset = segment.base_offset
    for frame in walk(segment.source, path=segment.path):
        next_offset = frame.header.next_offset
    return next_offset


def _broker_parts(rows: list[IndexedRow]) -> list[Part]:
    parts: list[Part] = []
    base, start = rows[0].first_offset, 0
    for row in rows:
        if not 0 <= row.last_offset - base <= INT32_MAX:
            parts.append(Part(base, start, row.position))
            base, start = row.first_offset, row.position
    return [*parts, Part(base, start, rows[-1].position + rows[-1].size)]


def split_steps(split: Split, directory: Path) -> tuple[FileStep, ...]:
    """Replace a segment by its parts.

    The order is that of every replacement: first all parts are written as `.cleaned` files, which do not count, then
    renamed to `.swap`, which counts once no `.cleaned` file is left. Then the old files are removed, and last the parts
    get their final names. By then every byte of the old segment is in a part.
    """
    names = [segment_file_name(part.base_offset, FileKind.LOG) for part in split.parts]
    pairs = list(zip(names, split.parts, strict=True))
    written = [Copy(split.files.log, part.start, part.end, directory / (name + CLEANED), SPLIT) for name, part in pairs]
    finished = [Rename(directory / (n + CLEANED), directory / (n + SWAP), SPLIT) for n in reversed(names)]
    used = [Rename(directory / (name + SWAP), directory / name, SPLIT) for name in names]
    return (
        *settled(written, directory),
        *settled(finished, directory),
        *settled((Remove(path, SPLIT) for path in _paths(split.files)), directory),
        *settled(used, directory),
    )


def removal_steps(files: SegmentFiles, requirement: str) -> list[FileStep]:
    """Rename the files of a segment for removal, the log last, so no other file is left without its log."""
    return [Rename(path, path.with_name(path.name + DELETED), requirement) for path in _paths(files)]


def _paths(files: SegmentFiles) -> list[Path]:
    paths = (files.snapshot, files.transaction_index, files.time_index, files.offset_index, files.log)
    return [path for path in paths if path is not None]
