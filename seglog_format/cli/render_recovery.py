"""Recovery plans side by side."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog_format.cli.render import count_text, printable, size_text
from seglog_format.cli.style import styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.lifecycle.recovery import PartitionRecovery, RecoveryPlan

LABEL_WIDTH: Final = 16
MANY: Final = 4
"""So many segments are named one by one; more are counted."""


def recovery_text(recovery: PartitionRecovery) -> Iterator[str]:
    """A heading, the two plans beside each other, and what brokers do differently."""
    name = styled(printable(recovery.path.name), "bold")
    shutdown = "clean shutdown" if recovery.has_clean_shutdown else "no clean shutdown"
    yield f"{name}: {shutdown}, recovery point {recovery.plan.recovery_point}"
    plans = [recovery.plan] if recovery.plan is recovery.full_scan else [recovery.plan, recovery.full_scan]
    titles = ["full scan"] if len(plans) == 1 else ["as a broker starts", "full scan"]
    columns = [list(_column(title, plan)) for title, plan in zip(titles, plans, strict=True)]
    width = max(len(value) for _, value in columns[0])
    for row in zip(*columns, strict=True):
        label = row[0][0]
        values = "  ".join(value.ljust(width) for _, value in row)
        yield f"  {label:{LABEL_WIDTH}}{values}".rstrip()
    yield from _remarks(plans)


def _column(title: str, plan: RecoveryPlan) -> Iterator[tuple[str, str]]:
    """Label and value of each row."""
    yield "", title
    yield "scans", _segments(plan.scanned)
    cut = plan.cut
    yield "cuts", "nothing" if cut is None else f"{cut.base_offset} at position {cut.position}"
    yield "", "" if cut is None else f"{size_text(cut.size)} go{_more(plan)}"
    yield "drops", _segments(plan.dropped)
    yield "log end offset", f"{plan.log_end_offset}{', begun anew' if plan.restarts else ''}"


def _more(plan: RecoveryPlan) -> str:
    more = len(plan.cuts) - 1
    return f", and {count_text(more, 'more cut')}" if more else ""


def _segments(base_offsets: tuple[int, ...]) -> str:
    if not base_offsets:
        return "no segment"
    if len(base_offsets) <= MANY:
        return ", ".join(map(str, base_offsets))
    return f"{len(base_offsets)} segments, {base_offsets[0]} to {base_offsets[-1]}"


def _remarks(plans: list[RecoveryPlan]) -> Iterator[str]:
    """Why each cut is made, and what brokers do differently; each once."""
    told: set[str] = set()
    for plan in plans:
        reasons = [
            f"{cut.base_offset} is cut because of {cut.reason} [{', '.join(cut.requirements)}]" for cut in plan.cuts
        ]
        remarks = [
            f"{PurePath(remark.location.path).name}:{remark.location.position}: {remark.text}"
            f" [{', '.join(remark.requirements)}]"
            for remark in plan.remarks
        ]
        for text in (*reasons, *remarks):
            if text not in told:
                told.add(text)
                yield f"  {printable(text)}"
