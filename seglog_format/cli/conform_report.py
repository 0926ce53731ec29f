"""``seglog conform report-issue``: a report about one cause, ready to be filed with the maintainers of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.conform_options import builder_of, chosen, one_wanted, testee_options
from seglog_format.cli.explain import normalized
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import diagnose, write_text
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.registry import Listed
    from seglog_conformance.runner import Outcome


@click.command("report-issue", epilog=epilog_of("conform report-issue"))
@testee_options
@click.option("--rule", required=True, metavar="ID", help="The broken rule, such as SEG-BAT-003.")
@click.option("--op", default="", help="Only failures of this operation.")
@click.option("--cases", "case_paths", multiple=True, type=PATH, help="Files of cases instead of the suite's.")
@click.option("--results", type=PATH, help="Take the results from this file of `run --jsonl`, and ask nothing.")
@click.option(
    "--withhold", is_flag=True, help="Leave out the bytes and steps of crashes, hangs and excesses of memory."
)
@click.option("-o", "--output", type=PATH, help="Write the report to this file instead of standard output.")
def report_issue(**options: Any) -> None:  # noqa: ANN401 - click's values
    """Write a report about a rule that one testee breaks, in Markdown, ready to be filed with its maintainers.

    It has the bytes of the smallest case, about ten lines in the library's language, the recorded answer of Kafka's own
    classes, the rule, and what to change. Without --results, the cases that name the rule are asked.
    """
    from seglog_conformance.issue_report import issue_report, subject_of, unlisted

    from seglog_format.storage.reports import write_report

    rule = normalized(options["rule"])
    testee = one_wanted(options, "a report is about")
    _, every = chosen((), (), options["case_paths"])
    outcome = unlisted(_outcome(testee, rule, every, options))
    by_id = {case.id: case for case in every}
    cause = _cause_of(outcome, rule, options["op"], outcome.causes(by_id))
    text = issue_report(cause, by_id, subject_of(outcome), withholds=options["withhold"])
    if options["output"] is None:
        write_text(text.rstrip("\n"))
    else:
        write_report(options["output"], text)
        diagnose(f"wrote {options['output']}")


def _outcome(listed: Listed, rule: str, every: Sequence[Case], options: dict[str, Any]) -> Outcome:
    """Return the results of a run: those of a file, else those of the cases that name the rule."""
    from seglog_conformance.runner import COMPLETE, Options, Runner

    if options["results"] is not None:
        return _read(listed, options["results"])
    cases = [case for case in every if rule in case.requirements and not case.is_summed_up]
    if not cases:
        msg = f"no case names {rule}; seglog conform list --json names the rules of each case"
        raise UsageError(msg)
    outcome = Runner(builder_of(options), cases, all_cases=every, options=Options(smoke=False)).run_one(listed)
    if outcome.state != COMPLETE:
        msg = f"{listed.label}: {outcome.reason.splitlines()[0] if outcome.reason else outcome.state}"
        raise UsageError(msg)
    return outcome


def _read(listed: Listed, results: Path) -> Outcome:
    """Return the results that a run has written."""
    from seglog_conformance.report_jsonl import read_hello, read_results
    from seglog_conformance.runner import Outcome

    found = [one for one in read_results(results).values() if one.testee == listed.name]
    if not found:
        msg = f"{results} has no result of {listed.name}"
        raise UsageError(msg)
    return Outcome(listed, results=found, hello=read_hello(results, listed.name))


def _cause_of(outcome: Outcome, rule: str, op: str, found: Sequence[Cause]) -> Cause:
    """Return the gravest cause by which a rule is broken."""
    fitting = [cause for cause in found if rule == cause.rule and op in {"", *cause.op.split(", ")}]
    if fitting:
        return fitting[0]
    broken = ", ".join(dict.fromkeys(cause.rule for cause in found))
    of_op = f" in {op}" if op else ""
    msg = f"{outcome.listed.label} fails no case of {rule}{of_op}; the failing rules are {broken or 'none'}"
    raise UsageError(msg)
