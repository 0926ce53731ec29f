"""A run with its reports: it may resume an earlier run, and writes the requested reports."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seglog_conformance.environment import environment
from seglog_conformance.known import KNOWN, known_text, read_known, rewritten
from seglog_conformance.report_jsonl import JsonLines, read_results, run_line
from seglog_conformance.runner import COMPLETE, Options, Outcome, Runner
from seglog_format.errors import write_errors
from seglog_format.storage.new_directory import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.registry import Builder, Listed
    from seglog_conformance.verdicts import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Files for the results besides the terminal; None for none.

    Attributes:
        jsonl: file of JSON lines, written as results come.
        resumes: whether to skip cases whose results are in that file.
        junit: file of JUnit XML.
        html: file of the matrix.
        badges: directory for an SVG of each testee.
        withholds: whether to leave out of the JSON lines what a list of known failures withholds.
    """

    jsonl: Path | None = None
    resumes: bool = False
    junit: Path | None = None
    html: Path | None = None
    badges: Path | None = None
    withholds: bool = True


def run_session(  # noqa: PLR0913 - keyword arguments
    builder: Builder,
    wanted: Sequence[Listed],
    cases: Sequence[Case],
    *,
    all_cases: Sequence[Case],
    options: Options,
    reports: Reports,
    on_result: Callable[[Outcome, Result], None] | None = None,
) -> list[Outcome]:
    """Run cases on testees and write the requested reports.

    Args:
        builder: builder of adapters.
        wanted: testees to ask.
        cases: cases to ask.
        all_cases: all cases.
        options: options of the run.
        reports: reports to write.
        on_result: called with each result, from one thread at a time.
    """
    kept = _moved_aside(reports.jsonl) if reports.resumes and reports.jsonl is not None else None
    if kept is not None:
        options = replace(options, earlier=read_results(kept))
    head = environment(all_cases)
    with ExitStack() as stack:
        reported: list[Callable[[Outcome, Result], None]] = [on_result] if on_result else []
        lines = None
        if reports.jsonl is not None:
            with write_errors("the report"):
                reports.jsonl.parent.mkdir(parents=True, exist_ok=True)
                stream = stack.enter_context(reports.jsonl.open("w", encoding="utf-8"))
            lines = JsonLines(stream, withholds=reports.withholds)
            lines.write(run_line(head, seed=options.seed))
            reported.append(lines.result)
        runner = Runner(builder, cases, all_cases=all_cases, options=options, on_result=_all_of(reported))
        outcomes = runner.run(wanted)
        if lines is not None:
            lines.testees(outcomes, {case.id: case for case in all_cases})
    if kept is not None:
        kept.unlink()
    _write_pages(reports, outcomes, cases, head)
    return outcomes


def _moved_aside(path: Path) -> Path | None:
    """Move the results of earlier runs to a file of their own, and return its path; None if there are none."""
    kept = path.with_name(f"{path.name}.earlier")
    if path.is_file():
        with kept.open("ab") as file:
            file.write(path.read_bytes() + b"\n")
        path.unlink()
    return kept if kept.is_file() else None


def _all_of(reported: list[Callable[[Outcome, Result], None]]) -> Callable[[Outcome, Result], None]:
    def print_result(outcome: Outcome, result: Result) -> None:
        for one in reported:
            one(outcome, result)

    return print_result


def _write_pages(reports: Reports, outcomes: Sequence[Outcome], cases: Sequence[Case], head: dict[str, object]) -> None:
    if reports.junit is not None:
        from seglog_conformance.report_junit import junit  # noqa: PLC0415 - only when asked for

        write_report(reports.junit, junit(outcomes, {case.id: case for case in cases}))
    if reports.html is not None:
        from seglog_conformance.report_html import page  # noqa: PLC0415 - the same

        write_report(reports.html, page(outcomes, cases, head))
    if reports.badges is not None:
        _write_badges(reports.badges, outcomes, cases)


def _write_badges(directory: Path, outcomes: Sequence[Outcome], cases: Sequence[Case]) -> None:
    from seglog_conformance.report_badge import badge  # noqa: PLC0415 - only when asked for

    known = {case.id: case for case in cases}
    for outcome in outcomes:
        write_report(directory / f"{outcome.name}.svg", badge(outcome, known))


def rewrite_known(outcomes: Sequence[Outcome], asked: Sequence[Case], directory: Path | None = None) -> list[Path]:
    """Write the lists of known failures again from the outcomes of a run.

    Args:
        outcomes: of the run; only complete ones are written.
        asked: the cases of the run.
        directory: of the lists; the suite's by default.

    Returns:
        The files that were changed.
    """
    base = directory or KNOWN
    with write_errors("the list of known failures"):
        base.mkdir(parents=True, exist_ok=True)  # the next run needs the directory, even if there is no list to write
    changed = []
    for outcome in outcomes:
        if outcome.state != COMPLETE:
            continue
        adapter = outcome.listed.adapter
        is_default = adapter is None or outcome.listed.version == adapter.versions[0]
        path = base / (f"{outcome.name}.toml" if is_default else f"{outcome.name}@{outcome.version}.toml")
        old = read_known(outcome.name, outcome.version, directory)
        new = rewritten(old, outcome.version, outcome.results, [case.id for case in asked])
        text = known_text(new)
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        if not new.entries and not before:
            continue
        if text != before:
            write_report(path, text)
            changed.append(path)
    return changed
