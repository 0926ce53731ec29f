"""Summaries of segments and partitions for ``seglog ls``: file sizes, and facts from a walk of headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from seglog_format.cli.output import gaps_of
from seglog_format.cli.paths import NOTHING_READABLE
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines.logs import codec_name
from seglog_format.log.entry_table import in_order, overlap_of
from seglog_format.log.gaps import GapWatch
from seglog_format.log.segment import LogSegment
from seglog_format.model import CODEC_MASK, DELETE_HORIZON_BIT, NO_TIMESTAMP, TailKind
from seglog_format.storage.file_reader import read_uncut
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from seglog_format.engine import BatchTable, BatchTables
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionEntry, PartitionListing, SegmentFiles
    from seglog_format.model import BatchHeader
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
    """Return the gaps in and after listed segments, as `gaps_of`."""
    reached = {each.base_offset: each.next_offset for each in summaries}
    return gaps_of(watch, reached, {each.base_offset: each.overlaps for each in summaries})


def _index_sizes(segments: Iterable[SegmentFiles], storage: LogStorage = LOCAL) -> Iterable[int]:
    for files in segments:
        for path in (files.offset_index, files.time_index, files.transaction_index):
            yield _size(path, storage)
