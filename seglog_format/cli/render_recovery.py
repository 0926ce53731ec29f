"""Recovery plans as text, side by side."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog_format.cli.output import count_text, printable, size_text, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.index_rebuild import RebuiltSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.losses import Losses, LostOffsets
    from seglog_format.recovery.plan import RecoveryPlan
    from seglog_format.recovery.segment_scan import Remark

LABEL_WIDTH: Final = 16
MANY: Final = 4
"""Maximum number of segments that are named; more are counted."""


def recovery_text(
    recovery: PreparedRecovery, full_scan: RecoveryPlan, *, title: str, is_written: bool
) -> Iterator[str]:
    """Yield a heading, the two plans beside each other, what brokers do differently, and the file changes."""
    name = styled(printable(recovery.path.name), "bold")
    shutdown = "clean shutdown" if recovery.circumstances.has_clean_shutdown else "no clean shutdown"
    yield f"{name}: {shutdown}, recovery point {recovery.plan.recovery_point}"
    plans = [recovery.plan] if recovery.plan is full_scan else [recovery.plan, full_scan]
    titles = [title, "full scan"] if len(plans) > 1 else ["recovery" if is_written else "full scan"]
    columns = [list(_column(title, plan)) for title, plan in zip(titles, plans, strict=True)]
    width = max(len(value) for _, value in columns[0])
    for row in zip(*columns, strict=True):
        label = row[0][0]
        values = "  ".join(value.ljust(width) for _, value in row)
        if values.strip():
            yield f"  {label:{LABEL_WIDTH}}{values}".rstrip()
    yield from _remarks(plans, recovery.differences)
    if recovery.failure is not None:
        yield f"  {printable(_remark(recovery.failure))}"
        yield "  nothing is done"
    yield from _changes(recovery, is_written=is_written)


def _changes(recovery: PreparedRecovery, *, is_written: bool) -> Iterator[str]:
    steps = [step for step in recovery.steps if step.requirement]
    if not steps:
        return
    yield f"  {'changed' if is_written else 'to change, with --write'}:"
    for step in steps:
        yield f"    {printable(step.path.name)}: {printable(step.text)} [{step.requirement}]"
    yield from (f"  {line}" for line in index_text(recovery.settings))


def losses_text(losses: Losses, *, is_written: bool) -> Iterator[str]:
    """Yield which offsets cannot be read after a recovery, and which could not before."""
    yield from _lost_text(f"  {'lost' if is_written else 'to be lost, with --write'}:", losses.removed)
    yield from _lost_text("  to be lost when a broker starts, without --full-scan:", losses.unreached)
    yield from _lost_text("  hidden, before and after:", losses.hidden)
    if losses.missing:
        yield "  missing already:"
    for gap in losses.missing:
        yield f"    {printable(PurePath(gap.path).name)}: {gap.missing.span} ({gap.kind.value})"


def _lost_text(title: str, lost: Sequence[LostOffsets]) -> Iterator[str]:
    if lost:
        yield title
    for one in lost:
        yield f"    {printable(one.file)} {one.reason.value}: {one.missing.span}"


def rebuilt_text(segment: RebuiltSegment) -> Iterator[str]:
    """Yield a line for the log, and one for each of its indexes."""
    left = segment.size - segment.end
    reach = f"{size_text(left)} at the end cannot be indexed" if left else "indexed to its end"
    yield f"{styled(printable(segment.log.name), 'bold')}: {size_text(segment.size)}, {reach}"
    for index in segment.indexes:
        yield f"  {printable(index.name)}: {index.state}, {len(index.data)} bytes"


def index_text(settings: IndexSettings) -> Iterator[str]:
    """Yield how indexes are built, and why."""
    yield f"index entries every {settings.interval_bytes} bytes: {settings.interval_reason}"
    yield f"naming the {settings.indexed_offset.value} offset of an entry: {settings.offset_reason}"


def _column(title: str, plan: RecoveryPlan) -> Iterator[tuple[str, str]]:
    """Yield label and value of each row."""
    yield "", title
    yield "scans", _segments(plan.scanned)
    cut = plan.cut
    yield "cuts", "nothing" if cut is None else f"{cut.base_offset} at position {cut.position}"
    yield "", "" if cut is None else f"{size_text(cut.size)} removed{_more(plan)}"
    yield "drops", _segments(plan.dropped)
    yield "log end offset", f"{plan.log_end_offset}{', restarted' if plan.restarts else ''}"


def _more(plan: RecoveryPlan) -> str:
    more = len(plan.cuts) - 1
    return f", and {count_text(more, 'more cut')}" if more else ""


def _segments(base_offsets: tuple[int, ...]) -> str:
    if not base_offsets:
        return "no segment"
    if len(base_offsets) <= MANY:
        return ", ".join(map(str, base_offsets))
    return f"{len(base_offsets)} segments, {base_offsets[0]} to {base_offsets[-1]}"


def _remarks(plans: list[RecoveryPlan], differences: tuple[Remark, ...]) -> Iterator[str]:
    """Yield why each cut is made, and what brokers do differently; each once."""
    seen: set[str] = set()
    reasons = [
        f"{cut.base_offset} is cut because of {cut.reason} [{', '.join(cut.requirements)}]"
        for plan in plans
        for cut in plan.cuts
    ]
    remarks = [*(remark for plan in plans for remark in plan.remarks), *differences]
    for text in (*reasons, *map(_remark, remarks)):
        if text not in seen:
            seen.add(text)
            yield f"  {printable(text)}"


def _remark(remark: Remark) -> str:
    location = f"{PurePath(remark.location.path).name}:{remark.location.position}"
    return f"{location}: {remark.text} [{', '.join(remark.requirements)}]"
