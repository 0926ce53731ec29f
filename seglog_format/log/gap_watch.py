"""Reports of offsets that are missing between the segments of a partition, made to a reader that passes them."""

from __future__ import annotations

import sys
import warnings
from functools import cached_property, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.errors import MissingOffsetsWarning
from seglog_format.log.compaction_signs import shows_compaction
from seglog_format.log.gaps import (
    Gap,
    GapKind,
    SegmentEnd,
    gap_after,
    gap_at_end,
    gap_before,
    tiered_gap,
    with_snapshot,
)
from seglog_format.log.offset_checkpoints import checkpointed_offset
from seglog_format.log.segment import LogSegment
from seglog_format.model import TailKind
from seglog_format.names import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seglog_format.errors import FormatError
    from seglog_format.log.listing import PartitionListing
    from seglog_format.model import MissingOffsets

    OnGap: TypeAlias = Callable[[Gap], None]
    OnCorrupt: TypeAlias = Callable[[FormatError], None]
    AtBorder: TypeAlias = Callable[[int, int, int | None], None]

PACKAGE: Final = __name__.partition(".")[0]


class GapWatch:
    """Reports missing offsets between the segments of a partition to its readers.

    A reader calls `at_border` only if the next segment does not begin with the next offset. Only then are the files
    read that explain the gap.

    Attributes:
        listing: of the partition directory.
    """

    def __init__(self, listing: PartitionListing, *, log_start_offset: int, high_watermark: int) -> None:
        """Watch a partition.

        Args:
            listing: of the directory.
            log_start_offset: as checkpointed, else 0; offsets below are not reported.
            high_watermark: as checkpointed, else 0.
        """
        self.listing = listing
        self._log_start_offset = log_start_offset
        self._high_watermark = high_watermark

    def at_start(self, on_gap: OnGap) -> None:
        """Report offsets that are missing before the first segment, or in a log without segments."""
        start = self._log_start_offset
        if self.listing.segments:
            _report(on_gap, gap_before(self.listing, start))
        else:
            _report(on_gap, self._gap_at_end(start, self.listing.path))

    def at_border(self, on_gap: OnGap, base_offset: int, reached: int, following: int | None) -> None:
        """Report offsets that are missing after a segment.

        Args:
            on_gap: called with the gap.
            base_offset: of the segment.
            reached: first offset after the entries that were read of the segment.
            following: base offset of the next segment; None if there is none.
        """
        is_empty = reached <= base_offset
        if following is None and not self.listing.orphans and reached >= self._high_watermark and not is_empty:
            return
        end = self._end_of(base_offset, reached)
        if end is None:
            return
        if following is None:
            _report(on_gap, self._gap_at_end(end.next_offset, end.files.log) or _unreadable(end))
            return
        gap = gap_after(self.listing, end, following)
        if gap is not None and gap.kind is GapKind.BETWEEN_SEGMENTS:
            gap = None if self.is_compacted else with_snapshot(self.listing, gap)
        _report(on_gap, gap)

    def gaps(self, reached: Mapping[int, int]) -> list[Gap]:
        """Return the offsets that are missing before the first segment, and after some of the segments.

        Args:
            reached: by base offset of a segment, the first offset after the entries that were read of it; its own base
                offset if none was.
        """
        found: list[Gap] = []
        self.at_start(found.append)
        bases = self.listing.base_offsets
        for base_offset, following in zip_longest(bases, bases[1:]):
            if base_offset in reached and (following is None or reached[base_offset] < following):
                self.at_border(found.append, base_offset, reached[base_offset], following)
        return found

    def _end_of(self, base_offset: int, reached: int) -> SegmentEnd | None:
        """Return where a segment ends; None if damage hides its end, for which readers get an error."""
        files = self.listing.segments[self.listing.base_offsets.index(base_offset)]
        with LogSegment(files, storage=self.listing.storage) as segment:
            tail = segment.tail
            if tail is None:
                return None
            has_tail = tail.kind is not TailKind.NONE
            return SegmentEnd(files, max(reached, segment.next_offset), has_tail=has_tail, position=tail.position)

    def _gap_at_end(self, log_end_offset: int, path: Path) -> Gap | None:
        gap = gap_at_end(self.listing, log_end_offset)
        if gap is None and self._high_watermark > log_end_offset:
            return Gap(log_end_offset, self._high_watermark, GapKind.LOG_END, str(path))
        return gap

    @cached_property
    def is_compacted(self) -> bool:
        """Return whether the log is compacted, as far as that is known (SEG-PDR-023)."""
        cleaned_to = checkpointed_offset(self.listing, FileKind.CLEANER_OFFSET_CHECKPOINT)
        return shows_compaction(self.listing, cleaned_to)


def watch_over(listing: PartitionListing) -> GapWatch:
    """Return a watch over a partition that uses the checkpoints of the log directory above."""
    start, end = (
        checkpointed_offset(listing, kind) or 0
        for kind in (FileKind.LOG_START_OFFSET_CHECKPOINT, FileKind.REPLICATION_OFFSET_CHECKPOINT)
    )
    return GapWatch(listing, log_start_offset=start, high_watermark=end)


class Watched:
    """The part of a partition that reports gaps to its readers."""

    listing: PartitionListing
    high_watermark: int | None
    _log_start_checkpoint: int

    def _watched(self, on_gap: OnGap | None, *, is_from_start: bool, on_corrupt: OnCorrupt | None = None) -> AtBorder:
        """Return the function that a reader calls at borders between segments.

        If reading begins at the log start offset, offsets missing before the first segment are reported at once.

        Args:
            on_gap: called with each gap; by default a Python warning is raised.
            is_from_start: whether reading begins at the log start offset.
            on_corrupt: called before `on_gap` with the damage that explains a gap, if damage does.
        """
        callback = warn_of_gap if on_gap is None else on_gap
        if on_corrupt is not None:
            callback = partial(_report_both, on_corrupt, callback)
        if is_from_start:
            self._gap_watch.at_start(callback)
        return partial(self._gap_watch.at_border, callback)

    @cached_property
    def tiered_offsets(self) -> MissingOffsets | None:
        """The offsets that are only in a remote store, and cannot be read here; None without any (SEG-PDR-028)."""
        gap = tiered_gap(self.listing, self._log_start_checkpoint)
        return None if gap is None else gap.missing

    @cached_property
    def missing_offsets(self) -> tuple[Gap, ...]:
        """What is missing before the first segment and after the last one; not what is in a remote store."""
        last = {base: base for base in self.listing.base_offsets[-1:]}
        return tuple(gap for gap in self._gap_watch.gaps(last) if gap.kind is not GapKind.TIERED)

    @property
    def _tiered_text(self) -> str:
        """The text that errors about an offset append, to name the offsets that are only in a remote store."""
        tiered = self.tiered_offsets
        return "" if tiered is None else f"; {tiered.first_offset} to {tiered.next_offset - 1} are not here: tiered"

    def _warn_of_tiered(self) -> None:
        gap = tiered_gap(self.listing, self._log_start_checkpoint)
        if gap is not None:
            warn_of_gap(gap)

    @cached_property
    def _gap_watch(self) -> GapWatch:
        start, end = self._log_start_checkpoint, self.high_watermark or 0
        return GapWatch(self.listing, log_start_offset=start, high_watermark=end)


def _unreadable(end: SegmentEnd) -> Gap | None:
    """Return a gap after a last segment that holds bytes, but no readable entry; None for any other segment."""
    base = end.files.base_offset
    return Gap(base, base, GapKind.UNREADABLE, str(end.files.log)) if end.has_tail and end.next_offset == base else None


def _report_both(on_corrupt: OnCorrupt, on_gap: OnGap, gap: Gap) -> None:
    if (damage := gap.damage) is not None:
        on_corrupt(damage)
    on_gap(gap)


def _report(on_gap: OnGap, gap: Gap | None) -> None:
    if gap is not None:
        on_gap(gap)


def warn_of_gap(gap: Gap) -> None:
    """Raise a Python warning that points at the line of the caller outside of this package."""
    warn_caller(str(gap), MissingOffsetsWarning)


def warn_caller(text: str, category: type[Warning]) -> None:
    """Raise a Python warning that points at the line of the caller outside of this package."""
    warnings.warn(text, category, stacklevel=_caller_level())


def _caller_level() -> int:
    """Return the number of stack frames from the caller of this function to the first one outside this package."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - no other interface shows the caller of a generator
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
