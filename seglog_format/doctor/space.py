"""Why segments stay that should go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cleaning.retention import date_text, unit_guess
from seglog_format.cleaning.settings import NEVER_TIERED
from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition


def stamped_late(entry: PartitionEntry, partition: Partition, now_ms: int) -> Iterator[Statement]:
    """Yield the segments that retention by time does not remove, because a timestamp is in the future."""
    if entry.name.topic in NEVER_TIERED:
        return
    late = [each for each in partition.segments if each.damage is None and each.largest_timestamp_ms > now_ms]
    for segment in late:
        stamp = segment.largest_timestamp_ms
        guess = unit_guess(stamp, now_ms)
        what = (
            f"the greatest timestamp of this segment, {stamp} ({date_text(stamp)}), is in the future{guess};"
            " retention by time keeps this segment and all after it until then, and as long after it as its limit says"
        )
        where = Location(segment.path, field="max_timestamp_ms")
        step = typed("retain", entry.path)
        yield Statement(Kind.SPACE, what, where, ("SEG-RET-003",), (Hurt.RETENTION,), step)
