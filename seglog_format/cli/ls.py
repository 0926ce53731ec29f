"""``seglog ls``: segments or partitions, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, PassingOver
from seglog_format.cli.options import PATH, engine_option, joined_listing, json_option, remote_options
from seglog_format.cli.output import diagnose, progress, write_json, write_line, write_lines, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.cli.summaries import PartitionSummary, SegmentSummary
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionListing, SegmentFiles

EPILOG: Final = """\b
Examples:
  seglog ls /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog ls --long my-topic-0
  seglog ls --json /var/lib/kafka/data | jq 'select(.problem)'"""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
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
    from seglog_format.cli.render_ls import segment_table
    from seglog_format.cli.summaries import segment_summary
    from seglog_format.engine.choice import Engine, engine_for
    from seglog_format.engine.columnar import tables_of
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
    from seglog_format.cli.output import gap_line, gaps_of
    from seglog_format.log.gaps import watch_over

    gaps = gaps_of(watch_over(listing), {each.base_offset: each.next_offset for each in summaries})
    for gap in gaps:
        write_line(gap_line(gap, listing.path) if as_json else gap.span_text)
    return FINDINGS if any(gap.is_loss for gap in gaps) else DONE


def _unreadable_status(summaries: Sequence[SegmentSummary], path: Path) -> int:
    """Return the exit status for segments of which nothing could be read; name them on standard error."""
    from seglog_format.cli.unreadable import NOTHING_READABLE, unreadable_text

    unread = [summary for summary in summaries if summary.state == NOTHING_READABLE]
    is_damaged = any(summary.is_damaged for summary in summaries)
    for summary in unread:
        diagnose(unreadable_text(summary.name, summary.size, path / summary.name if path.is_dir() else path))
    return FINDINGS if unread or is_damaged else DONE


def _list_partitions(path: Path, directory: LogDirectory, engine: str, *, is_long: bool, as_json: bool) -> int:
    from seglog_format.cli.render_ls import partition_table
    from seglog_format.cli.summaries import partition_summary
    from seglog_format.cli.unreadable import NOTHING_READABLE
    from seglog_format.engine.choice import Engine, engine_for
    from seglog_format.engine.columnar import tables_of
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

    for error in directory.listing.misnamed:
        diagnose(str(error))
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
