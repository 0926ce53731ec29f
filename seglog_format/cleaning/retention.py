"""The decision which segments retention removes, and why (chapter 72).

The decision is a pure function of the facts about each segment, the settings and the time. Retention removes only the
oldest segments. Three rules are applied in turn: each begins at the segment at which the rule before it stopped, and
stops at the first segment that it keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.state.config import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.state.config import LogConfig


@dataclass(frozen=True, slots=True)
class RetainedSegment:
    """The facts about a segment that retention needs.

    Attributes:
        base_offset: from its name.
        next_offset: the first offset after its last entry; the base offset if the segment is empty.
        size: size of its log in bytes.
        largest_timestamp_ms: the largest timestamp of its records, or -1 if they have none.
        modified_ms: when its log was last written; used if there is no timestamp (SEG-RET-004).
    """

    base_offset: int
    next_offset: int
    size: int
    largest_timestamp_ms: int
    modified_ms: int

    @property
    def age_from_ms(self) -> int:
        """The time from which the age of the segment counts."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms


class RetentionReason(Enum):
    """The limit that a segment exceeds."""

    LOG_START_OFFSET = "log start offset"
    SIZE = "size"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class SegmentFate:
    """The decision for one segment.

    Attributes:
        segment: the segment.
        reason: why it is removed; None if it stays.
        explanation: the comparisons that decided, as text.
        requirements: ids of the rules that decided.
    """

    segment: RetainedSegment
    reason: RetentionReason | None
    explanation: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """The decisions of one retention run over a log.

    Attributes:
        fates: the decision for every segment, oldest first.
        rolls_first: whether every segment is removed, so an empty segment is first created at the log end offset
            (SEG-RET-006).
        log_start_offset: the log start offset after the removal (SEG-RET-007).
    """

    fates: tuple[SegmentFate, ...]
    rolls_first: bool
    log_start_offset: int

    @property
    def removed(self) -> tuple[RetainedSegment, ...]:
        """The removed segments, oldest first."""
        return tuple(fate.segment for fate in self.fates if fate.reason is not None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one rule for one segment."""

    goes: bool
    explanation: str
    requirement: str


Rule: TypeAlias = Callable[[int], Verdict]
"""Decides about the segment with a number, given that all segments before it are removed."""


class RetainedLog:
    """The values of a log that retention depends on, and its rules.

    Args:
        segments: oldest first; the last one is active.
        config: the settings.
        now_ms: the current time.
        log_start_offset: first offset that consumers may read.
        high_watermark: everything below is on all replicas.
    """

    def __init__(
        self,
        segments: Sequence[RetainedSegment],
        config: LogConfig,
        now_ms: int,
        log_start_offset: int,
        high_watermark: int,
    ) -> None:
        self.segments = segments
        self.config = config
        self.now_ms = now_ms
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.segments[-1].next_offset

    def rules(self) -> Iterator[tuple[RetentionReason, Rule]]:
        """Yield the rules in the order in which brokers apply them (SEG-RET-001)."""
        yield RetentionReason.LOG_START_OFFSET, self.by_log_start_offset
        if self.config.is_deleted:
            yield RetentionReason.SIZE, self.by_size
            yield RetentionReason.TIME, self.by_time

    def is_removable(self, number: int) -> bool:
        """Return whether a segment may be removed: it is fully replicated, and not active and empty (SEG-RET-002)."""
        is_active = number == len(self.segments) - 1
        end = self.log_end_offset if is_active else self.segments[number + 1].base_offset
        return self.high_watermark >= end and not (is_active and not self.segments[number].size)

    def by_log_start_offset(self, number: int) -> Verdict:
        """Remove a segment if the next segment begins at or below the log start offset."""
        if number == len(self.segments) - 1:
            return Verdict(goes=False, explanation="the active segment", requirement="SEG-RET-008")
        base = self.segments[number + 1].base_offset
        goes = base <= self.log_start_offset
        words = f"the next segment begins at {base}, the log at {self.log_start_offset}"
        return Verdict(goes, words, "SEG-RET-008")

    def by_size(self, number: int) -> Verdict:
        """Remove a segment if the later segments alone have `retention.bytes` or more."""
        limit = self.config.retention_bytes
        if limit < 0:
            return Verdict(goes=False, explanation="no limit of size", requirement="SEG-RET-005")
        rest = sum(segment.size for segment in self.segments[number + 1 :])
        return Verdict(rest >= limit, f"{rest} bytes are left without it, {limit} are kept", "SEG-RET-005")

    def by_time(self, number: int) -> Verdict:
        """Remove a segment if its latest record is too old."""
        limit = self.config.retention_ms
        if limit < 0:
            return Verdict(goes=False, explanation="no limit of time", requirement="SEG-RET-003")
        age = self.now_ms - self.segments[number].age_from_ms
        return Verdict(age > limit, f"it is {_span_text(age)} old, {_span_text(limit)} are kept", "SEG-RET-003")


def _span_text(span_ms: int) -> str:
    """Return a time span as text, in milliseconds; from one day on also in days."""
    if span_ms < DAY_MS:
        return f"{span_ms} ms"
    days = f"{span_ms / DAY_MS:.1f}".removesuffix(".0")
    return f"{span_ms} ms ({days} {'day' if days == '1' else 'days'})"


def plan_retention(
    segments: Sequence[RetainedSegment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int = 0,
    high_watermark: int | None = None,
) -> RetentionPlan:
    """Decide which segments retention removes.

    Args:
        segments: of the log, oldest first; the last one is active.
        config: the settings; retention by size and time applies if the cleanup policy has ``delete``.
        now_ms: the current time, in milliseconds since 1970.
        log_start_offset: first offset that consumers may read.
        high_watermark: everything below is on all replicas; the log end offset by default.

    Raises:
        UsageError: there is no segment.
    """
    if not segments:
        msg = "a log has at least one segment"
        raise UsageError(msg)
    mark = segments[-1].next_offset if high_watermark is None else high_watermark
    log = RetainedLog(segments, config, now_ms, log_start_offset, mark)
    gone = list(_removed(log))
    kept = [_kept(log, number, len(gone)) for number in range(len(gone), len(segments))]
    start = log.log_end_offset if not kept else segments[len(gone)].base_offset
    return RetentionPlan(
        fates=(*gone, *kept),
        rolls_first=not kept,
        log_start_offset=max(start, log_start_offset) if gone else log_start_offset,
    )


def _removed(log: RetainedLog) -> Iterator[SegmentFate]:
    number = 0
    for reason, rule in log.rules():
        while number < len(log.segments) and log.is_removable(number) and (verdict := rule(number)).goes:
            yield SegmentFate(log.segments[number], reason, verdict.explanation, (verdict.requirement,))
            number += 1


def _kept(log: RetainedLog, number: int, first_kept: int) -> SegmentFate:
    segment = log.segments[number]
    if number > first_kept:
        words = f"segment {log.segments[first_kept].base_offset} before it is kept"
        return SegmentFate(segment, None, words, ("SEG-RET-001",))
    if not log.is_removable(number):
        words = f"it is not below the high watermark, {log.high_watermark}, or active and empty"
        return SegmentFate(segment, None, words, ("SEG-RET-002",))
    verdicts = [rule(number) for _, rule in log.rules()]
    words = "; ".join(verdict.explanation for verdict in verdicts)
    return SegmentFate(segment, None, words, tuple(verdict.requirement for verdict in verdicts))
