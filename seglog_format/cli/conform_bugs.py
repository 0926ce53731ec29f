"""``seglog conform bugs``: fixed defects, an older release beside a newer one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.conform_options import BUILD_HELP
from seglog_format.cli.examples import epilog_of
from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import PATH
from seglog_format.cli.output import write_json, write_text
from seglog_format.cli.render import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_conformance.bugs import Bug, Shown


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

    from seglog_format.storage.reports import write_report

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
        _print(shown)
    return 0 if all(one.holds or one.is_unavailable for one in shown) else FINDINGS


def _claims(names: Sequence[str]) -> list[Bug]:
    from seglog_conformance.bugs import read_bugs
    from seglog_conformance.registry import adapters, listed

    chosen = [one for name in names if (one := listed(name).adapter) is not None] if names else adapters()
    return [bug for adapter in chosen for bug in read_bugs(adapter)]


def _print(shown: Sequence[Shown]) -> None:
    from seglog_conformance.report_table import bug_lines, bug_table, console

    console(4).print(bug_table(shown))
    for line in bug_lines(shown):
        write_text(printable(line))
