"""``seglog export``: logs as a table that is added to exactly once."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS
from seglog_format.cli.options import PATH, json_option, size_of
from seglog_format.cli.output import diagnose, progress, write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.tables.settings import BYTES_AS, DEFAULT_PARTITIONING, FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.tables.export import TableExport
    from seglog_format.tables.outcome import ExportedPartition
    from seglog_format.tables.settings import TableSettings

EPILOG: Final = """\b
Examples:
  seglog export /var/lib/kafka/data --topic orders --to orders
  seglog export my-topic-0 my-topic-1 --to my-table --partition-by topic,day --file-size 256m
  duckdb -c "select count(*) from 'orders/**/*.parquet'" """


def levels_of(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Parse the levels of a partitioning: ``topic,partition,day``; ``none`` for no directories."""
    return () if value == "none" else tuple(value.split(","))


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option(
    "--to", required=True, metavar="DIR", help="The table: a directory, made if it is missing, or s3://bucket/table."
)
@click.option("--topic", "topics", multiple=True, help="Export only this topic; may be repeated.")
@click.option("--format", "file_format", type=click.Choice(FORMATS), default="parquet", show_default=True)
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
    help="Bytes after which a file is complete.",
)
@click.option("--committed", is_flag=True, help="Leave out records of transactions that are aborted or still open.")
@click.option(
    "--follow",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Look for new records again and again, after so many seconds each; Ctrl-C ends it.",
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
@json_option
def command(  # noqa: PLR0913 - an option each
    paths: tuple[Path, ...],
    *,
    to: str,
    topics: tuple[str, ...],
    file_format: str,
    partition_by: tuple[str, ...],
    file_size: int,
    committed: bool,
    follow: int | None,
    bytes_as: str,
    catalog: str | None,
    as_json: bool,
) -> int:
    """Add the records of log or partition directories to a table, as far as it does not have them yet.

    The table is a directory of files with columns for offset, time, key, value, headers, leader epoch and place of
    each record. Files appear when they are complete. The table itself says how far it reaches: after any end, even a
    power cut, the same command goes on from there, with no row twice and none missing. Where a broker is at work, it
    ends at the high watermark.

    The exit status is 1 if a log was cut since the last run, which makes its partition stay unchanged, or if records
    were deleted before they were exported. Compaction is reported and changes nothing.
    """
    from seglog_format.log.reading import READ_COMMITTED, READ_UNCOMMITTED
    from seglog_format.tables.settings import TableSettings

    isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
    settings = TableSettings(file_format, partition_by, isolation, bytes_as)
    run_once = partial(
        _run_once, paths, to, topics, settings, file_size, catalog=catalog, is_followed=bool(follow), as_json=as_json
    )
    status = run_once()
    while follow and status == DONE:
        time.sleep(follow)
        status = run_once()
    return status


def _run_once(  # noqa: PLR0913 - what the command is given
    paths: tuple[Path, ...],
    to: str,
    topics: tuple[str, ...],
    settings: TableSettings,
    file_size: int,
    *,
    catalog: str | None,
    is_followed: bool,
    as_json: bool,
) -> int:
    from seglog_format.tables.export import opened_export, place_of
    from seglog_format.tables.sources import sources_at

    sources = sources_at(paths, topics or None)
    done: list[ExportedPartition] = []
    try:
        with opened_export(
            sources, place_of(to, settings.format, catalog), settings, file_size, is_followed=is_followed
        ) as run:
            status = _run_all(run, done)
    finally:
        for each in done:
            if each.row_count or not is_followed:
                write_json(as_object(each)) if as_json else write_text(_text(each))
        sys.stdout.flush()
    return max(status, FINDINGS if any(change.is_loss for each in done for change in each.changes) else DONE)


def _run_all(run: TableExport, done: list[ExportedPartition]) -> int:
    """Export all partitions; one that is damaged does not keep the others from it."""
    from seglog_format.log.log_sizes import size_of_logs

    passing = PassingOver("partitions")
    sizes = [size_of_logs(source.path) for source in run.sources]
    with progress("Exporting", sum(sizes), is_alone=True) as advance:
        for number, source in enumerate(run.sources):
            with passing.errors_of(source.path):
                tell = partial(_tell, advance, sum(sizes[:number]), sizes[number])
                exported = run.run(source, tell, on_gap=lambda gap: diagnose(str(gap)))
                done.append(exported)
                for change in exported.changes:
                    diagnose(str(change))
            advance(sum(sizes[: number + 1]))
    return passing.status()


def _tell(advance: Callable[[int], None], before: int, size: int, part: float) -> None:
    advance(before + int(size * part))


def _text(exported: ExportedPartition) -> str:
    from seglog_format.cli.render import count_text, printable, size_text

    name = printable(f"{exported.topic}-{exported.partition}")
    if not exported.row_count:
        return f"{name}: nothing new, next offset {exported.next_offset}"
    what = f"{count_text(exported.row_count, 'row')} in {count_text(exported.file_count, 'file')}"
    return f"{name}: {what}, {size_text(exported.size)}, next offset {exported.next_offset}"


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
        "changes": [{"kind": change.kind.value, "text": change.text} for change in exported.changes],
    }
