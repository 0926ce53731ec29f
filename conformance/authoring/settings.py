"""Topic settings: what holds where nothing is said, and how far each may go (part of family 44)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.casefile import Basis, must

if TYPE_CHECKING:
    from authoring.casefile import Family

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
SOURCE: Final = "Kafka's documentation of topic settings, 4.0"

DEFAULTS: Final = {
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "segment.jitter.ms": "0",
    "segment.index.bytes": "10485760",
    "index.interval.bytes": "4096",
    "max.message.bytes": "1048588",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "file.delete.delay.ms": "60000",
    "delete.retention.ms": "86400000",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": str(INT64),
    "min.cleanable.dirty.ratio": "0.5",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(INT64),
    "message.timestamp.after.max.ms": "3600000",
    "flush.messages": str(INT64),
    "flush.ms": str(INT64),
    "preallocate": "false",
    "roll.ms": "604800000",
}
RANGES: Final = {
    "segment.bytes": (14, INT32, "SEG-ROL-001"),
    "segment.ms": (1, INT64, "SEG-ROL-001"),
    "segment.jitter.ms": (0, INT64, "SEG-ROL-001"),
    "segment.index.bytes": (4, INT32, "SEG-ROL-001"),
    "index.interval.bytes": (0, INT32, "SEG-ROL-001"),
    "max.message.bytes": (0, INT32, "SEG-APP-006"),
    "retention.ms": (-1, INT64, "SEG-RET-001"),
    "retention.bytes": (-1, INT64, "SEG-RET-001"),
    "file.delete.delay.ms": (0, INT64, "SEG-RET-001"),
    "delete.retention.ms": (0, INT64, "SEG-RET-001"),
    "min.compaction.lag.ms": (0, INT64, "SEG-RET-001"),
    "max.compaction.lag.ms": (1, INT64, "SEG-RET-001"),
    "message.timestamp.before.max.ms": (0, INT64, "SEG-APP-024"),
    "message.timestamp.after.max.ms": (0, INT64, "SEG-APP-024"),
    "flush.messages": (1, INT64, "SEG-ROL-001"),
    "flush.ms": (0, INT64, "SEG-ROL-001"),
}
BASIS: Final = {"flags": ("CONFIG",), "needs": ("config",), "source": SOURCE}


class Settings:
    """Adds cases to a family."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def takes(self, name: str, why: str, rule: str, given: dict[str, str], found: dict[str, str]) -> None:
        """Add settings that hold."""
        self._ask(name, "valid", why, must(rule, **BASIS), given, {"object": found})

    def refuses(self, name: str, why: str, rule: str, given: dict[str, str]) -> None:
        """Add a setting that is out of its range, or none."""
        self._ask(name, "invalid", why, must(rule, **BASIS), given, {"reject": {"class": "policy"}})

    def _ask(
        self, name: str, result: str, why: str, basis: Basis, given: dict[str, str], expect: dict[str, object]
    ) -> None:
        lines = "".join(f"{key}={value}\n" for key, value in given.items())
        request = {"kind": "config", "data": lines.encode().hex()}
        self.family.add(
            f"config-{name}", "parse", result, why, replace(basis, level="may"), request=request, expect=expect
        )


def _of_brokers(to: Settings) -> None:
    """Add settings of a broker, in units of their own."""
    rule, why = (
        "SEG-RET-013",
        "Of several broker settings, that with the smallest unit applies; a topic setting overrides all of them.",
    )
    spans = (("hours", "2", "7200000"), ("minutes", "3", "180000"), ("ms", "1000", "1000"))
    given: dict[str, str] = {}
    for unit, number, found in spans:
        given = {**given, f"log.retention.{unit}": number}
        to.takes(f"broker-retention-{unit}", why, rule, {f"log.retention.{unit}": number}, {"retention.ms": found})
        to.takes(f"broker-retention-to-{unit}", why, rule, given, {"retention.ms": found})
        backwards = dict(reversed(given.items()))
        to.takes(f"broker-retention-from-{unit}", why, rule, backwards, {"retention.ms": found})
    to.takes("broker-and-topic", why, rule, {**given, "retention.ms": "7"}, {"retention.ms": "7"})
    to.takes("broker-retention-none", why, rule, {"log.retention.hours": "-2"}, {"retention.ms": "-1"})
    to.takes("broker-roll", why, rule, {"log.roll.hours": "2", "log.roll.ms": "5"}, {"segment.ms": "5"})
    for unit, short in (("hours", "segment.ms"), ("ms", "segment.ms"), ("hours", "segment.jitter.ms")):
        theirs = f"log.roll.{'jitter.' if 'jitter' in short else ''}{unit}"
        for name, both in (("before", {theirs: "2", short: "7000"}), ("behind", {short: "7000", theirs: "2"})):
            to.takes(f"{theirs.replace('.', '-')}-{name}-a-topics", why, rule, both, {short: "7000"})
    to.takes("broker-roll-and-topic", why, rule, {"log.roll.hours": "2", "segment.ms": "7000"}, {"roll.ms": "7000"})
    to.takes("broker-jitter", why, rule, {"log.roll.jitter.hours": "2"}, {"segment.jitter.ms": "7200000"})
    to.takes("broker-segment", why, rule, {"log.segment.bytes": "5000"}, {"segment.bytes": "5000"})


def settings(family: Family) -> None:
    """Add the cases."""
    to = Settings(family)
    to.takes("defaults", "Without settings, the defaults of brokers apply.", "SEG-ROL-001", {}, DEFAULTS)
    for name, (least, most, rule) in RANGES.items():
        short = name.replace(".", "-")
        for number in (least, most):
            to.takes(f"{short}-{number}", "The setting has the smallest or greatest allowed value.", rule, {name: str(number)}, {name: str(number)})  # fmt: skip
        for number in (least - 1, most + 1):
            to.refuses(f"{short}-{number}", "The setting is below the smallest or above the greatest allowed value.", rule, {name: str(number)})  # fmt: skip
    _of_brokers(to)
    ratio = "min.cleanable.dirty.ratio"
    for text in ("0.0", "1.0", "0.25"):
        to.takes(f"ratio-{text.replace('.', '-')}", "The dirty ratio is a number from 0 to 1.", "SEG-RET-001", {ratio: text}, {ratio: text})  # fmt: skip
    for text in ("-0.1", "1.1"):
        to.refuses(
            f"ratio-{text.replace('.', '-')}", "The dirty ratio is below 0 or above 1.", "SEG-RET-001", {ratio: text}
        )
    for text, found in (
        ("delete", "delete"),
        ("compact", "compact"),
        ("compact,delete", "compact,delete"),
        ("delete, compact", "compact,delete"),
    ):
        name = "cleanup.policy"
        short = text.replace(",", "-and-").replace(" ", "")
        to.takes(f"policy-{short}", "The cleanup policy may be one policy or both.", "SEG-RET-001", {name: text}, {name: found})  # fmt: skip
    to.refuses("policy-none", "The cleanup policy does not exist.", "SEG-RET-001", {"cleanup.policy": "keep"})
    to.refuses("policy-one-unknown", "One of two cleanup policies does not exist.", "SEG-RET-001", {"cleanup.policy": "delete,keep"})  # fmt: skip
    for text in ("CreateTime", "LogAppendTime"):
        name = "message.timestamp.type"
        to.takes(f"timestamps-{text.lower()}", "The timestamp type is CreateTime or LogAppendTime.", "SEG-APP-010", {name: text}, {name: text})  # fmt: skip
    to.refuses("timestamps-none", "The timestamp type NoTimestampType is not allowed for a topic.", "SEG-APP-010", {"message.timestamp.type": "NoTimestampType"})  # fmt: skip
    to.refuses(
        "timestamps-unknown", "The timestamp type does not exist.", "SEG-APP-010", {"message.timestamp.type": "Now"}
    )
    for text, found in (("true", "true"), ("false", "false"), ("TRUE", "true")):
        to.takes(f"preallocate-{text.lower()}{'-in-capitals' if text.isupper() else ''}", "The setting is true or false, in lower or upper case.", "SEG-ROL-001", {"preallocate": text}, {"preallocate": found})  # fmt: skip
    to.refuses("unknown", "A setting of that name does not exist.", "SEG-ROL-001", {"segment.size": "1"})
    to.refuses(
        "no-number", "The setting has to be a number, but is other text.", "SEG-ROL-001", {"segment.bytes": "1k"}
    )
    to.takes("internal", "Since 4.1, brokers accept small segment sizes under an internal name, for tests.", "SEG-ROL-001", {"internal.segment.bytes": "100"}, {"segment.bytes": "100"})  # fmt: skip
    lag = {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000", "segment.ms": "5000"}
    to.takes("compacted-rolls-by-lag", "A compacted topic rolls segments after `max.compaction.lag.ms` if that is shorter.", "SEG-ROL-001", lag, {"roll.ms": "1000"})  # fmt: skip
    longer = {**lag, "max.compaction.lag.ms": "9000"}
    to.takes("compacted-rolls-by-segment-ms", "A compacted topic rolls segments after `segment.ms` if that is shorter.", "SEG-ROL-001", longer, {"roll.ms": "5000"})  # fmt: skip
    kept = {**lag, "cleanup.policy": "delete"}
    to.takes("deleted-rolls-by-segment-ms", "Without compaction, `max.compaction.lag.ms` has no effect.", "SEG-ROL-001", kept, {"roll.ms": "5000"})  # fmt: skip
