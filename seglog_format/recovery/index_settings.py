"""Inference of the settings with which to build the indexes of a partition (chapters 40 and 71).

No file says what `index.interval.bytes` was, or which brokers wrote an index. Existing indexes show both: the distances
between index entries bound the setting, and an entry holds either the first or the last offset of its batch.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError
from seglog_format.model import INT32_MAX
from seglog_format.recovery.entry_walk import indexed_rows, recoverable_frames
from seglog_format.state.index_build import (
    INDEX_INTERVAL_BYTES,
    IndexedOffset,
    interval_bounds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.log.offset_index import OffsetIndex
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Frame
    from seglog_format.state.index_build import IndexedRow

EXAMINED_SEGMENTS: Final = 8
EXAMINED_ROWS: Final = 20_000
"""Maximum number of entries examined of each log: enough for hundreds of index entries."""

POWERS: Final = tuple(1 << exponent for exponent in range(31))
DECIMALS: Final = tuple(digit * 10**exponent for digit in (1, 5, 2, 3, 4, 6, 7, 8, 9) for exponent in range(9))
ROUND_VALUES: Final = (INDEX_INTERVAL_BYTES, *reversed(POWERS), *DECIMALS)
"""Common values of the setting, the most plausible first."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Settings by which indexes are built.

    Attributes:
        interval_bytes: `index.interval.bytes`, 0 or more.
        indexed_offset: which offset of an entry the offset index stores.
        has_time_index: whether time indexes are written also.
        interval_reason: where `interval_bytes` comes from.
        offset_reason: where `indexed_offset` comes from.
    """

    interval_bytes: int = INDEX_INTERVAL_BYTES
    indexed_offset: IndexedOffset = IndexedOffset.LAST
    has_time_index: bool = True
    interval_reason: str = "the default"
    offset_reason: str = "as brokers since 2.0"

    @property
    def stores_first_offset(self) -> bool:
        """Return whether the offset index stores the first offset of an entry, not the last."""
        return self.indexed_offset is IndexedOffset.FIRST


@dataclass(frozen=True, slots=True)
class Evidence:
    """The settings that the entries of one offset index allow.

    Attributes:
        allowed: intervals under which recovery would have written the same index; empty if none would have led to
            it.
        upper: the greatest interval that the smallest distance between two index entries allows.
        firsts: number of index entries that hold the first offset of a batch of several.
        lasts: number of index entries that hold the last offset of a batch, or a later offset.
    """

    allowed: range
    upper: int
    firsts: int
    lasts: int


def infer_settings(
    segments: Sequence[LogSegment],
    *,
    interval_bytes: int | None = None,
    indexed_offset: IndexedOffset | None = None,
) -> IndexSettings:
    """Infer the settings under which the indexes of a partition were written.

    Args:
        segments: in order.
        interval_bytes: `index.interval.bytes`; None to infer it.
        indexed_offset: which offset of an entry the offset index stores; None to infer it.
    """
    found = _evidence(segments) if interval_bytes is None or indexed_offset is None else []
    has_time_index = any(segment.paths.time_index is not None for segment in segments)
    if interval_bytes is None:
        interval_bytes, interval_reason = _inferred_interval(found)
    else:
        interval_reason = "as asked for"
    if indexed_offset is None:
        indexed_offset, offset_reason = _inferred_offset(
            found, is_early=not has_time_index and _is_before_0_10(segments)
        )
    else:
        offset_reason = "as asked for"
    writes_time_index = has_time_index or indexed_offset is IndexedOffset.LAST
    return IndexSettings(interval_bytes, indexed_offset, writes_time_index, interval_reason, offset_reason)


def _is_before_0_10(segments: Sequence[LogSegment]) -> bool:
    """Return whether there are offset indexes and the first entry is of magic 0, as brokers before 0.10 wrote."""
    first = next((frame for frame in map(_first_frame, segments) if frame is not None), None)
    has_index = any(segment.paths.offset_index is not None for segment in segments)
    return has_index and first is not None and first.header.magic == 0


def _first_frame(segment: LogSegment) -> Frame | None:
    with suppress(FormatError):  # a log that cannot be read is no evidence
        return next(recoverable_frames(segment.source, path=segment.path), None)
    return None


def _evidence(segments: Sequence[LogSegment]) -> list[Evidence]:
    found = (evidence_of(segment) for segment in reversed(segments))
    return list(islice((one for one in found if one is not None), EXAMINED_SEGMENTS))


def evidence_of(segment: LogSegment) -> Evidence | None:
    """Return the evidence in the offset index of a segment; None if it is empty, or does not belong to the log."""
    index = segment.offset_index
    if index is None:
        return None
    try:
        return _evidence_in(index, segment)
    except FormatError:  # log or index cannot be read
        return None


def _evidence_in(index: OffsetIndex, segment: LogSegment) -> Evidence | None:
    if not index.entries:
        return None
    rows = list(islice(indexed_rows(segment.source, path=segment.path), EXAMINED_ROWS))
    end = rows[-1].position if rows else -1
    # Preallocated zeros look like an entry at position 0.
    entries = [entry for entry in index.entries if 0 < entry.position <= end]
    by_position = {row.position: row for row in rows}
    if not entries or any(entry.position not in by_position for entry in entries):
        return None
    named = [(entry.offset, by_position[entry.position]) for entry in entries]
    starts = [0, *(entry.position for entry in entries)]
    narrowest = min(after - before for before, after in pairwise(starts))
    return Evidence(
        allowed=interval_bounds(rows, entries),
        upper=narrowest - 1,
        firsts=sum(offset < row.last_offset for offset, row in named),
        lasts=sum(offset > row.last_offset or row.first_offset < offset == row.last_offset for offset, row in named),
    )


def _inferred_interval(evidence: Sequence[Evidence]) -> tuple[int, str]:
    """Return the most plausible setting, and why."""
    if not evidence:
        return INDEX_INTERVAL_BYTES, "the default: no index shows otherwise"
    upper = min(one.upper for one in evidence)
    values = [value for value in ROUND_VALUES if value <= upper]
    votes = {value: sum(value in one.allowed for one in evidence) for value in values}
    best = max(votes, key=votes.__getitem__, default=0)  # the first of those with equal votes
    if votes.get(best):
        return best, f"explains {votes[best]} of {len(evidence)} indexes entry by entry"
    if upper >= INDEX_INTERVAL_BYTES:
        return INDEX_INTERVAL_BYTES, f"the default: index entries are {upper + 1} bytes apart or more"
    # The most plausible value: from indexes that are rebuilt with it, the same setting is inferred the next time.
    return next(iter(values), 0), f"a round value below {upper + 1}: no two index entries are closer"


def _inferred_offset(evidence: Sequence[Evidence], *, is_early: bool) -> tuple[IndexedOffset, str]:
    """Return which offset of a batch the index entries hold, and how that was inferred."""
    firsts, lasts = sum(one.firsts for one in evidence), sum(one.lasts for one in evidence)
    if firsts > lasts:
        return IndexedOffset.FIRST, f"as brokers before 2.0: {firsts} index entries name the first offset of a batch"
    if lasts:
        return IndexedOffset.LAST, f"as brokers since 2.0: {lasts} index entries name the last offset of a batch"
    if is_early:
        return IndexedOffset.FIRST, "as brokers before 2.0: there is no time index, and no timestamp"
    return IndexedOffset.LAST, "as brokers since 2.0: no index shows otherwise"


def is_indexable(row: IndexedRow, base_offset: int, *, stores_first_offset: bool) -> bool:
    """Return whether the offsets that an index stores for an entry can be stored relative to the base offset."""
    is_first_below = stores_first_offset and row.first_offset < base_offset
    return 0 <= row.last_offset - base_offset <= INT32_MAX and not is_first_below
