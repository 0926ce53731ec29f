"""The basis of the expected answers of the conformance suite: the ``source`` of each case, counted by family."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import every_case
from seglog_conformance.features import missing_feature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.cases import Case

PAGE: Final = "docs/conformance/sources.md"
RECORDED: Final = Path(__file__).resolve().parents[2] / "conformance" / "authoring" / "recorded_answers.json"
READER: Final = "kafka-clients@4.4.0"
BROKER: Final = "kafka-storage@4.4.0"
BATCHES: Final = frozenset({"decode", "encode"})
"""Operations that Kafka's clients are asked for; its storage classes are asked for the others."""
SAID: Final = re.compile(r"; kafka-(?:clients|storage) [\d.]+ (agrees|departs|survives)")
OURS: Final = "not asked"

INTRODUCTION: Final = """\
# What the answers rest on

Who writes a case says what its expected answer rests on (`source`). Where Kafka's own classes can be asked the same,
they were, and the case says so: the record classes of `kafka-clients` 4.4.0 about batches, the storage classes of
4.4.0 about files, and those of 2.8.2 about messages that a leader writes, since newer leaders write batches alone.
Where they depart from a case, [appendix C](../spec/C-departures.md) lists why.

{asked:,} of the {total:,} cases were put to Kafka's classes. The other {rest:,} rest on the specification and on this
project's reading of Kafka's source, formats and documentation: weigh a verdict on them accordingly.

| family | cases | Kafka agrees | it survives | it departs | not asked |
|---|---:|---:|---:|---:|---:|
"""
WHY: Final = """
## Why the others were not asked

Kafka's classes are asked for what they do by themselves. These operations, and these
[features](../reference/adapter-protocol.md), have no counterpart there, or none that a program can call alone:

| what the case needs | cases |
|---|---:|
"""


def pages(notice: str) -> dict[str, str]:
    """Return the page, by its path."""
    cases = every_case()
    total = sum(said(case) != OURS for case in cases)
    head = INTRODUCTION.format(asked=total, total=len(cases), rest=len(cases) - total)
    rows = "\n".join(_rows(cases))
    reasons = Counter(_reason(case) for case in cases if said(case) == OURS)
    listed = "\n".join(f"| {reason} | {count} |" for reason, count in sorted(reasons.items(), key=_by_count))
    return {PAGE: f"{notice}{head}{rows}\n{WHY}{listed}\n"}


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return (-item[1], item[0])


def said(case: Case) -> str:
    """Return the result of a case for Kafka's classes, in a word."""
    found = SAID.search(case.source)
    return found[1] if found else OURS


def _rows(cases: list[Case]) -> Iterator[str]:
    families: dict[str, Counter[str]] = {}
    for case in cases:
        families.setdefault(f"{case.family} {case.family_name}", Counter())[said(case)] += 1
    for family, counts in sorted(families.items(), key=lambda item: int(item[0].split()[0])):
        cells = (counts.total(), *(counts[word] for word in ("agrees", "survives", "departs", OURS)))
        yield f"| {family} | " + " | ".join(str(cell or "") for cell in cells) + " |"


def _reason(case: Case) -> str:
    """Return the operation or feature that a case needs and that Kafka's classes lack, by their greeting."""
    recorded: dict[str, Any] = _hellos()[READER if case.op in BATCHES else BROKER]
    if case.op not in recorded["ops"]:
        return f"`{case.op}`"
    missing = missing_feature(case.needs, recorded["features"])
    return f"`{case.op}` with `{missing}`" if missing else f"`{case.op}` of a special kind"


@cache
def _hellos() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found
