"""Entry and exit of the command line: the group, and the handling of every error."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Final, NoReturn

import click

from seglog_format.cli.exit_status import DONE, INTERRUPTED, NOT_WRITTEN, PIPE_CLOSED, SUMMARY, USAGE
from seglog_format.cli.failures import FAILURES, missing_extra, status_of, text_of
from seglog_format.cli.lazy import LazyGroup, PipeClosedError, chosen_colour
from seglog_format.cli.style import CHOICES
from seglog_format.cli.version import VERSION

EPILOG: Final = (
    "A PATH is a file, a partition directory or a log directory. Data goes to standard output, everything else to"
    f" standard error. Exit status: {SUMMARY}."
)


@click.group(
    cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}
)
@click.option(
    "--color",
    type=click.Choice(CHOICES),
    expose_value=False,
    is_eager=True,
    callback=chosen_colour,
    help="When to colour text; every command takes this option. Default: on a terminal, unless NO_COLOR is set.",
)
@click.version_option(VERSION, prog_name="seglog", message="%(prog)s %(version)s", help="Print the version.")
def seglog() -> None:
    """Read, check and explain the log segments of Apache Kafka, without a broker.

    \b
    Start with:
      seglog ls /var/lib/kafka/data
      seglog verify /var/lib/kafka/data/my-topic-0
      seglog inspect 00000000000000000000.log
    """  # noqa: D301 - click's mark for text that keeps its lines


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        args: arguments instead of those of the process.
    """
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status, one of `STATUSES`.
    """
    _prepare_streams()
    try:
        status = _outcome(args)
        sys.stdout.flush()
    except (BrokenPipeError, PipeClosedError):
        _silence_standard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _interrupted()
    except OSError as error:  # standard output takes nothing more
        _silence_standard_output()
        return _complain(text_of(error), NOT_WRITTEN)
    return status


def _prepare_streams() -> None:
    """Replace closed standard streams by a sink, and escape characters that an encoding lacks."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the process ends
    if sys.stderr is None:
        sys.stderr = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _outcome(args: list[str] | None) -> int:
    try:
        status: object = seglog.main(args, prog_name="seglog", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _interrupted()
    except BrokenPipeError:
        raise
    except FAILURES as error:
        _drain_standard_output()
        return _complain(text_of(error), status_of(error))
    except ModuleNotFoundError as error:
        if not (text := missing_extra(error)):
            raise
        return _complain(text, USAGE)
    return status if isinstance(status, int) else DONE


def _interrupted() -> int:
    """Report how far the command came, on a line of its own.

    Returns:
        The exit status.
    """
    from seglog_format.cli.progress import interrupted_text

    _drain_standard_output()
    return _complain(interrupted_text(), INTERRUPTED)


def _complain(message: str, status: int) -> int:
    from seglog_format.cli.render import printable

    click.echo(f"seglog: {printable(message)}", err=True)
    return status


def _drain_standard_output() -> None:
    """Flush standard output; if that fails, an earlier failure is still the one to report."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_standard_output()


def _silence_standard_output() -> None:
    """Drop buffered output after the reader has ended, so the interpreter's exit does not raise."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
