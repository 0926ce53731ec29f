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
from seglog_format.log.index_file import INDEX_INTERVAL_BYTES, IndexedOffset, interval_bounds
from seglog_format.model import INT32_MAX
from seglog_format.recovery.entry_walk import indexed_rows, recoverable_frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.log.index_file import IndexedRow, OffsetIndex
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Frame

EXAMINED_SEGMENTS: Final = 8
"""Number of segments after which no more are examined, unless all of them are small."""
EXAMINED_ROWS: Final = 20_000
"""Maximum number of entries examined of each log: enough for hundreds of index entries. If all examined segments have
fewer together, more segments are examined."""

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
        upper: the greatest interval that the smallest distance between two index entries allows; `INT32_MAX` for an
            index without entries.
        row_count: number of entries of the log that were examined.
        firsts: number of index entries that hold the first offset of a batch of several.
        lasts: number of index entries that hold the last offset of a batch, or a later offset.
    """

    allowed: range
    upper: int
    row_count: int
    firsts: int = 0
    lasts: int = 0

    @property
    def has_entries(self) -> bool:
        """Return whether the index has entries."""
        return self.upper < INT32_MAX


def infer_settings(
    segments: Sequence[LogSegment], *, interval_bytes: int | None = None, indexed_offset: IndexedOffset | None = None
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
    found: list[Evidence] = []
    row_count = entry_holders = 0
    for segment in reversed(segments):
        if row_count >= EXAMINED_ROWS and entry_holders >= EXAMINED_SEGMENTS:
            break
        one = evidence_of(segment)
        if one is not None:
            found.append(one)
            row_count += one.row_count
            entry_holders += one.has_entries
    return found


def evidence_of(segment: LogSegment) -> Evidence | None:
    """Return the evidence in the offset index of a segment; None if it does not belong to the log."""
    index = segment.offset_index
    if index is None:
        return None
    try:
        return _evidence_in(index, segment)
    except FormatError:  # log or index cannot be read
        return None


def _evidence_in(index: OffsetIndex, segment: LogSegment) -> Evidence | None:
    rows = list(islice(indexed_rows(segment.source, path=segment.path), EXAMINED_ROWS))
    # Preallocated zeros look like an entry at position 0.
    stored = [entry for entry in index.entries if entry.position > 0]
    if not stored:
        return Evidence(interval_bounds(rows, ()), INT32_MAX, len(rows))
    end = rows[-1].position if rows else -1
    entries = [entry for entry in stored if entry.position <= end]
    by_position = {row.position: row for row in rows}
    if not entries or any(entry.position not in by_position for entry in entries):
        return None
    named = [(entry.offset, by_position[entry.position]) for entry in entries]
    starts = [0, *(entry.position for entry in entries)]
    narrowest = min(after - before for before, after in pairwise(starts))
    return Evidence(
        allowed=interval_bounds(rows, entries),
        upper=narrowest - 1,
        row_count=len(rows),
        firsts=sum(offset < row.last_offset for offset, row in named),
        lasts=sum(offset > row.last_offset or row.first_offset < offset == row.last_offset for offset, row in named),
    )


def _inferred_interval(evidence: Sequence[Evidence]) -> tuple[int, str]:
    """Return the setting that explains most indexes, or else the greatest round value that they allow, and why.

    Brokers before 0.10 append many messages together and add one index entry at most for them, so no setting explains
    the index entries that they add between two starts. Indexes that are rebuilt here are explained by the setting that
    they were rebuilt with. If a more plausible setting explains as many of them, it also has to explain as many empty
    ones: then it leads to the same indexes, and a second recovery leaves them alone.
    """
    shown = [one for one in evidence if one.has_entries]
    if not shown:
        return INDEX_INTERVAL_BYTES, "the default: no index shows otherwise"
    upper = min(one.upper for one in shown)
    values = [value for value in ROUND_VALUES if value <= upper]
    explained = {value: [one for one in evidence if value in one.allowed] for value in values}
    votes = {
        value: (sum(one.has_entries for one in found), value == INDEX_INTERVAL_BYTES, len(found))
        for value, found in explained.items()
    }
    best = max(votes, key=votes.__getitem__, default=0)  # the first of those with equal votes
    if best in votes and votes[best][0]:
        return best, f"explains {votes[best][0]} of {len(shown)} indexes entry by entry"
    if upper >= INDEX_INTERVAL_BYTES:
        return INDEX_INTERVAL_BYTES, f"the default: index entries are {upper + 1} bytes apart or more"
    return max(values, default=0), f"the greatest round value below {upper + 1}: no two index entries are closer"


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
