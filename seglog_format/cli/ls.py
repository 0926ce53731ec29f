"""``seglog ls``: segments or partitions, one line each, from file sizes and facts that a walk of headers finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
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
from seglog_format.cli.paths import NOTHING_READABLE
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines.logs import codec_name
from seglog_format.log.entry_table import in_order, overlap_of
from seglog_format.log.gaps import GapKind, GapWatch
from seglog_format.log.segment import LogSegment
from seglog_format.model import CODEC_MASK, DELETE_HORIZON_BIT, NO_TIMESTAMP, BatchHeader, TailKind
from seglog_format.storage.file_reader import read_uncut
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.engine import BatchTable, BatchTables
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionEntry, PartitionListing, SegmentFiles
    from seglog_format.storage.log_storage import LogStorage


RECORD_BATCH_MAGIC = 2


@dataclass(slots=True)
class Contents:
    """Totals over the headers of some entries.

    Attributes:
        batches: number of entries.
        first_timestamp_ms: smallest timestamp in a header; -1 for none.
        last_timestamp_ms: largest.
        magics, codecs: those that occur, in ascending order.
    """

    batches: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP
    last_timestamp_ms: int = NO_TIMESTAMP
    magics: set[int] = field(default_factory=set)
    codecs: set[int] = field(default_factory=set)

    def add(self, header: BatchHeader) -> None:
        """Add one entry."""
        self.batches += 1
        self.magics.add(header.magic)
        self.codecs.add(header.codec_id)
        self._add_times(_earliest(header), header.max_timestamp_ms)

    def add_many(self, table: BatchTable) -> None:
        """Add many entries."""
        self.batches += len(table)
        attributes, magics, newest = (table.column(name) for name in ("attributes", "magic", "max_timestamp_ms"))
        self.magics |= _values(magics)
        self.codecs |= _values(attributes & CODEC_MASK)
        base = table.column("base_timestamp_ms")
        has_no_base = (magics < RECORD_BATCH_MAGIC) | (attributes & DELETE_HORIZON_BIT != 0)
        earliest = newest.copy()
        earliest[~has_no_base] = base.clip(max=newest)[~has_no_base]
        earliest = earliest[earliest != NO_TIMESTAMP]
        self._add_times(int(earliest.min()) if len(earliest) else NO_TIMESTAMP, int(newest.max()))

    def merge(self, other: Contents) -> None:
        """Add the entries of another segment."""
        self.batches += other.batches
        self.magics |= other.magics
        self.codecs |= other.codecs
        self._add_times(other.first_timestamp_ms, other.last_timestamp_ms)

    def _add_times(self, first: int, last: int) -> None:
        if first != NO_TIMESTAMP and (self.first_timestamp_ms == NO_TIMESTAMP or first < self.first_timestamp_ms):
            self.first_timestamp_ms = first
        self.last_timestamp_ms = max(last, self.last_timestamp_ms)

    def as_object(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "batches": self.batches,
            "firstTimestamp": self.first_timestamp_ms,
            "lastTimestamp": self.last_timestamp_ms,
            "magics": sorted(self.magics),
            "codecs": [codec_name(codec) for codec in sorted(self.codecs)],
        }


def _values(numbers: Any) -> set[int]:  # noqa: ANN401 - a column of a table, mostly of one value
    lowest, highest = int(numbers.min()), int(numbers.max())
    return {lowest} if lowest == highest else set(numbers.tolist())


def _earliest(header: BatchHeader) -> int:
    """Return the first timestamp of an entry, as far as its header has it."""
    if header.base_timestamp_ms is None or header.delete_horizon_ms is not None:
        return header.max_timestamp_ms
    return min(header.base_timestamp_ms, header.max_timestamp_ms)


@dataclass(slots=True)
class IndexState:
    """The state of an index file: usable entries, slots of zeros after them, and whether more is wrong."""

    entries: int
    zero_slots: int
    is_inconsistent: bool

    def __str__(self) -> str:
        return f"{self.entries}{'+' if self.zero_slots else ''}{'!' if self.is_inconsistent else ''}"

    def as_object(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"entries": self.entries, "trailingZeroEntries": self.zero_slots, "isOdd": self.is_inconsistent}


@dataclass(slots=True)
class SegmentSummary:
    """One line of the listing of a partition.

    Attributes:
        name: of the `.log` file.
        base_offset: from the name.
        next_offset: the first offset after the last whole entry.
        size: bytes of the `.log` file.
        index_size: bytes of the indexes together.
        contents: totals over its entries.
        offset_index, time_index: None if there is none that can be read.
        aborted: entries of the transaction index; None without one.
        has_snapshot: whether there is a producer snapshot of the base offset.
        tail_size: bytes after the last whole entry.
        state: ``ok``, or what follows the last whole entry, or why the walk stopped.
        is_damaged: whether damage ended the walk.
        overlaps: the entries that begin below the end of the entry before them.
    """

    name: str
    base_offset: int
    next_offset: int
    size: int
    index_size: int
    contents: Contents
    offset_index: IndexState | None
    time_index: IndexState | None
    aborted: int | None
    has_snapshot: bool
    tail_size: int
    state: str
    is_damaged: bool
    overlaps: Sequence[Overlap]

    def as_object(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "type": "segment",
            "file": self.name,
            "baseOffset": self.base_offset,
            "nextOffset": self.next_offset,
            "bytes": self.size,
            "indexBytes": self.index_size,
            **self.contents.as_object(),
            "offsetIndex": self.offset_index.as_object() if self.offset_index else None,
            "timeIndex": self.time_index.as_object() if self.time_index else None,
            "abortedTransactions": self.aborted,
            "hasSnapshot": self.has_snapshot,
            "tailBytes": self.tail_size,
            "state": self.state,
        }


TAILS = {TailKind.NONE: "ok", TailKind.TRAILING: "trailing bytes", TailKind.PARTIAL: "cut short"}


def segment_summary(
    files: SegmentFiles,
    following: int | None = None,
    *,
    tables: BatchTables | None = None,
    storage: LogStorage = LOCAL,
) -> SegmentSummary:
    """Walk the headers of one segment, as far as their offsets are possible.

    Args:
        files: files of the segment.
        following: base offset of the next segment; None for the last one.
        tables: the fast path for headers; the result is the same without it.
        storage: that files are read through.

    Raises:
        UsageError: the log cannot be opened.
    """
    with LogSegment(files, next_base_offset=following, storage=storage) as segment:
        contents, (first, last) = Contents(), segment.allowed
        next_offset, end, state, tail_size, is_damaged = segment.base_offset, 0, "", 0, False
        overlaps: list[Overlap] = []
        size = segment.source.size
        parts = tables and tables(segment.source, first_offset=first, last_offset=last, checksums=False)
        for table in parts or ():
            contents.add_many(table)
            next_offset, end = int(table.column("last_offset")[-1]) + 1, table.end
        frames = segment.frames(end)
        try:
            for frame in in_order(frames, segment.path, segment.allowed, next_offset - 1):
                if (overlap := overlap_of(frame, next_offset)) is not None:
                    overlaps.append(overlap)
                contents.add(frame.header)
                next_offset, end = frame.header.next_offset, frame.end
            segment.refuse_hidden_entries(end)
        except FormatError as problem:
            rules = ", ".join(problem.requirements)
            state, tail_size = f"damaged at {problem.location.position} [{rules}]", size - end
            is_damaged = True
        else:
            tail_size = frames.tail.size
            state = TAILS.get(frames.tail.kind, f"{tail_size} zero bytes")
            if tail_size and not contents.batches and frames.tail.kind is not TailKind.ZEROS:
                state = NOTHING_READABLE
        del frames
        return SegmentSummary(
            name=files.log.name,
            base_offset=files.base_offset,
            next_offset=next_offset,
            size=size,
            index_size=sum(_index_sizes((files,), storage)),
            contents=contents,
            offset_index=read_uncut(partial(_index_state, segment, "offset_index")),
            time_index=read_uncut(partial(_index_state, segment, "time_index")),
            aborted=len(segment.transaction_index.entries) if segment.transaction_index else None,
            has_snapshot=files.snapshot is not None,
            tail_size=tail_size,
            state=state,
            is_damaged=is_damaged,
            overlaps=overlaps,
        )


def _index_state(segment: LogSegment, name: str) -> IndexState | None:
    segment.release()  # opens the index again
    index = getattr(segment, name)
    if index is None:
        return None
    entries, zeros = len(index.entries), index.trailing_zero_count
    return IndexState(entries, zeros, bool(index.trailing_size) or entries + zeros != index.slot_count)


def _size(path: Path | None, storage: LogStorage = LOCAL) -> int:
    try:
        return storage.status(path).size if path is not None else 0
    except (UsageError, FormatError):
        return 0


@dataclass(slots=True)
class PartitionSummary:
    """One line of the listing of a log directory.

    Attributes:
        name: of the directory.
        state: ``delete``, ``future``, ``stray``; empty for a partition in use.
        log_start_offset: as checkpointed, or the first base offset.
        log_end_offset: after the last whole entry of the last segment.
        segments: number of segments.
        size: bytes of the logs together.
        index_size: bytes of the indexes together.
        recovery_point, high_watermark: as checkpointed; None without.
        contents: totals over all entries; None if only the last segment was walked.
        problem: the state of the first segment that is not ok; else empty.
        is_damaged: whether damage ended the walk of a segment.
        gaps: offsets that are not in the directory; between segments only if all were walked.
    """

    name: str
    state: str
    log_start_offset: int
    log_end_offset: int
    segments: int
    size: int
    index_size: int
    recovery_point: int | None
    high_watermark: int | None
    contents: Contents | None
    problem: str
    is_damaged: bool
    gaps: tuple[Gap, ...]

    @property
    def is_incomplete(self) -> bool:
        """Return whether offsets are missing that are in no remote store either."""
        return any(gap.is_loss for gap in self.gaps)

    def as_object(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "type": "partition",
            "directory": self.name,
            "state": self.state,
            "logStartOffset": self.log_start_offset,
            "logEndOffset": self.log_end_offset,
            "segments": self.segments,
            "bytes": self.size,
            "indexBytes": self.index_size,
            "recoveryPoint": self.recovery_point,
            "highWatermark": self.high_watermark,
            **(self.contents.as_object() if self.contents else {}),
            "problem": self.problem or None,
            "notHere": next((gap.as_object() for gap in self.gaps if not gap.is_loss), None),
            "missing": [gap.as_object() for gap in self.gaps if gap.is_loss],
        }


def partition_summary(
    entry: PartitionEntry,
    listing: PartitionListing,
    directory: LogDirectory,
    *,
    walk_all: bool,
    tables: BatchTables | None = None,
    storage: LogStorage = LOCAL,
) -> PartitionSummary:
    """Summarize one partition.

    Args:
        entry: of the log directory.
        listing: its files.
        directory: the log directory.
        walk_all: walk all segments instead of the last one.
        tables: as for `segment_summary`.
        storage: as for `segment_summary`.

    Raises:
        UsageError: a log cannot be opened.
    """
    walk = partial(segment_summary, tables=tables, storage=storage)
    summaries = [walk(*each) for each in (listing.with_following if walk_all else listing.with_following[-1:])]
    contents = Contents()
    for summary in summaries:
        contents.merge(summary.contents)
    key = entry.name.topic_partition
    first = listing.segments[0].base_offset if listing.segments else 0
    known_start, high_watermark = directory.log_start_offsets.get(key, 0), directory.high_watermarks.get(key)
    start = max(first, known_start)
    watch = GapWatch(listing, log_start_offset=known_start, checkpointed_end=directory.checkpointed_end(key))
    bad = next((summary for summary in summaries if summary.state != "ok"), None)
    return PartitionSummary(
        name=entry.path.name,
        state=entry.name.state,
        log_start_offset=start,
        log_end_offset=max(summaries[-1].next_offset if summaries else first, start),
        segments=len(listing.segments),
        size=sum(_size(files.log) for files in listing.segments),
        index_size=sum(_index_sizes(listing.segments)),
        recovery_point=directory.recovery_points.get(key),
        high_watermark=high_watermark,
        contents=contents if walk_all else None,
        problem=f"{bad.name}: {bad.state}" if bad else "",
        is_damaged=any(summary.is_damaged for summary in summaries),
        gaps=() if entry.name.state else gaps_of_summaries(watch, summaries),
    )


def gaps_of_summaries(watch: GapWatch, summaries: Sequence[SegmentSummary]) -> tuple[Gap, ...]:
    """Return the gaps in and after listed segments, except one of which nothing is readable: its own row says so."""
    reached = {each.base_offset: each.next_offset for each in summaries}
    found = watch.gaps(reached, {each.base_offset: each.overlaps for each in summaries})
    return tuple(gap for gap in found if gap.kind is not GapKind.UNREADABLE)


def _index_sizes(segments: Iterable[SegmentFiles], storage: LogStorage = LOCAL) -> Iterable[int]:
    for files in segments:
        for path in (files.offset_index, files.time_index, files.transaction_index):
            yield _size(path, storage)


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
    from seglog_format.engine import Engine, engine_for, tables_of
    from seglog_format.log.listing import list_partition
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
