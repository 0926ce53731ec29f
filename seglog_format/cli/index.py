"""``seglog index``: the indexes of segments, compared with what their logs say, and built anew."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import (
    PATH,
    engine_option,
    generation_option,
    index_interval_option,
    json_option,
    path_argument,
)
from seglog_format.cli.output import progress, write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.errors import UsageError, write_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.recovery.index_rebuild import RebuiltIndex, RebuiltSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.volume import Volume
    from seglog_format.state.config import BrokerGeneration

EPILOG: Final = """\b
Examples:
  seglog index my-topic-0
  seglog index --rebuild -o indexes my-topic-0
  seglog index --rebuild --write --index-interval-bytes 4096 my-topic-0"""


@click.command(epilog=EPILOG)
@path_argument
@click.option("--rebuild", is_flag=True, help="Write the indexes; with -o or --write.")
@click.option("-o", "--output", type=PATH, metavar="DIR", help="Write them here: a new or empty directory.")
@click.option("--write", is_flag=True, help="Write them in place of those that differ.")
@index_interval_option
@generation_option
@engine_option
@json_option
def command(  # noqa: PLR0913 - one for each option
    path: Path,
    *,
    rebuild: bool,
    output: Path | None,
    write: bool,
    index_interval_bytes: int | None,
    generation: BrokerGeneration | None,
    engine: str,
    as_json: bool,
) -> int:
    """Compare the indexes at PATH with what a rebuild from the logs gives, and with --rebuild write that.

    No log is changed. An index that differs need not be wrong: up to 4.0 brokers wrote fewer entries while they
    appended than a rebuild does. The exit status is 1 when a log cannot be walked to its end, so that what follows the
    damage is not indexed.
    """
    if rebuild != (write or output is not None) or (write and output is not None):
        msg = "--rebuild goes with either -o DIR or --write, and these with --rebuild"
        raise UsageError(msg)
    if output is not None:
        _require_apart(path, output)
    from seglog_format.cli.engine import size_of_logs, volume_for
    from seglog_format.log.listing import list_partition
    from seglog_format.storage.new_directory import all_or_nothing

    volume = volume_for(engine, size_of_logs(path))
    status, told, passing = 0, None, PassingOver("partitions")
    with nullcontext() if output is None else all_or_nothing(output) as staging:
        for directory, place, only in _partitions(path):
            with passing.errors_of(place):
                listing = list_partition(place)
                found = _rebuilt(listing, only, index_interval_bytes, generation, volume)
                for segment in _written(listing, found) if write else found:
                    status = FINDINGS if segment.end < segment.size else status
                    if staging is not None:
                        _write_apart(staging, directory, segment)
                    _tell(segment, told, as_json=as_json)
                    told = segment.settings
    return max(status, passing.status())


def _require_apart(path: Path, output: Path) -> None:
    from seglog_format.storage.new_directory import require_new

    require_new(output)
    if path.resolve() in (output.resolve(), *output.resolve().parents):
        msg = f"{output} is inside {path}; --write replaces indexes in place"
        raise UsageError(msg)


def _partitions(path: Path) -> Iterator[tuple[str, Path, set[str] | None]]:
    """Where output goes below its directory, the partition directory, and the only log wanted."""
    from seglog_format.cli.places import log_directory_at
    from seglog_format.recovery.plan import DELETE_STATE

    directory = log_directory_at(path)
    if directory is None:
        if path.is_dir():
            yield "", path, None
        else:
            yield "", path.absolute().parent, {path.name}
        return
    entries = [entry for entry in directory.listing.partitions if entry.name.state != DELETE_STATE]
    with progress("Indexing", len(entries)) as advance:
        for number, entry in enumerate(entries, 1):
            yield f"{entry.path.name}/", entry.path, None
            advance(number)


def _rebuilt(
    listing: PartitionListing,
    only: set[str] | None,
    interval_bytes: int | None,
    generation: BrokerGeneration | None,
    volume: Volume | None,
) -> Iterator[RebuiltSegment]:
    from seglog_format.recovery.index_rebuild import rebuilt_indexes

    if only and not any(files.log.name in only for files in listing.segments):
        msg = f"{listing.path / min(only)}: not the log of a segment"
        raise UsageError(msg)
    return rebuilt_indexes(
        listing,
        only=only,
        interval_bytes=interval_bytes,
        generation=generation,
        volume=volume,
    )


def _written(listing: PartitionListing, found: Iterator[RebuiltSegment]) -> Iterator[RebuiltSegment]:
    """Replace the indexes that differ, while nobody else writes here."""
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import list_log_directory
    from seglog_format.recovery.apply import writing
    from seglog_format.storage.files import LOCAL_FILES, replace_file

    with writing(LogDirectory(list_log_directory(listing.path.absolute().parent))):
        for segment in found:
            for index in segment.indexes:
                if not index.is_same:
                    with write_errors("indexing"):
                        replace_file(LOCAL_FILES, listing.path / index.name, index.data)
            yield segment


def _write_apart(output: Path, directory: str, segment: RebuiltSegment) -> None:
    from seglog_format.storage.new_directory import write_new_file

    for index in segment.indexes:
        write_new_file(output, directory + index.name, (index.data,))


def _tell(segment: RebuiltSegment, told: IndexSettings | None, *, as_json: bool) -> None:
    """One segment; and how its indexes are built, where that was not told before."""
    if as_json:
        write_json(as_object(segment))
        return
    from seglog_format.cli.render_recovery import index_text, rebuilt_text

    lines = (
        rebuilt_text(segment)
        if segment.settings is told
        else chain(index_text(segment.settings), rebuilt_text(segment))
    )
    for line in lines:
        write_text(line)


def as_object(segment: RebuiltSegment) -> dict[str, Any]:
    """One segment for JSON."""
    from seglog_format.cli.recover import index_object

    return {
        "type": "indexes",
        "file": segment.log.name,
        "fileBytes": segment.size,
        "indexedBytes": segment.end,
        "index": index_object(segment.settings),
        "files": [_file(index) for index in segment.indexes],
    }


def _file(index: RebuiltIndex) -> dict[str, Any]:
    old = index.old_size
    return {"file": index.name, "bytes": len(index.data), "oldBytes": old, "state": index.state}
