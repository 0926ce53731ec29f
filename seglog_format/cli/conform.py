"""``seglog conform``: the conformance suite. The work is done in `seglog_conformance`; here are its options."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH
from seglog_format.cli.output import diagnose, progress, write_json, write_text
from seglog_format.cli.render import printable
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.generated import Found
    from seglog_conformance.judging import Examiner
    from seglog_conformance.registry import Listed
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result

EPILOG: Final = """\b
Examples:
  seglog conform run
  seglog conform smoke --adapter my-adapter/
  seglog conform run --testee reference --testee kafka-python --family 26
  seglog conform run --testee reference --json | jq -r .verdict | sort | uniq -c
  seglog conform repro headers/null-value"""


class CaseGroup(click.Group):
    """What the suite complains about is a mistake of the caller."""

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
    """Judge implementations of the format, in any language, against the cases of the suite.

    An implementation is reached through an adapter, a small program that answers JSON lines. A testee is named by its
    adapter, with @VERSION where another than the first one of its adapter.toml is meant, or is 'reference'.
    """


def testee_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Who is asked."""
    options = (
        click.option("--testee", "testees", multiple=True, metavar="NAME", help="A testee; may be repeated."),
        click.option(
            "--adapter", "directories", multiple=True, type=PATH, help="A directory with an adapter.toml; the same."
        ),
        click.option("--version", default="", help="Of the implementations; else the first of each adapter.toml."),
        click.option("--build", type=PATH, default=Path("build/conform"), help="Where adapters are built."),
        click.option("--rebuild", is_flag=True, help="Build also what has been built."),
        click.option("--strict", is_flag=True, help="Hold every line of the protocol against its schema."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def case_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is asked."""
    options = (
        click.option("--case", "patterns", multiple=True, metavar="ID", help="A case; * stands for anything."),
        click.option("--family", "families", multiple=True, metavar="FAMILY", help="Number or name of a family."),
        click.option("--cases", "places", multiple=True, type=PATH, help="Files of cases instead of the suite's."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def wanted(testees: Sequence[str], directories: Sequence[Path], version: str) -> list[Listed]:
    """The testees that options name: all, if none."""
    from seglog_conformance.registry import adapters, listed

    names = [*testees, *(str(directory) for directory in directories)]
    names = names or ["reference", *(adapter.name for adapter in adapters())]
    suffix = f"@{version}" if version else ""
    return [listed(name if "@" in name or name == "reference" else name + suffix) for name in names]


def chosen(patterns: Sequence[str], families: Sequence[str], places: Sequence[Path]) -> tuple[list[Case], list[Case]]:
    """The cases that options name, and all that there are."""
    from seglog_conformance.cases import case_files, load_cases, selected

    files = [file for place in places for file in (case_files(place) if place.is_dir() else [place])]
    every = load_cases(files or None)
    cases = selected(every, [*patterns, *families])
    if not cases:
        msg = "no case fits"
        raise UsageError(msg)
    return cases, every


@command.command()
@testee_options
@case_options
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Testees at the same time.")
@click.option("--seed", type=int, help="Ask the cases in the order that this number makes of them.")
@click.option("--seconds", type=float, help="For one case; else 10, or what adapter.toml says.")
@click.option("--known", type=PATH, help="Directory with lists of known failures instead of the suite's.")
@click.option("--smoke/--no-smoke", default=True, help="Begin with the smoke test.")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON lines, as they come, instead of a table.")
@click.option("--jsonl", type=PATH, help="Write results to this file as they come, one JSON object per line.")
@click.option("--resume", is_flag=True, help="Do not ask again for what stands in the file of --jsonl already.")
@click.option("--junit", type=PATH, help="Write JUnit XML to this file.")
@click.option("--html", type=PATH, help="Write a matrix for a browser to this file.")
@click.option("--update-known", is_flag=True, help="Write the lists of known failures anew from what was found.")
@click.option("--undisclosed", is_flag=True, help="Put into --jsonl also what a list of known failures withholds.")
def run(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Run cases on testees and print a table of families.

    The exit status is 1 when a testee does anything that its list of known failures does not say, when a line of that
    list is of no use, or when an adapter is broken. Testees whose tool chain is missing are named and passed over.
    """
    from seglog_conformance.registry import Builder
    from seglog_conformance.runner import Options
    from seglog_conformance.session import Reports, rewrite_known, run_session

    if options["resume"] and options["jsonl"] is None:
        msg = "--resume needs the file of an earlier run: --jsonl FILE"
        raise UsageError(msg)
    cases, every = chosen(options["patterns"], options["families"], options["places"])
    testees = wanted(options["testees"], options["directories"], options["version"])
    names = ("jobs", "seed", "seconds", "smoke", "known")
    with progress("Asking", len(cases) * len(testees)) as advance:
        outcomes = run_session(
            Builder(options["build"], strict=options["strict"], rebuild=options["rebuild"]),
            testees,
            cases,
            all_cases=every,
            options=Options(**{name: options[name] for name in names}),
            reports=Reports(
                jsonl=options["jsonl"],
                resumes=options["resume"],
                junit=options["junit"],
                html=options["html"],
                withholds=not options["undisclosed"],
            ),
            on_result=_printed if options["as_json"] else _counted(advance),
        )
    if not options["as_json"]:
        _print(outcomes, cases)
    if options["update_known"]:
        for path in rewrite_known(outcomes, cases, options["known"]):
            diagnose(f"wrote {path}")
    return 0 if all(outcome.is_fine for outcome in outcomes) else FINDINGS


def _printed(_outcome: Outcome, result: Result) -> None:
    from seglog_conformance.report_jsonl import result_line

    write_json(result_line(result))


def _counted(advance: Callable[[int], None]) -> Callable[[object, object], None]:
    """Turn results into how many there are."""
    done = 0

    def add(_outcome: object, _result: object) -> None:
        nonlocal done
        done += 1
        advance(done)

    return add


def _print(outcomes: Sequence[Outcome], cases: Sequence[Case]) -> None:
    from rich.console import Console
    from seglog_conformance.report_table import failures, summary, table

    console = Console(highlight=False)
    console.print(table(outcomes, cases))
    for outcome in outcomes:
        write_text(printable(summary(outcome)))
        for line in failures(outcome):
            write_text(printable(line))


@command.command()
@testee_options
@click.option("--cases", "places", multiple=True, type=PATH, help="Files of cases instead of the suite's.")
def smoke(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Ask a dozen valid cases, every line held against its schema, and tell a broken adapter from a wrong library."""
    from seglog_conformance.judging import Examiner
    from seglog_conformance.registry import Builder
    from seglog_conformance.report_table import result_lines
    from seglog_conformance.smoke import smoke as smoke_test
    from seglog_conformance.testee import StartError

    _, every = chosen((), (), options["places"])
    status = 0
    for listed in wanted(options["testees"], options["directories"], options["version"]):
        testee = Builder(options["build"], strict=True, rebuild=options["rebuild"]).testee(listed)
        examiner = Examiner(testee, extra_growth=listed.adapter.extra_memory if listed.adapter else 0)
        try:
            hello = examiner.start()
            found = smoke_test(examiner, every)
        except StartError as error:
            write_text(printable(f"{listed.label}: the adapter does not come up: {error}"))
            status = FINDINGS
            continue
        finally:
            examiner.close()
        said = hello.implementation
        write_text(printable(f"{listed.label}: {said.name} {said.version} ({said.language}); {', '.join(hello.ops)}"))
        for result in found.results:
            for line in result_lines(result):
                write_text(printable(line))
        write_text("the adapter is broken" if found.is_broken else "the adapter works")
        if found.hint:
            write_text(printable(f"hint: {found.hint}"))
        status = FINDINGS if found.is_broken else status
    return status


@command.command("list")
@case_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_cases(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's values
    """List cases: id, level, result, and why each exists."""
    cases, _ = chosen(options["patterns"], options["families"], options["places"])
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


@command.command()
@click.argument("case_id", metavar="CASE")
@testee_options
@click.option("--cases", "places", multiple=True, type=PATH, help="Files of cases instead of the suite's.")
def repro(case_id: str, **options: Any) -> None:  # noqa: ANN401 - click's values
    """Print the lines that ask one case, to be piped into an adapter; what to expect goes to standard error."""
    from seglog_conformance.protocol import PROTOCOL_VERSION, request_line
    from seglog_conformance.registry import Builder

    cases, _ = chosen((case_id,), (), options["places"])
    for request in (
        {"seq": 0, "op": "hello", "protocol": PROTOCOL_VERSION},
        *(case.request_with(number) for number, case in enumerate(cases, 1)),
    ):
        sys.stdout.write(request_line(request).decode())
    for case in cases:
        diagnose(f"{case.id}: {case.level} {case.result}, {', '.join(case.requirements)}: {case.why}")
    if options["testees"] or options["directories"]:
        for listed in wanted(options["testees"], options["directories"], options["version"]):
            if listed.adapter is not None:
                arguments = Builder(options["build"]).command(listed.adapter, listed.version).arguments
                diagnose(f"{listed.label}: pipe into {shlex.join(arguments)}")


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How much is made up."""
    options = (
        click.option("--examples", type=click.IntRange(min=1), default=200, show_default=True, help="In each round."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the first round."),
        click.option("--most", type=click.IntRange(min=1), default=5, show_default=True, help="Findings to look for."),
        click.option("--mutate", is_flag=True, help="Change the bytes: a field, a byte of the records, the end."),
        click.option("-o", "--output", type=PATH, help="Write what is found to this file of cases."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command()
@testee_options
@search_options
def generate(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Make up logs, ask testees for them, and shrink what goes wrong to the smallest bytes that show it.

    What was made up is what has to come out. With --mutate the bytes are changed in named ways, and the reference says
    what has to come out. Each kind of finding is told once. The exit status is 1 when there are findings.
    """
    from seglog_conformance.generated import Search, wrong_verdict

    found = []
    with _examiners(options) as examiners:
        for examiner in examiners:
            search = Search(
                wrong_verdict(examiner.examine),
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                is_mutated=options["mutate"],
                name=examiner.testee.name,
            )
            new = search.run()
            write_text(f"{examiner.testee.name}: {search.tried} logs, {len(new)} findings")
            found += _tell_found(new)
    return _write_found(found, options["output"])


@command.command()
@testee_options
@case_options
@search_options
@click.option("--generated", is_flag=True, help="Make cases up instead of asking those of the suite.")
def differential(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Send the same bytes to several testees and tell the groups that disagree, with no expectation at all.

    What is compared is what all of them tell: records with offset, timestamp, key and value, and headers as far as
    they go. Testees that lack what a case needs are left out of it. The exit status is 1 when some disagree.
    """
    from seglog_conformance.differential import Panel, disagreements
    from seglog_conformance.generated import Search

    with _examiners(options) as examiners:
        if len(examiners) < 2:  # noqa: PLR2004 - it takes two to disagree
            msg = "it takes two testees to disagree"
            raise UsageError(msg)
        panel = Panel(examiners)
        if options["generated"] or options["mutate"]:
            search = Search(
                panel.wrong(),
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                is_mutated=options["mutate"],
                name="differential",
            )
            return _write_found(_tell_found(search.run()), options["output"])
        cases, _ = chosen(options["patterns"], options["families"], options["places"])
        found = disagreements(panel, cases)
    for case, told, details in found:
        write_text(printable(f"{case.id}: {told}"))
        for detail in details:
            write_text(printable(f"      {detail}"))
    write_text(f"{len(cases)} cases, {len(found)} disagreements")
    return FINDINGS if found else 0


@contextmanager
def _examiners(options: dict[str, Any]) -> Iterator[list[Examiner]]:
    """The testees that options name, up; those that do not come up are named and left out."""
    from seglog_conformance.judging import Examiner
    from seglog_conformance.registry import AdapterError, Builder
    from seglog_conformance.testee import StartError

    builder = Builder(options["build"], strict=options["strict"], rebuild=options["rebuild"])
    with ExitStack() as stack:
        examiners = []
        for listed in wanted(options["testees"], options["directories"], options["version"]):
            try:
                testee = builder.testee(listed)
                extra = listed.adapter.extra_memory if listed.adapter else 0
                examiner = Examiner(testee, extra_growth=extra)
                stack.callback(examiner.close)
                examiner.start()
            except (AdapterError, StartError) as error:
                diagnose(f"{listed.label}: {error}")
                continue
            examiners.append(examiner)
        yield examiners


def _tell_found(found: list[Found]) -> list[Found]:
    for one in found:
        write_text(printable(f"  {one.told} ({one.kind}): {one.case.id}, {one.case.input_size} bytes"))
        for detail in one.detail[:3]:
            write_text(printable(f"      {detail}"))
        write_text(f"      {one.case.stored_request['data']}")
    return found


def _write_found(found: list[Found], output: Path | None) -> int:
    from seglog_conformance.generated import case_file

    if output is not None:
        output.write_text(case_file([one.case for one in found]), encoding="utf-8")
    return FINDINGS if found else 0
