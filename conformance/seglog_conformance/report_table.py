"""The results of a run, for a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seglog_conformance.causes import first_line
from seglog_conformance.headlines import rule_link, sentence
from seglog_conformance.judging import SINCE
from seglog_conformance.runner import COMPLETE, family_counts
from seglog_conformance.verdicts import FINE, Verdict, level_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_conformance.bugs import Shown
    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.cross import Pair
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result

STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.SKIP: "dim",
    Verdict.UNPROVEN: "yellow",
    Verdict.XFAIL: "yellow",
    Verdict.XPASS: "magenta",
}
MAX_LINES: Final = 40
MAX_ALIKE: Final = 3
MAX_DIFFERENCES: Final = 3
LAST_LINES: Final = 12
"""Number of lines shown of the standard error of an adapter that died."""
FIRST: Final = 34
EACH: Final = 21
"""Width of columns in characters."""


def console(columns: int) -> Console:
    """Return a console wide enough for some columns; a terminal has its own width."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=max(found.width, FIRST + EACH * columns))


def table(outcomes: Sequence[Outcome], cases: Sequence[Case]) -> Table:
    """Return a table of families by implementations: passed cases, and the other verdicts."""
    grid = Table(caption="cases that pass, of those that were asked", caption_justify="left")
    grid.add_column("family", no_wrap=True)
    complete = [outcome for outcome in outcomes if outcome.state == COMPLETE]
    for outcome in complete:
        grid.add_column(f"{outcome.name}\n{outcome.version}", justify="right")
    counts = [family_counts(outcome, cases) for outcome in complete]
    for number, name in sorted({(case.family, case.family_name) for case in cases}):
        grid.add_row(f"{number:2} {name}", *(cell(count.get(number, {})) for count in counts))
    grid.add_section()
    grid.add_row("all", *(cell(Counter(result.verdict for result in outcome.results)) for outcome in complete))
    return grid


def cell(counts: Mapping[Verdict, int]) -> Text:
    """Return a text such as ``11/12`` with the other verdicts; a dash if no case was run."""
    asked = sum(count for verdict, count in counts.items() if verdict is not Verdict.SKIP)
    if not asked:
        return Text("-", style="dim")
    passed = counts.get(Verdict.PASS, 0)
    unexpected = any(verdict not in FINE for verdict in counts)
    style = "red" if unexpected else "green" if passed == asked else "yellow"
    return Text(f"{passed}/{asked}", style=style)


def summary(outcome: Outcome) -> str:
    """Return one line about a testee."""
    name = f"{outcome.name} {outcome.version}".rstrip()
    if outcome.state != COMPLETE:
        subject = "the adapter is broken" if outcome.state == "broken" else "not run"
        return f"{name}: {subject}: {outcome.reason.splitlines()[0] if outcome.reason else ''}"
    return f"{name}: {verdict_counts(outcome)}"


def head(outcome: Outcome, cases: Mapping[str, Case]) -> Iterator[str]:
    """Yield the first lines about a testee: the first cause, if there is one, then the verdicts."""
    line = first_line(outcome.causes(cases)) if outcome.state == COMPLETE else ""
    if not line:
        yield summary(outcome)
        return
    yield f"{outcome.name} {outcome.version} {line}".replace("  ", " ")
    yield f"  {verdict_counts(outcome)}"


def verdict_counts(outcome: Outcome) -> str:
    """Return the number of results by verdict."""
    counts = Counter(result.verdict for result in outcome.results)
    reported = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    stale = f"; {len(outcome.unused)} unused lines in its list" if outcome.unused else ""
    return f"{reported or 'no case'}{stale}"


def why_incomplete(outcome: Outcome) -> Iterator[str]:
    """Yield the further lines of the reason why a testee did not run, such as the traceback of an adapter."""
    if outcome.state != COMPLETE:
        yield from (f"    {line}" for line in outcome.reason.splitlines()[1:])


def not_asked(outcome: Outcome, cases: Mapping[str, Case]) -> Iterator[str]:
    """Yield a line with the number of skipped ``must`` cases, by missing feature, and one about the family scale."""
    reasons = Counter(
        result.detail for result in outcome.results if result.raw is Verdict.SKIP and cases[result.case].level == "must"
    )
    if reasons:
        named = [f"{count} {_why_not(reason)}" for reason, count in reasons.most_common()]
        yield f"  {reasons.total()} must cases were not asked: {', '.join(named)}"
    if outcome.scale_note:
        yield f"  {outcome.scale_note} (--scale)"


def _why_not(reason: str) -> str:
    """Return why a case was not asked: it is younger than what the testee implements, or needs something else."""
    since = reason.removeprefix(SINCE)
    return f"for want of {reason}" if since == reason else f"hold since Kafka {since}"


def failures(outcome: Outcome, cases: Mapping[str, Case], jsonl: str = "") -> Iterator[str]:
    """Yield lines about the causes of failures: MUST first, of one level the most frequent first.

    Args:
        outcome: of the run.
        cases: cases of the run, by id.
        jsonl: file with the results, which spares the command that writes a report a new run.
    """
    found = outcome.causes(cases)
    for cause in found[:MAX_LINES]:
        yield from cause_lines(cause, cases)
        yield f"      report: {report_command(outcome, cause, jsonl)}"
    if len(found) > MAX_LINES:
        left_out = sum(len(one.failed) for one in found[MAX_LINES:])
        yield f"  ... and {len(found) - MAX_LINES} more causes, of {left_out} cases"
    for case in outcome.unused:
        yield f"  {case}: its line in the list of known failures is of no use"


def cause_lines(cause: Cause, cases: Mapping[str, Case]) -> Iterator[str]:
    """Yield a cause: its headline with counts, its smallest case, its rule, and the names of the other cases."""
    first, *others = cause.failed
    counts = ", ".join(f"{count} {verdict}" for verdict, count in cause.verdicts.most_common())
    yield f"  {cause.level}: {cause.headline} ({cause.count} {cause.op} cases: {counts})"
    yield f"      {first.case}: {sentence(first, cases[first.case])}"
    yield f"      rule: {rule_link(cause.rule)}, or seglog explain {cause.rule}"
    if first.disclosure:
        yield "      bytes and answers are withheld"
    else:
        yield from _details(first)
    if others:
        more = f" and {len(others) - MAX_ALIKE} others" if len(others) > MAX_ALIKE else ""
        yield f"      the same: {', '.join(one.case for one in others[:MAX_ALIKE])}{more}"


def report_command(outcome: Outcome, cause: Cause, jsonl: str = "") -> str:
    """Return the command that writes the report about a cause, ready to file."""
    results = f" --results {jsonl}" if jsonl else ""
    op = "" if "," in cause.op else f" --op {cause.op}"
    about = f"{testee_option(outcome)} --rule {cause.rule}{op}{results}"
    return f"seglog conform report-issue {about} -o {outcome.name}-{cause.rule}.md"


def alike(results: Iterable[Result]) -> list[list[Result]]:
    """Return results grouped by equal failure, in their order."""
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        groups.setdefault((result.label, result.detail, result.differences, result.notes), []).append(result)
    return list(groups.values())


def group_lines(group: Sequence[Result], cases: Mapping[str, Case]) -> Iterator[str]:
    """Yield the lines of the first result of a group, and the names of the others."""
    yield from result_lines(group[0], cases.get(group[0].case))
    others = [result.case for result in group[1:]]
    if others:
        more = f" and {len(others) - MAX_ALIKE} others" if len(others) > MAX_ALIKE else ""
        yield f"      the same: {', '.join(others[:MAX_ALIKE])}{more}"


def result_lines(result: Result, case: Case | None = None) -> Iterator[str]:
    """Yield a result in a few lines; a failure with level, rules and reason of its case, if that is given."""
    detail = "" if result.verdict is Verdict.SKIP or not result.detail else f": {result.detail}"
    yield f"  {result.case}: {result.label}{detail}"
    if case is not None and result.verdict not in FINE:
        yield f"      {level_of(case.level, result.raw)}, {', '.join(case.requirements)}: {case.why}"
    for difference in [one for one in result.differences if one != result.detail][:MAX_DIFFERENCES]:
        yield f"      {difference}"
    yield from _remarks(result)


def testee_option(outcome: Outcome) -> str:
    """Return the option that names a testee on a command line."""
    adapter, version = outcome.listed.adapter, outcome.listed.version
    if adapter is None:
        return f"--testee {outcome.name}"
    if not adapter.is_bundled:
        return f"--adapter {adapter.path}"
    return f"--testee {outcome.name}" + (f"@{version}" if version != adapter.versions[0] else "")


def _details(result: Result) -> Iterator[str]:
    """Yield further differences of a result, and what its process wrote."""
    for difference in result.differences[1:MAX_DIFFERENCES]:
        yield f"      {difference}"
    yield from _remarks(result)


def _remarks(result: Result) -> Iterator[str]:
    for note in result.notes:
        if note:
            yield f"      {note}"
    if result.verdict in {Verdict.CRASH, Verdict.ADAPTER_ERROR}:
        yield from (f"      | {line}" for line in result.stderr.splitlines()[-LAST_LINES:])


def cross_table(pairs: Sequence[Pair]) -> Table:
    """Return a table of producers by consumers."""
    consumers = list(dict.fromkeys(pair.consumer for pair in pairs))
    found = {(pair.producer, pair.consumer): pair for pair in pairs}
    grid = Table(caption="logs that are read as they were meant, of those that were written", caption_justify="left")
    grid.add_column("writes \\ reads", no_wrap=True)
    for name in consumers:
        grid.add_column(name, justify="right")
    for producer in dict.fromkeys(pair.producer for pair in pairs):
        grid.add_row(producer, *(cell(found[producer, consumer].counts) for consumer in consumers))
    return grid


def cross_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield lines about logs that a consumer does not read as written."""
    for pair in pairs:
        for result in pair.failures[:3]:
            yield f"{pair.producer} -> {pair.consumer}: {result.case}: {result.label}: {result.detail}"


def bug_table(shown: Sequence[Shown]) -> Table:
    """Return a table of claims by releases, with the verdicts of their cases."""
    grid = Table(caption="what the cases of each claim came to", caption_justify="left", show_lines=True)
    for name in ("implementation", "defect", "older release", "newer release"):
        grid.add_column(name)
    for one in shown:
        bug, style = one.bug, "green" if one.holds else "yellow" if one.is_unavailable else "red"
        defect = Text("\n".join((bug.summary, *bug.links)))
        releases = (_release(bug.old, one.old), _release(bug.new, one.new))
        grid.add_row(bug.adapter.name, defect, *(Text(reported, style=style) for reported in releases))
    return grid


def _release(version: str, verdicts: Mapping[str, Verdict]) -> str:
    counts = Counter(verdicts.values())
    return "\n".join((version, *(f"{verdict}: {count}" for verdict, count in counts.items())))


def bug_lines(shown: Sequence[Shown]) -> Iterator[str]:
    """Yield lines about the claims that do not hold, and the number of those that do."""
    for one in shown:
        bug = one.bug
        if not one.holds:
            subject = "not run" if one.is_unavailable else "it does not hold"
            yield f"{bug.adapter.name}: {bug.summary} {subject}{f': {one.reason}' if one.reason else ''}"
        for case in bug.cases if not one.holds and not one.reason else ():
            yield f"  {case}: {one.old.get(case)} and {one.new.get(case)} instead of {bug.verdict} and {Verdict.PASS}"
    holding = [one for one in shown if one.holds]
    names = {one.bug.adapter.name for one in holding}
    yield f"{len(holding)} of {len(shown)} claims hold, about {len(names)} implementations"
