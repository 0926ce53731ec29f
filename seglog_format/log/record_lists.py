"""Delivery of records as objects, by the engine that is chosen for it (chapter 60)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

from seglog_format.arguments import require_offsets
from seglog_format.engine import columnar
from seglog_format.engine.choice import Engine, engine_for, is_loaded, threshold
from seglog_format.log.log_sizes import size_from
from seglog_format.log.reading import READ_UNCOMMITTED, delivered
from seglog_format.log.scanning import ScannedLog, ScanOptions, find_entry, request_of, sources_of
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from seglog_format.engine.choice import Choice
    from seglog_format.log.gap_watch import AtBorder, OnGap
    from seglog_format.log.reading import Isolation, LogReader
    from seglog_format.log.scanning import EntryPosition
    from seglog_format.log.transactions import Transactions
    from seglog_format.record_model import Message, Record


class DeliveredLog(ScannedLog, Protocol):
    """The attributes of a partition that delivering records needs."""

    trust_indexes: bool
    _is_known: bool

    @property
    def _reference_reader(self) -> LogReader: ...

    def engine_for(
        self, from_offset: int | None = None, to_offset: int | None = None, *, engine: Engine = Engine.AUTO
    ) -> Choice:
        """Return the engine that `records` uses, and why."""

    def _find_entry(self, offset: int) -> EntryPosition | None: ...

    def _deliver(
        self,
        offsets: tuple[int, int],
        transactions: Transactions | None,
        entry: EntryPosition | None,
        choice: Choice,
        at_border: AtBorder,
    ) -> Iterator[Iterable[Record | Message]]: ...


class DeliversRecords:
    """The part of `Partition` that delivers record objects."""

    def records(
        self: DeliveredLog,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        isolation: Isolation = READ_UNCOMMITTED,
        on_gap: OnGap | None = None,
        engine: Engine = Engine.AUTO,
    ) -> Iterator[Record | Message]:
        """Deliver records in offset order, without control records.

        Args:
            from_offset: first offset wanted; the log start offset by default.
            to_offset: end of the range, exclusive; by default the end of the log. It may be above the log end offset.
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
        choice = self.engine_for(start, to_offset, engine=engine)
        is_ready = choice.is_columnar and (engine is Engine.COLUMNAR or is_loaded())
        entry = self._find_entry(start) if is_ready else None
        if entry is None:
            self._check_range(start)
        self._is_known = True
        end = INT64_MAX if to_offset is None else to_offset
        at_border = self._watched(on_gap, is_from_start=from_offset is None)
        return chain.from_iterable(self._deliver((start, end), transactions, entry, choice, at_border))

    def engine_for(
        self: DeliveredLog,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        engine: Engine = Engine.AUTO,
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
        return engine_for(engine, size_from(self._reader, start, threshold(), end) if engine is Engine.AUTO else 0)

    def _find_entry(self: DeliveredLog, offset: int) -> EntryPosition | None:
        """Return the entry of an offset, found by the columnar engine; None if another way to find it is used."""
        if self._is_known or self.trust_indexes or offset < self.log_start_offset:
            return None
        return find_entry(self._reader, offset)

    def _deliver(
        self: DeliveredLog,
        offsets: tuple[int, int],
        transactions: Transactions | None,
        entry: EntryPosition | None,
        choice: Choice,
        at_border: AtBorder,
    ) -> Iterator[Iterable[Record | Message]]:
        start, end = offsets
        decided = end if transactions is None else min(end, transactions.last_stable_offset)
        if choice.engine is Engine.REFERENCE:
            yield self._reference_reader.records(start, decided, transactions, at_border)
        else:
            yield from record_lists(
                self._reader, (start, decided), transactions, self._limit, entry, choice=choice, at_border=at_border
            )
        if transactions is not None:
            self._raise_undecided(end - 1, transactions)


def record_lists(  # noqa: PLR0913 - all that the result depends on
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    limit: int,
    entry: EntryPosition | None,
    *,
    choice: Choice,
    at_border: AtBorder | None = None,
) -> Iterator[Iterable[Record | Message]]:
    """Read the records of a range of offsets, as lists.

    The first record comes alone if a cached batch holds it: a lookup needs no more. If the columnar engine is chosen
    but not loaded yet, the plain decoders read up to the end of the first batch that has a record to deliver.

    Args:
        reader: of the log.
        offsets: from the first inclusive to the second exclusive.
        transactions: leave out the records that are aborted according to these.
        limit: maximum bytes that one entry may decompress to.
        entry: the first entry, if it is known.
        choice: of the engine.
        at_border: called at borders between segments; see `Borders`.

    Raises:
        FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
    """
    start, end = offsets
    first = reader.known_record(start, entry) if transactions is None else None
    if first is not None and start < end:
        yield (first,)
        start += 1
    if choice.is_columnar and not is_loaded():
        start = yield from _first_batch(reader, (start, end), transactions, at_border)
    if start >= end:
        return
    lists = None
    if choice.is_columnar:
        lists = _columnar_lists(reader, (start, end), transactions, limit, entry, at_border)
    yield from (reader.records(start, end, transactions, at_border),) if lists is None else lists


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
            return start
    return end


def _columnar_lists(
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    limit: int,
    entry: EntryPosition | None,
    at_border: AtBorder | None,
) -> Iterator[list[Record | Message]] | None:
    """Read by the columnar engine; None if it cannot create objects of this Python interpreter."""
    batch_rows = columnar.object_rows()
    if batch_rows is None:
        return None
    options = ScanOptions(entry=entry, at_border=at_border, batch_rows=batch_rows)
    request = request_of(offsets, transactions, options, limit)
    return columnar.record_lists(sources_of(reader, offsets, transactions, options), request)
