"""``seglog ls``: segments or partitions, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.options import engine_option, json_option, path_argument
from seglog_format.cli.output import diagnose, is_busy, progress, write_json, write_text
from seglog_format.cli.passing_over import PassingOver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_format.cli.summaries import PartitionSummary, SegmentSummary
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import SegmentFiles

EPILOG: Final = """\b
Examples:
  seglog ls /var/lib/kafka/data
  seglog ls --long my-topic-0
  seglog ls --json /var/lib/kafka/data | jq 'select(.problem)'"""


@click.command(epilog=EPILOG)
@path_argument
@click.option("--long", "is_long", is_flag=True, help="Print more columns; read every header of a log directory.")
@engine_option
@json_option
def command(path: Path, *, is_long: bool, as_json: bool, engine: str) -> int:
    """List the segments of a partition directory, or the partitions of a log directory, one line each, and totals.

    Offsets, times, magics and codecs come from the headers of all batches; records are not read. Of a log directory,
    only the last segment of each partition is opened, unless --long asks for more.
    """
    from seglog_format.cli.paths import log_directory_at

    directory = log_directory_at(path)
    if directory is not None:
        return _list_partitions(directory, engine, is_long=is_long, as_json=as_json)
    return _list_segments(path, engine, is_long=is_long, as_json=as_json)


def _list_segments(path: Path, engine: str, *, is_long: bool, as_json: bool) -> int:
    from seglog_format.cli.paths import segment_files_at
    from seglog_format.cli.render_ls import segment_table
    from seglog_format.cli.summaries import segment_summary
    from seglog_format.engine.choice import Engine
    from seglog_format.engine.chosen import tables_for
    from seglog_format.log.listing import list_partition
    from seglog_format.log.log_sizes import size_of_segments

    listing = list_partition(path) if path.is_dir() else None
    segments = (segment_files_at(path),) if listing is None else listing.segments
    for error in () if listing is None else listing.blocked:
        diagnose(str(error))
    copy, tables = is_busy(path), tables_for(Engine(engine), size_of_segments(segments))

    def summary(files: SegmentFiles) -> SegmentSummary:
        return segment_summary(files, copy=copy, tables=tables)

    summaries, status = _each(segments, summary, lambda files: files.log.name, "segments")
    _write(summaries, segment_table, is_long=is_long, as_json=as_json)
    return status


def _list_partitions(directory: LogDirectory, engine: str, *, is_long: bool, as_json: bool) -> int:
    from seglog_format.cli.render_ls import partition_table
    from seglog_format.cli.summaries import partition_summary
    from seglog_format.engine.choice import Engine
    from seglog_format.engine.chosen import tables_for
    from seglog_format.log.listing import PartitionEntry, list_partition
    from seglog_format.log.log_sizes import size_of_segments

    def summary(entry: PartitionEntry) -> PartitionSummary:
        listing = list_partition(entry.path)
        for error in listing.blocked:
            diagnose(str(error))
        walked = listing.segments if is_long else listing.segments[-1:]
        tables = tables_for(Engine(engine), size_of_segments(walked))
        return partition_summary(entry, listing, directory, walk_all=is_long, tables=tables)

    for error in directory.listing.misnamed:
        diagnose(str(error))
    summaries, status = _each(directory.listing.partitions, summary, lambda entry: entry.path.name, "partitions")
    _write(summaries, partition_table, is_long=is_long, as_json=as_json)
    if not as_json:
        state = "clean shutdown" if directory.has_clean_shutdown else "no clean shutdown"
        write_text(f"{state}{', a broker is at work' if directory.is_locked else ''}")
    return status


def _each(
    items: Sequence[Any], summary: Callable[[Any], Any], name: Callable[[Any], str], things: str
) -> tuple[list[Any], int]:
    """Return a summary of each, and the exit status; report and skip what cannot be read."""
    summaries, passing = [], PassingOver(things)
    with progress("Reading", len(items)) as advance:
        for number, item in enumerate(items, 1):
            with passing.errors_of(name(item)):
                summaries.append(summary(item))
            advance(number)
    return summaries, passing.status()


def _write(summaries: list[Any], table: Callable[..., list[str]], *, is_long: bool, as_json: bool) -> None:
    if as_json:
        for summary in summaries:
            write_json(summary.as_object())
        return
    for row in table(summaries, is_long=is_long):
        write_text(row)
