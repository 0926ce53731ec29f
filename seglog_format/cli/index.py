"""``seglog index``: comparison of indexes with their logs, and rebuilding."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS, PassingOver
from seglog_format.cli.options import (
    PATH,
    engine_option,
    file_argument,
    generation_option,
    index_interval_option,
    json_option,
)
from seglog_format.cli.output import GIVEN, progress, write_json, write_lines
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.recovery.index_rebuild import RebuiltIndex, RebuiltSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.state.config import BrokerGeneration

EPILOG: Final = """\b
Examples:
  seglog index my-topic-0
  seglog index --rebuild -o indexes my-topic-0
  seglog index --rebuild --write --index-interval-bytes 4096 my-topic-0"""


@click.command(epilog=EPILOG)
@file_argument
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
    """Compare the indexes at PATH with a rebuild from the logs, and with --rebuild write the rebuilt ones.

    No log is changed. An index that differs need not be wrong: up to 4.0, brokers wrote fewer entries while they
    appended than a rebuild does. The exit status is 1 when a log cannot be walked to its end, so entries after the
    damage are not indexed.
    """
    if rebuild != (write or output is not None) or (write and output is not None):
        msg = "--rebuild needs either -o DIR or --write, and these need --rebuild"
        raise UsageError(msg)
    if write and str(path) in GIVEN:
        msg = f"{path}: only indexes beside a log are replaced; -o DIR writes them elsewhere"
        raise UsageError(msg)
    if output is not None:
        _require_apart(path, output)
    from seglog_format import rebuild_indexes
    from seglog_format.cli.options import settled
    from seglog_format.storage.new_directory import all_or_nothing

    chosen = settled(engine, [path])
    report, passing = _Report(as_json=as_json), PassingOver("partitions")
    with nullcontext() if output is None else all_or_nothing(output) as staging:
        for directory, partition in _partitions(path):
            with passing.errors_of(partition):
                plan = rebuild_indexes(
                    partition, interval_bytes=index_interval_bytes, generation=generation, engine=chosen
                )
                if write:
                    plan.apply(report.print_segment)
                    continue
                for segment in plan.segments():
                    if staging is not None:
                        _write_apart(staging, directory, segment)
                    report.print_segment(segment)
    return max(report.status, passing.status())


def _require_apart(path: Path, output: Path) -> None:
    from seglog_format.storage.new_directory import require_new

    require_new(output)
    if path.resolve() in (output.resolve(), *output.resolve().parents):
        msg = f"{output} is inside {path}; --write replaces indexes in place"
        raise UsageError(msg)


def _partitions(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield subdirectories of the output, and the partition directory or the one log for each."""
    from seglog_format.cli.paths import kept_partitions, log_directory_at

    directory = log_directory_at(path)
    if directory is None:
        yield "", path
        return
    entries = kept_partitions(path, directory)
    with progress("Indexing", len(entries)) as advance:
        for number, entry in enumerate(entries, 1):
            yield f"{entry.path.name}/", entry.path
            advance(number)


def _write_apart(output: Path, directory: str, segment: RebuiltSegment) -> None:
    from seglog_format.storage.new_directory import write_new_file

    for index in segment.indexes:
        write_new_file(output, directory + index.name, (index.data,))


class _Report:
    """Writes the output for each segment.

    Attributes:
        status: the exit status so far.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.status = 0
        self._as_json = as_json
        self._settings: IndexSettings | None = None

    def print_segment(self, segment: RebuiltSegment) -> None:
        """Print one segment, after how indexes are built if that differs from the segment before."""
        if segment.end < segment.size:
            self.status = FINDINGS
        if self._as_json:
            write_json(as_object(segment))
            return
        from seglog_format.cli.recover import index_text, rebuilt_text

        settings = () if segment.settings is self._settings else index_text(segment.settings)
        write_lines(chain(settings, rebuilt_text(segment)))
        self._settings = segment.settings


def as_object(segment: RebuiltSegment) -> dict[str, Any]:
    """Return one segment for JSON."""
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
