"""The steps of a lookup as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.cli.render import printable, time_text
from seglog_format.cli.render_dump import value_text
from seglog_format.cli.style import styled

if TYPE_CHECKING:
    from seglog_format.cli.lookup_steps import Step

STEP_WIDTH = 9


def step_text(step: Step) -> str:
    """Return one step on one line: its name, what happened, and why."""
    ids = f" [{', '.join(step.requirements)}]" if step.requirements else ""
    return f"{styled(f'{step.name:{STEP_WIDTH}}', 'bold')} {printable(step.text)}{styled(ids, 'dim')}"


def answer_text(answer: dict[str, Any]) -> str:
    """Return the answer on one line."""
    if not answer["found"]:
        return f"not found: {printable(answer['reason'])}"
    if "record" not in answer:
        return f"offset {answer['offset']}: {printable(answer['reason'])}"
    record = answer["record"]
    what = record.get("control") or f"{value_text(record['key'])} = {value_text(record['value'])}"
    return (
        f"offset {record['offset']} at {printable(answer['file'])}:{answer['position']}"
        f"  {time_text(record['timestamp'])}  {what}"
    )
