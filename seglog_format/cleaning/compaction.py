"""The decision which segments compaction rewrites, and why (chapter 73).

The decision is a pure function of the facts about each segment, the settings and the time. `compaction_rules` decides
about the records in the segments; `compaction_apply` changes the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.state.config import LogConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedSegment:
    """The facts about a segment that compaction needs before it reads records.

    Attributes:
        base_offset: from its name.
        next_offset: the first offset after its last entry; the base offset if the segment is empty.
        size: size of its log in bytes.
        offset_index_size: size of its offset index in bytes.
        time_index_size: size of its time index in bytes.
        first_timestamp_ms: the largest timestamp of its first entry, or -1 if there is none.
        largest_timestamp_ms: the largest timestamp of its records, or -1 if they have none.
        modified_ms: when its log was last written; used if there is no timestamp.
    """

    base_offset: int
    next_offset: int
    size: int
    offset_index_size: int = 0
    time_index_size: int = 0
    first_timestamp_ms: int = -1
    largest_timestamp_ms: int = -1
    modified_ms: int = 0

    @property
    def age_from_ms(self) -> int:
        """The time from which the age of the segment counts."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms


class CompactionAction(Enum):
    """What compaction does with a segment."""

    CLEAN = "clean"
    """It is rewritten, alone or together with its neighbours."""

    KEEP = "keep"
    """It stays unchanged."""


@dataclass(frozen=True, slots=True)
class SegmentCompaction:
    """The decision for one segment.

    Attributes:
        segment: the segment.
        action: what happens to it.
        target: base offset of the segment that replaces it; its own base offset if it stays.
        explanation: the comparisons that decided, as text.
        requirements: ids of the rules that decided.
    """

    segment: CompactedSegment
    action: CompactionAction
    target: int
    explanation: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The decisions of one compaction of a log.

    Attributes:
        fates: the decision for every segment, oldest first.
        first_dirty_offset: everything below was compacted before.
        first_uncleanable_offset: the first offset that may not be compacted now; a base offset.
        end_offset: where this compaction ends: below `first_uncleanable_offset` only if the keys do not fit into
            memory.
        groups: groups of segments to merge, oldest first; empty if there is nothing to do.
        clean_size: number of bytes of the segments that begin below the first dirty offset.
        dirty_size: number of bytes of the segments from the one that holds the first dirty offset to the first
            uncleanable offset.
        is_due: whether a broker would compact now (SEG-CMP-005).
    """

    fates: tuple[SegmentCompaction, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    end_offset: int
    groups: tuple[tuple[CompactedSegment, ...], ...]
    clean_size: int
    dirty_size: int
    is_due: bool

    @property
    def dirty_ratio(self) -> float:
        """Dirty bytes divided by all bytes below the first uncleanable offset, 0 to 1."""
        total = self.clean_size + self.dirty_size
        return self.dirty_size / total if total else 0.0

    @property
    def explanation(self) -> tuple[str, ...]:
        """A line for each segment, oldest first."""
        return tuple(
            f"segment {fate.segment.base_offset}: {fate.action.value}: {fate.explanation}" for fate in self.fates
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """An offset that compaction may not pass, and why."""

    offset: int
    explanation: str
    requirement: str


def plan_compaction(  # noqa: PLR0913 - each is a fact about the log
    segments: Sequence[CompactedSegment],
    config: LogConfig,
    *,
    now_ms: int,
    cleaner_offset: int | None = None,
    log_start_offset: int = 0,
    last_stable_offset: int | None = None,
    end_offset: int | None = None,
) -> CompactionPlan:
    """Decide which segments compaction rewrites.

    The caller checks whether the cleanup policy of the log has ``compact``.

    Args:
        segments: of the log, oldest first; the last one is active.
        config: the settings.
        now_ms: the current time, in milliseconds since 1970.
        cleaner_offset: as checkpointed: everything below was compacted; None if there is no checkpoint.
        log_start_offset: first offset that consumers may read.
        last_stable_offset: last stable offset, limited by the high watermark; the log end offset by default.
        end_offset: the offset at which the memory for keys was full; None if it was sufficient.

    Raises:
        UsageError: there is no segment.
    """
    if not segments:
        msg = "a log has at least one segment"
        raise UsageError(msg)
    stable = segments[-1].next_offset if last_stable_offset is None else last_stable_offset
    first_dirty = first_dirty_offset(segments, cleaner_offset, max(log_start_offset, segments[0].base_offset))
    limit = _limit(segments, config, first_dirty, stable, now_ms)
    end = limit.offset if end_offset is None else min(end_offset, limit.offset)
    clean_size, dirty_size = _sizes(segments, first_dirty, limit.offset)
    cleaned = [one for one in segments if one.base_offset < end] if dirty_size else []
    groups = tuple(_groups(cleaned, config, limit.offset))
    return CompactionPlan(
        fates=tuple(_fates(segments, groups, first_dirty, limit, end)),
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=limit.offset,
        end_offset=end,
        groups=groups,
        clean_size=clean_size,
        dirty_size=dirty_size,
        is_due=_is_due(segments, config, first_dirty, now_ms, clean_size, dirty_size),
    )


def first_dirty_offset(segments: Sequence[CompactedSegment], cleaner_offset: int | None, log_start_offset: int) -> int:
    """Return where compaction continues: the checkpointed offset, unless it is outside the log (SEG-CMP-001)."""
    if cleaner_offset is None or not log_start_offset <= cleaner_offset <= segments[-1].next_offset:
        return log_start_offset
    return cleaner_offset


def _limit(
    segments: Sequence[CompactedSegment], config: LogConfig, first_dirty: int, stable: int, now_ms: int
) -> Limit:
    """Return the lowest limit of compaction, moved to the base offset of the segment that holds it."""
    active = segments[-1].base_offset
    limits = [
        Limit(stable, f"the last stable offset is {stable}", "SEG-CMP-003"),
        Limit(active, "the active segment", "SEG-CMP-002"),
        *_lag_limits(segments, config, first_dirty, now_ms),
    ]
    least = min(limits, key=lambda limit: limit.offset)
    offset = max(first_dirty, least.offset)
    holder = max((one.base_offset for one in segments if one.base_offset <= offset), default=segments[0].base_offset)
    return Limit(holder, least.explanation, least.requirement)


def _lag_limits(
    segments: Sequence[CompactedSegment], config: LogConfig, first_dirty: int, now_ms: int
) -> Iterator[Limit]:
    """Yield a limit at the first dirty segment whose newest record is too recent (SEG-CMP-004)."""
    lag = config.min_compaction_lag_ms
    for segment in _closed_from(segments, first_dirty):
        age = now_ms - segment.age_from_ms
        if lag > 0 and age < lag:
            words = f"its newest record is {age} ms old, less than {lag} ms"
            yield Limit(segment.base_offset, words, "SEG-CMP-004")
            return


def _segments_from(segments: Sequence[CompactedSegment], offset: int) -> Sequence[CompactedSegment]:
    """Return the segments from the segment that holds an offset to the last."""
    before = sum(segment.base_offset <= offset for segment in segments)
    return segments[max(before - 1, 0) :]


def _closed_from(segments: Sequence[CompactedSegment], offset: int) -> Sequence[CompactedSegment]:
    """Return the closed segments from the segment that holds an offset on; none if the active segment holds it."""
    return _segments_from(segments[:-1], offset) if offset < segments[-1].base_offset else ()


def _sizes(segments: Sequence[CompactedSegment], first_dirty: int, limit: int) -> tuple[int, int]:
    clean = sum(one.size for one in segments if one.base_offset < first_dirty)
    cleanable = [one for one in segments if one.base_offset < limit]
    dirty = _segments_from(cleanable, first_dirty) if first_dirty < limit else ()
    return clean, sum(one.size for one in dirty)


def _is_due(
    segments: Sequence[CompactedSegment],
    config: LogConfig,
    first_dirty: int,
    now_ms: int,
    clean_size: int,
    dirty_size: int,
) -> bool:
    """Return whether enough of the log is dirty, or a part has been dirty for too long (SEG-CMP-005, SEG-CMP-025)."""
    stamps = (one.first_timestamp_ms for one in _closed_from(segments, first_dirty))
    oldest = min((stamp for stamp in stamps if stamp > 0), default=now_ms)
    is_late = now_ms - oldest > config.max_compaction_lag_ms
    total = clean_size + dirty_size
    return dirty_size > 0 and (is_late or dirty_size / total > config.min_cleanable_dirty_ratio)


def _groups(
    segments: Sequence[CompactedSegment], config: LogConfig, limit: int
) -> Iterator[tuple[CompactedSegment, ...]]:
    """Yield groups of neighbouring segments that together fit into one segment (SEG-CMP-006)."""
    bases = [*(segment.base_offset for segment in segments), limit]
    group: list[CompactedSegment] = []
    for segment, end in zip(segments, bases[1:], strict=True):
        if group and not _fits(group, segment, end, config):
            yield tuple(group)
            group = []
        group.append(segment)
    if group:
        yield tuple(group)


def _fits(group: Sequence[CompactedSegment], segment: CompactedSegment, end: int, config: LogConfig) -> bool:
    together = [*group, segment]
    return (
        sum(one.size for one in together) <= config.segment_bytes
        and sum(one.offset_index_size for one in together) <= config.segment_index_bytes
        and sum(one.time_index_size for one in together) <= config.segment_index_bytes
        and (segment.size == 0 or end - 1 - group[0].base_offset <= INT32_MAX)
    )


def _fates(
    segments: Sequence[CompactedSegment],
    groups: Sequence[tuple[CompactedSegment, ...]],
    first_dirty: int,
    limit: Limit,
    end: int,
) -> Iterator[SegmentCompaction]:
    targets = {segment.base_offset: group[0].base_offset for group in groups for segment in group}
    for segment in segments:
        target = targets.get(segment.base_offset)
        if target is None:
            words, requirement = _reason_to_keep(segment, segments[-1], first_dirty, limit, end)
            yield SegmentCompaction(segment, CompactionAction.KEEP, segment.base_offset, words, (requirement,))
        else:
            words = _reason_to_clean(segment, target, first_dirty)
            yield SegmentCompaction(segment, CompactionAction.CLEAN, target, words, ("SEG-CMP-001", "SEG-CMP-006"))


def _reason_to_keep(
    segment: CompactedSegment, active: CompactedSegment, first_dirty: int, limit: Limit, end: int
) -> tuple[str, str]:
    if segment is active:
        return "the active segment", "SEG-CMP-002"
    if segment.base_offset == limit.offset:
        return limit.explanation, limit.requirement
    if segment.base_offset > limit.offset:
        return f"segment {limit.offset} before it is kept", limit.requirement
    if first_dirty >= limit.offset:
        return f"compaction has already covered everything below {first_dirty}", "SEG-CMP-001"
    if segment.base_offset < end:
        return f"nothing from {first_dirty} on has any bytes", "SEG-CMP-001"
    return f"the memory holds only the keys up to offset {end - 1}", "SEG-CMP-007"


def _reason_to_clean(segment: CompactedSegment, target: int, first_dirty: int) -> str:
    state = "dirty" if segment.base_offset >= first_dirty else "clean"
    if segment.base_offset < first_dirty < segment.next_offset:
        state = f"dirty from {first_dirty} on"
    suffix = "" if target == segment.base_offset else f", and becomes part of segment {target}"
    return f"{state}{suffix}"
