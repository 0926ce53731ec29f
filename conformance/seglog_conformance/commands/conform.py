"""``seglog conform``: the options of the conformance suite; the work is done in `seglog_conformance`."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_conformance.commands.conform_options import (
    BUILD_HELP,
    builder_of,
    case_options,
    chosen,
    crash,
    cross,
    differential,
    export,
    generate,
    one_wanted,
    testee_options,
    wanted,
)
from seglog_format.cli.explain import normalized
from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import diagnose, printable, progress, summing, write_json, write_lines, write_text
from seglog_format.errors import UsageError, write_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_conformance.bugs import Bug, Shown
    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.registry import Adapter, Listed
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result


# -- ``seglog conform new``: a new adapter from a template -------------------------------------------------------------


LANGUAGES = ("go", "java", "javascript", "python", "rust")


@click.command(epilog=epilog_of("conform new"))
@click.argument("language", type=click.Choice(LANGUAGES))
@click.argument("directory", type=PATH)
def new(language: str, directory: Path) -> None:
    """Copy the adapter template of LANGUAGE into DIRECTORY, a new one.

    It implements the protocol but answers no case yet: its comments say what to change, and `seglog conform smoke
    --adapter DIRECTORY` whether it works.
    """
    from seglog_conformance.parts import part
    from seglog_format.storage.new_directory import all_or_nothing

    if directory.exists():
        msg = f"{directory} exists"
        raise UsageError(msg)
    with all_or_nothing(directory) as staging, write_errors("copying"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(part("templates") / language, staging, ignore=ignored, dirs_exist_ok=True)
    names = ", ".join(sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()))
    diagnose(f"wrote {names}")
    diagnose(f"next: enter your library in {directory / 'adapter.toml'}, and call it where the comments say")
    diagnose(f"then: seglog conform smoke --adapter {directory}")


# -- ``seglog conform report-issue``: a report about one cause, ready to be filed with the maintainers of a library ----


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
    from seglog_format.storage.new_directory import write_report

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


# -- ``seglog conform bugs``: fixed defects, an older release beside a newer one ---------------------------------------


@click.command(epilog=epilog_of("conform bugs"))
@click.option("--testee", "testees", multiple=True, metavar="NAME", help="Name of an adapter; may be repeated.")
@click.option(
    "--adapter", "directories", multiple=True, type=PATH, help="A directory with an adapter.toml; may be repeated."
)
@click.option("--build", type=PATH, help=BUILD_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of a table.")
@click.option("--report", type=PATH, help="Write everything to this file as one JSON object.")
def bugs(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Show fixed defects: an older release fails the cases that name the rule, a newer one passes them.

    Claims and links to bug reports are in the bugs.toml of an adapter; both releases are built and
    asked. The exit status is 1 when a claim is wrong. Claims about a library whose tool chain is missing are
    named and skipped.
    """
    from seglog_conformance.bugs import bug_line, report, show
    from seglog_conformance.cases import load_cases
    from seglog_conformance.environment import suite_version
    from seglog_conformance.registry import Builder
    from seglog_format.storage.new_directory import write_report

    shown = show(
        Builder(options["build"]), _claims([*options["testees"], *map(str, options["directories"])]), load_cases()
    )
    if options["report"] is not None:
        text = json.dumps({"suite": suite_version(), **report(shown)}, indent=1)
        write_report(options["report"], f"{text}\n")
    if options["as_json"]:
        for one in shown:
            write_json(bug_line(one))
    else:
        _print_bugs(shown)
    return 0 if all(one.holds or one.is_unavailable for one in shown) else FINDINGS


def _claims(names: Sequence[str]) -> list[Bug]:
    from seglog_conformance.bugs import read_bugs
    from seglog_conformance.registry import adapters, listed

    chosen = [one for name in names if (one := listed(name).adapter) is not None] if names else adapters()
    return [bug for adapter in chosen for bug in read_bugs(adapter)]


def _print_bugs(shown: Sequence[Shown]) -> None:
    from seglog_conformance.report_table import bug_lines, bug_table, console

    console(4).print(bug_table(shown))
    write_lines(map(printable, bug_lines(shown)))


# -- ``seglog conform`` ------------------------------------------------------------------------------------------------


EPILOG: Final = """\b
Examples:
  seglog conform run
  seglog conform new python my-adapter
  seglog conform smoke --adapter my-adapter
  seglog conform run --testee reference --testee kafka-python --family 26
  seglog conform run --testee reference --json | jq -r .verdict | sort | uniq
  seglog conform repro null-header-value/alone"""


class CaseGroup(click.Group):
    """Reports errors of the suite as wrong usage."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's value
        """Run a command of the group."""
        from seglog_conformance.cases import CaseError
        from seglog_conformance.known import KnownFailuresError
        from seglog_conformance.registry import AdapterError

        try:
            return super().invoke(ctx)
        except (AdapterError, CaseError, KnownFailuresError) as error:
            raise UsageError(str(error)) from error


@click.group(cls=CaseGroup, epilog=EPILOG)
def command() -> None:
    """Test implementations of the format, in any language, against the cases of the suite.

    An implementation is reached through an adapter, a small program that answers JSON lines. A testee is named by its
    adapter, with @VERSION for another version than the first one in its adapter.toml, or is 'reference', 'plain' or
    'columnar'.
    """


@command.command(epilog=epilog_of("conform run"))
@testee_options
@case_options
@click.option("--scale", "with_scale", is_flag=True, help="Also ask the family scale, which takes minutes.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Testees at the same time.")
@click.option("--seed", type=int, help="Ask the cases in a random order, from this seed.")
@click.option("--fresh-seed", type=int, help="Ask the twins of passed cases of an earlier run, by the seed it printed.")
@click.option("--seconds", type=float, help="Seconds for one case; by default 10, or as in adapter.toml.")
@click.option(
    "--implements",
    default="",
    metavar="RELEASE",
    help="Kafka release that the testees implement, such as 2.8: later cases are not asked. By default as they say.",
)
@click.option("--known", type=PATH, help="Directory with lists of known failures instead of the suite's.")
@click.option("--smoke/--no-smoke", default=True, help="Begin with the smoke test.")
@click.option("--case-ids", is_flag=True, help="Also send the ids of the cases, to debug an adapter.")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON lines, as they come, instead of a table.")
@click.option("--jsonl", type=PATH, help="Write results to this file as they come, one JSON object per line.")
@click.option("--resume", is_flag=True, help="Skip cases whose results are in the file of --jsonl already.")
@click.option("--junit", type=PATH, help="Write JUnit XML to this file.")
@click.option("--html", type=PATH, help="Write a matrix for a browser to this file.")
@click.option("--badges", type=PATH, help="Write a badge for each testee to this directory.")
@click.option(
    "--update-known",
    is_flag=True,
    help="Write the lists of known failures again from the results; with --adapter into the directory of --known.",
)
@click.option("--undisclosed", is_flag=True, help="Also write to --jsonl the failures that a list withholds.")
def run(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Run cases on testees and print a table of families.

    The exit status is 1 when a testee fails in a way that is not on its list of known failures, when a line of that
    list no longer applies, or when an adapter is broken. Testees whose tool chain is missing are named and skipped; the
    exit status is then 1 if you asked for them by --testee or --adapter.

    A run also asks twins of passed cases: the same bytes with other offsets, keys and values, in no list and no count.
    If most twins of an operation fail, the run says that the testee answers by recognition. This also ends with 1.

    Known failures (XFAIL) are counted, and not listed: --json and --jsonl show them with their reasons.
    """
    from seglog_conformance.runner import UNAVAILABLE, InterruptedRunError, Options
    from seglog_conformance.session import Reports, rewrite_known, run_session

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else a testee's process stays
    if options["resume"] and options["jsonl"] is None:
        msg = "--resume needs the file of an earlier run: --jsonl FILE"
        raise UsageError(msg)
    if options["update_known"] and options["directories"] and options["known"] is None:
        msg = (
            "--update-known would write into the suite's own lists: name a directory for those of --adapter by --known"
        )
        raise UsageError(msg)
    if options["known"] is not None and not options["update_known"] and not options["known"].is_dir():
        msg = f"--known {options['known']}: no such directory; --update-known makes it"
        raise UsageError(msg)
    selection = (options["patterns"], options["families"], options["case_paths"])
    cases, every = chosen(*selection, with_scale=options["with_scale"])
    testees = wanted(options["testees"], options["directories"], options["version"])
    names = ("jobs", "seed", "seconds", "smoke", "known", "case_ids", "fresh_seed", "implements")
    try:
        with progress("Asking", len(cases) * len(testees)) as advance:
            outcomes = run_session(
                builder_of(options),
                testees,
                cases,
                all_cases=every,
                options=Options(**{name: options[name] for name in names}),
                reports=Reports(
                    jsonl=options["jsonl"],
                    resumes=options["resume"],
                    junit=options["junit"],
                    html=options["html"],
                    badges=options["badges"],
                    withholds=not options["undisclosed"],
                ),
                on_result=_printed if options["as_json"] else _counted(advance),
            )
    except InterruptedRunError as interrupted:
        if not options["as_json"]:
            _print(interrupted.outcomes, cases, str(options["jsonl"] or ""))
        raise
    if options["as_json"]:
        _diagnose_twins(outcomes)
    else:
        _print(outcomes, cases, str(options["jsonl"] or ""))
    if options["update_known"]:
        for path in rewrite_known(outcomes, cases, options["known"]):
            diagnose(f"wrote {path}")
    is_named = bool(options["testees"] or options["directories"])
    has_results = not is_named or all(outcome.state != UNAVAILABLE for outcome in outcomes)
    return 0 if has_results and all(outcome.is_fine for outcome in outcomes) else FINDINGS


def _printed(_outcome: Outcome, result: Result) -> None:
    from seglog_conformance.report_jsonl import result_line

    write_json(result_line(result))


def _counted(advance: Callable[[int], None]) -> Callable[[object, object], None]:
    """Return a callback for results that passes on their running count."""
    add = summing(advance)
    return lambda _outcome, _result: add(1)


def _print(outcomes: Sequence[Outcome], cases: Sequence[Case], jsonl: str) -> None:
    from seglog_conformance.honesty import refusal_lines, twin_lines
    from seglog_conformance.report_table import console, failures, head, not_asked, table, why_incomplete
    from seglog_conformance.runner import COMPLETE

    if any(outcome.state == COMPLETE for outcome in outcomes):
        console(len(outcomes)).print(table(outcomes, cases))
    known = {case.id: case for case in cases}
    for outcome in outcomes:
        lines = (*head(outcome, known), *why_incomplete(outcome), *not_asked(outcome, known))
        lines += (*failures(outcome, known, jsonl), *refusal_lines(outcome.results, cases), *twin_lines(outcome.twins))
        write_lines(map(printable, lines))


def _diagnose_twins(outcomes: Sequence[Outcome]) -> None:
    """Write what twins say to standard error, beside results in JSON."""
    from seglog_conformance.honesty import twin_lines

    for outcome in outcomes:
        for line in twin_lines(outcome.twins):
            diagnose(printable(f"{outcome.name}: {line.strip()}"))


@command.command(epilog=epilog_of("conform smoke"))
@testee_options
@click.option("--cases", "case_paths", multiple=True, type=PATH, help="Files of cases instead of the suite's.")
def smoke(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Ask a dozen valid cases, check each line by its JSON Schema, and report a broken adapter or a wrong library."""
    from seglog_conformance.judging import Examiner
    from seglog_conformance.known import read_known
    from seglog_conformance.registry import Builder
    from seglog_conformance.report_table import alike, group_lines
    from seglog_conformance.smoke import smoke as smoke_test
    from seglog_conformance.testee import StartError

    if not options["testees"] and not options["directories"]:
        msg = "nothing to ask: name an adapter's directory by --adapter, or one of the suite's by --testee"
        raise UsageError(msg)
    _, every = chosen((), (), options["case_paths"])
    status = 0
    for listed in wanted(options["testees"], options["directories"], options["version"]):
        testee = Builder(options["build"], strict=True, rebuild=options["rebuild"]).testee(listed)
        examiner = Examiner(testee, extra_growth=listed.adapter.extra_memory if listed.adapter else 0)
        try:
            hello = examiner.start()
            found = smoke_test(examiner, every, read_known(listed.name, listed.version))
        except StartError as error:
            first, *rest = str(error).splitlines() or [""]
            texts = (f"{listed.label}: the adapter does not start: {first}", *(f"    {line}" for line in rest))
            write_lines(map(printable, texts))
            status = FINDINGS
            continue
        finally:
            examiner.close()
        said, state = hello.implementation, "is broken" if found.is_broken else "works"
        write_text(f"the adapter {state}" + (printable(f"; hint: {found.hint}") if found.hint else ""))
        write_text(printable(f"{listed.label}: {said.name} {said.version} ({said.language}); {', '.join(hello.ops)}"))
        for group in alike(found.results):
            write_lines(map(printable, group_lines(group, {case.id: case for case in every})))
        status = FINDINGS if found.is_broken else status
    return status


@command.command("list", epilog=epilog_of("conform list"))
@case_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_cases(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's values
    """List cases: id, level, result, and why each exists."""
    cases, _ = chosen(options["patterns"], options["families"], options["case_paths"], with_scale=True)
    for case in cases:
        if as_json:
            write_json(
                {
                    "type": "case",
                    "id": case.id,
                    "family": case.family,
                    "op": case.op,
                    "level": case.level,
                    "result": case.result,
                    "requirements": list(case.requirements),
                    "needs": list(case.needs),
                    "flags": list(case.flags),
                    "why": case.why,
                    "source": case.source,
                }
            )
        else:
            write_text(printable(f"{case.id}  {case.level} {case.result}  {case.why}"))


def case_named(text: str) -> str:
    """Return the id in a line that ``run`` prints: ``crc/flip-value: SILENT: ...`` is about ``crc/flip-value``."""
    return text.strip().partition(":")[0]


@command.command(epilog=epilog_of("conform repro"))
@click.argument("case_id", metavar="CASE")
@testee_options
@click.option("--cases", "case_paths", multiple=True, type=PATH, help="Files of cases instead of the suite's.")
def repro(case_id: str, **options: Any) -> None:  # noqa: ANN401 - click's values
    """Print the lines of one case, for piping into an adapter; the expected answer goes to standard error, as JSON."""
    from seglog_conformance.protocol import PROTOCOL_VERSION, request_line

    cases, _ = chosen((case_named(case_id),), (), options["case_paths"])
    for request in (
        {"seq": 0, "op": "hello", "protocol": PROTOCOL_VERSION},
        *(case.request_with(number, is_named=True) for number, case in enumerate(cases, 1)),
    ):
        sys.stdout.write(request_line(request).decode())
    for case in cases:
        diagnose(f"{case.id}: {case.level} {case.result}, {', '.join(case.requirements)}: {case.why}")
        sys.stderr.write(request_line(case.expect).decode())
    if options["testees"] or options["directories"]:
        for listed in wanted(options["testees"], options["directories"], options["version"]):
            if listed.adapter is not None:
                diagnose(_pipe_text(listed, listed.adapter, cases[0].id, options["build"]))


def _pipe_text(listed: Listed, adapter: Adapter, case_id: str, builds: Path | None) -> str:
    """Return the command to pipe the lines of a case into, and how to build the adapter if it is not built."""
    from seglog_conformance.registry import Builder

    builder = Builder(builds)
    text = f"{listed.label}: pipe into {shlex.join(builder.command(adapter, listed.version).arguments)}"
    if builder.is_built(adapter, listed.version):
        return text
    version = "" if listed.version == adapter.versions[0] else f"@{listed.version}"
    what = f"--testee {adapter.name}{version}" if adapter.is_bundled else f"--adapter {adapter.path}"
    return f"{text} (build it first: seglog conform run {what} --case {case_id})"


command.add_command(bugs)
command.add_command(new)
command.add_command(report_issue)
command.add_command(export)
command.add_command(crash)
command.add_command(cross)
command.add_command(generate)
command.add_command(differential)
