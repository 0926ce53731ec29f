"""A command group that imports a command when it is called, so help and version are fast."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli import style
from seglog_format.cli.exit_status import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.errors import FormatError

COMMANDS: Final[Mapping[str, str]] = {
    "ls": "List segments or partitions, one line each.",
    "dump": "Print the content of files: batches, records, index entries.",
    "inspect": "Show each field in a row, with its bytes and its rule.",
    "explorer": "Show fields and bytes in the browser, with files of yours.",
    "verify": "Check files against the numbered requirements.",
    "lookup": "Find an offset or a timestamp, and explain how.",
    "cluster": "Show what a cluster was: topics, settings, groups, lag.",
    "resurrect": "Make a node that Kafka starts from, from a lost cluster's disks.",
    "recover": "Show what recovery cuts and rebuilds, or do it.",
    "retain": "Show which segments retention deletes, or delete them.",
    "salvage": "Copy intact batches of a damaged directory into a new one.",
    "index": "Compare indexes with their logs, or rebuild them.",
    "diff": "Compare the records of two files or directories.",
    "tier": "List, fetch or check remote stores of tiered segments.",
    "serve": "Let Kafka clients read log directories.",
    "spark": "Run verify, convert, compare and restore as Spark jobs.",
    "export": "Add new records to a table: Parquet, Arrow, CSV, JSON lines.",
    "generate": "Generate a log directory from a recipe and a seed.",
    "anonymise": "Copy a directory with other content, fit to share.",
    "convert": "Make files from the JSON lines that dump prints.",
    "conform": "Test implementations against the conformance suite.",
    "fixtures": "Export the test vectors of the conformance suite.",
    "completion": "Print a script that completes commands and options in a shell.",
    "warm": "Compile the columnar engine in advance.",
    "explain": "Print a requirement.",
    "schema": "Print the layout of every structure.",
}
"""Commands in the order of the help page, with one line of help for each."""


def chosen_colour(_context: click.Context, _parameter: click.Parameter, when: str | None) -> None:
    """Take the value of ``--color``."""
    if when is not None:
        style.choose(when)


def _colour_option() -> click.Option:
    """Return the option that every command takes; the page of the group describes it."""
    choice = click.Choice(style.CHOICES)
    return click.Option(
        ["--color"], type=choice, expose_value=False, is_eager=True, callback=chosen_colour, hidden=True
    )


class PipeClosedError(Exception):
    """The reader of standard output has ended."""


def _report_skipped(refused: Iterable[FormatError]) -> None:
    from seglog_format.cli.output import REPORTED, diagnose

    for text in dict.fromkeys(str(error) for error in refused if "SEG-PDR-026" in error.requirements):
        if not any(text in line for line in REPORTED):
            diagnose(text)


class LazyGroup(click.Group):
    """A group that knows its commands by name, and imports one only to run it or to show its help."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; leave a closed pipe to `main`, since click would exit with 1.

        Returns:
            The command's exit status, or `UNREADABLE` if that is greater and something on the way could not be read.
            Skipped logs and partitions are reported here, unless the command has reported them.
        """
        from seglog_format.cli.output import REPORTED
        from seglog_format.storage.file_reader import noted_refusals

        REPORTED.clear()
        try:
            with noted_refusals() as refused:
                status: object = super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosedError from error
        if not refused:
            return status
        _report_skipped(refused)
        return max(status if isinstance(status, int) else 0, UNREADABLE)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return the command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"seglog_format.cli.{cmd_name}").command
        if not any(parameter.name == "color" for parameter in command.params):
            command.params.append(_colour_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names.

        Raises:
            click.UsageError: there is none; the text names commands of similar spelling, as click does for groups
                whose commands it knows.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if names := get_close_matches(args[0], COMMANDS):
                msg = f"{error.message} Did you mean {' or '.join(map(repr, names))}?"
                raise click.UsageError(msg, ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the list on the help page without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
