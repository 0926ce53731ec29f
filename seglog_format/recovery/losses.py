"""The offsets that a recovery makes unreadable, and those that were missing before (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.log.gap_watch import watch_over
from seglog_format.log.gaps import GapKind
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import MissingOffsets
from seglog_format.names import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionListing
    from seglog_format.recovery.plan import RecoveryPlan


class LossReason(Enum):
    """Reason for which offsets cannot be read after a recovery."""

    CUT = "is cut"
    DROPPED = "is dropped"
    REPLACED = "is replaced by .swap files"


@dataclass(frozen=True, slots=True)
class LostOffsets:
    """Offsets of one file that cannot be read after a recovery.

    Attributes:
        file: name of the log.
        missing: the offsets.
        reason: what happens to the file.
    """

    file: str
    missing: MissingOffsets
    reason: LossReason


@dataclass(frozen=True, slots=True)
class Losses:
    """The offsets that a recovery makes unreadable, and those that it does not bring back.

    Attributes:
        lost: offsets that stop being readable.
        missing: offsets that are missing before and after; none of a log that is known to be compacted.
        is_compacted: whether a `.swap` file may hold fewer offsets than the segments it replaces.
    """

    lost: tuple[LostOffsets, ...] = ()
    missing: tuple[Gap, ...] = ()
    is_compacted: bool = False

    @property
    def is_loss(self) -> bool:
        """Return whether records may be lost unintentionally."""
        return any(each.reason is not LossReason.REPLACED or not self.is_compacted for each in self.lost)


def losses_of(path: Path, plan: RecoveryPlan) -> Losses:
    """Count the offsets that a recovery makes unreadable (SEG-RCV-031). Every log of the partition is walked.

    Args:
        path: of the partition directory.
        plan: of the recovery, which is not carried out yet.

    Raises:
        UnreadableError: the disk refuses a file.
    """
    listing = list_partition(path)
    watch = watch_over(listing, copy=True)
    lost = (*_replaced(listing), *_cut_or_dropped(listing, plan))
    gaps: list[Gap] = []
    watch.at_start(gaps.append)
    for base_offset, following in pairwise([*listing.base_offsets, None]):
        if base_offset is not None:
            watch.at_border(gaps.append, base_offset, base_offset, following)
    gaps = [gap for gap in gaps if gap.kind is not GapKind.TIERED]  # a recovery does not touch those
    missing = tuple(gap for gap in gaps if not _is_among(gap.missing, lost))
    is_compacted = any(each.reason is LossReason.REPLACED for each in lost) and watch.is_compacted
    return Losses(lost, missing, is_compacted)


def _replaced(listing: PartitionListing) -> Iterator[LostOffsets]:
    """Yield offsets in logs that `.swap` files replace, and in no log that counts."""
    aside = [file for file in listing.set_aside if file.name.kind is FileKind.LOG and not file.name.suffix]
    kept = [_extent(files) for files in listing.segments] if aside else []
    for file in aside:
        extent = _extent(SegmentFiles(file.base_offset, file.path))
        for missing in _without(extent, kept):
            yield LostOffsets(file.path.name, missing, LossReason.REPLACED)


def _extent(files: SegmentFiles) -> MissingOffsets:
    """Return the range from the first offset of a log to the one after its last."""
    with LogSegment(files, copy=True) as segment:
        return MissingOffsets(files.base_offset, segment.next_offset)


def _without(extent: MissingOffsets, kept: Iterable[MissingOffsets]) -> Iterator[MissingOffsets]:
    """Yield the parts of a range of offsets that are in none of the other, ascending ranges."""
    start = extent.first_offset
    for one in kept:
        if one.first_offset > start and one.first_offset <= extent.next_offset and one.offset_count:
            yield MissingOffsets(start, one.first_offset)
        if one.offset_count:
            start = max(start, one.next_offset)
    if start < extent.next_offset:
        yield MissingOffsets(start, extent.next_offset)


def _cut_or_dropped(listing: PartitionListing, plan: RecoveryPlan) -> Iterator[LostOffsets]:
    cuts = {cut.base_offset: cut for cut in plan.cuts}
    for files, following in zip(listing.segments, [*listing.base_offsets, 0][1:], strict=True):
        cut, name = cuts.get(files.base_offset), files.log.name
        if files.base_offset in plan.dropped:
            yield LostOffsets(name, _extent(files), LossReason.DROPPED)
        elif cut is not None:
            end = max(_extent(files).next_offset, following, cut.next_offset)
            yield LostOffsets(name, MissingOffsets(cut.next_offset, end), LossReason.CUT)


def _is_among(missing: MissingOffsets, lost: Iterable[LostOffsets]) -> bool:
    return any(
        one.missing.first_offset <= missing.first_offset and missing.next_offset <= one.missing.next_offset
        for one in lost
    )
