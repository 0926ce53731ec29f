"""Settings that affect the files of a log: Kafka's topic settings, and the generation of brokers to write like."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeVar

from seglog_format.errors import UsageError
from seglog_format.log.index_file import INDEX_INTERVAL_BYTES, IndexedOffset
from seglog_format.model import ENTRY_PREFIX_SIZE, INT32_MAX, INT64_MAX, TimestampType

if TYPE_CHECKING:
    from collections.abc import Mapping


EnumT = TypeVar("EnumT", bound=Enum)

HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
PRODUCER_EXPIRATION_MS: Final = DAY_MS
"""Default of `producer.id.expiration.ms`, a setting of a broker."""
MEBIBYTE: Final = 1 << 20
UNLIMITED: Final = -1
AS_WHOLE: Final = -2
"""Value of a local limit of retention: that of the whole log."""


class IndexUnit(Enum):
    """The unit of appended bytes that gets at most one index entry: an append or a batch (SEG-ROL-011)."""

    APPEND = "append"
    BATCH = "batch"


class TimeIndexOffset(Enum):
    """The offset that a time index entry stores beside the largest timestamp (SEG-APP-015)."""

    RECORD = "record"
    """The record's offset, if a leader appended an uncompressed batch with producer timestamps; else as `BATCH`."""

    BATCH = "batch"
    """The last offset of the first batch that has the timestamp."""


class BrokerGeneration(Enum):
    """Brokers that write the same files for the same appends, named by their first version.

    Patch releases of 3.9 and 4.0 adopted the newest rule: 3.9.1 and 4.0.1 write like 4.1.

    Examples:
        >>> from seglog_format import BrokerGeneration, LogConfig
        >>> LogConfig(generation=BrokerGeneration.V0_8).generation.has_time_index
        False
    """

    V0_8 = "0.8"
    """0.8.0 to 0.10.0: no time index, and segments are rolled by the clock."""

    V0_10_1 = "0.10.1"
    """0.10.1 and 0.10.2: magic 1, a time index, no producer state yet."""

    V0_11 = "0.11"
    """0.11.0 to 1.1."""

    V2_0 = "2.0"
    """2.0 to 3.6."""

    V3_7 = "3.7"
    """3.7 to 3.9.0, and 4.0.0."""

    V4_1 = "4.1"
    """3.9.1, 4.0.1, and 4.1 and later."""

    @property
    def has_time_index(self) -> bool:
        """Return whether there are time indexes, and segments are rolled by their timestamps."""
        return self is not BrokerGeneration.V0_8

    @property
    def has_producer_state(self) -> bool:
        """Return whether there are magic 2, transaction indexes, producer snapshots and leader epochs."""
        return self not in {BrokerGeneration.V0_8, BrokerGeneration.V0_10_1}

    @property
    def index_unit(self) -> IndexUnit:
        """The unit that gets at most one index entry."""
        return IndexUnit.BATCH if self is BrokerGeneration.V4_1 else IndexUnit.APPEND

    @property
    def indexed_offset(self) -> IndexedOffset:
        """The offset of a unit that the offset index stores."""
        return IndexedOffset.FIRST if self in EARLY else IndexedOffset.LAST

    @property
    def time_index_offset(self) -> TimeIndexOffset:
        """The offset that the time index stores."""
        late = self in {BrokerGeneration.V3_7, BrokerGeneration.V4_1}
        return TimeIndexOffset.BATCH if late else TimeIndexOffset.RECORD

    @property
    def rolls_by_first_entry(self) -> bool:
        """Return whether a segment's age counts from its first entry, not from the latest of its first append."""
        return self is BrokerGeneration.V4_1

    @property
    def has_lazy_indexes(self) -> bool:
        """Return whether a rolled segment gets its indexes with its first append, not at once: since 2.3."""
        return self not in EARLY


EARLY: Final = frozenset({BrokerGeneration.V0_8, BrokerGeneration.V0_10_1, BrokerGeneration.V0_11})
"""Generations before 2.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; names and defaults are those of Kafka's topic settings, dots written as underscores.

    Attributes:
        segment_bytes: maximum size of a segment, 14 to 2147483647.
        segment_ms: duration after which a segment is rolled, by the timestamps in it; 1 or more.
        segment_jitter_ms: maximum time by which a segment is rolled earlier, at random; 0 or more.
        segment_index_bytes: size of each preallocated index, 4 or more.
        index_interval_bytes: bytes between index entries, 0 or more.
        max_message_bytes: size of the largest batch that may be appended, 0 or more.
        retention_ms: age at which a segment is removed, or -1 for never.
        retention_bytes: size that retention reduces the log to, or -1 for no limit.
        file_delete_delay_ms: how long removed files stay under another name; 0 or more.
        delete_retention_ms: how long compaction keeps tombstones; 0 or more.
        min_compaction_lag_ms: age below which records are not compacted; 0 or more.
        max_compaction_lag_ms: age at which records are compacted at the latest; in a compacted topic no segment stays
            active longer. 1 or more.
        min_cleanable_dirty_ratio: part of a log that has to be dirty before it is compacted, 0 to 1.
        cleanup_policy: ``delete``, ``compact`` or both.
        message_timestamp_type: whether producers or the broker set the timestamps of records.
        message_timestamp_before_max_ms: how far producer timestamps may be before the current time; 0 or more.
        message_timestamp_after_max_ms: how far producer timestamps may be after the current time; 0 or more. The
            default is that of 4.0; earlier versions have no limit.
        flush_messages: flush after so many records, 1 or more.
        flush_ms: flush records that are older than this, 0 or more.
        preallocate: create a segment's log at its full size, filled with zeros.
        remote_storage_enable: whether the log is tiered (SEG-RET-014); None if it is not known.
        remote_log_copy_disable: whether brokers copy nothing more to the remote store.
        remote_log_storage_system_enable: whether the broker has remote storage at all; None if it is not known.
        local_retention_ms: age at which a copied segment is removed from the disk, -1 for never, -2 for `retention_ms`.
        local_retention_bytes: size that the removal of copied segments reduces the local part of the log to; -1 for no
            limit, -2 for `retention_bytes`.
        generation: which brokers to write like.

    Examples:
        >>> from seglog_format import LogConfig
        >>> LogConfig(segment_bytes=1_000_000).segment_ms
        604800000
        >>> LogConfig.from_properties({"retention.ms": "60000"}).retention_ms
        60000
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * MEBIBYTE
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    max_message_bytes: int = MEBIBYTE + ENTRY_PREFIX_SIZE
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    preallocate: bool = False
    remote_storage_enable: bool | None = None
    remote_log_copy_disable: bool = False
    remote_log_storage_system_enable: bool | None = None
    local_retention_ms: int = AS_WHOLE
    local_retention_bytes: int = AS_WHOLE
    generation: BrokerGeneration = BrokerGeneration.V4_1

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                msg = f"{kafka_name(name)} is from {least} to {most}, not {value}"
                raise UsageError(msg)
        if not self.cleanup_policy or not self.cleanup_policy <= POLICIES:
            msg = f"cleanup.policy is of {', '.join(sorted(POLICIES))}, not {', '.join(sorted(self.cleanup_policy))}"
            raise UsageError(msg)
        if self.message_timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
            msg = "message.timestamp.type is CreateTime or LogAppendTime"
            raise UsageError(msg)
        if self.remote_storage_enable and self.is_compacted:
            msg = "a topic with remote.storage.enable=true cannot be compacted: brokers refuse such settings"
            raise UsageError(msg)
        if self.remote_storage_enable and self.remote_log_storage_system_enable is False:
            msg = "a topic with remote.storage.enable=true needs brokers with remote.log.storage.system.enable=true"
            raise UsageError(msg)

    @property
    def is_compacted(self) -> bool:
        """Return whether compaction is enabled, with or without retention."""
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Return whether retention by time and size is enabled."""
        return DELETE in self.cleanup_policy

    @property
    def names_remote_storage(self) -> bool:
        """Return whether a setting only makes sense for a tiered log, or for a broker with remote storage."""
        local = {self.local_retention_ms, self.local_retention_bytes}
        return local != {AS_WHOLE} or self.remote_log_copy_disable or bool(self.remote_log_storage_system_enable)

    @property
    def roll_ms(self) -> int:
        """Duration after which a segment is rolled: `segment_ms`, or `max_compaction_lag_ms` if that is less."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @classmethod
    def has_setting(cls, name: str) -> bool:
        """Return whether Kafka's topic setting of that name affects the files of a log."""
        return name.removeprefix("internal.") in {kafka_name(field.name) for field in fields(cls)}

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LogConfig:
        """Create settings from names and values in the form that Kafka's tools accept.

        Args:
            properties: such as ``{"segment.bytes": "1048576"}``. The prefix ``internal.``, with which brokers since 4.1
                accept small sizes for tests, is ignored. ``generation`` is a version such as ``4.1``.

        Raises:
            UsageError: a name is unknown, or a value is not valid.
        """
        known = {kafka_name(field.name): field.name for field in fields(cls)}
        values = {}
        for key, text in properties.items():
            name = known.get(key.removeprefix("internal."))
            if name is None:
                msg = f"{key!r} is not a setting that affects the files of a log"
                raise UsageError(msg)
            values[name] = _parsed(name, text)
        return cls(**values)  # type: ignore[arg-type]


DELETE: Final = "delete"
COMPACT: Final = "compact"
POLICIES: Final = frozenset({DELETE, COMPACT})

BOUNDS: Final = {
    "segment_bytes": (14, INT32_MAX),
    "segment_ms": (1, INT64_MAX),
    "segment_jitter_ms": (0, INT64_MAX),
    "segment_index_bytes": (4, INT32_MAX),
    "index_interval_bytes": (0, INT32_MAX),
    "max_message_bytes": (0, INT32_MAX),
    "retention_ms": (UNLIMITED, INT64_MAX),
    "retention_bytes": (UNLIMITED, INT64_MAX),
    "local_retention_ms": (AS_WHOLE, INT64_MAX),
    "local_retention_bytes": (AS_WHOLE, INT64_MAX),
    "file_delete_delay_ms": (0, INT64_MAX),
    "delete_retention_ms": (0, INT64_MAX),
    "min_compaction_lag_ms": (0, INT64_MAX),
    "max_compaction_lag_ms": (1, INT64_MAX),
    "min_cleanable_dirty_ratio": (0, 1),
    "message_timestamp_before_max_ms": (0, INT64_MAX),
    "message_timestamp_after_max_ms": (0, INT64_MAX),
    "flush_messages": (1, INT64_MAX),
    "flush_ms": (0, INT64_MAX),
}
"""Minimum and maximum of each number."""


def kafka_name(name: str) -> str:
    """Return a setting's name with dots."""
    return name.replace("_", ".")


def _parsed(name: str, text: str) -> object:
    match name:
        case "cleanup_policy":
            return frozenset(part.strip() for part in text.split(","))
        case "message_timestamp_type":
            return _member(TimestampType, name, text)
        case "generation":
            return _member(BrokerGeneration, name, text)
        case "preallocate" | "remote_storage_enable" | "remote_log_copy_disable" | "remote_log_storage_system_enable":
            return _flag(name, text)
        case "min_cleanable_dirty_ratio":
            return _number(name, text, float)
        case _:
            return _number(name, text)


def _flag(name: str, text: str) -> bool:
    known = {"true": True, "false": False}.get(text.strip().lower())
    if known is None:
        msg = f"{kafka_name(name)} is true or false, not {text!r}"
        raise UsageError(msg)
    return known


def _member(kind: type[EnumT], name: str, text: str) -> EnumT:
    try:
        return kind(text.strip())
    except ValueError:
        msg = f"{kafka_name(name)} is one of {', '.join(str(member.value) for member in kind)}, not {text}"
        raise UsageError(msg) from None


def _number(name: str, text: str, kind: type[int | float] = int) -> int | float:
    try:
        return kind(text)
    except ValueError:
        msg = f"{kafka_name(name)} is a number, not {text!r}"
        raise UsageError(msg) from None


# -- conversion of broker settings, as in `server.properties`, to topic settings ---------------------------------------


MINUTE_MS: Final = 60_000

IN_UNITS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}
"""Topic settings that follow several settings of a broker, each with its unit: the first given wins (SEG-RET-013)."""

RENAMED: Final[Mapping[str, str]] = {
    "log.segment.bytes": "segment.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.index.interval.bytes": "index.interval.bytes",
    "message.max.bytes": "max.message.bytes",
    "log.retention.bytes": "retention.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleanup.policy": "cleanup.policy",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.flush.interval.messages": "flush.messages",
    "log.preallocate": "preallocate",
    "log.local.retention.ms": "local.retention.ms",
    "log.local.retention.bytes": "local.retention.bytes",
}
"""Topic settings by the names of the broker settings."""


def topic_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Convert settings of a broker, a topic, or both, for `LogConfig.from_properties`.

    A setting of the topic overrides that of its broker. If a topic setting follows several settings of
    the broker, the first one in the list wins.

    Args:
        properties: values by name; names that are no broker setting for logs stay unchanged.

    Raises:
        UsageError: a duration is not a number.
    """
    in_units = {name for names in IN_UNITS.values() for name, _ in names}
    found = {RENAMED[name]: value for name, value in properties.items() if name in RENAMED}
    for topic_name, names in IN_UNITS.items():
        given = next(((name, unit) for name, unit in names if properties.get(name, "").strip()), None)
        if given is not None:
            found[topic_name] = str(_milliseconds(given[0], properties[given[0]], given[1]))
    return found | {name: value for name, value in properties.items() if name not in in_units | RENAMED.keys()}


def _milliseconds(name: str, text: str, unit: int) -> int:
    """Convert a duration to milliseconds; a negative number of any unit means no limit, -1."""
    try:
        return max(int(text) * unit, -1)
    except ValueError:
        msg = f"{name} is a number, not {text!r}"
        raise UsageError(msg) from None
