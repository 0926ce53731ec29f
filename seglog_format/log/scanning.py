"""Scans: requests for the columnar engine, and their results as Arrow batches (chapter 60).

The engine decodes the entries that its fast path covers, and gets all others decoded from `SegmentSource`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypedDict

from seglog_format import engine
from seglog_format.codec.decode import decompressed_bytes
from seglog_format.engine import Engine
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.entry_table import in_order, is_sparse, overlap_of
from seglog_format.log.reading import Borders, delivered
from seglog_format.model import GREATEST_OFFSET, INT64_MAX, BatchHeader, Frame, Message, Record, Tail
from seglog_format.scan_statistics import ScanStatistics
from seglog_format.storage.byte_source import Buffer, ByteSource, MemoryBytes, Window
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa

    from seglog_format.engine import Choice, Request, Start
    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.gaps import AtBorder, OnGap
    from seglog_format.log.reading import Isolation, LogReader
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.storage.log_storage import LogStorage


# -- a segment as the columnar engine reads it: its bytes, and the fallback decoder for its entries (chapter 60) -------


class FallbackEntry(NamedTuple):
    """An entry that the fallback decoder decoded: header, records to deliver, end position and last offset.

    If it begins below the end of the entry before it, that is its overlap; else None. `hidden` is the error of
    `hidden_data`.
    """

    header: BatchHeader
    records: Sequence[Record | Message]
    end: int
    last_offset: int
    overlap: Overlap | None = None
    hidden: FormatError | None = None


class SegmentSource(NamedTuple):
    """A segment as the engine reads it.

    Attributes:
        segment: the segment to read.
        to_offset: end of the range to read, exclusive.
        transactions: leave out the records that are aborted according to these.
    """

    segment: LogSegment
    to_offset: int
    transactions: Transactions | None

    @property
    def path(self) -> str:
        """Path of the log."""
        return self.segment.path

    @property
    def size(self) -> int:
        """Size of the log in bytes."""
        return self.segment.source.size

    def view(self, start: int, end: int) -> memoryview:
        """Return bytes of the log, as `FileBytes.view` does."""
        return self.segment.source.view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the log, as `FileBytes.window` does."""
        return self.segment.source.window(position, at_least)

    @property
    def file(self) -> str:
        """Name of the log."""
        return self.segment.paths.log.name

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Lowest and highest offset that the segment can hold."""
        return self.segment.allowed.first, self.segment.allowed.last

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        """Decode the entry at a position with the fallback decoder; return None at the end of what to read.

        Raises:
            FormatError: the entry is damaged or refused.
        """
        found = self.segment.frame_at(position)
        if isinstance(found, Tail):
            return None
        segment = self.segment
        (frame,) = in_order((found,), segment.path, segment.allowed, previous)
        first = frame.header.base_offset
        if first is not None and first >= self.to_offset:  # as in `LogReader.frames_from`: reading ends before it
            return FallbackEntry(frame.header, (), frame.end, self.to_offset - 1)
        batch = segment.decode(frame)
        records = tuple(delivered(batch, floor, self.to_offset, self.transactions))
        overlap, hidden = overlap_of(frame, previous + 1, lambda _: batch), segment.hidden_data(frame, batch)
        return FallbackEntry(frame.header, records, frame.end, batch.last_offset, overlap, hidden)

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed bytes of the entry at a position; None if it is damaged or exceeds the limit."""
        try:
            found = self.segment.frame_at(position)
        except FormatError:
            return None
        return decompressed_bytes(found, limit=limit) if isinstance(found, Frame) else None

    def end_of_damaged(self, position: int) -> int | None:
        """Return the position after a damaged entry; None if a wrong size or magic hides where it ends."""
        try:
            found = self.segment.frame_at(position)
        except FormatError:
            return None
        return None if isinstance(found, Tail) else found.end


# -- scans -------------------------------------------------------------------------------------------------------------


EntryPosition: TypeAlias = tuple[int, int]
"""The number of a segment, and the position of an entry in it."""

INT64_MIN: Final = -(2**63)
DEFAULT_BATCH_ROWS: Final = 2**16
DEFAULT_COLUMNS: Final = ("offset", "timestamp", "key", "value")


class ScanOptions(NamedTuple):
    """Options of a scan's result, see `Partition.scan`.

    Attributes:
        entry: the first entry, if `find_entry` has found it; else it is looked up.
        at_border: called at borders between segments; see `Borders`.
    """

    columns: Sequence[str] = DEFAULT_COLUMNS
    from_timestamp_ms: int | None = None
    to_timestamp_ms: int | None = None
    on_corrupt: Callable[[FormatError], None] | None = None
    batch_rows: int = DEFAULT_BATCH_ROWS
    layout: str = "view"
    threads: int = 1
    part: tuple[int, int, int] | None = None
    entry: EntryPosition | None = None
    at_border: AtBorder | None = None
    statistics: ScanStatistics | None = None


class ScanKeywords(TypedDict, total=False):
    """Options of a scan that apply to any number of partitions; see `Partition.scan`."""

    from_timestamp_ms: int | None
    to_timestamp_ms: int | None
    isolation: Isolation
    on_corrupt: Callable[[FormatError], None] | None
    on_gap: OnGap | None
    batch_rows: int
    threads: int
    statistics: ScanStatistics | None


def scan_log(
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    options: ScanOptions,
    limit: int,
    at_end: Callable[[], None] | None = None,
) -> pa.RecordBatchReader:
    """Scan a range of offsets.

    Args:
        reader: of the log.
        offsets: from the first inclusive to the second exclusive.
        transactions: leave out the records that are aborted according to these.
        options: options of the result.
        limit: maximum bytes that one entry may decompress to.
        at_end: called after the last batch; may raise an error for the reader.

    Raises:
        UsageError: an invalid option, or the engine is not installed.
        FormatError: the start cannot be found because of damage.
    """
    request = request_of(offsets, transactions, options, limit)
    sources = sources_of(reader, offsets, transactions, options)
    return engine.scan(sources, request, options.threads, at_end)


def request_of(
    offsets: tuple[int, int], transactions: Transactions | None, options: ScanOptions, limit: int
) -> Request:
    """Create the request to the engine; arguments and errors as those of `scan_log`."""
    if options.batch_rows < 1 or options.threads < 1:
        msg = f"batch_rows and threads are 1 or more, not {options.batch_rows} and {options.threads}"
        raise UsageError(msg)
    earliest, latest = options.from_timestamp_ms, options.to_timestamp_ms
    return engine.scan_request(
        options.columns,
        options.layout,
        offsets=offsets,
        timestamps_ms=(INT64_MIN if earliest is None else earliest, INT64_MAX if latest is None else latest - 1),
        batch_rows=options.batch_rows,
        limit=limit,
        aborted=() if transactions is None else transactions.aborted,
        on_corrupt=options.on_corrupt,
        borders=Borders(offsets[0], options.at_border),
        statistics=ScanStatistics() if options.statistics is None else options.statistics,
    )


def sources_of(
    reader: LogReader, offsets: tuple[int, int], transactions: Transactions | None, options: ScanOptions
) -> Iterable[tuple[SegmentSource, Start]]:
    """Yield a source for each segment to read, and where the engine starts in it."""
    if options.part is not None:
        return [_part(reader, options.part, offsets, transactions)]
    found = _start(reader, offsets, options)
    if found is None:
        return ()
    first, position = found
    return _from(reader.segments[first:], position, offsets, transactions)


def _part(
    reader: LogReader, part: tuple[int, int, int], offsets: tuple[int, int], transactions: Transactions | None
) -> tuple[SegmentSource, Start]:
    base_offset, position, end = part
    number = reader.floor(base_offset)
    segment = None if number is None else reader.segments[number]
    if segment is None or segment.base_offset != base_offset or not 0 <= position <= end:
        msg = f"no segment has base offset {base_offset} and positions {position} to {end}"
        raise UsageError(msg)
    start = engine.scan_start(position, base_offset - 1, offsets[0], end)
    return SegmentSource(segment, offsets[1], transactions), start


def find_entry(reader: LogReader, offset: int) -> EntryPosition | None:
    """Find the entry that holds an offset, by a walk of the columnar engine over headers; None if it cannot.

    For a log in which each message is an entry, the walk by the fallback decoder would take seconds. In one of large
    entries, that walk reads fewer bytes.
    """
    number = reader.floor(offset)
    if number is None or reader.trust_indexes:
        return None
    segment = reader.segments[number]
    if offset <= segment.base_offset or is_sparse(segment.source):
        return None
    position = engine.position_of(segment.source, (segment.allowed.first, segment.allowed.last), offset)
    return None if position is None else (number, position)


def _start(reader: LogReader, offsets: tuple[int, int], options: ScanOptions) -> EntryPosition | None:
    """Find the first entry to read, as `LogReader.records` does; return None if there is none."""
    offset, end = offsets
    if offset >= end or not reader.segments:
        return None
    if options.on_corrupt is not None:
        return reader.floor(offset) or 0, 0
    if options.entry is not None:
        return options.entry
    for segment, frame in reader.frames_from(offset, end, options.at_border):
        first = frame.header.base_offset
        is_anything_before = frame.position > 0 or segment is not reader.segments_from(offset)[0]
        if is_anything_before and (first is None or first > offset):
            reader.first_batch(segment, frame, offset)  # raises if damage may have hidden an earlier entry
        return reader.segments.index(segment), frame.position
    return None


def _from(
    segments: Iterable[LogSegment], position: int, offsets: tuple[int, int], transactions: Transactions | None
) -> Iterator[tuple[SegmentSource, Start]]:
    for segment in segments:
        yield (
            SegmentSource(segment, offsets[1], transactions),
            engine.scan_start(position, segment.base_offset - 1, offsets[0]),
        )
        position = 0


# -- records as objects: by the columnar engine, but for the first batch -----------------------------------------------


def record_lists(
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    options: ScanOptions,
    limit: int,
    *,
    choice: Choice,
) -> Iterator[Iterable[Record | Message]]:
    """Read the records of a range of offsets, as lists, by the columnar engine.

    If it was chosen by the size, the plain decoders read up to the end of the first batch that has a record to deliver.
    They read all if the engine cannot create objects of this Python interpreter.

    Args:
        reader: of the log.
        offsets: from the first inclusive to the second exclusive.
        transactions: leave out the records that are aborted according to these.
        options: the entry to begin at, and what is called at borders; the others are not used.
        limit: maximum bytes that one entry may decompress to.
        choice: of the engine.

    Raises:
        FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
    """
    start, end = offsets
    if not choice.is_asked_for:
        start = yield from _first_batch(reader, offsets, transactions, options.at_border)
    if start >= end:
        return
    batch_rows = engine.object_rows()
    if batch_rows is None:
        yield reader.records(start, end, transactions, options.at_border)
        return
    options = options._replace(batch_rows=batch_rows)
    request = request_of((start, end), transactions, options, limit)
    yield from engine.record_lists(sources_of(reader, (start, end), transactions, options), request)


def _first_batch(
    reader: LogReader, offsets: tuple[int, int], transactions: Transactions | None, at_border: AtBorder | None
) -> Generator[Iterable[Record | Message], None, int]:
    """Deliver the first batch that has a record in a range of offsets; return the offset to resume from.

    Raises:
        FormatError: while iterating: as for `LogReader.records`.
    """
    start, end = offsets
    for batch in reader.batches_to_deliver(start, end, at_border):
        records = delivered(batch, start, end, transactions)
        start = max(start, batch.next_offset)
        if (first := next(records, None)) is not None:
            yield chain((first,), records)
            if start <= GREATEST_OFFSET:  # else no range of offsets is left, but there may be damage to report
                return start
    return end


# -- the storage through which the chosen engine reads: it decides which decoders parse the bytes of its files ---------


def storage_for(engine: Engine, storage: LogStorage = LOCAL) -> LogStorage:
    """Return a storage for an engine: for the reference, its files are parsed by the declarations.

    Args:
        engine: the chosen engine.
        storage: the storage that holds the files; it is returned unchanged for any other engine.
    """
    if engine is not Engine.REFERENCE:
        return storage
    from seglog_format.codec.reference import DeclaredStorage  # noqa: PLC0415 - loads the declarations

    return DeclaredStorage(storage)


def bytes_for(engine: Engine, data: Buffer, path: str = "") -> ByteSource:
    """Return a source of bytes in memory for an engine: for the reference, they are parsed by the declarations.

    Args:
        engine: the chosen engine.
        data: bytes of a log.
        path: file name for errors.
    """
    if engine is not Engine.REFERENCE:
        return MemoryBytes(data, path)
    from seglog_format.codec.reference import declared  # noqa: PLC0415 - as above

    return declared(data, path)
