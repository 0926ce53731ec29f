"""Why segments stay that should go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.compaction import plan_compaction
from seglog_format.cleaning.compaction_pass import facts_of
from seglog_format.cleaning.retention import date_text, unit_guess
from seglog_format.cleaning.settings import NEVER_TIERED
from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import Location
from seglog_format.model import NO_TIMESTAMP
from seglog_format.state.config import LogConfig
from seglog_format.storage.files import LOCAL_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition

PATIENCE_MS: Final = 3_600_000
"""Time in which a cleaner that works begins with a log: it looks for logs every 15 seconds by default."""


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


def uncleaned(
    entry: PartitionEntry, directory: LogDirectory, partition: Partition, settings: Callable[[str], dict[str, str]]
) -> Iterator[Statement]:
    """Yield that the cleaner has left for long what is due.

    Args:
        entry: of the partition.
        directory: the log directory.
        partition: opened.
        settings: returns the settings of a topic; without a cleanup policy, it is compacted, as the checkpoint shows.
    """
    offset = directory.cleaner_offsets.get(entry.name.topic_partition)
    if offset is None or any(each.damage is not None for each in partition.segments):
        return
    step = typed("retain", entry.path, "--config", "cleanup.policy=compact")
    where, hurt = Location(str(entry.path)), (Hurt.CLEANER,)
    newest = max((each.largest_timestamp_ms for each in partition.segments), default=NO_TIMESTAMP)
    facts = [facts_of(each, LOCAL_FILES) for each in partition.segments]
    begun = [each for each in facts if NO_TIMESTAMP < each.first_timestamp_ms <= newest - PATIENCE_MS]
    config = LogConfig.from_properties({"cleanup.policy": "compact"} | settings(entry.name.topic))
    if not begun or not config.is_compacted:
        return
    known = {"log_start_offset": partition.log_start_offset, "last_stable_offset": partition.last_stable_offset}
    plan = plan_compaction(begun, config, now_ms=newest - PATIENCE_MS, cleaner_offset=offset, **known)
    if plan.is_due:
        what = (
            f"the cleaner has cleaned up to offset {plan.first_dirty_offset}; {plan.dirty_size} bytes up to offset"
            f" {plan.first_uncleanable_offset} were due an hour before the last record: it is behind, or has died"
        )
        yield Statement(Kind.SPACE, what, where, ("SEG-CMP-005",), hurt, step, None, plan.first_dirty_offset)
