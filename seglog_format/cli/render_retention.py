"""The decision for each segment, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cleaning.compaction import CompactionAction
from seglog_format.cleaning.retention import RetentionLimits, is_copied
from seglog_format.cli.output import count_text, printable, size_text, styled, time_text
from seglog_format.cli.render_ls import LEFT, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.cleaning.compaction import SegmentCompaction
    from seglog_format.cleaning.compaction_apply import Compacted
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import SegmentFate
    from seglog_format.state.config import LogConfig
    from seglog_format.storage.files import FileStep

COMPACTION_COLUMNS = ("base offset", "size", f"{LEFT}fate", f"{LEFT}why")
COLUMNS = ("base offset", "size", f"{LEFT}largest timestamp", f"{LEFT}fate", f"{LEFT}why")


def retention_text(found: PreparedRetention, config: LogConfig, *, is_written: bool) -> Iterator[str]:
    """Yield a heading, a row for each segment, and the changes of the log and its files."""
    name = styled(printable(found.path.absolute().name), "bold")
    yield f"{name}: {_limits(config)}; log end offset {found.log_end_offset}, high watermark {found.high_watermark}"
    yield from table(COLUMNS, map(_row, found.plan.fates))
    yield _outcome(found, is_written=is_written)
    if found.steps and not is_written:
        yield "to change, with --write:"
    yield from _changes(found.steps)


def _changes(steps: Iterable[FileStep]) -> Iterator[str]:
    for step in steps:
        if step.requirement:
            yield f"  {printable(step.path.name)}: {printable(step.text)} [{step.requirement}]"


def compaction_text(found: Compacted, config: LogConfig, *, is_written: bool) -> Iterator[str]:
    """Yield the settings that matter, a row for each segment, and whether compaction is due."""
    plan = found.plan
    span = f"from offset {plan.first_dirty_offset} up to {plan.first_uncleanable_offset}"
    ratio = f"{plan.dirty_ratio:.2f} of it is dirty, min.cleanable.dirty.ratio {config.min_cleanable_dirty_ratio}"
    yield f"compaction {span}: {ratio}"
    yield from table(COMPACTION_COLUMNS, map(_compaction_row, plan.fates))
    if is_written:
        yield f"{size_text(found.size_before)} became {size_text(found.size_after)}"
        yield from _changes(found.steps)
    elif plan.is_due:
        yield "a broker would do it now [SEG-CMP-005]"
    else:
        yield "a broker would not do it now [SEG-CMP-005]"


def _compaction_row(fate: SegmentCompaction) -> list[str]:
    segment = fate.segment
    is_kept = fate.action is CompactionAction.KEEP
    verdict = "kept" if is_kept else f"cleaned into {fate.target}"
    why = f"{fate.explanation} [{', '.join(fate.requirements)}]"
    return [str(segment.base_offset), size_text(segment.size), verdict, why]


def _limits(config: LogConfig) -> str:
    policy = ",".join(sorted(config.cleanup_policy))
    if not config.is_deleted:
        return f"cleanup.policy {policy}"
    whole = f"cleanup.policy {policy}, retention.ms {config.retention_ms}, retention.bytes {config.retention_bytes}"
    if not is_copied(config):
        return whole
    disk = RetentionLimits.of_disk(config)
    return f"{whole}, local.retention.ms {disk.ms}, local.retention.bytes {disk.size}"


def _row(fate: SegmentFate) -> list[str]:
    segment = fate.segment
    has_time = segment.largest_timestamp_ms >= 0
    time = time_text(segment.age_from_ms) + ("" if has_time else " (of the file)")
    verdict = "kept" if fate.reason is None else f"deleted by {fate.reason.value}"
    why = f"{fate.explanation} [{', '.join(fate.requirements)}]"
    return [str(segment.base_offset), size_text(segment.size), time, verdict, why]


def _outcome(found: PreparedRetention, *, is_written: bool) -> str:
    plan = found.plan
    then = "" if is_written else "then "
    is_local = plan.local_log_start_offset > plan.log_start_offset
    local = f", on the disk at {plan.local_log_start_offset}" if is_local else ""
    if not plan.removed:
        rolled = f"; a new segment {then}begins at {found.log_end_offset}" if plan.rolls_first else ""
        return f"nothing to delete; the log starts at {plan.log_start_offset}{local}{rolled}"
    size = size_text(sum(segment.size for segment in plan.removed))
    segments = count_text(len(plan.fates), "segment")
    gone = f"{len(plan.removed)} of {segments} {'deleted' if is_written else 'to delete'}, {size}"
    is_empty = len(plan.removed) == len(plan.fates)
    begun = ", in a new segment," if is_empty else ""
    rolled = f"; a new segment {then}begins at {found.log_end_offset}" if plan.rolls_first and not is_empty else ""
    return f"{gone}; the log {then}starts{begun} at {plan.log_start_offset}{local}{rolled}"
