"""The conformance pages, from ``reports/conform.json`` and the lists of known failures: verdicts by implementation."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import every_case
from seglog_conformance.environment import suite_digest
from seglog_conformance.judging import SINCE
from seglog_conformance.known import WITHHELD, Known, known_path, read_known
from seglog_conformance.registry import adapters

from tools.docs import causes, verdicts
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = f"docs/{verdicts.PAGES}"
SHOWN: Final = 6

INTRODUCTION: Final = """\
# Conformance

This page shows the results of {libraries} libraries in {languages} languages in the conformance suite: {cases:,}
cases in {families} families. Some libraries are tested in several ways (as a decoder of records, as a client over
the network, with and without compiled code), which makes {count} implementations. Each case names the rules that it
rests on and the reason for the expected answer. A cell gives the passed cases of those that were asked; an
implementation is not asked about a function that it does not have. The page of an implementation gives the reason of
each failure, with the first cases of each reason; `conformance/known_failures/NAME.toml` lists all cases, and the run
fails if any other result differs. [Another page](pairs.md) shows who reads what the producers of these libraries write,
and [a third](bugs.md) which known defects of older releases the suite shows. To test your own implementation, [write an
adapter](../how-to/write-an-adapter.md), [run the cases in your own test runner](../how-to/test-in-your-own-runner.md),
and [check it by property tests](property-tests.md).

No case is about style. `must` cases are about data that is lost, changed or not exchanged. `should` cases are
mostly about bytes that no correct writer makes, and that a reader meets after a crash or an attack. `may` cases are
about quality. A reader that only reads bytes that a broker has checked can fail many `should` cases without harm.

{birth} The run took {took}. {second}{scale}{today}
"""

REPORTING: Final = """\
## Storage that is not here

The storage of other implementations is not in this matrix. Tried were `krabka-log` (Rust), whose releases 1.0.0,
1.0.1 and 1.0.6 to 1.0.8 need packages that want Rust 1.97 or 1.98.1; with 1.95, and these limits ignored, 1.0.8 does
not compile. `tansu-storage` 0.6.0 (Rust) stores, by its description, to databases and object stores instead of segment
files. `jocko` (Go) is not served by the module proxy.

## Reporting a defect

The page of each implementation links to its issue tracker. A report that helps has the line that `seglog conform repro`
prints, the rule, and what was expected. Where bytes make an implementation crash, hang or take memory without bound,
send them to its maintainers first: a failure marked `disclosure = "withheld"` in the list of known failures is counted
here, and neither its case nor its bytes are published.

Is a verdict wrong? Every case says what it rests on (`source`). Open an issue with the bytes and the version of the
broker that reads them otherwise; the suite changes when Kafka's own code disagrees with it.
"""

Json = dict[str, Any]


def pages(notice: str) -> dict[str, str]:
    """Return the generated pages, by path; none if there was no full run yet."""
    report = verdicts.report()
    if report is None:
        return {}
    others = [testee for testee in report["testees"] if verdicts.page(testee)]
    found = {f"{DIRECTORY}/index.md": "\n".join([notice + _introduction(report), *_tables(report), REPORTING])}
    for testee in others:
        found[f"{DIRECTORY}/{verdicts.page(testee)}.md"] = "\n".join([notice.rstrip(), "", *_page(testee), ""])
    return found


def _introduction(report: Json) -> str:
    complete = [one for one in report["testees"] if one["state"] == "complete"]
    others = [one for one in complete if verdicts.page(one)]
    libraries = {_adapters()[one["testee"]].homepage for one in others}
    languages = {one["implementation"]["language"].replace("Cython", "Python") for one in others}
    families = {family for one in complete for family in one["families"]}
    return INTRODUCTION.format(
        **report | {"cases": report["cases"]},
        count=len({one["testee"] for one in others}),
        libraries=len(libraries),
        languages=len(languages),
        families=len(families),
        birth=birth(report),
        scale=_left_out(report.get("leftOut", 0)),
        today=_cases_since(report),
        took=", and the second one ".join(f"{minutes} minutes" for minutes in report["minutes"]),
        second=_second_run(report["differencesOfTheSecondRun"]) + (f" {note}." if (note := report.get("note")) else ""),
    )


def _left_out(count: int) -> str:
    """Return a sentence about cases of the family scale that the run did not ask; empty if it asked them."""
    return f" It did not ask the {count} cases of the family `scale`, and no number here counts them." if count else ""


def _cases_since(report: Json) -> str:
    """Return a sentence about cases that were added or changed after the run; empty if there are none."""
    cases, run_count = every_case(), report["cases"] + report.get("leftOut", 0)
    if suite_digest(cases) == report["casesSha256"]:
        return ""
    return f" Cases have changed since: today the suite has {len(cases):,}, and the run had {run_count:,}."


def _second_run(differences: list[str] | None) -> str:
    if differences is None:
        return "There was no second run this time."
    if not differences:
        return "The second run came to the same verdicts as the first."
    return f"The second run came to the same verdicts as the first, but for {'; '.join(differences)}."


def _tables(report: Json) -> Iterator[str]:
    complete = [one for one in report["testees"] if one["state"] == "complete"]
    head = "| implementation | version | language | must | should | may | must, not asked |"
    yield from ("## Who was asked", "", head, "|---|---|---|---:|---:|---:|---:|")
    yield from map(_row, complete)
    yield from ("", "## Families", "")
    yield "| family | " + " | ".join(_linked(one) for one in complete) + " |"
    yield "|---|" + "---:|" * len(complete)
    families = sorted({family for one in complete for family in one["families"]}, key=lambda name: int(name.split()[0]))
    for family in families:
        cells = (_cell(one["families"].get(family, {})) for one in complete)
        yield f"| {family} | " + " | ".join(cells) + " |"
    yield ""


def _row(testee: Json) -> str:
    language = testee["implementation"]["language"]
    levels = (_cell(testee["levels"][level]) for level in ("must", "should", "may"))
    left_out = testee["levels"]["must"].get("SKIP", 0)
    return f"| {_linked(testee)} | {testee['version']} | {language} | " + " | ".join(levels) + f" | {left_out} |"


def _linked(testee: Json) -> str:
    name, page = verdicts.label(testee), verdicts.page(testee)
    return f"[{name}]({page}.md)" if page else name


def _cell(counts: dict[str, int]) -> str:
    """Return a text such as ``11/12``, bold if a case fails; empty if no case was asked."""
    asked = sum(count for verdict, count in counts.items() if verdict != "SKIP")
    passed = counts.get("PASS", 0)
    reported = f"{passed}/{asked}" if asked else ""
    return f"**{reported}**" if passed != asked else reported


def _page(testee: Json) -> Iterator[str]:
    name, version = testee["testee"], testee["version"]
    adapter = _adapters()[name]
    yield from (f"# {adapter.title or name}", "", f"[{adapter.homepage}]({adapter.homepage}), {adapter.language}, ")
    yield f"version {version}. Its issues: [{adapter.issues}]({adapter.issues})." if adapter.issues else ""
    if testee["state"] != "complete":
        yield from ("", f"It was not asked: {testee['reason'].splitlines()[0]}")
        return
    counts = Counter[str]()
    for level in testee["levels"].values():
        counts.update(level)
    yield from ("", _reported(counts), "", "```sh", f"seglog conform run --testee {_named(name, version)}", "```", "")
    yield from _not_asked(testee.get("mustNotAsked", {}))
    yield from _failures(name, version)


def _not_asked(reasons: dict[str, int]) -> Iterator[str]:
    """Yield lines with the number of ``must`` cases that were not asked, by the missing feature."""
    if reasons:
        yield from ("## What was not asked", "", f"{sum(reasons.values()):,} `must` cases, by what was missing:", "")
        yield from (f"- {count:,}: {_plain(reason)}" for reason, count in reasons.items())
        yield ""


def _named(name: str, version: str) -> str:
    """Return the name of a testee for a command line; without its version if only the package around it has one."""
    return f"{name} --version {version}" if version in _adapters()[name].versions else name


def _reported(counts: Counter[str]) -> str:
    asked = sum(counts.values()) - counts["SKIP"]
    return (
        f"It was asked {asked:,} cases, and {counts['PASS']:,} pass; {counts['SKIP']:,} are about what it does not do."
    )


@cache
def _adapters() -> dict[str, Any]:
    return {adapter.name: adapter for adapter in adapters()}


def _failures(name: str, version: str) -> Iterator[str]:
    entries = list(read_known(name, version).entries.values())
    if not entries:
        yield "No case fails."
        return
    file = f"conformance/known_failures/{known_path(name, version).name}"
    yield from ("## What does not pass", "", f"By reason; the most frequent first. `{file}` lists all cases.", "")
    reasons = Counter(entry.reason for entry in entries)
    for reason, _ in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        group = [entry for entry in entries if entry.reason == reason]
        yield from (f"### {len(group)} {'case' if len(group) == 1 else 'cases'}", "", _plain(reason), "")
        yield from causes.lines(_adapters()[name].homepage, reason)
        yield from _cases(name, version, group)


def _cases(name: str, version: str, group: list[Known]) -> Iterator[str]:
    reported = [entry for entry in group if entry.disclosure != WITHHELD]
    for entry in reported[:SHOWN]:
        issue = f" ([reported]({entry.issue}))" if entry.issue.startswith("http") else ""
        yield f"- `{entry.case}`: {entry.verdict}{issue}"
    if len(reported) > SHOWN:
        yield f"- and {len(reported) - SHOWN} more"
    if len(reported) < len(group):
        yield f"- {len(group) - len(reported)} not published"
    yield ""
    if reported:
        yield from ("```sh", f"seglog conform repro {reported[0].case} --testee {_named(name, version)}", "```", "")


def _plain(reason: str) -> str:
    """Return a reason as Markdown text: nothing in it is markup."""
    if reason.startswith(SINCE):
        return f"they hold since Kafka {reason.removeprefix(SINCE)}, and it implements an older release"
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", reason)
