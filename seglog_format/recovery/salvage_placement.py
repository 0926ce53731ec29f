"""The intact entries of a damaged partition, where salvage puts them, and what it reports of each log (chapter 71)."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import RefusedError, SeglogError, UnreadableError
from seglog_format.log.entry_table import EVERYTHING, OffsetRange, WantedRange
from seglog_format.log.segment import LogSegment, OpenSegments, starts_at, trusted_next_offset
from seglog_format.model import GREATEST_OFFSET, INT32_MAX, MissingOffsets
from seglog_format.names import FileKind, parse_file_name, segment_file_name
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.salvage_scan import (
    ANY_OFFSET,
    DamagedRange,
    SalvageScan,
    first_offset,
    salvage_scan,
    with_missing,
)
from seglog_format.storage.byte_source import ByteSource, MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.log.listing import PartitionListing
    from seglog_format.storage.byte_source import ByteSource


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


# -- logs whose names do not say which offsets are in them -------------------------------------------------------------
#
# Usually a log holds offsets from the number in its name up to the next log. That is not so if a log was copied under
# a wrong name, or if an interrupted replacement left the old log beside a new one with fewer records. Then salvage
# ignores the names, or it would lose the entries outside of those limits. It keeps every intact entry, in the order of
# offsets.


TWICE: Final = "SEG-PDR-013"
"""The rule that an entry breaks whose offsets another log also has."""


class PlacedEntry(NamedTuple):
    """An intact entry, and the number of the log that it is in."""

    first_offset: int
    log: int
    last_offset: int
    start: int
    end: int


class Piece(NamedTuple):
    """Bytes of a log, by the number of the log and two positions."""

    log: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A new segment: its base offset, and its entries, which may come from several logs."""

    base_offset: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The intact entries of several logs, each offset once.

    Attributes:
        parts: the new segments by ascending base offset.
        scans: one for each log: the entries that are kept, and the ranges that are not, with the reason.
    """

    parts: tuple[PlacedPart, ...]
    scans: tuple[SalvageScan, ...]


def replaced_logs(listing: PartitionListing) -> list[LogSegment]:
    """Return the logs that `.swap` files replace: they may hold more records than their replacements."""
    opened = OpenSegments(1)
    return [LogSegment(files, opened=opened) for files in listing.replaced_logs]


def has_wrong_names(segments: Sequence[LogSegment]) -> bool:
    """Return whether a log begins below its base offset, or holds offsets that belong to the next log.

    No checksum covers offsets, so a single such offset may be damage. Two consecutive entries have to show it. If the
    next log is empty, an intact entry shows it that begins where the one before it ends: its length has a checksum.
    """
    following = (*segments[1:], None)
    return any(
        _begins_below(segment) or _extends_into_next(segment) or _extends_into_empty(segment, after)
        for segment, after in zip(segments, following, strict=True)
    )


def _begins_below(segment: LogSegment) -> bool:
    with suppress(SeglogError):
        first = islice(recoverable_frames(segment.source), 2)
        return any(
            starts_at(one) < segment.base_offset and starts_at(two) == one.header.next_offset
            for one, two in pairwise(first)
        )
    return False


def _extends_into_next(segment: LogSegment) -> bool:
    last = segment.allowed.last
    if last == GREATEST_OFFSET:
        return False
    with suppress(SeglogError), LogSegment(segment.paths) as whole:
        end = trusted_next_offset(whole) or whole.next_offset
        return end > last + 1 and any(
            starts_at(two) > last and starts_at(two) == one.header.next_offset
            for one, two in pairwise(recoverable_frames(whole.source))
        )
    return False


def _extends_into_empty(segment: LogSegment, following: LogSegment | None) -> bool:
    """Return whether the next log has no bytes, and an intact entry of this one ends at its base offset or above."""
    if following is None:
        return False
    with suppress(SeglogError), LogSegment(segment.paths) as whole:
        reached = segment.base_offset
        for frame in recoverable_frames(whole.source) if following.size == 0 else ():
            is_next = starts_at(frame) == reached
            reached = frame.header.next_offset
            if is_next and reached > following.base_offset and checksum_is_valid(frame):
                return True
    return False


def placed(
    logs: Sequence[LogSegment],
    source_of: Callable[[LogSegment], ByteSource],
    *,
    is_for_brokers: bool = False,
    wanted: WantedRange = EVERYTHING,
) -> Placement:
    """Find the intact entries of logs, and order them by offset; if two overlap, the one in the earlier log is kept.

    Positions and offsets of all entries are held in memory, their bytes are not.

    Args:
        logs: by falling precedence, so replaced logs come last.
        source_of: returns the bytes of a log; it is called for each use, because few logs are open at a time.
        is_for_brokers: whether end markers that brokers cannot read are left out.
        wanted: only entries with records that may be in this range.
    """
    scan_of = partial(salvage_scan, allowed=ANY_OFFSET, is_for_brokers=is_for_brokers, wanted=wanted)
    scans, found = list[SalvageScan](), list[list[PlacedEntry]]()
    for number, log in enumerate(logs):
        source = source_of(log)
        scans.append(_with_offsets(scan_of(source, path=log.path), source))
        found.append(list(_entries(number, scans[-1], source)))
    chosen = list(_chosen(sorted(chain.from_iterable(found))))
    kept, own = _offset_ranges(chosen), [list[PlacedEntry]() for _ in logs]
    for entry in chosen:
        own[entry.log].append(entry)
    shown = (_kept_scan(scan, one, every, kept) for scan, one, every in zip(scans, own, found, strict=True))
    parts = (part for part in parts_of(chosen, logs, attrgetter("log")) if part.pieces or not wanted.is_window)
    return Placement(tuple(parts), tuple(shown))


def _with_offsets(scan: SalvageScan, source: ByteSource) -> SalvageScan:
    """Return a scan in which each damaged range has the offsets between the entries around it."""
    begin = ANY_OFFSET
    with suppress(SeglogError):
        begin = OffsetRange(first_offset(source, scan.starts[0]) if scan.starts else 0, GREATEST_OFFSET)
    return replace(scan, damaged=[with_missing(damage, scan, source, begin) for damage in scan.damaged])


def _entries(number: int, scan: SalvageScan, source: ByteSource) -> Iterator[PlacedEntry]:
    for start, end, last in zip(scan.starts, scan.ends, scan.last_offsets, strict=True):
        first = last
        with suppress(SeglogError):
            first = first_offset(source, start)
        yield PlacedEntry(first, number, last, start, end)


def _chosen(entries: Iterable[PlacedEntry]) -> Iterator[PlacedEntry]:
    """Yield the entries that do not overlap an earlier one; they come by ascending first offset."""
    reached = 0
    for entry in entries:
        if entry.first_offset >= reached:
            yield entry
            reached = entry.last_offset + 1


def _offset_ranges(chosen: Iterable[PlacedEntry]) -> list[MissingOffsets]:
    """Return the offset ranges of entries; consecutive entries without a gap are in one range."""
    runs: list[MissingOffsets] = []
    for entry in chosen:
        following = entry.last_offset + 1
        if runs and runs[-1].next_offset == entry.first_offset:
            runs[-1] = MissingOffsets(runs[-1].first_offset, following)
        else:
            runs.append(MissingOffsets(entry.first_offset, following))
    return runs


def _kept_scan(
    found: SalvageScan, own: Sequence[PlacedEntry], entries: Sequence[PlacedEntry], kept: Sequence[MissingOffsets]
) -> SalvageScan:
    """Return a scan of the entries that are kept of a log; the entries that another log supplies are damaged ranges."""
    scan, stays = SalvageScan(), {entry.start for entry in own}
    for entry in sorted(own, key=attrgetter("start")):
        scan.starts.append(entry.start)
        scan.ends.append(entry.end)
        scan.last_offsets.append(entry.last_offset)
    duplicates = _duplicates(entry for entry in entries if entry.start not in stays)
    scan.damaged += [replace(one, missing=_without_kept(one.missing, kept)) for one in (*found.damaged, *duplicates)]
    scan.damaged.sort(key=attrgetter("start"))
    return scan


def _without_kept(missing: MissingOffsets | None, kept: Sequence[MissingOffsets]) -> MissingOffsets | None:
    """Return missing offsets without the kept ones at both ends of the range; None if no offset remains."""
    if missing is None:
        return None
    first, following = missing
    for run in kept[max(bisect_right(kept, (first, GREATEST_OFFSET)) - 1, 0) :]:
        if run.first_offset <= first < run.next_offset:
            first = run.next_offset
        elif run.first_offset < following <= run.next_offset:
            following = run.first_offset
        if run.first_offset >= following:
            break
    return MissingOffsets(first, following) if first < following else None


def _duplicates(entries: Iterable[PlacedEntry]) -> list[DamagedRange]:
    """Return the ranges of entries with offsets that are kept from another log; `missing` are all their offsets."""
    ranges: list[tuple[int, int, int, int]] = []
    for entry in entries:
        if ranges and ranges[-1][1] == entry.start:
            ranges[-1] = (ranges[-1][0], entry.end, ranges[-1][2], entry.last_offset)
        else:
            ranges.append((entry.start, entry.end, entry.first_offset, entry.last_offset))
    text = "offsets {} to {} are kept from another log"
    return [
        DamagedRange(start, end, (TWICE,), text.format(first, last), missing=MissingOffsets(first, last + 1))
        for start, end, first, last in ranges
    ]


def parts_of(
    chosen: Sequence[PlacedEntry], logs: Sequence[LogSegment], segment_of: Callable[[PlacedEntry], int]
) -> Iterator[PlacedPart]:
    """Yield the new segments: one begins with the first entry of each log, and where offsets or size get too large.

    Args:
        chosen: the entries by ascending offset.
        logs: that hold them.
        segment_of: returns a number for the segment that an entry belongs to.
    """
    begun, part, end, size = set[int](), list[PlacedEntry](), 0, 0
    base_offset = 0
    for entry in chosen:
        size += entry.end - entry.start
        if segment_of(entry) not in begun or entry.last_offset - base_offset > INT32_MAX or size > INT32_MAX:
            if part:
                yield PlacedPart(base_offset, _pieces(part))
            named = logs[entry.log].base_offset
            base_offset = named if end <= named <= entry.first_offset else entry.first_offset
            part, size = [], entry.end - entry.start
        begun.add(segment_of(entry))
        part.append(entry)
        end = entry.last_offset + 1
    if part:
        yield PlacedPart(base_offset, _pieces(part))
    last = max(log.base_offset for log in logs)
    if last >= end:
        yield PlacedPart(last, ())


def _pieces(entries: Sequence[PlacedEntry]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for entry in entries:
        if pieces and pieces[-1].log == entry.log and pieces[-1].end == entry.start:
            pieces[-1] = Piece(entry.log, pieces[-1].start, entry.end)
        else:
            pieces.append(Piece(entry.log, entry.start, entry.end))
    return tuple(pieces)
