"""Salvage of logs whose names do not say which offsets are in them (chapter 71).

Usually a log holds offsets from the number in its name up to the next log. That is not so if a log was copied under a
wrong name, or if an interrupted replacement left the old log beside a new one with fewer records. Then salvage ignores
the names, or it would lose the entries outside of those limits. It keeps every intact entry, in the order of offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import SeglogError
from seglog_format.log.entry_table import EVERYTHING, OffsetRange, WantedRange
from seglog_format.log.segment import LogSegment, OpenSegments, starts_at, trusted_next_offset
from seglog_format.model import GREATEST_OFFSET, INT32_MAX, MissingOffsets
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.salvage_scan import (
    ANY_OFFSET,
    DamagedRange,
    SalvageScan,
    first_offset,
    salvage_scan,
    with_missing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.log.listing import PartitionListing
    from seglog_format.storage.byte_source import ByteSource

TWICE: Final = "SEG-PDR-013"
"""The rule that entries break whose offsets another log has, too."""


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
