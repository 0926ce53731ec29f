"""``seglog spark``: jobs on Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import epilog_of, json_option
from seglog_format.cli.output import write_line, write_text
from seglog_format.errors import UsageError, WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

EPILOG: Final = """\b
Examples:
  seglog spark stats /backup/broker-1 /backup/broker-2
  seglog spark verify --json /backup | jq -r .requirement | sort | uniq -c
  seglog spark to-parquet /backup -o records.parquet --option subscribe=orders
  seglog spark restore /backup -o restored --option subscribe=orders"""

ERRORS: Final = {"UsageError": UsageError, "DataLossError": UsageError, "WriteError": WriteError}
"""Exit status by the name of an error that Spark passes on; any other error means that something cannot be read."""

OURS: Final = re.compile(r"(\w+Error): seglog: (.*)")

paths_argument: Final = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
output_option: Final = click.option("-o", "--output", required=True, metavar="DIR", help="Write here: a new directory.")


class JobGroup(click.Group):
    """Reports a failed job in one line, because Spark's own message fills a screen."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a job."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.", "seglog_format.spark.jobs")):
                raise
            kind, reason = _reason(str(error))
            raise ERRORS.get(kind, OSError)(reason) from error


def _reason(text: str) -> tuple[str, str]:
    """Return the error of this package that Spark passes on, and its text; else the first line of Spark's message."""
    found = OURS.findall(text)
    return found[-1] if found else ("", text.strip().partition("\n")[0])


def spark_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--master`` and ``--option``, which every job has."""
    master = click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
    option = click.option(
        "--option",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the data source; may be repeated.",
    )
    return master(option(function))


@click.group(cls=JobGroup, epilog=EPILOG)
def command() -> None:
    """Run verify, convert, compare and restore on log directories as Spark jobs.

    A PATH is a log directory, a partition directory, or a tree that holds them, such as those of several brokers.
    Spark runs on this machine unless --master names another; if there is no Java, the bundled one is used.
    """


@command.command(epilog=epilog_of("spark verify"))
@paths_argument
@json_option
@spark_options
def verify(paths: tuple[str, ...], *, as_json: bool, master: str, options: tuple[str, ...]) -> int:
    """Check every partition below PATH against the requirements, a task each.

    The exit status is 1 when there are errors.
    """
    from seglog_format.spark import jobs

    spark, given = _session(master), _given(options)
    errors = 0
    for row in jobs.verify(spark, paths, **given).toLocalIterator():
        errors += row["severity"] == "error"
        _write(row, as_json=as_json, text="{file}:{position}: {severity}: {message} [{requirement}]")
    return FINDINGS if errors else 0


@command.command(epilog=epilog_of("spark stats"))
@paths_argument
@json_option
@spark_options
def stats(paths: tuple[str, ...], *, as_json: bool, master: str, options: tuple[str, ...]) -> None:
    """Print sizes, counts, codecs and times of each partition; no record is decoded."""
    from seglog_format.spark import jobs

    _show(jobs.stats(_session(master), paths, **_given(options)), as_json=as_json)


@command.command(epilog=epilog_of("spark diff"))
@click.argument("left")
@click.argument("right")
@json_option
@spark_options
def diff(left: str, right: str, *, as_json: bool, master: str, options: tuple[str, ...]) -> int:
    """Compare the records below LEFT with those below RIGHT.

    The exit status is 1 when anything differs.
    """
    from seglog_format.spark import jobs

    rows = jobs.diff(_session(master), [left], [right], **_given(options)).toLocalIterator()
    differences = 0
    for differences, row in enumerate(rows, 1):  # noqa: B007 - how many there were
        _write(row, as_json=as_json, text="{topic}-{partition}: offset {offset}: {difference}")
    return FINDINGS if differences else 0


@command.command("to-parquet", epilog=epilog_of("spark to-parquet"))
@paths_argument
@output_option
@json_option
@spark_options
def to_parquet(paths: tuple[str, ...], *, output: str, as_json: bool, master: str, options: tuple[str, ...]) -> None:
    """Write all records as Parquet, by topic and date, and prove that nothing is missing."""
    from seglog_format.spark import jobs

    _report(jobs.to_parquet(_session(master), paths, output, **_given(options)), output, as_json=as_json)


@command.command(epilog=epilog_of("spark restore"))
@paths_argument
@output_option
@json_option
@spark_options
def restore(paths: tuple[str, ...], *, output: str, as_json: bool, master: str, options: tuple[str, ...]) -> None:
    """Write records into a new log directory with their own offsets, up to the end that the options give."""
    from seglog_format.spark import jobs

    _report(jobs.restore(_session(master), paths, output, **_given(options)), output, as_json=as_json)


def _session(master: str) -> SparkSession:
    from seglog_format.spark import session

    return session("seglog", master=master, settings={"spark.log.level": "ERROR"})


def _given(options: Iterable[str]) -> dict[str, str]:
    given = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals:
            msg = f"--option is NAME=VALUE, not {text!r}"
            raise UsageError(msg)
        given[name] = value
    return given


def _show(frame: DataFrame, *, as_json: bool) -> None:
    if not as_json:
        write_text("\t".join(frame.columns))
    for row in frame.toLocalIterator():
        _write(row, as_json=as_json, text="\t".join(f"{{{name}}}" for name in frame.columns))


def _write(row: Row, *, as_json: bool, text: str) -> None:
    values: Mapping[str, Any] = row.asDict()
    from seglog_format.cli.output import printable

    write_line({name: _plain(value) for name, value in values.items()} if as_json else printable(text.format(**values)))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else str(value)


def _report(content: Any, output: str, *, as_json: bool) -> None:  # noqa: ANN401 - `jobs.Content`
    write_line(
        {"output": output, "records": content.records, "checksum": content.checksum}
        if as_json
        else f"{output}: {content.records:,} records, checksum {content.checksum}, read back and compared"
    )
