"""Differences as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.cli.differences import CHANGED, COMPARED, MAX_RANGES, ONLY_FIRST
from seglog_format.cli.render import count_text, printable, time_text
from seglog_format.cli.render_dump import value_text
from seglog_format.cli.style import styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.cli.differences import Comparison, Difference


def difference_text(difference: Difference) -> str:
    """Return one difference: a line with ``<`` for the first, one with ``>`` for the second."""
    fields = difference.fields if difference.kind == CHANGED else COMPARED
    lines = [f"{printable(difference.name)} offset {difference.offset}: {_what(difference)}"]
    for mark, colour, record in (("<", "red", difference.first), (">", "green", difference.second)):
        if record is not None:
            lines.append(styled(f"  {mark} {_record_text(record, fields)}", colour))
    return "\n".join(lines)


def _what(difference: Difference) -> str:
    if difference.kind == CHANGED:
        return f"{', '.join(difference.fields)} differ{_epochs(*difference.leader_epochs)}"
    return "only in the first" if difference.kind == ONLY_FIRST else "only in the second"


def _epochs(first: int | None, second: int | None) -> str:
    """Return the leader epochs, if they differ: then two leaders gave the same offset."""
    return "" if first == second else f" (leader epoch {_or_none(first)} against {_or_none(second)})"


def _or_none(epoch: int | None) -> str:
    return "none" if epoch is None else str(epoch)


def _record_text(record: dict[str, Any], fields: Iterable[str]) -> str:
    return ", ".join(f"{name} {_field_text(name, record[name])}" for name in fields if name in record)


def _field_text(name: str, value: Any) -> str:  # noqa: ANN401 - a field of the JSON vocabulary
    if name == "timestamp":
        return time_text(value)
    if name == "headers":
        return "{" + ", ".join(f"{value_text(key)}: {value_text(content)}" for key, content in value) + "}"
    return value_text(value)


def summary_text(comparison: Comparison) -> str:
    """Return the totals, the offsets that differ, and what could not be compared."""
    lines = [f"{printable(comparison.name)}: {printable(problem)}" for problem in comparison.problems]
    equal = f"{count_text(comparison.equal, 'record')} the same"
    different = f"{count_text(comparison.different, 'difference')}{_at(comparison.ranges)}"
    since = comparison.not_compared_from
    rest = "" if since is None else f"; not compared from offset {since} on"
    lines.append(f"{printable(comparison.name)}: {equal}, {different}{rest}")
    return "\n".join(lines)


def _at(ranges: Sequence[tuple[int, int]]) -> str:
    if not ranges:
        return ""
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MAX_RANGES]]
    more = ["more"] if len(ranges) > MAX_RANGES else []
    return f" at {', '.join([*texts, *more])}"
