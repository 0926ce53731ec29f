"""The trace and the verdicts of each rule, as data of the package for ``seglog explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tools.docs import verdicts

if TYPE_CHECKING:
    from tools.requirement_trace import Trace

DATA: Final = "seglog_format/cli/trace.json"


def pages(traces: dict[str, Trace]) -> dict[str, str]:
    """Return the file, by its path below the repository.

    Args:
        traces: the traces of all requirements.
    """
    return {DATA: text({identifier: entry(trace) for identifier, trace in traces.items()})}


def entry(trace: Trace) -> dict[str, Any]:
    """Return the places that name a requirement; each list without repetitions, tests without their parameters."""
    found = {
        "fields": trace.fields,
        "code": sorted(set(trace.code)),
        "tests": [test.partition("[")[0] for test in trace.tests],
        "faults": [f"{fault.listed_in} -> {fault.file}" for fault in trace.faults],
        "fixtures": trace.fixtures,
        "damaged": trace.damaged,
        "cases": trace.cases,
    }
    return {key: list(dict.fromkeys(values)) for key, values in found.items()} | {"verdicts": _verdicts(trace)}


def _verdicts(trace: Trace) -> dict[str, Any]:
    """Return how many implementations pass all cases, of those that were asked, and the counts of the others."""
    others = [one for one in verdicts.by_requirement().get(trace.requirement.id, []) if one.testee not in verdicts.OURS]
    failing = {one.testee: f"{one.passed}/{one.asked}" for one in others if not one.is_kept}
    return {"asked": len(others), "passing": len(others) - len(failing), "failing": failing}


def text(table: dict[str, dict[str, Any]]) -> str:
    """Return the table as JSON with a line for each part of each entry, so changes stay small."""
    entries = (f'"{identifier}": {{\n{_lines(parts)}\n}}' for identifier, parts in table.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(parts: dict[str, Any]) -> str:
    return ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in parts.items())
