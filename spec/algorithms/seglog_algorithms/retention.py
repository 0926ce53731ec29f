"""Retention: which segments of a log are removed, and what that leaves (chapter 72)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, base_offsets, file_name, parse_name
from seglog_algorithms.entries import NO_TIMESTAMP, walk
from seglog_algorithms.leader_epochs import change_epochs, truncated_from_start, with_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seglog_algorithms.directory import Directory

UNLIMITED: Final = -1
AS_WHOLE: Final = -2
"""Value of a local setting that stands for the setting of the whole log (SEG-RET-015)."""
HOUR_MS: Final = 3_600_000
DEFAULT_MS: Final = 168 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a log, by Kafka's names and with its defaults.

    Attributes:
        remote_storage_enable: whether the log is tiered: the topic's setting, if the broker has a remote store.
    """

    cleanup_policy: str = "delete"
    retention_ms: int = DEFAULT_MS
    retention_bytes: int = UNLIMITED
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    local_retention_ms: int = AS_WHOLE
    local_retention_bytes: int = AS_WHOLE

    @property
    def is_copied(self) -> bool:
        """Whether brokers copy the segments of the log."""
        return self.remote_storage_enable and not self.remote_log_copy_disable

    @property
    def limits(self) -> tuple[int, int]:
        """Age and size that count on the disk (SEG-RET-015)."""
        if not self.is_copied:
            return self.retention_ms, self.retention_bytes
        age, size = self.local_retention_ms, self.local_retention_bytes
        return self.retention_ms if age == AS_WHOLE else age, self.retention_bytes if size == AS_WHOLE else size


@dataclass(frozen=True, slots=True)
class Segment:
    """What retention has to know of a segment.

    Attributes:
        next_offset: the offset after its last entry; its base offset if it is empty.
        size: of its log in bytes.
        largest_timestamp_ms: of its records, or -1.
        modified_ms: when its log was last written.
        offset_index_size: in bytes, for compaction alone, as the next two.
        time_index_size: in bytes.
        first_timestamp_ms: largest timestamp of its first entry, or -1.
    """

    base_offset: int
    next_offset: int
    size: int
    largest_timestamp_ms: int
    modified_ms: int
    offset_index_size: int = 0
    time_index_size: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP

    @property
    def age_from_ms(self) -> int:
        """The time from which its age counts (SEG-RET-004)."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms


@dataclass(frozen=True, slots=True)
class Log:
    """What retention has to know of a log.

    Attributes:
        segments: oldest first; the last one is active.
        highest_copied_offset: of a tiered log (SEG-RLM-010); -1 if nothing is copied, or nothing is known.
        checkpointed_start: the log start offset in the checkpoint; 0 if there is none.
    """

    segments: Sequence[Segment]
    now_ms: int
    log_start_offset: int
    high_watermark: int
    highest_copied_offset: int = -1
    checkpointed_start: int = 0

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return self.segments[-1].next_offset

    def is_active(self, number: int) -> bool:
        """Return whether a segment is the active one."""
        return number == len(self.segments) - 1

    def end_of(self, number: int) -> int:
        """Return the offset at which the segment after another begins, or would begin."""
        return self.end_offset if self.is_active(number) else self.segments[number + 1].base_offset


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass does.

    Attributes:
        removed: base offsets, ascending.
        rolls_first: whether an empty segment is created at the log end offset first.
        log_start_offset: after the pass.
    """

    removed: tuple[int, ...]
    rolls_first: bool
    log_start_offset: int


def plan_retention(log: Log, options: Options) -> Plan:
    """Decide which segments a pass removes.

    Raises:
        Damage: there is no segment.
    """
    if not log.segments:
        raise Damage("SEG-RET-001", text="no segment")
    rules = [by_log_start_offset]
    if "delete" in map(str.strip, options.cleanup_policy.split(",")):
        rules += [by_size, by_time]  # SEG-RET-001
    count, total, rolls_first = 0, len(log.segments), False
    for rule in rules:
        while count < len(log.segments) and may_go(log, count) and rule(log, options, count):
            waits = is_waiting(log, options, count)  # SEG-RET-014
            if options.remote_storage_enable and log.is_active(count):  # SEG-RET-017
                end = log.end_offset
                log = replace(log, segments=[*log.segments, Segment(end, end, 0, NO_TIMESTAMP, log.now_ms)])
                rolls_first = True
            if waits:
                break
            count += 1
    is_all = count == total  # SEG-RET-006
    removed = tuple(segment.base_offset for segment in log.segments[:count])
    return Plan(removed, rolls_first or is_all, log_start_after(log, options, count))


def may_go(log: Log, number: int) -> bool:
    """Return whether all of a segment is below the high watermark, and it is not active and empty (SEG-RET-002)."""
    is_empty = log.is_active(number) and log.segments[number].size == 0
    return log.end_of(number) <= log.high_watermark and not is_empty


def by_time(log: Log, options: Options, number: int) -> bool:
    """Return whether a segment is too old (SEG-RET-003)."""
    limit, _ = options.limits
    return limit >= 0 and log.now_ms - log.segments[number].age_from_ms > limit


def retention_ms_of(settings: Mapping[str, str]) -> int:
    """Return `retention.ms` from the settings of a topic and of its broker (SEG-RET-013)."""
    units = {"retention.ms": 1, "log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": HOUR_MS}
    for name, unit in units.items():
        if name in settings:
            value = int(settings[name])
            return value * unit if value >= 0 else UNLIMITED
    return DEFAULT_MS


def by_size(log: Log, options: Options, number: int) -> bool:
    """Return whether enough bytes remain without a segment (SEG-RET-005)."""
    _, limit = options.limits
    return 0 <= limit <= sum(segment.size for segment in log.segments[number + 1 :])


def log_start_after(log: Log, options: Options, count: int) -> int:
    """Return the log start offset after the first segments, so many, are removed (SEG-RET-007)."""
    if count == 0 or options.is_copied:  # SEG-RET-016
        return log.log_start_offset
    return max(log.end_of(count - 1), log.log_start_offset)


def by_log_start_offset(log: Log, options: Options, number: int) -> bool:  # noqa: ARG001 - as the other rules
    """Return whether all of a segment is below the log start offset (SEG-RET-008)."""
    return not log.is_active(number) and log.end_of(number) <= log.log_start_offset


def is_waiting(log: Log, options: Options, number: int) -> bool:
    """Return whether a segment must stay until it is copied (SEG-RET-014)."""
    is_copied_or_below = log.end_of(number) - 1 <= log.highest_copied_offset or by_log_start_offset(
        log, options, number
    )
    return options.is_copied and not is_copied_or_below


# The directory


def segments_of(directory: Directory, modified_ms: Mapping[str, int]) -> list[Segment]:
    """Return what retention has to know of each segment.

    Args:
        directory: of the partition.
        modified_ms: when each file was last written.

    Raises:
        Damage: a log cannot be walked.
    """
    found = []
    for base in base_offsets(directory):
        name = file_name(base, LOG)
        entries = list(walk(directory[name]))
        end = entries[-1].last_offset + 1 if entries else base
        stamps = [entry.max_timestamp_ms for entry in entries] or [NO_TIMESTAMP]
        offsets, times = (len(directory.get(file_name(base, kind), b"")) for kind in (INDEX, TIME_INDEX))
        facts = (base, end, len(directory[name]), max(stamps), modified_ms.get(name, 0))
        found.append(Segment(*facts, offsets, times, stamps[0]))
    return found


def retain(
    directory: Directory,
    log: Log,
    options: Options,
    *,
    log_starts: bytes | None,
    partition: tuple[str, int],
    snapshot: Callable[[], bytes],
) -> tuple[dict[str, bytes], Plan, bytes | None]:
    """Return the directory without the segments that a pass removes, the plan, and the checkpoint of log starts.

    Args:
        directory: of the partition.
        log: what `segments_of` returned, with the offsets of the checkpoints.
        options: the settings.
        log_starts: the checkpoint of log start offsets; None if the log directory has no checkpoints.
        partition: topic and number.
        snapshot: returns the producers at the end of the log as a snapshot (chapter 50).
    """
    plan = plan_retention(log, options)
    files = dict(directory)
    if plan.rolls_first:  # SEG-RET-006, SEG-RET-017
        files.setdefault(f"{log.end_offset:020}.snapshot", snapshot())  # SEG-ROL-015
        files[file_name(log.end_offset, LOG)] = b""
    start = log.checkpointed_start
    if plan.removed and not options.is_copied:  # SEG-RET-016
        start = plan.log_start_offset
        log_starts = None if log_starts is None else with_offset(log_starts, partition, start)  # SEG-RET-012
    change_epochs(files, lambda known: truncated_from_start(known, start))  # SEG-RET-011, SEG-RCV-037
    for base in plan.removed:
        files = without_segment(files, base)
    return files, plan, log_starts


def without_segment(directory: Directory, base_offset: int, *, keeps_snapshot: bool = False) -> dict[str, bytes]:
    """Return a directory in which the files of a segment end in `.deleted`, its producer snapshot too."""
    gone = {
        name
        for name in directory
        if (parts := parse_name(name)) is not None
        and (parts.base_offset, parts.state) == (base_offset, "")
        and not (keeps_snapshot and parts.kind == SNAPSHOT)
    }  # SEG-RET-009, SEG-RET-010
    return {name + DELETED if name in gone else name: data for name, data in directory.items()}
