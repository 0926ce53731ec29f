"""``seglog conform generate``, ``differential`` and ``cross``: tests beyond fixed cases."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.conform_options import builder_of, case_options, chosen, testee_options, wanted
from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import diagnose, printable, write_json, write_text
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_conformance.judging import Examiner
    from seglog_conformance.search import Found


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how much to generate."""
    options = (
        click.option(
            "--examples", type=click.IntRange(min=1), default=200, show_default=True, help="Examples in each round."
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of the first round."),
        click.option(
            "--most", type=click.IntRange(min=1), default=5, show_default=True, help="Findings after which to stop."
        ),
        click.option("--mutate", is_flag=True, help="Change the bytes: a field, a byte of the records, the end."),
        click.option("-o", "--output", type=PATH, help="Write the findings to this file, as cases."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(epilog=epilog_of("conform generate"))
@testee_options
@search_options
def generate(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Generate partitions, ask testees about them, and shrink each input with a wrong answer to the smallest one.

    Partitions have every magic, and indexes as brokers of different versions write them. The operations are decode,
    encode, index, lookup, read and recover, as far as a testee supports them. With --mutate, the bytes of logs are
    changed in named ways before they are decoded. Each kind of finding is reported once. The exit status is 1 when
    there are findings.
    """
    from seglog_conformance.generated import asked_of_log, logs
    from seglog_conformance.partitions import asked_of_partition, partitions
    from seglog_conformance.search import Search, wrong_verdict

    found = []
    with _examiners(options) as examiners:
        for examiner in examiners:
            search = Search(
                wrong_verdict(examiner.examine),
                logs(is_mutated=True) if options["mutate"] else partitions(),
                asked_of_log if options["mutate"] else asked_of_partition,
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                name=examiner.testee.name,
            )
            new = search.run()
            write_text(f"{examiner.testee.name}: {search.tried} cases, {len(new)} findings")
            found += _print_found(new)
    return _write_found(found, options["output"])


@click.command(epilog=epilog_of("conform differential"))
@testee_options
@case_options
@search_options
@click.option("--generated", is_flag=True, help="Generate cases instead of asking those of the suite.")
def differential(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Send the same bytes to several testees and report the groups that disagree, without any expected answer.

    The comparison covers what all of them return: records with offset, timestamp, key and value, and headers as far as
    possible. Testees that lack what a case needs are left out of it. The exit status is 1 when some disagree.
    """
    from seglog_conformance.differential import Panel, disagreements
    from seglog_conformance.generated import asked_of_log, logs
    from seglog_conformance.search import Search

    with _examiners(options) as examiners:
        if len(examiners) < 2:  # noqa: PLR2004 - it takes two to disagree
            msg = "a comparison needs at least two testees"
            raise UsageError(msg)
        panel = Panel(examiners)
        if options["generated"] or options["mutate"]:
            search = Search(
                panel.wrong(),
                logs(is_mutated=options["mutate"]),
                asked_of_log,
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                name="differential",
            )
            return _write_found(_print_found(search.run()), options["output"])
        cases, _ = chosen(options["patterns"], options["families"], options["case_paths"])
        found = disagreements(panel, cases)
    for case, difference, details in found:
        write_text(printable(f"{case.id}: {difference}"))
        for detail in details:
            write_text(printable(f"      {detail}"))
    write_text(f"{len(cases)} cases, {len(found)} disagreements")
    return FINDINGS if found else 0


@click.command(epilog=epilog_of("conform cross"))
@testee_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def cross(*, as_json: bool, **options: Any) -> int:  # noqa: ANN401 - click's values
    """Let each testee that encodes write the batches of the suite, and each that decodes read them.

    A row is a producer, a column a consumer. Each cell counts the logs that the consumer reads correctly, of those that
    the producer wrote and the consumer supports. The exit status is 1 when a log is read wrongly.
    """
    from seglog_conformance.cases import load_cases
    from seglog_conformance.cross import cross as pairs_of
    from seglog_conformance.report_table import console, cross_lines, cross_table

    with _examiners(options) as examiners:
        pairs = list(pairs_of(examiners, load_cases()))
    if as_json:
        for pair in pairs:
            counts = {str(verdict): count for verdict, count in pair.counts.items()}
            names = {"producer": pair.producer, "consumer": pair.consumer}
            write_json({"type": "pair", **names, "verdicts": counts, "failures": [one.case for one in pair.failures]})
    else:
        console(len({pair.consumer for pair in pairs})).print(cross_table(pairs))
        for line in cross_lines(pairs):
            write_text(printable(line))
    return FINDINGS if any(pair.failures for pair in pairs) else 0


@contextmanager
def _examiners(options: dict[str, Any]) -> Iterator[list[Examiner]]:
    """Start the selected testees; those that do not start are named and left out."""
    from seglog_conformance.judging import Examiner
    from seglog_conformance.registry import AdapterError
    from seglog_conformance.testee import StartError

    builder = builder_of(options)
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


def _print_found(found: list[Found]) -> list[Found]:
    for one in found:
        write_text(printable(f"  {one.reported} ({one.kind}): {one.case.id}, {one.case.input_size} bytes"))
        for detail in one.detail[:3]:
            write_text(printable(f"      {detail}"))
        if "data" in one.case.stored_request:
            write_text(f"      {one.case.stored_request['data']}")
    return found


def _write_found(found: list[Found], output: Path | None) -> int:
    from seglog_conformance.generated import case_file

    from seglog_format.storage.new_directory import write_report

    if output is not None:
        write_report(output, case_file([one.case for one in found]))
    return FINDINGS if found else 0
