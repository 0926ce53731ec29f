"""A group whose commands are imported when they are called: help and version stay quick."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.exit_status import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final[Mapping[str, str]] = {
    "ls": "List segments or partitions, one line each.",
    "dump": "Print what stands in the files: batches, records, index entries.",
    "inspect": "Show fields beside their bytes.",
    "verify": "Check files against the numbered requirements.",
    "lookup": "Find an offset or a timestamp, and say how.",
    "recover": "Tell what recovery cuts and rebuilds, or do it.",
    "retain": "Tell which segments are too old or too many, or remove them.",
    "salvage": "Copy intact batches of a damaged directory into a new one.",
    "index": "Compare indexes with their logs, or build them anew.",
    "diff": "Compare the records of two files or directories.",
    "serve": "Let Kafka clients read log directories.",
    "spark": "Verify, convert, compare and restore with Spark, however much it is.",
    "generate": "Make a log directory from a recipe and a seed.",
    "convert": "Make files from the JSON lines that dump prints.",
    "conform": "Judge implementations against the conformance suite.",
    "fixtures": "Hand out the test vectors of the conformance suite.",
    "warm": "Compile the columnar engine ahead.",
    "explain": "Print a requirement.",
    "schema": "Print the layout of every structure.",
}
"""Commands in the order of the help page, with its one line on each."""


class PipeClosedError(Exception):
    """Nobody reads standard output any more."""


class LazyGroup(click.Group):
    """Knows its commands by name and imports the module of one only to run it or to show its help."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what click would make of a closed pipe (exit status 1) is left to `main`.

        Returns:
            What the command returns, or `UNREADABLE` where that is less and the disk refused anything on the way.
        """
        from seglog_format.storage.file_reader import noted_refusals

        try:
            with noted_refusals() as refused:
                status: object = super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosedError from error
        return max(status if isinstance(status, int) else 0, UNREADABLE) if refused else status

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name, imported now; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"seglog_format.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """The list on the help page, written without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
