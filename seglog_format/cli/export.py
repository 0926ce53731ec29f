"""``seglog export``: adding the records of logs to a table, each exactly once."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, PassingOver
from seglog_format.cli.options import (
    PATH,
    PATH_OR_ARCHIVE,
    json_option,
    offset_of,
    remote_options,
    size_of,
    stats_option,
    times_option,
    write_scan_statistics,
)
from seglog_format.cli.output import diagnose, gap_line, progress, write_json, write_line
from seglog_format.errors import UndecodedRecordError, UsageError
from seglog_format.tables.formats import BYTES_AS, COLUMNS, DEFAULT_PARTITIONING, FORMATS, Choice
from seglog_format.values.schemas import HEADERS_AS, KINDS, TIMES_AS

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.log.gaps import Gap
    from seglog_format.tables.export import ExportRequest, TableExport
    from seglog_format.tables.progress import Change, ExportedPartition, OpenTransaction

ALLOW: Final = "allow"
UNDECODED_AS: Final = ("report", ALLOW)

NEXT_STEPS: Final = {
    "no header of Schema Registry": "--plain decodes values without one",
    "as which the table holds bytes": "--bytes hex keeps all bytes",
}
"""What to try where the reason why a record was not decoded says one of these."""

EPILOG: Final = """\b
Examples:
  seglog export /var/lib/kafka/data --topic orders --to orders
  seglog export my-topic-0 my-topic-1 --to my-table --partition-by topic,day
  duckdb -c "select count(*) from 'orders/**/*.parquet'" """


def levels_of(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Parse the levels of a partitioning: ``topic,partition,day``; ``none`` for no directories."""
    return () if value == "none" else tuple(value.split(","))


def names_of(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Parse names with commas between."""
    return None if value is None else tuple(name.strip() for name in value.split(","))


def text_of_file(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> str | None:
    """Read a small file of text."""
    try:
        return None if value is None else value.read_text("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{value} is not UTF-8"
        raise click.BadParameter(msg) from error


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_ARCHIVE)
@click.option(
    "--to", required=True, metavar="DIR", help="The table: a directory, made if it is missing, or s3://bucket/table."
)
@click.option("--topic", "topics", multiple=True, help="Export only this topic; may be repeated.")
@click.option(
    "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this one; may be repeated."
)
@click.option(
    "--columns",
    metavar="NAMES",
    callback=names_of,
    help=f"Columns besides topic, partition and offset, with commas between: {', '.join(COLUMNS[1:])}; by default all.",
)
@click.option(
    "--headers",
    type=click.Choice(HEADERS_AS),
    default=HEADERS_AS[0],
    show_default=True,
    help="Whether headers are a list of pairs, or a map, which has each key once.",
)
@click.option(
    "--only-key", "only_keys", metavar="TEXT", multiple=True, help="Only records with this key; may be repeated."
)
@times_option
@click.option("--from-offset", type=offset_of, metavar="OFFSET", help="First offset to read of each partition.")
@click.option("--to-offset", type=offset_of, metavar="OFFSET", help="Stop before this offset.")
@click.option("--format", type=click.Choice(FORMATS), default="parquet", show_default=True)
@click.option(
    "--partition-by",
    metavar="LEVELS",
    callback=levels_of,
    default=",".join(DEFAULT_PARTITIONING),
    show_default=True,
    help="Levels of directories: topic, partition, and day of the record's time in UTC; or none.",
)
@click.option(
    "--file-size",
    metavar="SIZE",
    callback=size_of,
    default="128m",
    show_default=True,
    help="Start a new file after this many bytes.",
)
@click.option(
    "--committed",
    is_flag=True,
    help="Leave out records of aborted transactions, and end before the first transaction that is still open.",
)
@click.option(
    "--follow",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Look for new records at this interval, until Ctrl-C.",
)
@click.option(
    "--bytes",
    "bytes_as",
    type=click.Choice(BYTES_AS),
    default="utf8",
    show_default=True,
    help="How csv and jsonl hold keys, values and headers.",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help="Catalog of the Iceberg table in pyiceberg's configuration; --to is then the table's name in it.",
)
@click.option(
    "--value",
    type=click.Choice(KINDS),
    default="bytes",
    show_default=True,
    help="How values are decoded; avro, json-schema and protobuf as Schema Registry's serializers write them;"
    " kafka for Kafka's own topics.",
)
@click.option(
    "--record-key",
    "key",
    type=click.Choice(KINDS),
    default="bytes",
    show_default=True,
    help="The same for keys.",
)
@click.option(
    "--schemas",
    "schemas_path",
    metavar="DIR",
    type=PATH,
    help="Partition of the registry's topic; by default _schemas-0 in the same log directory.",
)
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=text_of_file,
    help="The reader's schema of values; by default the newest of the topic's subject.",
)
@click.option(
    "--message", metavar="NAME", help="Protobuf message of values; by default that of the first value that names one."
)
@click.option("--plain", "is_plain", is_flag=True, help="Values do not begin with a schema id: decode all by --schema.")
@click.option(
    "--times",
    type=click.Choice(TIMES_AS),
    default=TIMES_AS[0],
    show_default=True,
    help="Whether times of Protobuf and JSON Schema become times, or stay numbers and text as they were written.",
)
@stats_option("Report how many entries compiled code left to slower code, by cause.")
@click.option("--strict", "is_strict", is_flag=True, help="End at a record that cannot be decoded.")
@click.option(
    "--undecoded",
    type=click.Choice(UNDECODED_AS),
    default=UNDECODED_AS[0],
    show_default=True,
    help="Whether records that cannot be decoded give the exit status 1; either way they are in a table of their own.",
)
@remote_options
@json_option
def command(  # noqa: PLR0913 - an option each
    paths: tuple[Path, ...],
    *,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    columns: tuple[str, ...] | None,
    headers: str,
    only_keys: tuple[str, ...],
    since_ms: int | None,
    until_ms: int | None,
    from_offset: int | None,
    to_offset: int | None,
    committed: bool,
    follow: int | None,
    schemas_path: Path | None,
    undecoded: str,
    stats: bool,
    remote: RemoteChoice | None,
    as_json: bool,
    **wanted: Any,  # noqa: ANN401 - the other fields of `ExportRequest`, by their names
) -> int:
    """Add the records of log or partition directories to a table, as far as it does not have them yet.

    The table is a directory of files with columns for offset, time, key, value, headers, leader epoch and position of
    each record. Files appear when they are complete. The table itself records how far it reaches: after any end, even a
    power failure, the same command resumes from there, and no row is missing or written twice. While a broker uses the
    log, the export ends at the high watermark.

    The exit status is 1 if a log was truncated since the last run (its partition is then not exported), if records were
    deleted before they were exported, if offsets are missing between segments or at the end of a log, if records could
    not be decoded, or if --committed waits for an open transaction, whose producer is named. Compaction is reported and
    does not change the status. It is 3 if a log is damaged: the table then has the rows before it, and 'seglog
    salvage' copies the records after it.
    """
    from seglog_format.log.reading import READ_COMMITTED, READ_UNCOMMITTED
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.tables.export import ExportRequest
    from seglog_format.tables.schema_topic import read_schemas

    _refuse_contradictions(wanted)
    if wanted["is_strict"] and undecoded == ALLOW:
        msg = "--strict ends at a record that cannot be decoded, and --undecoded allow passes over it: give one of them"
        raise UsageError(msg)
    statistics = ScanStatistics()
    keys = tuple(each.encode(errors="surrogateescape") for each in only_keys)
    request = ExportRequest(
        paths,
        topics=topics or None,
        partitions=partitions or None,
        choice=Choice(columns, headers, keys or None, since_ms, until_ms, from_offset, to_offset),
        isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
        is_followed=bool(follow),
        remote=None if remote is None else remote.open(),
        statistics=statistics,
        **wanted,
    )

    waits: dict[str, str] = {}
    status = DONE
    while True:
        schemas = None if schemas_path is None else read_schemas(schemas_path)
        read, done, gaps = _run_once(replace(request, schemas=schemas), waits, as_json=as_json)
        is_complete = all(each.is_complete(allows_undecoded=undecoded == ALLOW) for each in done)
        is_complete &= not any(gap.is_loss for gap in gaps)
        status = max(status, read, DONE if is_complete else FINDINGS)
        if not follow or read != DONE or any(change.is_loss for each in done for change in each.changes):
            break
        time.sleep(follow)
    if stats:
        write_scan_statistics(statistics, as_json=as_json)
    return status


def _refuse_contradictions(wanted: dict[str, Any]) -> None:
    ending = wanted["to"].rpartition(".")[2]
    if ending in FORMATS and ending != wanted["format"]:
        msg = f"{wanted['to']}: a table with this name would hold {wanted['format']}; add --format {ending}"
        raise UsageError(msg)
    if wanted["is_plain"] and wanted["schema"] is None:
        msg = "--plain needs --schema: nothing else says how values were written"
        raise UsageError(msg)


def _run_once(
    request: ExportRequest, waits: dict[str, str], *, as_json: bool
) -> tuple[int, list[ExportedPartition], list[Gap]]:
    """Export all partitions once.

    Args:
        request: parameters of the export.
        waits: the open transactions that were reported before, by partition; receives those of this run.
        as_json: as of the command.

    Returns:
        The exit status for reading, the outcomes, and the offsets that are missing.
    """
    from seglog_format.tables.export import requested_export

    done: list[ExportedPartition] = []
    gaps: list[Gap] = []
    try:
        with requested_export(request) as run:
            status = _run_all(run, done, gaps, as_json=as_json)
    finally:
        for each in done:
            _report_wait(each, waits)
            if each.row_count or not request.is_followed:
                write_line(as_object(each) if as_json else _text(each))
        sys.stdout.flush()
    return status, done, gaps


def _report_wait(exported: ExportedPartition, waits: dict[str, str]) -> None:
    """Report the open transaction at which a partition's export ended, unless the last run reported the same."""
    name = f"{exported.topic}-{exported.partition}"
    text = "" if exported.waits_for is None else f"{name}: {exported.waits_for}"
    if text and waits.get(name) != text:
        diagnose(text)
    waits[name] = text


def _run_all(run: TableExport, done: list[ExportedPartition], gaps: list[Gap], *, as_json: bool) -> int:
    """Export all partitions; damage in one does not stop the others."""
    from seglog_format.log.path_kind import size_of_logs

    passing = PassingOver("partitions")
    sizes = [size_of_logs(source.path) for source in run.sources]
    with progress("Exporting", sum(sizes)) as advance:
        for number, source in enumerate(run.sources):
            with passing.errors_of(source.path):
                part_done = partial(_advance, advance, sum(sizes[:number]), sizes[number])
                exported = run.run(source, part_done, on_gap=partial(_report_gap, source.path, gaps, as_json=as_json))
                done.append(exported)
                for change in exported.changes:
                    if not change.kind.is_reported_by_reader:
                        diagnose(str(change))
                if exported.stopped_by is not None:
                    raise exported.stopped_by
            advance(sum(sizes[: number + 1]))
    return passing.status()


def _report_gap(directory: Path, gaps: list[Gap], gap: Gap, *, as_json: bool) -> None:
    gaps.append(gap)
    diagnose(str(gap))
    if as_json:
        write_json(gap_line(gap, directory))


def _advance(advance: Callable[[int], None], before: int, size: int, part: float) -> None:
    advance(before + int(size * part))


def _text(exported: ExportedPartition) -> str:
    from seglog_format.cli.output import count_text, printable, size_text

    name = printable(f"{exported.topic}-{exported.partition}")
    aside = f", {count_text(exported.undecoded_count, 'record')} not decoded" if exported.undecoded_count else ""
    if (reason := exported.undecoded_reason) is not None:
        hint = next((f"; {step}" for part, step in NEXT_STEPS.items() if part in reason), "")
        aside += f" ({printable(reason)}{hint})"
    end = f"next offset {exported.next_offset}{_stop_text(exported)}"
    if not exported.row_count:
        return f"{name}: nothing new{aside}, {end}"
    what = f"{count_text(exported.row_count, 'row')} in {count_text(exported.file_count, 'file')}"
    return f"{name}: {what}, {size_text(exported.size)}{aside}, {end}"


def _stop_text(exported: ExportedPartition) -> str:
    """Return why no rows follow; empty where the log was read to its end."""
    if exported.stopped_by is None:
        return ""
    if isinstance(exported.stopped_by, UndecodedRecordError):
        return ", stopped at a record that cannot be decoded"
    return ", stopped at damage; 'seglog salvage' copies what follows"


def as_object(exported: ExportedPartition) -> dict[str, Any]:
    """Return the outcome for one partition as JSON."""
    return {
        "type": "export",
        "topic": exported.topic,
        "partition": exported.partition,
        "firstOffset": exported.first_offset,
        "nextOffset": exported.next_offset,
        "rows": exported.row_count,
        "files": exported.file_count,
        "bytes": exported.size,
        "undecoded": exported.undecoded_count,
        "waitsFor": None if exported.waits_for is None else _wait_object(exported.waits_for),
        "changes": [_change_object(change) for change in exported.changes],
    }


def _wait_object(transaction: OpenTransaction) -> dict[str, int]:
    return {
        "producerId": transaction.producer_id,
        "firstOffset": transaction.first_offset,
        "openTransactions": transaction.open_count,
        "endOffset": transaction.end_offset,
    }


def _change_object(change: Change) -> dict[str, Any]:
    missing = {} if change.missing is None else {"missing": change.missing.as_object()}
    return {"kind": change.kind.value, "text": change.text, **missing}
