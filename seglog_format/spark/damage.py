"""Division of a damaged piece into readable parts and descriptions of the damage."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_format.engine import batch_tables
from seglog_format.errors import FormatError, SeglogError, UndecodedRecordError
from seglog_format.log.entry_table import OffsetRange
from seglog_format.log.search import unexpected_end
from seglog_format.recovery.salvage_scan import salvage_scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.salvage_scan import DamagedRange, SalvageScan
    from seglog_format.spark.pieces import Piece
    from seglog_format.storage.byte_source import ByteSource

END_OF_LOG: Final = frozenset({"SEG-LOG-002", "SEG-LOG-004", "SEG-LOG-005"})
"""Damage kinds at the end of a log that was being written, which readers ignore."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a log that cannot be read.

    Attributes:
        file: path of the log.
        position: of the first damaged byte.
        size: number of bytes; 0 if unknown.
        requirement: id of the rule that the bytes break.
        message: description of the error.
    """

    file: str
    position: int
    size: int
    requirement: str
    message: str

    @classmethod
    def of_error(cls, error: FormatError) -> Damage:
        """Describe a format error."""
        at = error.location
        return cls(at.path, at.position, at.size, error.requirements[0], str(error))


def parts_of(piece: Piece, segment: LogSegment, *, skips_damage: bool) -> Iterator[Piece | Damage]:
    """Yield what a query reads of a piece, and the damage that it skips.

    Args:
        piece: the piece to read.
        segment: of the piece.
        skips_damage: whether the query goes on after damage, and where a remote store lacks the log.

    Raises:
        FormatError: the log cannot be opened, and is not only missing from a remote store.
    """
    try:
        segment.source.expect(piece.start, piece.end)
    except FormatError as error:
        if not skips_damage or error.requirements[0] != "SEG-PDR-028":
            raise
        yield Damage.of_error(error)
        return
    yield from readable_parts(piece, segment.source) if skips_damage else (piece,)


def readable_parts(piece: Piece, log: ByteSource) -> Iterator[Piece | Damage]:
    """Yield a piece as runs of intact entries, and the damage between them.

    Damage has the place in the order of offsets that follows the intact entry before it. It is yielded if the piece's
    range of offsets holds that place: so each of a stream's steps yields damage of its own.

    Args:
        piece: the piece to read.
        log: the bytes of its log.
    """
    end = log.size if piece.end is None else min(piece.end, log.size)
    if _is_sound(piece, log, end):
        yield piece
        return
    found = salvage_scan(log.view(piece.start, end), OffsetRange(piece.base_offset, piece.last_allowed), piece.log)
    ranges = [
        _damage(piece, damaged)
        for damaged in found.damaged
        if not _is_end(damaged, end - piece.start) and _is_wanted(piece, found, damaged)
    ]
    parts: list[Piece | Damage] = [*_runs(piece, found), *ranges]
    yield from sorted(parts, key=_location)


def _is_wanted(piece: Piece, found: SalvageScan, damaged: DamagedRange) -> bool:
    """Return whether damage lies in the piece's range of offsets."""
    number = bisect_left(found.starts, damaged.start)
    offset = (found.last_offsets[number - 1] if number else piece.previous) + 1
    return piece.from_offset <= offset < piece.to_offset


def _location(part: Piece | Damage) -> int:
    return part.position if isinstance(part, Damage) else part.start


def _is_sound(piece: Piece, log: ByteSource, end: int) -> bool:
    """Return whether the compiled check accepts every entry."""
    reached, bounds = piece.start, (piece.base_offset, piece.last_allowed)
    for part in batch_tables()(log, position=piece.start, end=end, first_offset=bounds[0], last_offset=bounds[1]):
        if not part.column("crc_is_valid").all():
            return False
        reached = part.end
    return reached == end


def _runs(piece: Piece, found: SalvageScan) -> Iterator[Piece]:
    """Yield runs of neighbouring intact entries as pieces."""
    previous, run = piece.previous, None
    for start, end, last in zip(found.starts, found.ends, found.last_offsets, strict=True):
        if run is not None and run.end == piece.start + start:
            run = replace(run, end=piece.start + end)
        else:
            if run is not None:
                yield run
            run = replace(piece, start=piece.start + start, end=piece.start + end, previous=previous)
        previous = last
    if run is not None:
        yield run


def _is_end(damaged: DamagedRange, size: int) -> bool:
    """Return whether the damage is only the end of a log that was being written."""
    return damaged.end == size and damaged.requirements[0] in END_OF_LOG


def _damage(piece: Piece, damaged: DamagedRange) -> Damage:
    size = damaged.end - damaged.start
    requirement = damaged.requirements[0]
    return Damage(piece.log, piece.start + damaged.start, size, requirement, damaged.reason)


def refuse_unexpected_end(piece: Piece, segment: LogSegment, position: int) -> None:
    """Refuse the end of a log where more entries must follow.

    Raises:
        FormatError: as `unexpected_end` says.
    """
    tail = segment.frame_at(position)
    allowed = OffsetRange(piece.base_offset, piece.last_allowed)
    error = unexpected_end(tail, segment.source, allowed, piece.log, is_last=piece.is_last)
    if error is not None:
        raise error


class ReadError(SeglogError):
    """A task failed. Spark shows hardly more than the text."""


def explained(error: SeglogError) -> str:
    """Return the text of an error with a hint."""
    what = {FormatError: "damaged entries", UndecodedRecordError: "such records"}
    hints = [
        f"; option mode: dropcorrupt leaves {name} out, permissive marks them"
        for kind, name in what.items()
        if isinstance(error, kind)
    ]
    return f"seglog: {error}{''.join(hints)}"
