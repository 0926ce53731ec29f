"""Appendix C: every rule that brokers keep in part or not at all, made from the chapters."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_conformance.cases import every_case
from seglog_conformance.causes import departures as numbers
from seglog_conformance.known import read_known
from seglog_conformance.verdicts import Verdict

from tools.docs.power_cut_page import REPORTS, orders_not_kept
from tools.requirement_trace import explanation
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.types import Requirement

PAGE: Final = "spec/C-departures.md"
KAFKA: Final = ("kafka-clients", "kafka-storage")
"""Testees of the conformance suite that are Kafka's own classes."""

PARAGRAPH: Final = re.compile(r"\*{1,2}What brokers do(?: \(DEP-\d\d\))?\.\*{1,2}\s+(.+?)(?=\n\s*\n|\Z)", re.DOTALL)
"""The paragraph that every departing rule has in its chapter."""

PARTS: Final = (("no", "Not kept"), ("partly", "Kept in part"))
SHOWN: Final = 3


class Departure(NamedTuple):
    """A rule that brokers keep in part or not at all.

    Attributes:
        rule: the requirement.
        number: its permanent number, such as ``DEP-07``; empty if it has none.
        account: the behaviour of brokers, from the chapter.
    """

    rule: Requirement
    number: str
    account: str


def departure(rule: Requirement) -> Departure | None:
    """Return the departure of brokers from a rule, from its chapter; None if the chapter has none."""
    match = PARAGRAPH.search(explanation(rule))
    return None if match is None else Departure(rule, numbers().get(rule.id, ""), " ".join(match[1].split()))


def departures() -> list[Departure]:
    """Return every departure, in reading order."""
    found = (departure(rule) for rule in requirements().values() if rule.brokers.departs)
    return [one for one in found if one is not None]


@cache
def failed_cases() -> dict[str, dict[str, list[str]]]:
    """Return the cases that Kafka's own classes fail, by rule and testee; what they refuse by accident is refused."""
    found: dict[str, dict[str, list[str]]] = {}
    rules = {case.id: case.requirements for case in every_case()}
    for testee in KAFKA:
        entries = read_known(testee).entries
        for case in (case for case, entry in entries.items() if entry.verdict is not Verdict.ACCIDENT):
            for rule in rules[case]:
                found.setdefault(rule, {}).setdefault(testee, []).append(case)
    return found


def pages(notice: str) -> dict[str, str]:
    """Return the page, by its path.

    Args:
        notice: line that says that the page is generated.
    """
    return {PAGE: "\n".join([*_head(notice), *_tables(), *_orders(), *_entries()]) + "\n"}


def _head(notice: str) -> Iterator[str]:
    yield f"# Appendix C: where Kafka departs from this text\n\n{notice.strip()}\n"
    yield "This appendix lists each rule that brokers keep in part or not at all, by the mark `brokers=` of its"
    yield "definition line. *Seen in* is the version in which the authors saw it, and how: in its `source`, in the"
    yield "`bytes` that it wrote, or by a `run` of its classes (chapter 00). *Cases* counts the cases of the suite that"
    yield "Kafka's own classes fail. None of this is a reason to write such bytes. A number such as DEP-07 never"
    yield "changes.\n"


def _tables() -> Iterator[str]:
    for kept, title in PARTS:
        found = [one for one in departures() if one.rule.brokers.kept == kept]
        yield f"## {title}: {len(found)} rules\n"
        yield "| rule | level | seen in | number | rule text | cases |"
        yield "|---|---|---|---|---|---|"
        yield from (_row(one) for one in found)
        yield ""


def _row(one: Departure) -> str:
    rule = one.rule
    seen = f"{rule.brokers.version}, {rule.brokers.basis}"
    counts = ", ".join(f"{testee} {len(cases)}" for testee, cases in failed_cases().get(rule.id, {}).items())
    title = rule.title.replace("|", "\\|")
    return f"| [{rule.id}](#{rule.id.lower()}) | {rule.level} | {seen} | {one.number} | {title} | {counts} |"


def _orders() -> Iterator[str]:
    brokers = json.loads((REPORTS / "crash-brokers.json").read_text("utf-8"))
    yield "## Orders of syncs that brokers do not keep\n"
    yield "Whole brokers were started on states that a power cut may leave of their own disks (`python -m proofs"
    yield "crash-brokers`), where this order alone is broken. An empty rule: no rule of this text asks for the order.\n"
    yield "| first on the disk | then | rule | seen in |"
    yield "|---|---|---|---|"
    for name, releases in orders_not_kept(brokers).items():
        order = brokers["orders"][name]
        yield f"| {order['first']} | {order['then']} | {order['rule']} | {', '.join(releases)} |"
    yield ""


def _entries() -> Iterator[str]:
    seen: set[str] = set()
    for one in departures():
        rule, anchor = one.rule, one.rule.id.lower()
        yield f"## {rule.id}\n"
        if one.number and one.number not in seen:
            seen.add(one.number)
            yield f'<a id="{one.number.lower()}"></a>{one.number}\n'
        yield f"**{rule.title}** [In its chapter]({rule.chapter}.md#{anchor}).\n"
        yield f"{one.account}\n"
        for testee, cases in failed_cases().get(rule.id, {}).items():
            more = f" and {len(cases) - SHOWN} more" if len(cases) > SHOWN else ""
            yield f"Cases that {testee} fails: {', '.join(f'`{case}`' for case in cases[:SHOWN])}{more}.\n"
