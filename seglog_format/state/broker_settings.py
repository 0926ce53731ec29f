"""Conversion of broker settings, as in `server.properties`, to topic settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.state.config import HOUR_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE_MS: Final = 60_000

IN_UNITS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
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
