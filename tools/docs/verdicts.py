"""The verdicts of the last full run of the conformance suite by requirement, from ``reports/conform.json``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "conform.json"
PAGES: Final = "conformance"
"""Directory of the pages of implementations, below ``docs/``."""

OURS: Final = ("reference", "plain", "columnar")
"""Testees without a page, because they pass all cases."""


class Verdict(NamedTuple):
    """The result of one implementation for the cases of one requirement.

    Attributes:
        testee: its label.
        page: stem of its page; empty if it has none.
        passed: number of passed cases.
        asked: number of asked cases.
    """

    testee: str
    page: str
    passed: int
    asked: int

    @property
    def is_kept(self) -> bool:
        """Return whether no case failed."""
        return self.passed == self.asked


@cache
def report() -> dict[str, Any] | None:
    """Return the report; None where there was no full run yet."""
    return json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else None


@cache
def by_requirement() -> dict[str, list[Verdict]]:
    """Return the verdicts of each requirement that a case is about, in the order of the testees."""
    found: dict[str, list[Verdict]] = {}
    for testee in (report() or {"testees": []})["testees"]:
        for identifier, counts in testee["requirements"].items():
            passed, asked = map(int, counts.split("/"))
            found.setdefault(identifier, []).append(Verdict(label(testee), page(testee), passed, asked))
    return found


def label(testee: dict[str, Any]) -> str:
    """Return the label of a testee: its name, with its version if the report has several versions.

    Args:
        testee: its entry in the report.
    """
    return testee["testee"] if _is_alone(testee["testee"]) else f"{testee['testee']} {testee['version']}"


def page(testee: dict[str, Any]) -> str:
    """Return the stem of the page about a testee; empty where there is none."""
    return "" if testee["testee"] in OURS else label(testee).replace(" ", "-")


def _is_alone(name: str) -> bool:
    return sum(one["testee"] == name for one in (report() or {"testees": []})["testees"]) < 2  # noqa: PLR2004 - alone


def reported(identifier: str, base: str) -> str:
    """Return a sentence with the number of implementations that keep a rule, and the others; empty without a case.

    Args:
        identifier: id of the requirement.
        base: relative path from the page to ``docs/``, with a slash at its end.
    """
    verdicts = [one for one in by_requirement().get(identifier, []) if one.page]
    if not verdicts:
        return ""
    broken = [one for one in verdicts if not one.is_kept]
    names = ", ".join(f"[{one.testee}]({base}{PAGES}/{one.page}.md) {one.passed}/{one.asked}" for one in broken)
    return f"{len(verdicts) - len(broken)} of {len(verdicts)} pass{f'; {names}' if names else ''}"
