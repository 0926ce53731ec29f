"""What becomes of each segment, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cli.render import count_text, printable, size_text, time_text
from seglog_format.cli.render_ls import LEFT, table
from seglog_format.cli.style import styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.lifecycle.config import LogConfig
    from seglog_format.lifecycle.deletion import PreparedRetention
    from seglog_format.lifecycle.retention import SegmentFate

COLUMNS = ("base offset", "size", f"{LEFT}largest timestamp", f"{LEFT}fate", f"{LEFT}why")


def retention_text(found: PreparedRetention, config: LogConfig, *, is_written: bool) -> Iterator[str]:
    """A heading, a row for each segment, and what becomes of the log and its files."""
    name = styled(printable(found.path.absolute().name), "bold")
    yield f"{name}: {_limits(config)}; log end offset {found.log_end_offset}, high watermark {found.high_watermark}"
    yield from table(COLUMNS, map(_row, found.plan.fates))
    yield _outcome(found, is_written=is_written)
    if found.steps and not is_written:
        yield "to change, with --write:"
    for step in found.steps:
        if step.requirement:
            yield f"  {printable(step.path.name)}: {printable(step.text)} [{step.requirement}]"


def _limits(config: LogConfig) -> str:
    policy = ",".join(sorted(config.cleanup_policy))
    if not config.is_deleted:
        return f"cleanup.policy {policy}"
    return f"cleanup.policy {policy}, retention.ms {config.retention_ms}, retention.bytes {config.retention_bytes}"


def _row(fate: SegmentFate) -> list[str]:
    segment = fate.segment
    has_time = segment.largest_timestamp_ms >= 0
    time = time_text(segment.age_from_ms) + ("" if has_time else " (of the file)")
    verdict = "stays" if fate.reason is None else f"goes by {fate.reason.value}"
    why = f"{fate.explanation} [{', '.join(fate.requirements)}]"
    return [str(segment.base_offset), size_text(segment.size), time, verdict, why]


def _outcome(found: PreparedRetention, *, is_written: bool) -> str:
    plan = found.plan
    if not plan.removed:
        return f"nothing goes; the log starts at {plan.log_start_offset}"
    size = size_text(sum(segment.size for segment in plan.removed))
    begun = ", in a new segment," if plan.rolls_first else ""
    segments = count_text(len(plan.fates), "segment")
    gone = f"{len(plan.removed)} of {segments} {'are gone' if is_written else 'go'}, {size}"
    return f"{gone}; the log starts{begun} at {plan.log_start_offset}{'' if is_written else ' then'}"
