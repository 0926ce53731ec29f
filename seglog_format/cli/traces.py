"""Where each rule is enforced and tested: fields, code, tests, faults, fixtures, cases, verdicts; from package data."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA: Final = "trace.json"
SHOWN: Final = 4
"""Items of a list that text shows; JSON has all."""
LABELS: Final = {
    "fields": "fields",
    "code": "code",
    "tests": "tests",
    "faults": "faults",
    "fixtures": "fixtures",
    "damaged": "broken in",
    "cases": "cases",
}
"""Name of each list in the text."""


@cache
def _table() -> dict[str, dict[str, Any]]:
    """Return the lists of each requirement by its id."""
    import json
    from importlib.resources import files

    table: dict[str, dict[str, Any]] = json.loads(files("seglog_format.cli").joinpath(DATA).read_text(encoding="utf-8"))
    return table


def trace_of(identifier: str) -> dict[str, Any]:
    """Return where a requirement is enforced and tested.

    Args:
        identifier: of the requirement.

    Returns:
        Lists of names under ``fields``, ``code``, ``tests``, ``faults``, ``fixtures``, ``damaged`` and ``cases``, and
        under ``verdicts`` how many implementations were asked about it, how many pass, and the counts of the others.
        Empty for a requirement that is newer than the data.
    """
    return _table().get(identifier, {})


def trace_lines(identifier: str) -> Iterator[str]:
    """Yield the same as lines of text: a label, then one item on each line.

    Args:
        identifier: of the requirement.
    """
    trace = trace_of(identifier)
    for key, label in LABELS.items():
        yield from _labelled(label, _shortened(trace.get(key, [])))
    if trace.get("verdicts", {}).get("asked"):
        yield from _labelled("verdicts", list(_verdicts(trace["verdicts"])))


def _labelled(label: str, items: list[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f"  {'' if number else label:9} {item}"


def _shortened(items: list[str]) -> list[str]:
    more = len(items) - SHOWN
    return [*items[:SHOWN], f"and {more} more, see --json"] if more > 0 else items


def _verdicts(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['passing']} of {found['asked']} implementations pass all cases"
    if found["failing"]:
        yield from _shortened([f"{testee} passes {counts}" for testee, counts in found["failing"].items()])
