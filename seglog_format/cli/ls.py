"""``seglog ls``: segments or partitions, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, PassingOver
from seglog_format.cli.options import PATH_OR_INPUT, engine_option, joined_listing, json_option, remote_options
from seglog_format.cli.output import (
    LEFT,
    count_text,
    diagnose,
    printable,
    progress,
    size_text,
    table,
    time_text,
    write_json,
    write_line,
    write_lines,
    write_text,
)
from seglog_format.cli.summaries import Contents
from seglog_format.lines.logs import codec_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.cli.summaries import PartitionSummary, SegmentSummary
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionListing, SegmentFiles


# -- the table of ls ---------------------------------------------------------------------------------------------------


def contents_cells(contents: Contents) -> list[str]:
    """Return batches, first and last time, magics, codecs."""
    return [
        str(contents.batches),
        time_text(contents.first_timestamp_ms),
        time_text(contents.last_timestamp_ms),
        ",".join(map(str, sorted(contents.magics))) or "-",
        ",".join(map(codec_name, sorted(contents.codecs))) or "-",
    ]


CONTENTS_COLUMNS = ("batches", f"{LEFT}first time", f"{LEFT}last time", f"{LEFT}magic", f"{LEFT}codec")
SEGMENT_COLUMNS = ("base offset", "next offset", "size", *CONTENTS_COLUMNS, f"{LEFT}index", f"{LEFT}state")
OPTIONAL_COLUMNS = (f"{LEFT}last time", f"{LEFT}first time", f"{LEFT}magic", f"{LEFT}index")
"""Left out of a list of segments, in this order, where the terminal is too narrow; ``--json`` always has them."""
LONG_SEGMENT_COLUMNS = (
    "base offset",
    "next offset",
    "bytes",
    *CONTENTS_COLUMNS,
    "index bytes",
    f"{LEFT}offset index",
    f"{LEFT}time index",
    "aborted",
    f"{LEFT}snapshot",
    "tail bytes",
    f"{LEFT}state",
)


def segment_table(summaries: Sequence[SegmentSummary], *, is_long: bool) -> list[str]:
    """Return one row for each segment, and totals.

    Entries of offset and time index are shown as ``17/18``, with ``+`` if zeros follow and ``!`` if more is wrong.
    """
    columns = LONG_SEGMENT_COLUMNS if is_long else SEGMENT_COLUMNS
    cells = _long_segment_cells if is_long else _segment_cells
    optional = () if is_long else OPTIONAL_COLUMNS
    return [*table(columns, map(cells, summaries), optional), _segment_totals(summaries)]


def _segment_cells(summary: SegmentSummary) -> list[str]:
    return [
        str(summary.base_offset),
        str(summary.next_offset),
        size_text(summary.size),
        *contents_cells(summary.contents),
        f"{summary.offset_index or '-'}/{summary.time_index or '-'}",
        summary.state,
    ]


def _long_segment_cells(summary: SegmentSummary) -> list[str]:
    return [
        str(summary.base_offset),
        str(summary.next_offset),
        str(summary.size),
        *contents_cells(summary.contents),
        str(summary.index_size),
        str(summary.offset_index or "-"),
        str(summary.time_index or "-"),
        "-" if summary.aborted is None else str(summary.aborted),
        "yes" if summary.has_snapshot else "-",
        str(summary.tail_size),
        summary.state,
    ]


def _segment_totals(summaries: Sequence[SegmentSummary]) -> str:
    if not summaries:
        return "no segments"
    contents = Contents()
    for summary in summaries:
        contents.merge(summary.contents)
    size = sum(summary.size for summary in summaries)
    index_size = sum(summary.index_size for summary in summaries)
    return (
        f"{count_text(len(summaries), 'segment')}, offsets {summaries[0].base_offset} to {summaries[-1].next_offset},"
        f" {count_text(contents.batches, 'batch')}, {size_text(size)} of log, {size_text(index_size)} of indexes"
    )


PARTITION_COLUMNS = (f"{LEFT}partition", "log start", "log end", "segments", "size", "indexes")


def partition_table(summaries: Sequence[PartitionSummary], *, is_long: bool) -> list[str]:
    """Return one row for each partition, and totals."""
    more = (*CONTENTS_COLUMNS, "recovery point", "high watermark") if is_long else ()
    columns = (*PARTITION_COLUMNS, *more, f"{LEFT}state")
    rows = [_partition_cells(summary, is_long=is_long) for summary in summaries]
    return [*table(columns, rows), _partition_totals(summaries)]


def _partition_cells(summary: PartitionSummary, *, is_long: bool) -> list[str]:
    cells = [
        printable(summary.name),
        str(summary.log_start_offset),
        str(summary.log_end_offset),
        str(summary.segments),
        size_text(summary.size),
        size_text(summary.index_size),
    ]
    if is_long:
        checkpoints = (summary.recovery_point, summary.high_watermark)
        cells += contents_cells(summary.contents or Contents())
        cells += ["-" if offset is None else str(offset) for offset in checkpoints]
    states = [state for state in (summary.problem, summary.state, *(gap.span_text for gap in summary.gaps)) if state]
    return [*cells, printable("; ".join(states) or "ok")]


def _partition_totals(summaries: Sequence[PartitionSummary]) -> str:
    segments = sum(summary.segments for summary in summaries)
    size = sum(summary.size for summary in summaries)
    index_size = sum(summary.index_size for summary in summaries)
    return (
        f"{count_text(len(summaries), 'partition')}, {count_text(segments, 'segment')},"
        f" {size_text(size)} of log, {size_text(index_size)} of indexes"
    )


EPILOG: Final = """\b
Examples:
  seglog ls /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog ls --long my-topic-0
  seglog ls --json /var/lib/kafka/data | jq 'select(.problem)'"""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_INPUT)
@click.option("--long", "is_long", is_flag=True, help="Print more columns; read every header of a log directory.")
@engine_option
@json_option
@remote_options
def command(
    paths: tuple[Path, ...],
    *,
    is_long: bool,
    as_json: bool,
    engine: str,
    remote: RemoteChoice | None,
) -> int:
    """List the segments of a partition directory, or the partitions of a log directory, one line each, and totals.

    Each PATH has a table of its own, under its name if there are several. Offsets, times, magics and codecs come from
    the headers of all batches; records are not read. Of a log directory, only the last segment of each partition is
    opened, unless --long asks for more.

    The exit status is 1 if a header is damaged, or if offsets are missing that the files beside a log prove: its
    checkpoints, indexes without a log, the next segment; between the segments of a log directory only with --long.
    Offsets in a remote store are no loss.
    """
    from seglog_format.cli.paths import log_directory_at

    directories = [log_directory_at(path) if remote is None else None for path in paths]
    status = DONE
    for number, (path, directory) in enumerate(zip(paths, directories, strict=True)):
        if len(paths) > 1 and not as_json:
            write_text(f"\n{path}:" if number else f"{path}:")
        if directory is not None:
            found = _list_partitions(path, directory, engine, is_long=is_long, as_json=as_json)
        else:
            found = _list_segments(path, engine, joined_listing(path, remote), is_long=is_long, as_json=as_json)
        status = max(status, found)
    return status


def _list_segments(
    path: Path, engine: str, listing: PartitionListing | None = None, *, is_long: bool, as_json: bool
) -> int:
    from seglog_format.cli.paths import segment_files_at
    from seglog_format.cli.summaries import segment_summary
    from seglog_format.engine import Engine, engine_for, tables_of
    from seglog_format.log.listing import list_partition
    from seglog_format.log.path_kind import size_of_segments
    from seglog_format.log.scanning import storage_for
    from seglog_format.storage.log_storage import LOCAL

    if listing is None and path.is_dir():
        listing = list_partition(path)
    segments = ((segment_files_at(path), None),) if listing is None else listing.with_following
    for error in () if listing is None else listing.blocked:
        diagnose(str(error))
    is_remote = listing is not None and listing.storage is not LOCAL
    choice = engine_for(Engine(engine), 0 if is_remote else size_of_segments(files for files, _ in segments))
    storage = storage_for(choice.engine, LOCAL if listing is None else listing.storage)

    def summary(segment: tuple[SegmentFiles, int | None]) -> SegmentSummary:
        return segment_summary(*segment, tables=tables_of(choice), storage=storage)

    summaries, status = _each(segments, summary, lambda segment: segment[0].log.name, "segments")
    if listing is not None:
        status = max(status, _write_gaps(listing, summaries, as_json=as_json))
    _write(path, summaries, segment_table, is_long=is_long, as_json=as_json)
    return max(status, _unreadable_status(summaries, path))


def _write_gaps(listing: PartitionListing, summaries: list[SegmentSummary], *, as_json: bool) -> int:
    """Report which offsets are not in a partition directory; return the exit status."""
    from seglog_format.cli.output import gap_line
    from seglog_format.cli.summaries import gaps_of_summaries
    from seglog_format.log.gaps import watch_over

    gaps = gaps_of_summaries(watch_over(listing), summaries)
    for gap in gaps:
        write_line(gap_line(gap, listing.path) if as_json else gap.span_text)
    return FINDINGS if any(gap.is_loss for gap in gaps) else DONE


def _unreadable_status(summaries: Sequence[SegmentSummary], path: Path) -> int:
    """Return the exit status for segments of which nothing could be read; name them on standard error."""
    from seglog_format.cli.paths import NOTHING_READABLE, unreadable_text

    unread = [summary for summary in summaries if summary.state == NOTHING_READABLE]
    is_damaged = any(summary.is_damaged for summary in summaries)
    for summary in unread:
        diagnose(unreadable_text(summary.name, summary.size, path / summary.name if path.is_dir() else path))
    return FINDINGS if unread or is_damaged else DONE


def _list_partitions(path: Path, directory: LogDirectory, engine: str, *, is_long: bool, as_json: bool) -> int:
    from seglog_format.cli.paths import NOTHING_READABLE
    from seglog_format.cli.summaries import partition_summary
    from seglog_format.engine import Engine, engine_for, tables_of
    from seglog_format.log.listing import PartitionEntry, list_partition
    from seglog_format.log.path_kind import size_of_segments
    from seglog_format.log.scanning import storage_for

    def summary(entry: PartitionEntry) -> PartitionSummary:
        listing = list_partition(entry.path)
        for error in listing.blocked:
            diagnose(str(error))
        walked = listing.segments if is_long else listing.segments[-1:]
        choice = engine_for(Engine(engine), size_of_segments(walked))
        tables, storage = tables_of(choice), storage_for(choice.engine)
        return partition_summary(entry, listing, directory, walk_all=is_long, tables=tables, storage=storage)

    left_out = {error.location.path: error for error in directory.listing.left_out}
    for error in directory.listing.misnamed:
        diagnose(str(left_out.get(error.location.path, error)))
    summaries, status = _each(directory.listing.partitions, summary, lambda entry: entry.path.name, "partitions")
    _write(path, summaries, partition_table, is_long=is_long, as_json=as_json)
    if any(NOTHING_READABLE in each.problem or each.is_damaged or each.is_incomplete for each in summaries):
        status = max(status, FINDINGS)
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


def _write(path: Path, summaries: list[Any], table: Callable[..., list[str]], *, is_long: bool, as_json: bool) -> None:
    if as_json:
        for summary in summaries:
            write_json({**summary.as_object(), "path": str(path)})
        return
    write_lines(table(summaries, is_long=is_long))
