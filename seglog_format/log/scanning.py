"""Scans: requests for the columnar engine, and their results as Arrow batches (chapter 60).

The engine decodes the entries that its fast path covers, and gets all others decoded from `SegmentSource`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypedDict

from seglog_format.arguments import require_offsets
from seglog_format.engine import columnar
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.reading import READ_UNCOMMITTED, Borders
from seglog_format.log.segment_source import SegmentSource
from seglog_format.model import INT64_MAX
from seglog_format.scan_statistics import ScanStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from seglog_format.engine.columnar import Request, Start
    from seglog_format.errors import UndecodedRecordError
    from seglog_format.log.gap_watch import AtBorder, OnCorrupt, OnGap
    from seglog_format.log.reading import Isolation, LogReader
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.values.decoder import Decoder

EntryPosition: TypeAlias = tuple[int, int]
"""The number of a segment, and the position of an entry in it."""

INT64_MIN: Final = -(2**63)
DEFAULT_BATCH_ROWS: Final = 2**16
DEFAULT_COLUMNS: Final = ("offset", "timestamp", "key", "value")


class ScanOptions(NamedTuple):
    """Options of a scan's result, see `Scannable.scan`.

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
    """Options of a scan that apply to any number of partitions; see `Scannable.scan`."""

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
    return columnar.scan(sources, request, options.threads, at_end)


def request_of(
    offsets: tuple[int, int], transactions: Transactions | None, options: ScanOptions, limit: int
) -> Request:
    """Create the request to the engine; arguments and errors as those of `scan_log`."""
    if options.batch_rows < 1 or options.threads < 1:
        msg = f"batch_rows and threads are 1 or more, not {options.batch_rows} and {options.threads}"
        raise UsageError(msg)
    earliest, latest = options.from_timestamp_ms, options.to_timestamp_ms
    return columnar.scan_request(
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
    start = columnar.scan_start(position, base_offset - 1, offsets[0], end)
    return SegmentSource(segment, offsets[1], transactions), start


def find_entry(reader: LogReader, offset: int) -> EntryPosition | None:
    """Find the entry that holds an offset, by a walk of the columnar engine over headers; None if it cannot.

    For a log in which each message is an entry, the walk by the fallback decoder would take seconds.
    """
    number = reader.floor(offset)
    if number is None or reader.trust_indexes:
        return None
    segment = reader.segments[number]
    position = columnar.position_of(segment.source, (segment.allowed.first, segment.allowed.last), offset)
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
            columnar.scan_start(position, segment.base_offset - 1, offsets[0]),
        )
        position = 0


class ScannedLog(Protocol):
    """The attributes of a partition that a scan needs."""

    _reader: LogReader
    _limit: int

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""

    def _transactions_for(self, isolation: str) -> Transactions | None: ...

    def _check_range(self, offset: int) -> None: ...

    def _raise_undecided(self, offset: int, transactions: Transactions) -> None: ...

    def _watched(
        self, on_gap: OnGap | None, *, is_from_start: bool, on_corrupt: OnCorrupt | None = None
    ) -> AtBorder: ...


class Scannable:
    """The part of `Partition` that scans."""

    def scan(  # noqa: PLR0913 - the options of a scan
        self: ScannedLog,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        from_timestamp_ms: int | None = None,
        to_timestamp_ms: int | None = None,
        isolation: Isolation = READ_UNCOMMITTED,
        on_corrupt: Callable[[FormatError], None] | None = None,
        on_gap: OnGap | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        threads: int = 1,
        layout: str = "view",
        part: tuple[int, int, int] | None = None,
        statistics: ScanStatistics | None = None,
        key: Decoder | None = None,
        value: Decoder | None = None,
        on_undecoded: Callable[[UndecodedRecordError], None] | None = None,
    ) -> pa.RecordBatchReader:
        """Read the records that `records` delivers, as Arrow batches.

        This method needs the extra ``fast``. It always uses the columnar engine, which leaves the entries that its fast
        path does not cover to the fallback decoder. So `scan` and `records` deliver and refuse the same.

        Args:
            columns: names of columns, in order; other columns are not decoded. Of the record: ``offset``,
                ``timestamp``, ``key``, ``value`` and ``headers``. Of its entry as stored: ``position``, ``file`` and
                ``codec``; ``timestamp_type`` (0: of the producer, 1: of the broker), null in magic 0. Only in magic 2,
                else null: ``batch_offset``, ``leader_epoch``, ``producer_id``, ``producer_epoch``, ``sequence`` (of
                the record), ``is_transactional``.
            from_offset: first offset wanted; the log start offset by default.
            to_offset: end of the range, exclusive; to the end of the log by default.
            from_timestamp_ms: leave out records that are older, and entries whose header says that they are.
            to_timestamp_ms: leave out records of this time and newer ones.
            isolation: ``read_uncommitted`` or ``read_committed``; see `records`.
            on_corrupt: called with each damaged entry, which is then left out; by default the first one ends the scan.
                If the size or magic of an entry is wrong, the rest of its segment is left out. It is also called if a
                segment that is not the last ends before the next one begins, inside an entry or with offsets only in
                its indexes (SEG-PDR-024). Without ``on_corrupt``, such an end is reported only to ``on_gap``.
            on_gap: called with missing offsets, as in `records`; not with ``part``.
            batch_rows: maximum number of rows of an Arrow batch, unless one entry alone holds more.
            threads: number of reading threads; the order of rows does not change. With ``on_corrupt`` one is used.
            layout: of keys, values and headers. ``view``: Arrow's binary views, which point into the bytes that were
                read or into decompressed blocks. ``binary`` or ``large_binary``: copies, for programs that cannot read
                views.
            part: of one segment only: its base offset, the position of an entry, and the position from which on no
                entry is read any more. So a large segment is shared out; nothing is looked up, and ``from_offset``
                only leaves out rows.
            statistics: adds the entries that are left to slower code, by cause, while batches are read.
            key: decodes keys; see `value_decoder`.
            value: decodes values: the column is a struct with the fields of their schema.
            on_undecoded: called with what cannot be decoded, which is null then; by default the first one ends the
                scan with an `UndecodedRecordError`.

        Returns:
            A reader of Arrow batches; also for anything that takes an Arrow C stream. Batches stay valid when the
            partition is closed, whatever becomes of its files, unless it was opened with ``mapped=True``. Each batch
            keeps the windows in memory that its views point into: at most 4 MiB each, unless one entry is larger.

        Raises:
            OffsetOutOfRangeError: ``from_offset`` is below the log start or above the log end offset (SEG-LKP-004).
            UsageError: an invalid option, or the engine is not installed.
            FormatError: here or while reading on, as from `records`.
        """
        require_offsets(from_offset=from_offset, to_offset=to_offset)
        transactions = self._transactions_for(isolation)
        start = self.log_start_offset if from_offset is None else from_offset
        entry = find_entry(self._reader, start) if part is None and start >= self.log_start_offset else None
        if part is None and entry is None:
            self._check_range(start)
        at_border = None
        if part is None:
            at_border = self._watched(on_gap, is_from_start=from_offset is None, on_corrupt=on_corrupt)
        decoders = {name: each for name, each in (("key", key), ("value", value)) if each and name in columns}
        has_offset = "offset" in columns
        options = ScanOptions(
            columns if has_offset or not decoders else ("offset", *columns),
            from_timestamp_ms,
            to_timestamp_ms,
            on_corrupt,
            batch_rows,
            layout,
            threads,
            part,
            entry,
            at_border,
            statistics,
        )
        end = INT64_MAX if to_offset is None else to_offset
        decided = end if transactions is None else min(end, transactions.last_stable_offset)
        undecided = None if transactions is None else partial(self._raise_undecided, end - 1, transactions)
        reader = scan_log(self._reader, (start, decided), transactions, options, self._limit, undecided)
        if not decoders:
            return reader
        from seglog_format.values.scanned import with_decoded  # noqa: PLC0415 - loads Arrow

        return with_decoded(reader, decoders, on_undecoded, keeps_offset=has_offset)
