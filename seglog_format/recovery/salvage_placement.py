"""The intact entries of a damaged partition, where salvage puts them, and what it reports of each log (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.errors import RefusedError, UnreadableError
from seglog_format.log.entry_table import EVERYTHING, WantedRange
from seglog_format.model import INT32_MAX, MissingOffsets
from seglog_format.names import FileKind, parse_file_name, segment_file_name
from seglog_format.recovery.salvage_by_content import (
    TWICE,
    Piece,
    PlacedPart,
    Placement,
    has_wrong_names,
    placed,
    replaced_logs,
)
from seglog_format.recovery.salvage_scan import DamagedRange, SalvageScan, first_offset, salvage_scan, with_missing
from seglog_format.storage.byte_source import ByteSource, MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment


@dataclass(frozen=True, slots=True)
class SalvagedSegment:
    """What salvage keeps of one segment.

    Attributes:
        log: path of the damaged `.log` file.
        size: size of that file.
        kept_size: number of bytes that were copied.
        entry_count: number of entries that were copied.
        next_offset: the first offset after the copied entries; the base offset if there are none.
        damaged: the ranges that were not copied.
        names: of the new `.log` files; none if nothing of the segment is intact and it is not the last.
    """

    log: Path
    size: int
    kept_size: int
    entry_count: int
    next_offset: int
    damaged: tuple[DamagedRange, ...]
    names: tuple[str, ...]

    @property
    def missing(self) -> tuple[MissingOffsets, ...]:
        """The offsets in the damaged ranges, ascending, as far as they are known."""
        return tuple(dict.fromkeys(damage.missing for damage in self.damaged if damage.missing is not None))

    @property
    def is_loss(self) -> bool:
        """Whether one of the damaged ranges is a loss; the tail of a log is none by itself."""
        return any(damage.is_loss for damage in self.damaged)


@dataclass(frozen=True, slots=True)
class SalvagedPart:
    """A new segment: its base offset, and the ranges of the old file that it consists of."""

    base_offset: int
    ranges: tuple[tuple[int, int], ...]


def placement_of(
    listing: PartitionListing,
    segments: Sequence[LogSegment],
    *,
    is_for_brokers: bool = False,
    wanted: WantedRange = EVERYTHING,
) -> tuple[Sequence[LogSegment], Placement]:
    """Return the logs that salvage reads, and where it puts their intact entries.

    Args:
        listing: of the damaged directory.
        segments: its segments, open.
        is_for_brokers: whether end markers that brokers cannot read are left out.
        wanted: only entries with records that may be in this range.
    """
    if logs := logs_by_content(listing, segments):
        placement = placed(logs, source_of_log, is_for_brokers=is_for_brokers, wanted=wanted)
        scans = (_as_found(log, scan, segments) for log, scan in zip(logs, placement.scans, strict=True))
        return logs, replace(placement, scans=tuple(scans))
    segments = overlapping(segments, wanted)
    return segments, placed_by_name(segments, is_for_brokers=is_for_brokers, wanted=wanted)


def overlapping(segments: Sequence[LogSegment], wanted: WantedRange) -> list[LogSegment]:
    """Return the segments that may hold offsets of a range, by their names."""
    return [each for each in segments if wanted.overlaps(each.allowed.first, each.allowed.last + 1)]


def placed_by_name(
    segments: Sequence[LogSegment], *, is_for_brokers: bool, wanted: WantedRange = EVERYTHING
) -> Placement:
    """Find the intact entries of segments that hold the offsets that their names allow.

    Args:
        segments: in order, open.
        is_for_brokers: whether end markers that brokers cannot read are left out.
        wanted: only entries with records that may be in this range.
    """
    parts, scans = list[PlacedPart](), list[SalvageScan]()
    for number, segment in enumerate(segments):
        source, refusal = opened_log(segment)
        scan = salvage_scan(source, segment.allowed, segment.path, is_for_brokers=is_for_brokers, wanted=wanted)
        if scan.starts or (number == len(segments) - 1 and not wanted.is_window):
            parts += (
                PlacedPart(part.base_offset, tuple(Piece(number, *each) for each in part.ranges or ((0, 0),)))
                for part in salvaged_parts(segment, source, scan)
            )
        scans.append(with_all_missing(source, scan, refusal))
    return Placement(tuple(parts), tuple(scans))


def logs_by_content(listing: PartitionListing, segments: Sequence[LogSegment]) -> list[LogSegment]:
    """Return the logs of a partition if their names do not say which offsets are in them; else an empty list."""
    replaced = replaced_logs(listing)
    return [*segments, *replaced] if segments and (replaced or has_wrong_names(segments)) else []


def source_of_log(log: LogSegment) -> ByteSource:
    """Return the bytes of a log; none if it cannot be opened."""
    return opened_log(log)[0]


def _as_found(log: LogSegment, scan: SalvageScan, segments: Sequence[LogSegment]) -> SalvageScan:
    """Return a scan with the range of a log that is refused; no duplicate of a log that is replaced is a loss."""
    _, refusal = opened_log(log)
    spare = [replace(one, is_replaced=log not in segments and one.requirements == (TWICE,)) for one in scan.damaged]
    return replace(scan, damaged=spare if refusal is None else [*spare, refusal])


def with_all_missing(source: ByteSource, scan: SalvageScan, refusal: DamagedRange | None) -> SalvageScan:
    """Return a scan in which each damaged range has its missing offsets, and a refused file is one range."""
    damaged = (*scan.damaged, *(() if refusal is None else (refusal,)))
    return replace(scan, damaged=[with_missing(damage, scan, source, scan.offsets) for damage in damaged])


def reports_of(logs: Sequence[LogSegment], placement: Placement) -> Iterator[SalvagedSegment]:
    """Yield a report for each log about its entries that are kept, in any of the new segments."""
    parts: dict[int, dict[int, None]] = {}
    for part in placement.parts:
        for piece in part.pieces:
            parts.setdefault(piece.log, {})[part.base_offset] = None
    for number, (log, scan) in enumerate(zip(logs, placement.scans, strict=True)):
        yield report_of(log, opened_log(log)[0], scan, tuple(parts.get(number, ())))


def blocked_reports(listing: PartitionListing) -> Iterator[SalvagedSegment]:
    """Yield a report for each log that is no readable file, such as a link that leads nowhere (SEG-PDR-030)."""
    for error in listing.blocked_logs:
        log = listing.path / Path(error.location.path).name
        name = parse_file_name(log.name)
        base_offset = 0 if name is None else name.base_offset
        following = next((base for base in listing.base_offsets if base > base_offset), None)
        missing = None if following is None else MissingOffsets(base_offset, following)
        damage = DamagedRange(0, 0, error.requirements, f"the whole file: {error.found}", missing=missing)
        yield SalvagedSegment(log, 0, 0, 0, base_offset, (damage,), ())


def opened_log(segment: LogSegment) -> tuple[ByteSource, DamagedRange | None]:
    """Open a log; if that fails, return an empty source, and the whole file as a damaged range."""
    try:
        return segment.source, None
    except (RefusedError, UnreadableError) as error:
        end = error.location.size
        return MemoryBytes(b"", segment.path), DamagedRange(
            0, end, error.requirements, f"the whole file: {error.found}"
        )


def salvaged_parts(segment: LogSegment, source: ByteSource, scan: SalvageScan) -> tuple[SalvagedPart, ...]:
    """Return the new segments for the intact entries: one, or several if one cannot hold all offsets."""
    parts: list[SalvagedPart] = []
    base, ranges, before = segment.base_offset, list[tuple[int, int]](), segment.base_offset - 1
    if scan.starts and scan.offsets.first > base:
        base = max(base, first_offset(source, scan.starts[0]))  # offsets below were not wanted, and are not missing
    for start, end, last in zip(scan.starts, scan.ends, scan.last_offsets, strict=True):
        if last - base > INT32_MAX:
            if ranges:
                parts.append(SalvagedPart(base, tuple(ranges)))
            base, ranges = max(first_offset(source, start), before + 1), []
        before = last
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return (*parts, SalvagedPart(base, tuple(ranges)))


def report_of(
    segment: LogSegment, source: ByteSource, scan: SalvageScan, base_offsets: tuple[int, ...]
) -> SalvagedSegment:
    """Return the report for one log, whose entries are in the new segments with these base offsets."""
    return SalvagedSegment(
        log=segment.paths.log,
        size=max(source.size, *(damage.end for damage in scan.damaged), 0),
        kept_size=sum(scan.ends) - sum(scan.starts),
        entry_count=len(scan.starts),
        next_offset=scan.last_offsets[-1] + 1 if scan.last_offsets else segment.base_offset,
        damaged=tuple(scan.damaged),
        names=tuple(segment_file_name(base_offset, FileKind.LOG) for base_offset in base_offsets),
    )
