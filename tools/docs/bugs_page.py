"""The page of defects of older releases: what to run, on which bytes, and how Kafka's classes read them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.bugs import read_program
from seglog_conformance.cases import every_case
from seglog_conformance.registry import adapters

from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.cases import Case
    from seglog_conformance.registry import Adapter

ROOT: Final = Path(__file__).resolve().parents[2]
REPORT: Final = ROOT / "reports" / "bugs.json"
ASKED: Final = ROOT / "conformance" / "authoring" / "asked.json"
PAGE: Final = "docs/conformance/bugs.md"
KAFKA: Final = "kafka-clients 4.4.0"
LANGUAGES: Final = {"Go": "go", "JavaScript": "js", "Python": "python", "Rust": "rust"}

TEXT: Final = """\
# Defects that were fixed

{holding} defects of {implementations} implementations that are publicly known: an older release fails the cases that
name the rule, and a newer one passes them. `seglog conform bugs` asks both again. {birth}

Each has the smallest log of its cases. To see a defect without the suite, serve that log, and run the program of the
library on it, with the older release and with the newer one:

```sh
mkdir -p logs/case-0
echo HEX | xxd -r -p > logs/case-0/00000000000000000000.log
seglog serve --raw --state none logs
```
"""

Json = dict[str, Any]


def pages(notice: str) -> dict[str, str]:
    """Return the page, by path."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    known = {adapter.name: adapter for adapter in adapters()}
    lines = [notice + TEXT.format(**report, birth=birth(report))]
    for name in dict.fromkeys(bug["testee"] for bug in report["bugs"]):
        lines += _library(known[name], [bug for bug in report["bugs"] if bug["testee"] == name])
    return {PAGE: "\n".join([*lines, ""])}


def _library(adapter: Adapter, bugs: list[Json]) -> Iterator[str]:
    yield from (f"## {adapter.title or adapter.name}", "")
    for bug in bugs:
        yield from _bug(bug)
    if program := read_program(adapter):
        language = LANGUAGES.get(adapter.language.replace("Cython", "Python"), "text")
        yield from ("The program:", "", f"```{language}", program.rstrip(), "```", "")


def _bug(bug: Json) -> Iterator[str]:
    old, new = bug["old"], bug["new"]
    links = ", ".join(f"[{link.rpartition('github.com/')[2]}]({link})" for link in bug["links"])
    yield from (
        f"### {old['version']}, fixed in {new['version']} or before",
        "",
        f"{bug['summary']} Reported: {links}.",
        "",
    )
    if not bug["holds"]:
        yield from ("This was not shown again in the last run.", "")
        return
    cases = [_cases()[name] for name in old["verdicts"]]
    yield from (
        f"- `{case.id}`: {old['verdicts'][case.id]}, then {new['verdicts'][case.id]}. {case.why}" for case in cases
    )
    smallest = min(cases, key=lambda case: len(case.request["data"]))
    data = smallest.request["data"]
    yield from ("", f"The log of `{smallest.id}`, {len(data) // 2} bytes:", "", "```text")
    yield from (data[start : start + 100] for start in range(0, len(data), 100))
    yield from ("```", "", _kafka(smallest), "")


def _kafka(case: Case) -> str:
    """Return how Kafka's classes read a case when they were asked."""
    count = sum(len(batch.get("records", ())) for batch in case.expect.get("batches", ()) if not batch.get("isControl"))
    expected = "an error" if "reject" in case.expect else f"{count} {'record' if count == 1 else 'records'}"
    asked = _asked().get(case.id)
    answered = f"`{KAFKA}` {asked[1]}" if asked else "Kafka's classes were not asked"
    return f"Right is {expected} for the application; {answered}."


@cache
def _asked() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(ASKED.read_text(encoding="utf-8"))[KAFKA]
    return found


@cache
def _cases() -> dict[str, Case]:
    return {case.id: case for case in every_case()}
