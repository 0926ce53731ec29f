"""``seglog find``: the records that hold a text, by key, value or header, by offset and by time."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.options import (
    PATH,
    PATH_OR_INPUT,
    joined_listing,
    json_option,
    limit_option,
    range_option,
    remote_options,
)
from seglog_format.cli.output import (
    LONG_SIZE,
    SHOWN_SIZE,
    GapLines,
    as_given,
    diagnose,
    progress,
    write_json,
    write_line,
    write_lines,
    write_text,
)
from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.doctor.find import FieldPath, Found
    from seglog_format.lines import LineOptions, Source
    from seglog_format.log.search import Wanted

    Line = dict[str, Any]

MIN_THREADS: Final = 2

EPILOG: Final = """\b
Examples:
  seglog find order-4711 /var/lib/kafka/data
  seglog find --key user-17 --first 1 my-topic-0
  seglog find --regex '^ERROR' --since 2026-01-31T12:00:00Z my-topic-0
  seglog find --hex --value 0a0b0c my-topic-0/00000000000000000000.log
  seglog find order-4711 my-topic-0 -o found/00000000000000000000.log
  seglog find --at user.id 4711 my-topic-0
  seglog find --remote s3://bucket/tier order-4711 my-topic-0
  seglog find --json order-4711 /var/lib/kafka/data | jq .offset"""


@click.command(epilog=EPILOG)
@click.argument("pattern")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_INPUT)
@click.option("--key", is_flag=True, help="Search keys.")
@click.option("--value", is_flag=True, help="Search values.")
@click.option("--header", is_flag=True, help="Search keys and values of headers.")
@click.option("--regex", "is_regex", is_flag=True, help="PATTERN is a regular expression of Python, for bytes.")
@click.option("--hex", "is_hex", is_flag=True, help="PATTERN is bytes in hex digits.")
@range_option
@click.option("--first", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option("--count", "is_count", is_flag=True, help="Print only how many records each file has.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE.log",
    help="Also write the batches that hold the records to this new file, as a segment.",
)
@click.option("--decode", is_flag=True, help="Print the records of Kafka's own topics decoded.")
@click.option(
    "--at",
    "field_path",
    metavar="NAME.NAME",
    help="PATTERN is all that is at this place of a JSON value, or, with --decode, of a record's line as JSON.",
)
@json_option
@limit_option
@partial(remote_options, key="--store-key")
def command(  # noqa: PLR0913 - an option each
    pattern: str,
    paths: tuple[Path, ...],
    *,
    is_regex: bool,
    is_hex: bool,
    first: int | None,
    is_count: bool,
    as_json: bool,
    output: Path | None,
    field_path: str | None,
    remote: RemoteChoice | None,
    **choices: Any,  # noqa: ANN401 - click passes what the options gave
) -> int:
    """Print the records in each PATH that hold PATTERN in their key, their value or a header.

    PATH is a log file, a partition directory, a log directory, a directory that holds log directories, or - for a log
    from standard input. PATTERN is a text; upper and lower case differ. Without --key, --value or --header, all three
    are searched. TIME is milliseconds, an ISO time, or how long ago: 2h, 30m, 7d. Records of aborted transactions are
    searched, control records are not.

    With --output, the batches are copied unchanged, with all their records: every reader of this format reads the
    file. They have to be of one partition. An existing file is never replaced; without a record, none is written.

    The exit status is 0 if a record was found, 1 if none was, and 3 if something could not be read or offsets are
    missing, which standard error names: a record may be there that was not found. Tiered offsets of a partition are
    searched with --remote only.
    """
    from seglog_format.doctor.find import FieldPath
    from seglog_format.lines import LineOptions
    from seglog_format.log.search import FIELDS, Wanted

    long_over = LONG_SIZE if as_json else SHOWN_SIZE
    fields = tuple(name for name in FIELDS if choices.pop(name))
    options = LineOptions(**choices, long_over=long_over)
    searched = _pattern(pattern, is_regex=is_regex, is_hex=is_hex) if field_path is None else b""
    at = None if field_path is None else FieldPath(tuple(field_path.split(".")), pattern)
    wanted = Wanted(pattern=searched, fields=fields or FIELDS)
    search = _Search(wanted, options, first, output, at, remote)
    write = _Writer(as_json=as_json, is_count=is_count)
    for source, name in search.sources(paths):
        for line in search.lines(source):
            write.line(name, line)
        write.end(name)
        if search.is_done:
            break
    search.write()
    if search.is_incomplete:
        return UNREADABLE
    return DONE if search.found else FINDINGS


def _pattern(text: str, *, is_regex: bool, is_hex: bool) -> bytes | re.Pattern[bytes]:
    if is_regex and is_hex:
        msg = "--regex and --hex exclude each other"
        raise click.UsageError(msg)
    data = text.encode(errors="surrogateescape")
    try:
        if is_hex:
            return bytes.fromhex(text)
        return re.compile(data) if is_regex else data
    except (ValueError, re.error) as error:
        msg = f"PATTERN {text!r}: {error}"
        raise click.UsageError(msg) from None


class _Search:
    """A search through the logs of several paths.

    Attributes:
        found: number of records found.
        is_incomplete: whether something could not be read, or offsets are missing.
    """

    def __init__(
        self,
        wanted: Wanted,
        options: LineOptions,
        first: int | None,
        output: Path | None,
        at: FieldPath | None,
        remote: RemoteChoice | None,
    ) -> None:
        self.found = 0
        self.is_incomplete = False
        self._wanted, self._options, self._first = wanted, options, first
        self._output = output
        self._at, self._remote = at, remote
        self._positions: list[tuple[Source, int]] = []

    @property
    def is_done(self) -> bool:
        """Return whether no more records are wanted."""
        return self._first is not None and self.found >= self._first

    def sources(self, paths: tuple[Path, ...]) -> Iterator[tuple[Source, str]]:
        """Look at every path, then yield the log files with the names to print, and report missing offsets."""
        from seglog_format.cli.paths import segment_files_at
        from seglog_format.lines import sources_of
        from seglog_format.lines.sources import sources_in
        from seglog_format.log.path_kind import require_readable

        for path in paths:
            require_readable(path)
            if path.is_file():
                segment_files_at(path)  # refuses a file that is no log
        found = []
        for path in paths:
            joined = joined_listing(path, self._remote)
            listed = sources_in(joined.path, joined.storage) if joined else sources_of(path)
            sources = [one for one in listed if self._is_searched(one, is_named=path.is_file())]
            found.append((path, sources, GapLines(self._options, joined=joined)))
        logs = [source for _, sources, _ in found for source in sources]
        self._require_writable(paths, logs)
        self._each = self._searches(logs)
        done = 0
        with progress("Searching", sum(source.size for _, sources, _ in found for source in sources)) as advance:
            for path, sources, gaps in found:
                for source in sources:
                    self._gaps = gaps
                    if path.is_dir():
                        gaps.begin(source)
                    yield source, str(path / source.name) if path.is_dir() else as_given(str(path))
                    if path.is_dir() and not self.is_done:
                        gaps.end(source)
                    self.is_incomplete |= gaps.is_any_missing or gaps.is_any_tiered
                    done += source.size
                    advance(done)
                if path.is_dir():
                    gaps.finish(path)
                    self.is_incomplete |= gaps.is_any_missing or gaps.is_any_tiered

    def _searches(self, logs: list[Source]) -> Iterator[Iterator[Found]]:
        """Return a search of each log; those after it run at the same time, unless they may not be needed."""
        from seglog_format.doctor.find import found_in, found_side_by_side

        searches = (found_in(each, self._wanted, self._options, self._at) for each in logs)
        threads = min(os.cpu_count() or 1, len(logs))
        is_alone = threads < MIN_THREADS or self._first is not None or self._remote is not None
        return searches if is_alone else found_side_by_side(searches, threads)

    def _is_searched(self, source: Source, *, is_named: bool) -> bool:
        """Return whether a file is searched: below a directory, only the logs that readers open."""
        from seglog_format.lines.sources import SourceKind

        is_opened = source.is_live and ".log" in source.path.suffixes
        return source.kind is SourceKind.LOG and (is_named or is_opened) and self._options.wants(source)

    def lines(self, source: Source) -> Iterator[Line]:
        """Yield the records found in a file, and report what cannot be read."""
        from seglog_format.cli.main import FAILURES, text_of
        from seglog_format.log.entry_table import Overlap

        try:
            for found in next(self._each):
                if isinstance(found, int):
                    self._gaps.reached = found
                elif isinstance(found, FormatError):
                    self._report(source, str(found))
                elif isinstance(found, Overlap):
                    self._gaps.come_to(source, found.position, found.first_offset)
                else:
                    self.found += 1
                    if self._output is not None and self._positions[-1:] != [(source, found["position"])]:
                        self._positions.append((source, found["position"]))
                    yield found
                    if self.is_done:
                        return
        except FAILURES as error:
            if isinstance(error, BrokenPipeError | UsageError):
                raise
            self._report(source, text_of(error))

    def _require_writable(self, paths: tuple[Path, ...], sources: list[Source]) -> None:
        """Refuse an output that exists or is below a path, and logs of several partitions for one segment."""
        if self._output is None:
            return
        if os.path.lexists(self._output):
            msg = f"{self._output} is there already"
            raise UsageError(msg)
        for path in paths:
            if path.resolve() in self._output.resolve().parents:
                msg = f"{self._output} is inside {path}, where nothing is written"
                raise UsageError(msg)
        if len(names := sorted({source.directory for source in sources})) > 1:
            msg = f"a segment is of one partition, not of {names[0]} and {names[1]}"
            raise UsageError(msg)

    def write(self) -> None:
        """Write the batches that hold the records, if that is wanted."""
        from seglog_format.cli.output import count_text
        from seglog_format.doctor.find import batches_at
        from seglog_format.storage.new_directory import write_new

        if self._output is not None and self._positions:
            write_new(self._output, batches_at(self._positions))
            diagnose(f"wrote {self._output}, {count_text(len(self._positions), 'batch')}")

    def _report(self, source: Source, text: str) -> None:
        diagnose(text if source.name in text else f"{source.name}: {text}")
        self.is_incomplete = True


class _Writer:
    """Writes records below the names of their files, or how many there are."""

    def __init__(self, *, as_json: bool, is_count: bool) -> None:
        self._as_json, self._is_count = as_json, is_count
        self._count = 0

    def line(self, name: str, line: Line) -> None:
        """Write a record."""
        from seglog_format.cli.dump import file_heading, text_of

        line |= {"file": name}
        self._count += 1
        if self._is_count:
            return
        if self._as_json:
            write_json(line)
            return
        if self._count == 1:
            write_text(file_heading(line))
        write_lines(text_of(line))

    def end(self, name: str) -> None:
        """End a file."""
        from seglog_format.cli.output import count_text, printable

        if self._is_count and self._count:
            write_line(
                {"type": "count", "file": name, "records": self._count}
                if self._as_json
                else f"{printable(name)}: {count_text(self._count, 'record')}"
            )
        self._count = 0
