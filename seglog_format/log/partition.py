"""Reading of a partition directory: offsets, records, transactions, lookups (chapter 60); no file is changed."""

from __future__ import annotations

from contextlib import suppress
from copy import copy as copied
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.engine import COLUMNAR_SIZE, Choice, Engine, engine_for
from seglog_format.errors import FormatError, OffsetOutOfRangeError, UsageError, require_offset, require_offsets
from seglog_format.log.entry_table import is_within
from seglog_format.log.gaps import Gap, GapWatch, reporting, tiered_gap, warn_of_gap
from seglog_format.log.listing import PartitionListing, greatest, list_partition, reached_offsets
from seglog_format.log.path_kind import require_partition, size_from
from seglog_format.log.reading import (
    READ_UNCOMMITTED,
    Fetch,
    Isolation,
    LogReader,
    OffsetSpec,
    all_delivered,
    first_not_older,
    first_of_largest,
    first_offset,
    is_committed_only,
    require_timestamp,
    start_not_older,
)
from seglog_format.log.scanning import (
    DEFAULT_BATCH_ROWS,
    DEFAULT_COLUMNS,
    ScanOptions,
    find_entry,
    record_lists,
    scan_log,
    storage_for,
)
from seglog_format.log.segment import LogSegment, OpenSegments, trusted_next_offset
from seglog_format.log.transactions import Transactions, scan_transactions
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, INT64_MAX, NO_TIMESTAMP, TimestampOffset
from seglog_format.names import FileKind
from seglog_format.storage.byte_source import Closing
from seglog_format.storage.log_storage import LOCAL, LogStorage

if TYPE_CHECKING:
    import os
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from seglog_format.errors import UndecodedRecordError
    from seglog_format.log.gaps import AtBorder, OnCorrupt, OnGap
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.log.scanning import EntryPosition
    from seglog_format.model import AbortedTxn, Message, MissingOffsets, Record, RecordBatch
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.values.decoder import Decoder

DEFAULT_MAX_BYTES: Final = 1 << 20
"""Default maximum size of one read, as a consumer's default for one partition."""


class Partition(Closing):
    """A partition directory. A context manager; use `open_partition` to get one.

    The directory is listed when the partition is opened; files are opened at first use, and only a few segments
    are kept open at a time. Not thread-safe.

    Attributes:
        listing: the files of the directory, and which of them count.
        name: of the directory.
        segments: by ascending base offset; may be empty.
        high_watermark: as last checkpointed, or None; a broker serves consumers only below it.
        trust_indexes: lookups start at index entries that look right instead of proving them.
    """

    def __init__(  # noqa: PLR0913 - what is known beside the logs, and how to read them
        self,
        listing: PartitionListing,
        *,
        log_start_checkpoint: int | None = None,
        high_watermark: int | None = None,
        checkpointed_end: int = 0,
        trust_indexes: bool = False,
        limit: int = DEFAULT_OUTPUT_LIMIT,
        mapped: bool = False,
    ) -> None:
        """Create a partition from a listing; `open_partition` adds the checkpoints of the log directory.

        Args:
            listing: of the directory.
            log_start_checkpoint: log start offset in the checkpoint of the log directory; None if there is none.
            high_watermark: high watermark in the checkpoint of the log directory; None if there is none.
            checkpointed_end: the greatest offset that the log had reached by any checkpoint; 0 without.
            trust_indexes: see `open_partition`.
            limit: see `open_partition`.
            mapped: see `open_partition`.
        """
        self.listing = listing
        self.name = listing.path.absolute().name
        self.high_watermark = high_watermark
        self.trust_indexes = trust_indexes
        self._checkpointed_end = checkpointed_end
        self._log_start_checkpoint = log_start_checkpoint or 0
        self._limit = limit
        self._mapped = mapped
        self._opened = OpenSegments()
        self.segments = self._segments(listing.storage)
        self._reader = LogReader(self.segments, trust_indexes=trust_indexes)

    @cached_property
    def _reference_reader(self) -> LogReader:
        """The reader of the same segments by the reference engine, which interprets the declarations."""
        segments = self._segments(storage_for(Engine.REFERENCE, self.listing.storage))
        return LogReader(segments, trust_indexes=self.trust_indexes)

    def _segments(self, storage: LogStorage) -> tuple[LogSegment, ...]:
        segment = partial(LogSegment, limit=self._limit, mapped=self._mapped, opened=self._opened, storage=storage)
        return tuple(segment(files, next_base_offset=base_offset) for files, base_offset in self.listing.with_following)

    @property
    def path(self) -> Path:
        """The directory."""
        return self.listing.path

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read: the first base offset or a greater checkpoint (SEG-CKP-010)."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(first, self._log_start_checkpoint)

    @cached_property
    def log_end_offset(self) -> int:
        """The offset that the next record would get (SEG-LKP-015), never below the log start offset.

        If the last segment is damaged, it is the offset after the last whole entry before the damage.
        """
        if not self.segments:
            return self.log_start_offset
        last = self.segments[-1]
        trusted = trusted_next_offset(last) if self.trust_indexes else None
        return max(last.next_offset if trusted is None else trusted, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """First offset of any open transaction, else the log end offset (SEG-LKP-012); read_committed ends here.

        It is computed at first use, from the headers and end markers of the whole log, up to the first damage.
        """
        return max(self.transactions.last_stable_offset, self.log_start_offset)

    @cached_property
    def transactions(self) -> Transactions:
        """The transactions of the log; the whole log is read for them at first use."""
        return scan_transactions(self.segments, self.log_start_offset, self.lost_before)

    def aborted_transactions(self) -> tuple[AbortedTxn, ...]:
        """Return the aborted transactions, in the order of their markers, up to the first damage of the log."""
        return tuple(self.transactions.aborted)

    def segment_for(self, offset: int) -> LogSegment:
        """Return the segment to search for an offset: the one with the greatest base offset not above it (SEG-LKP-001).

        Raises:
            OffsetOutOfRangeError: the offset is below the first segment, or there is no segment.
        """
        number = self._reader.floor(offset)
        if number is None:
            msg = f"{self.path}: no segment can hold offset {offset}"
            raise OffsetOutOfRangeError(msg)
        return self.segments[number]

    def records(  # noqa: PLR0913 - the options of a read
        self,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        from_timestamp_ms: int | None = None,
        to_timestamp_ms: int | None = None,
        isolation: Isolation = READ_UNCOMMITTED,
        on_gap: OnGap | None = None,
        engine: Engine = Engine.AUTO,
    ) -> Iterator[Record | Message]:
        """Deliver records in offset order, without control records.

        Args:
            from_offset: first offset wanted; the log start offset by default.
            to_offset: end of the range, exclusive; by default the end of the log. It may be above the log end offset.
            from_timestamp_ms: leave out records that are older. Of the entries before the first that may hold another,
                by its header, only headers are read.
            to_timestamp_ms: leave out records of this time and newer ones. It does not end the reading, since
                timestamps may fall.
            isolation: ``read_uncommitted``, or ``read_committed``: up to the last stable offset, and without the
                records of aborted transactions (SEG-LKP-011, SEG-LKP-012).
            on_gap: called with offsets that are missing before the first segment, between two segments, or below the
                high watermark (SEG-LKP-019), when reading comes to them; by default a `MissingOffsetsWarning` reports
                them. Reading continues. In a log that is known to be compacted, no gaps are reported (SEG-PDR-023).
            engine: the engine that reads; the records do not depend on it. See `engine_for`. By default the columnar
                engine is loaded only for records after the first batch: a lookup of one record does not wait for it.
                With `Engine.COLUMNAR` it also finds the first entry.

        Raises:
            OffsetOutOfRangeError: ``from_offset`` is below the log start or above the log end offset (SEG-LKP-004).
            UsageError: an offset that is no integer, an unknown isolation level, an engine that is not installed, or,
                while iterating, a partition that was closed.
            FormatError: while iterating: at the first entry that is damaged or refused, after everything before it
                was delivered (SEG-LKP-014).
        """
        require_offsets(from_offset=from_offset, to_offset=to_offset)
        transactions = self._transactions_for(isolation)
        start = self.log_start_offset if from_offset is None else from_offset
        end = INT64_MAX if to_offset is None else to_offset
        has_times = from_timestamp_ms is not None or to_timestamp_ms is not None
        if engine is Engine.AUTO and transactions is None and from_offset is not None and not has_times:
            first = self._reader.record_at(start) if self.log_start_offset <= start < end else None
            if first is not None:
                return chain((first,), self._following(start + 1, to_offset, on_gap))
        entry = self._find_entry(start) if engine is Engine.COLUMNAR and not has_times else None
        if entry is None:
            self._check_range(start)
        at_border = self._watched(on_gap, from_offset, end)
        if from_timestamp_ms is not None:
            start = start_not_older(self._reader, start, from_timestamp_ms, at_border)
        choice = self.engine_for(start, to_offset, engine=engine)
        found = chain.from_iterable(self._deliver((start, end), transactions, entry, choice, at_border))
        return (
            (one for one in found if is_within(one.timestamp_ms, from_timestamp_ms, to_timestamp_ms))
            if has_times
            else found
        )

    def find(
        self,
        pattern: str | bytes | re.Pattern[bytes],
        *,
        fields: Collection[str] = ("key", "value", "header"),
        from_offset: int | None = None,
        to_offset: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> Iterator[Record | Message]:
        """Yield the records that hold a text, in offset order, also those of aborted transactions.

        A batch is decoded only if its bytes, decompressed, hold the text; its checksum is verified in any case. A
        `MissingOffsetsWarning` reports missing offsets, as by `records`.

        Args:
            pattern: a text, bytes, or an expression for bytes; a field that is null holds none of them.
            fields: where it is searched: ``key``, ``value``, ``header`` for keys and values of headers.
            from_offset: first offset to search; the log start offset by default.
            to_offset: end of the range, exclusive; by default the end of the log.
            since_ms: the least timestamp of a record, in milliseconds since 1970.
            until_ms: the timestamp that a record is older than.

        Raises:
            OffsetOutOfRangeError: as for `records`.
            UsageError: an offset that is no integer, or an unknown field.
            FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).

        Examples:
            >>> from seglog_format import open_partition
            >>> with open_partition("demo/kafka-4.3.0/segs-0") as partition:
            ...     [record.offset for record in partition.find("key-23", fields=["key"], from_offset=200)]
            [249, 300, 445]
        """
        require_offsets(from_offset=from_offset, to_offset=to_offset)
        start = self.log_start_offset if from_offset is None else from_offset
        self._check_range(start)
        from seglog_format.log.search import FIELDS, Wanted  # noqa: PLC0415 - for searches alone

        if unknown := sorted(set(fields).difference(FIELDS)):
            msg = f"a field is one of {', '.join(FIELDS)}, not {unknown[0]!r}"
            raise UsageError(msg)
        data = pattern.encode() if isinstance(pattern, str) else pattern
        wanted = Wanted(pattern=data, fields=tuple(fields), since_ms=since_ms, until_ms=until_ms)
        end = INT64_MAX if to_offset is None else to_offset
        at_border = self._watched(None, from_offset, end)
        if since_ms is not None:
            start = start_not_older(self._reader, start, since_ms, at_border)
        return self._reader.found(wanted, start, end, at_border)

    def _following(self, start: int, to_offset: int | None, on_gap: OnGap | None) -> Iterator[Record | Message]:
        """Deliver the records after one that was looked up; the engine is chosen when they are wanted."""
        end = INT64_MAX if to_offset is None else to_offset
        choice, at_border = self.engine_for(start, to_offset), self._watched(on_gap, start, end)
        yield from chain.from_iterable(self._deliver((start, end), None, None, choice, at_border))

    def engine_for(
        self, from_offset: int | None = None, to_offset: int | None = None, *, engine: Engine = Engine.AUTO
    ) -> Choice:
        """Return the engine that `records` uses, and why.

        The choice depends on the number of bytes to read, which is estimated from offset indexes.

        Args:
            from_offset: as for `records`.
            to_offset: as for `records`.
            engine: as for `records`.

        Raises:
            UsageError: the engine is not installed.
        """
        start = self.log_start_offset if from_offset is None else from_offset
        end = INT64_MAX if to_offset is None else to_offset
        return engine_for(engine, size_from(self._reader, start, COLUMNAR_SIZE, end) if engine is Engine.AUTO else 0)

    def _find_entry(self, offset: int) -> EntryPosition | None:
        """Return the entry of an offset, found by the columnar engine; None if another way to find it is used."""
        return None if offset < self.log_start_offset else find_entry(self._reader, offset)

    def _deliver(
        self,
        offsets: tuple[int, int],
        transactions: Transactions | None,
        entry: EntryPosition | None,
        choice: Choice,
        at_border: AtBorder,
    ) -> Iterator[Iterable[Record | Message]]:
        start, end = offsets
        decided = end if transactions is None else min(end, transactions.last_stable_offset)
        if choice.is_columnar:
            options = ScanOptions(entry=entry, at_border=at_border)
            yield from record_lists(self._reader, (start, decided), transactions, options, self._limit, choice=choice)
        else:
            reader = self._reference_reader if choice.engine is Engine.REFERENCE else self._reader
            yield reader.records(start, decided, transactions, at_border)
        if transactions is not None:
            self._raise_undecided(end - 1, transactions)

    def scan(  # noqa: PLR0913 - the options of a scan
        self,
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
            from_timestamp_ms: leave out records that are older, and entries whose header says that they are. Before the
                first other entry, only headers are read, unless ``on_corrupt`` is to learn of all damage.
            to_timestamp_ms: leave out records of this time and newer ones. It does not end the reading, since
                timestamps may fall.
            isolation: ``read_uncommitted`` or ``read_committed``; see `records`.
            on_corrupt: called with each damaged entry, which is then left out; by default the first one ends the scan.
                If the size or magic of an entry is wrong, the rest of its segment is left out. It is also called if a
                segment that is not the last ends before the next one begins, inside an entry or with offsets only in
                its indexes (SEG-PDR-024). Without ``on_corrupt``, such an end is reported only to ``on_gap``.
            on_gap: called with missing offsets, as in `records`; with ``part`` only with those of its entries that
                readers skip.
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
        entry = self._find_entry(start) if part is None else None
        if part is None and entry is None:
            self._check_range(start)
        end = INT64_MAX if to_offset is None else to_offset
        if part is None:
            at_border = self._watched(on_gap, from_offset, end, on_corrupt)
            if from_timestamp_ms is not None and on_corrupt is None:
                entry, start = None, start_not_older(self._reader, start, from_timestamp_ms, at_border)
        else:
            at_border = partial(self._gap_watch.inside, reporting(on_gap, None))
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
        decided = end if transactions is None else min(end, transactions.last_stable_offset)
        undecided = None if transactions is None else partial(self._raise_undecided, end - 1, transactions)
        reader = scan_log(self._reader, (start, decided), transactions, options, self._limit, undecided)
        if not decoders:
            return reader
        from seglog_format.values.decoder import with_decoded  # noqa: PLC0415 - loads Arrow

        return with_decoded(reader, decoders, on_undecoded, keeps_offset=has_offset)

    def read(
        self,
        offset: int,
        max_bytes: int = DEFAULT_MAX_BYTES,
        *,
        min_one_message: bool = True,
        isolation: Isolation = READ_UNCOMMITTED,
    ) -> Fetch:
        """Read as one fetch from a broker does: whole entries of one segment (SEG-LKP-002 to SEG-LKP-007).

        Args:
            offset: first offset wanted.
            max_bytes: maximum stored bytes to return, 0 or more.
            min_one_message: return the first entry even if it is larger than `max_bytes`.
            isolation: ``read_uncommitted`` or ``read_committed``.

        Returns:
            Entries, records and the offset to resume from. There are no entries at the log end offset, and with
            read_committed from the last stable offset on.

        Raises:
            OffsetOutOfRangeError: the offset is below the log start or above the log end offset (SEG-LKP-004).
            UsageError: a negative size, or an unknown isolation level.
            FormatError: the first entry is damaged or refused. Later damage ends the result before it.
        """
        transactions = self._transactions_for(isolation)
        if max_bytes < 0:
            msg = f"max_bytes is 0 or more, not {max_bytes}"
            raise UsageError(msg)
        self._check_range(offset)
        end = INT64_MAX if transactions is None else transactions.last_stable_offset
        at_border = partial(self._gap_watch.at_border, warn_of_gap)
        batches = self._reader.fetch(offset, end, max_bytes, at_border, min_one_message=min_one_message)
        if not batches and transactions is not None:
            self._raise_undecided(offset, transactions)
        records = tuple(all_delivered(batches, offset, end, transactions))
        return Fetch(batches, records, batches[-1].next_offset if batches else offset)

    def batches(self) -> Iterator[RecordBatch]:
        """Decode every entry as stored, including control batches and entries below the log start offset.

        Raises:
            FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
        """
        for segment in self.segments:
            yield from segment.batches()

    def start_not_older(self, timestamp_ms: int, from_offset: int | None = None, on_gap: OnGap | None = None) -> int:
        """Return where to begin to read the records that are not older than a timestamp, by a walk over headers.

        Args:
            timestamp_ms: milliseconds since 1970.
            from_offset: first offset wanted; the log start offset by default.
            on_gap: called with offsets that are missing before the start, as in `records`.
        """
        start = self.log_start_offset if from_offset is None else from_offset
        at_border = self._watched(on_gap, from_offset, INT64_MAX)
        return start_not_older(self._reader, start, timestamp_ms, at_border)

    def offset_for_timestamp(self, timestamp_ms: int | OffsetSpec) -> TimestampOffset | None:
        """Answer a timestamp lookup as a broker would.

        Args:
            timestamp_ms: milliseconds since 1970, 0 or more, or an `OffsetSpec`.

        Returns:
            The first record with this timestamp or a later one, in offset order, from the log start offset on; control
            records count. For `OffsetSpec.LATEST`, `EARLIEST` and `EARLIEST_LOCAL` that offset, with timestamp -1. None
            if there is no such record, and for `LATEST_TIERED` and `EARLIEST_PENDING_UPLOAD`. A
            `MissingOffsetsWarning` reports a tiered part of the log. Unless indexes are trusted, the columnar engine
            verifies what is above 4 MiB.

        Raises:
            UsageError: any other negative timestamp, or a value that is no number.
            FormatError: there is damage before the point at which the answer is certain.
        """
        require_timestamp(timestamp_ms)
        if timestamp_ms == OffsetSpec.LATEST:
            return TimestampOffset(NO_TIMESTAMP, self.log_end_offset)
        if timestamp_ms in {OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL}:
            return first_offset(self._reader, self.log_start_offset, timestamp_ms)
        if self._tiered_gap is not None:
            warn_of_gap(self._tiered_gap)
        if timestamp_ms == OffsetSpec.MAX_TIMESTAMP:
            return first_of_largest(self._reader, self.log_start_offset)
        if timestamp_ms in {OffsetSpec.LATEST_TIERED, OffsetSpec.EARLIEST_PENDING_UPLOAD}:
            return None
        return first_not_older(self._reader, timestamp_ms, self.log_start_offset)

    def _transactions_for(self, isolation: str) -> Transactions | None:
        return self.transactions if is_committed_only(isolation) else None

    def _raise_undecided(self, offset: int, transactions: Transactions) -> None:
        """Raise the damage that leaves it open whether a transaction at an offset was committed or aborted."""
        if transactions.damage is not None and offset >= transactions.last_stable_offset:
            raise copied(transactions.damage)

    def _check_range(self, offset: int) -> None:
        """Refuse an offset outside the log; the log end offset is computed only for offsets in the last segment."""
        require_offset("offset", offset)
        is_in_last = not self.segments or offset >= self.segments[-1].base_offset
        if offset < self.log_start_offset or (is_in_last and self._is_above_end(offset)):
            known = f"from {self.log_start_offset} to {self.log_end_offset}{self._tiered_text}"
            msg = f"{self.path}: offset {offset} is not {known}"
            raise OffsetOutOfRangeError(msg)

    def _is_above_end(self, offset: int) -> bool:
        """Return whether an offset is above the log end offset (SEG-LKP-017).

        Raises:
            FormatError: the last segment is damaged, and the offset may have been in it.
        """
        for last in self.segments[-1:]:  # none if there is no segment
            with suppress(FormatError):
                if not self.trust_indexes and last.number_of(offset) is not None:
                    return False  # to find that end would take a walk over the whole segment
            if offset >= self.log_end_offset:
                last.verify_last_entry()
                last.raise_damage()
        return offset > self.log_end_offset

    def _watched(
        self, on_gap: OnGap | None, from_offset: int | None, to_offset: int, on_corrupt: OnCorrupt | None = None
    ) -> AtBorder:
        """Return the function that a reader calls at borders; what `GapWatch.at_start` reports is reported at once.

        Args:
            on_gap: called with each gap; by default a Python warning is raised.
            from_offset: first offset wanted; None to begin at the log start offset.
            to_offset: first offset that is not wanted.
            on_corrupt: called before `on_gap` with the damage that explains a gap, if damage does.
        """
        callback = reporting(on_gap, on_corrupt)
        self._gap_watch.at_start(callback, from_offset, to_offset)
        if from_offset is None:
            start, last = self._log_start_checkpoint, self.listing.base_offsets[-1:]
            if last and start > last[0] and start > self.segments[-1].next_offset:  # reading begins above all records
                self._gap_watch.at_border(callback, last[0], last[0], None)
        return partial(self._gap_watch.at_border, callback)

    @property
    def tiered_offsets(self) -> MissingOffsets | None:
        """The offsets that are only in a remote store, and cannot be read here; None without any (SEG-PDR-028)."""
        return None if self._tiered_gap is None else self._tiered_gap.missing

    @cached_property
    def _tiered_gap(self) -> Gap | None:
        return tiered_gap(self.listing, self._log_start_checkpoint)

    @cached_property
    def missing_offsets(self) -> tuple[Gap, ...]:
        """What is missing before the first segment and after the last one, and what damage of the last one hides.

        What is in a remote store does not count.
        """
        overlaps = {each.base_offset: each.overlaps for each in self.segments[-1:]}
        found = (*self._gap_watch.gaps({base: base for base in overlaps}, overlaps), *self._gap_watch.behind_damage())
        return tuple(gap for gap in found if gap.is_loss)

    def lost_before(self, base_offset: int, reached: int) -> Gap | None:
        """Return what is lost before a segment, as `GapWatch.lost_before` does."""
        return self._gap_watch.lost_before(base_offset, reached)

    @property
    def _tiered_text(self) -> str:
        """The text that errors about an offset append, to name the offsets that are only in a remote store."""
        tiered = self.tiered_offsets
        return "" if tiered is None else f"; {tiered.first_offset} to {tiered.next_offset - 1} are not here: tiered"

    @cached_property
    def _gap_watch(self) -> GapWatch:
        start, end = self._log_start_checkpoint, self._checkpointed_end
        return GapWatch(self.listing, log_start_offset=start, checkpointed_end=end)

    def close(self) -> None:
        """Close all files; bytes and indexes obtained from the partition must not be used any more."""
        self._opened.close()

    def __repr__(self) -> str:
        return f"Partition({str(self.path)!r})"


def open_partition(
    path: str | os.PathLike[str],
    *,
    trust_indexes: bool = False,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    mapped: bool = False,
    remote: RemoteStore | None = None,
) -> Partition:
    """Open a partition directory for reading; nothing is created, repaired or locked.

    Log start offset and high watermark come from the checkpoints in the directory above, if they can be read. If a file
    becomes shorter while it is read, an `UnreadableError` is raised (SEG-PDR-022).

    By default no index is trusted. The first lookup in a segment walks the fixed fields of its entries from the start;
    later lookups search the positions that the walk found. Timestamp lookups also verify the checksums of the entries
    that they skip. With ``trust_indexes`` a lookup starts at the floor entry of the index, after checking that an entry
    is there, and takes time in proportion to the distance between index entries. An index does no harm if it is
    missing, cut, shifted or has positions at which no entry starts. A forged index does harm, and so may an index of
    another version of the log: only the walk distinguishes an entry from bytes in a record's value (SEG-IDX-009).

    Args:
        path: of the directory.
        trust_indexes: start lookups at index entries that look right.
        limit: maximum bytes that one entry may decompress to; a larger entry is refused.
        mapped: map logs and indexes into memory, for speed, instead of reading them in windows of at most 4 MiB. If
            another process cuts off a part of a mapped file, or the disk refuses it, this process dies with SIGBUS when
            it touches that part, and an overwritten part gives bytes that were not verified.
        remote: the store with the tiered segments of the partition. They are then read as local ones are, in ranges and
            with indexes trusted; only the ranges needed are fetched. See `open_tier`.

    Raises:
        UsageError: the path is not a partition directory (see `path_kind`), or cannot be read.
        FormatError: something that is no regular file has the name of a log, such as a broken link (SEG-PDR-030).

    Examples:
        >>> from seglog_format import open_partition
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     print(log.log_start_offset, log.log_end_offset, len(log.segments))
        ...     record = next(log.records(100))
        0 450 9
        >>> record.offset, record.key, len(record.value)
        (100, None, 161)
    """
    return partition_at(path, LOCAL, trust_indexes=trust_indexes, limit=limit, mapped=mapped, remote=remote)


def partition_at(
    path: str | os.PathLike[str],
    storage: LogStorage,
    *,
    trust_indexes: bool = False,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    mapped: bool = False,
    remote: RemoteStore | None = None,
) -> Partition:
    """Open a partition directory as `open_partition` does, through a given storage.

    Args:
        path: of a local directory.
        storage: the storage to read its files through; it decides which decoders parse them.
        trust_indexes: see `open_partition`.
        limit: see `open_partition`.
        mapped: see `open_partition`.
        remote: see `open_partition`.
    """
    listing = list_partition(path, storage, entries=require_partition(path))
    listing.require_logs()
    reached = reached_offsets(listing)
    log_start_offset = reached[FileKind.LOG_START_OFFSET_CHECKPOINT]
    if remote is not None:
        listing, log_start_offset = remote.joined(listing, log_start_offset)
    return Partition(
        listing,
        log_start_checkpoint=log_start_offset,
        high_watermark=reached[FileKind.REPLICATION_OFFSET_CHECKPOINT],
        checkpointed_end=greatest(reached.values()),
        trust_indexes=trust_indexes or remote is not None,
        limit=limit,
        mapped=mapped,
    )
