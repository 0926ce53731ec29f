"""Why segments stay that should go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.settings import NEVER_TIERED
from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_MS: Final = 978_307_200_000
"""The year 2001: Kafka began later, so a greater timestamp that is no future one may be a real one."""
UNITS: Final = {1_000: "microseconds", 1_000_000: "nanoseconds"}


def stamped_late(entry: PartitionEntry, partition: Partition, now_ms: int) -> Iterator[Statement]:
    """Yield the segments that retention by time does not remove, because a timestamp is in the future."""
    if entry.name.topic in NEVER_TIERED:
        return
    late = [each for each in partition.segments if each.damage is None and each.largest_timestamp_ms > now_ms]
    for segment in late:
        stamp = segment.largest_timestamp_ms
        unit = next((name for by, name in UNITS.items() if EARLIEST_MS < stamp // by <= now_ms), None)
        guess = "" if unit is None else f": it is probably in {unit}"
        what = (
            f"the greatest timestamp of this segment, {stamp} ({_time(stamp)}), is in the future{guess};"
            " retention by time keeps this segment and all after it until then, and as long after it as its limit says"
        )
        where = Location(segment.path, field="max_timestamp_ms")
        step = typed("retain", entry.path)
        yield Statement(Kind.SPACE, what, where, ("SEG-RET-003",), (Hurt.RETENTION,), step)


def _time(timestamp_ms: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=timestamp_ms)).strftime("%Y-%m-%d")
    except OverflowError:
        return "after the year 9999"
