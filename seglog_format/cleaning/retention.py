"""The decision which segments retention removes, and why, or why not yet (chapter 72).

The decision is a pure function of the facts about each segment, the settings, the time, and what a remote store holds.
Retention removes only the oldest segments. Three rules are applied in turn: each begins at the segment at which the
rule before it stopped, and stops at the first segment that it keeps. The settings in force are those of the log, unless
its topic is an internal one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.log.gaps import COMPACTED_TOPICS, tiered_gap
from seglog_format.names import METADATA_TOPICS, REMOTE_LOG_METADATA_TOPIC, SHARE_GROUP_STATE
from seglog_format.state.config import AS_WHOLE, COMPACT, DAY_MS, DELETE, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import RemoteCopies
    from seglog_format.state.config import LogConfig


KEPT_TOPICS: Final = frozenset({SHARE_GROUP_STATE, REMOTE_LOG_METADATA_TOPIC})
"""Internal topics that brokers create with ``cleanup.policy=delete`` and ``retention.ms=-1``."""

NEVER_TIERED: Final = METADATA_TOPICS | COMPACTED_TOPICS | KEPT_TOPICS
"""Topics that no setting makes tiered."""


def topic_config(topic: str, config: LogConfig) -> LogConfig:
    """Return the settings of a topic; in internal topics nothing is removed for its age or size."""
    if topic not in NEVER_TIERED:
        return config
    config = replace(config, remote_storage_enable=False)
    if topic in COMPACTED_TOPICS:
        return replace(config, cleanup_policy=frozenset({COMPACT}))
    if topic in KEPT_TOPICS:
        return replace(config, cleanup_policy=frozenset({DELETE}), retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
    return config


def tiered_or_not(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> LogConfig:
    """Return settings of a log that say whether it is tiered (SEG-RET-018).

    Args:
        config: the settings of the log.
        listing: of the partition directory.
        directory: the log directory.

    Raises:
        UsageError: the log may be tiered, and the settings do not say whether it is.
    """
    if listing.topic_partition[0] in NEVER_TIERED:
        return topic_config(listing.topic_partition[0], config)
    if config.remote_storage_enable is None and config.remote_log_storage_system_enable is not False:
        sign = _sign_of_tier(config, listing, directory)
        if sign is not None:
            msg = f"{listing.path}: {sign}, so the topic may be tiered: give remote.storage.enable, true or false"
            raise UsageError(msg)
    return config


def require_not_tiered(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> None:
    """Refuse what no broker does with a tiered log.

    Args:
        config: the settings of the log.
        listing: of the partition directory.
        directory: the log directory.

    Raises:
        UsageError: the log is tiered; or it may be, and the settings do not say whether it is.
    """
    if tiered_or_not(config, listing, directory).remote_storage_enable:
        msg = f"{listing.path}: the topic has remote.storage.enable=true: brokers never compact it"
        raise UsageError(msg)


def _sign_of_tier(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> str | None:
    """Return what shows that a log may have segments in a remote store; None if nothing does."""
    gap = tiered_gap(listing, directory.log_start_offsets.get(listing.topic_partition, 0))
    if gap is not None:
        return f"the log begins at offset {gap.first_offset}, its first segment at {gap.next_offset}"
    if config.is_compacted:
        return None
    if config.names_remote_storage:
        return "the settings name remote storage"
    if any(topic == REMOTE_LOG_METADATA_TOPIC for topic, _ in directory.partitions):
        return f"the log directory has a partition of {REMOTE_LOG_METADATA_TOPIC}"
    return None


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_MS: Final = 978_307_200_000
"""The year 2001: Kafka began later, so a greater timestamp that is no future one may be a real one."""
UNITS: Final = {1_000: "microseconds", 1_000_000: "nanoseconds"}


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """The age and the size that retention allows a log, the local part of a tiered log, or its remote part.

    Attributes:
        ms: age at which a segment is deleted, in milliseconds; -1 for never.
        size: size below which removal does not reduce the log, in bytes; -1 for no limit.
    """

    ms: int = UNLIMITED
    size: int = UNLIMITED

    def is_past(self, age_ms: int) -> bool:
        """Return whether a segment of that age is too old (SEG-RET-003)."""
        return self.ms > UNLIMITED and age_ms > self.ms

    def is_over(self, size_left: int) -> bool:
        """Return whether a segment is too much, if so many bytes are left without it (SEG-RET-005)."""
        return self.size > UNLIMITED and size_left >= self.size

    @classmethod
    def of_whole(cls, config: LogConfig) -> RetentionLimits:
        """Return the limits of a whole log, local and remote."""
        return cls(config.retention_ms, config.retention_bytes)

    @classmethod
    def of_disk(cls, config: LogConfig) -> RetentionLimits:
        """Return the limits of the segments on the disk: if they are copied, the local ones (SEG-RET-015)."""
        whole = cls.of_whole(config)
        if not is_copied(config):
            return whole
        return cls(
            whole.ms if config.local_retention_ms == AS_WHOLE else config.local_retention_ms,
            whole.size if config.local_retention_bytes == AS_WHOLE else config.local_retention_bytes,
        )


def is_copied(config: LogConfig) -> bool:
    """Return whether brokers copy the segments of a log to a remote store, and remove only what they copied."""
    return bool(config.remote_storage_enable) and not config.remote_log_copy_disable


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
        """The time from which the age of the segment counts, in 3.9.1 and in 4.4.0, of a tiered log also."""
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
        rolls_first: whether an empty segment is first created at the log end offset, because every segment is removed
            (SEG-RET-006), or the active one is due and has to be copied first (SEG-RET-017).
        log_start_offset: the log start offset after the removal (SEG-RET-007, SEG-RET-016).
        local_log_start_offset: the first offset that is then in the directory and may be read.
    """

    fates: tuple[SegmentFate, ...]
    rolls_first: bool
    log_start_offset: int
    local_log_start_offset: int

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


@dataclass(slots=True)
class RetainedLog:
    """The values of a log that retention depends on, and its rules.

    Attributes:
        segments: oldest first; the last one is active.
        config: the settings.
        now_ms: the current time.
        log_start_offset: first offset that consumers may read.
        high_watermark: everything below is on all replicas.
        copies: what the remote store holds of a tiered log; None if that is not known.
        limits: of the segments on the disk.
        is_rolled: whether the last of the segments is a new one.
    """

    segments: list[RetainedSegment]
    config: LogConfig
    now_ms: int
    log_start_offset: int
    high_watermark: int
    copies: RemoteCopies | None = None
    limits: RetentionLimits = field(init=False)
    is_rolled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.limits = RetentionLimits.of_disk(self.config)

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

    def end_of(self, number: int) -> int:
        """Return the offset at which the segment after another begins, or would begin."""
        return self.log_end_offset if self.is_active(number) else self.segments[number + 1].base_offset

    def is_active(self, number: int) -> bool:
        """Return whether a segment is the active one."""
        return number == len(self.segments) - 1

    def is_removable(self, number: int) -> bool:
        """Return whether a segment may be removed: it is fully replicated, and not active and empty (SEG-RET-002)."""
        is_empty = self.is_active(number) and not self.segments[number].size
        return self.high_watermark >= self.end_of(number) and not is_empty

    def uncopied(self, number: int) -> str | None:
        """Return why a segment must stay until brokers have copied it; None if it need not (SEG-RET-014)."""
        end = self.end_of(number)
        is_below_start = not self.is_active(number) and end <= self.log_start_offset
        if not is_copied(self.config) or is_below_start:
            return None
        if self.copies is None:
            return "it is not known what the remote store holds"
        where, highest = self.copies.where, self.copies.highest_offset
        if not 0 < end <= highest + 1:
            return f"{where} has offsets up to {highest}, the segment ends at {end - 1}"
        missing = self.copies.missing(max(self.segments[number].base_offset, self.log_start_offset), end - 1)
        return None if missing is None else f"{where} has no offsets {missing[0]} to {missing[1]}"

    def roll_if_due(self, number: int) -> None:
        """Begin a new segment if the active one of a tiered log is due: only then can brokers copy it (SEG-RET-017)."""
        if self.config.remote_storage_enable and self.is_active(number):
            end = self.log_end_offset
            self.segments.append(RetainedSegment(end, end, 0, -1, self.now_ms))
            self.is_rolled = True

    def by_log_start_offset(self, number: int) -> Verdict:
        """Remove a segment if the next segment begins at or below the log start offset."""
        if self.is_active(number):
            return Verdict(goes=False, explanation="the active segment", requirement="SEG-RET-008")
        base = self.segments[number + 1].base_offset
        words = f"the next segment begins at {base}, the log at {self.log_start_offset}"
        return Verdict(base <= self.log_start_offset, words, "SEG-RET-008")

    def by_size(self, number: int) -> Verdict:
        """Remove a segment if the later segments alone have as many bytes as are kept, or more."""
        limit = self.limits.size
        if limit <= UNLIMITED:
            return Verdict(goes=False, explanation="no limit of size", requirement="SEG-RET-005")
        rest = sum(segment.size for segment in self.segments[number + 1 :])
        words = f"{rest} bytes are left without it, {limit} are kept"
        return Verdict(self.limits.is_over(rest), words, "SEG-RET-005")

    def by_time(self, number: int) -> Verdict:
        """Remove a segment if its latest record is too old."""
        limit = self.limits.ms
        if limit <= UNLIMITED:
            return Verdict(goes=False, explanation="no limit of time", requirement="SEG-RET-003")
        since = self.segments[number].age_from_ms
        age = self.now_ms - since
        words = f"it is {_span_text(age)} old, {_span_text(limit)} are kept"
        if age < 0:
            guess = unit_guess(since, self.now_ms)
            words = f"its largest timestamp is in the future{guess}, {_span_text(limit)} are kept"
        goes = self.limits.is_past(age)
        return Verdict(goes, words if goes else f"{words}, until {date_text(since + limit)}", "SEG-RET-003")


def _span_text(span_ms: int) -> str:
    """Return a time span as text, in milliseconds; from one day on also in days."""
    if span_ms < DAY_MS:
        return f"{span_ms} ms"
    days = f"{span_ms / DAY_MS:.1f}".removesuffix(".0")
    return f"{span_ms} ms ({days} {'day' if days == '1' else 'days'})"


def unit_guess(timestamp_ms: int, now_ms: int) -> str:
    """Return words on the unit that a timestamp in the future probably has; none if no other unit explains it."""
    unit = next((name for by, name in UNITS.items() if EARLIEST_MS < timestamp_ms // by <= now_ms), None)
    return "" if unit is None else f": it is probably in {unit}"


def date_text(timestamp_ms: int) -> str:
    """Return a time to the second, in UTC."""
    try:
        return f"{EPOCH + timedelta(milliseconds=timestamp_ms):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError:
        return "after the year 9999"


def plan_retention(
    segments: Sequence[RetainedSegment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int = 0,
    high_watermark: int | None = None,
    copies: RemoteCopies | None = None,
) -> RetentionPlan:
    """Decide which segments retention removes from the disk.

    Args:
        segments: of the log, oldest first; the last one is active.
        config: the settings; retention by size and time applies if the cleanup policy has ``delete``.
        now_ms: the current time, in milliseconds since 1970.
        log_start_offset: first offset that consumers may read.
        high_watermark: everything below is on all replicas; the log end offset by default.
        copies: what the remote store holds of a tiered log; without it no segment of such a log is removed that
            consumers may still read.

    Raises:
        UsageError: there is no segment.
    """
    if not segments:
        msg = "a log has at least one segment"
        raise UsageError(msg)
    mark = segments[-1].next_offset if high_watermark is None else high_watermark
    log = RetainedLog([*segments], config, now_ms, log_start_offset, mark, copies)
    gone = list(_removed(log))
    kept = [_kept(log, number, len(gone)) for number in range(len(gone), len(segments))]
    start = log.log_end_offset if not kept else segments[len(gone)].base_offset
    return RetentionPlan(
        fates=(*gone, *kept),
        rolls_first=log.is_rolled or not kept,
        log_start_offset=max(start, log_start_offset) if gone and not is_copied(config) else log_start_offset,
        local_log_start_offset=max(start, log_start_offset),
    )


def _removed(log: RetainedLog) -> Iterator[SegmentFate]:
    number = 0
    for reason, rule in log.rules():
        while number < len(log.segments) and log.is_removable(number) and (verdict := rule(number)).goes:
            uncopied = log.uncopied(number)
            log.roll_if_due(number)
            if uncopied is not None:
                break
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
    verdicts = [rule(number) for _, rule in reversed([*log.rules()])]  # a narrow terminal shows the limit of time
    words = "; ".join(verdict.explanation for verdict in verdicts)
    requirements = tuple(verdict.requirement for verdict in verdicts)
    uncopied = log.uncopied(number)
    if uncopied is not None and any(verdict.goes for verdict in verdicts):
        return SegmentFate(segment, None, f"not yet: {uncopied}; {words}", ("SEG-RET-014", *requirements))
    return SegmentFate(segment, None, words, requirements)
