"""On an executor: reading of pieces as Arrow batches of the schema that Spark wants."""

from __future__ import annotations

import logging
from contextlib import closing
from copy import copy as copied
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from seglog_format.engine.columnar import run_reader, scan_request, scan_start
from seglog_format.errors import CorruptRecordError, FormatError, Location, UndecodedRecordError, UsageError
from seglog_format.log.partition import Partition
from seglog_format.log.scanning import SegmentSource
from seglog_format.model import Frame, RecordBatchHeader
from seglog_format.scan_statistics import ScanStatistics
from seglog_format.spark.arrow import SparkColumns
from seglog_format.spark.damage import Damage, parts_of, refuse_unexpected_end
from seglog_format.spark.options import DROP_CORRUPT, FAIL_FAST, PERMISSIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.engine.columnar import ReadRun
    from seglog_format.log.scanning import FallbackEntry
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.pieces import Piece, Task, TaskStorage
    from seglog_format.storage.byte_source import Window
    from seglog_format.values.decoder import Decoder


# -- the bytes of a piece, for the columnar engine ---------------------------------------------------------------------


class PieceSource:
    """Gives the engine the bytes of a piece, and the fallback decoder for entries that the fast path does not cover.

    Attributes:
        end_of_log: position after the last whole entry, once the fallback decoder has found that none follows.
    """

    def __init__(self, piece: Piece, segment: LogSegment, transactions: Transactions | None) -> None:
        to_offset = piece.to_offset
        if transactions is not None:
            to_offset = min(to_offset, transactions.last_stable_offset)
        self.to_offset = to_offset
        self.end_of_log: int | None = None
        self._piece = piece
        self._segment = segment
        self._fallback = SegmentSource(segment, to_offset, transactions)

    @property
    def path(self) -> str:
        """Path of the log on this machine."""
        return self._segment.path

    @property
    def size(self) -> int:
        """Size of the log; bytes outside of the piece are missing if the log is in a store."""
        return self._segment.source.size

    def view(self, start: int, end: int) -> memoryview:
        """Return bytes of the log."""
        return self._segment.source.view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a window of the log."""
        return self._segment.source.window(position, at_least)

    @property
    def file(self) -> str:
        """Path of the log."""
        return self._piece.log

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Lowest and highest offset that the piece can hold."""
        return self._piece.base_offset, self._piece.last_allowed

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        """Decode the entry at a position with the fallback decoder; return None where the log ends.

        Raises:
            FormatError: the entry is damaged or refused, or reaches into the next piece.
        """
        entry = self._fallback.fallback(position, previous, floor)
        end = self._piece.end
        if entry is None:
            self.end_of_log = position
            return None
        if end is not None and entry.end > end:
            at = Location(self._piece.log, position, "batch_length", 4)
            expected = f"an entry that ends at or before {end}, where the offset index has one start"
            raise CorruptRecordError(at, "SEG-IDX-009", expected=expected, found=f"its end at {entry.end}")
        return entry

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed content of the entry at a position; None if it is damaged or exceeds the limit."""
        return self._fallback.decompressed(position, limit)

    def end_of_damaged(self, position: int) -> int | None:
        """Return the position after a damaged entry; None if no entry follows."""
        return self._fallback.end_of_damaged(position)


# -- on an executor ----------------------------------------------------------------------------------------------------


LOGGER: Final = logging.getLogger(__name__)

BATCH_SIZE: Final = 4 * 2**20
"""Approximate bytes of keys and values in one batch for Spark."""
MAX_ROWS: Final = 2**16
MIN_ROWS: Final = 2**8
"""Minimum rows of a batch."""


@dataclass
class TaskReader:
    """Reads a task.

    Attributes:
        schema: Arrow schema that Spark wants.
        narrowed: the range that filters leave.
        mode: what to do about damage.
        decoders: of keys and values, by column.
    """

    schema: pa.Schema
    narrowed: Narrowed
    mode: str
    decoders: Mapping[str, Decoder] = field(default_factory=dict)
    _read_run: ReadRun = field(default_factory=run_reader)
    _lost: int = 0
    _undecodable: int = 0

    @cached_property
    def columns(self) -> SparkColumns:
        """The columns to read, and their conversion."""
        return SparkColumns(self.schema, self.decoders)

    def read(self, task: Task, storage: TaskStorage) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, in order.

        Args:
            task: the task to read.
            storage: the storage that holds its files.

        Raises:
            SeglogError: in mode ``failfast``: damage, or a missing file. The text names the option that tolerates it.
        """
        transactions = _transactions(task, storage)
        for piece in task.pieces:
            with closing(storage.segment(piece)) as segment:
                yield from self._piece(piece, segment, transactions)
        damage = None if transactions is None else transactions.damage
        # A step of a stream may end before it: all transactions of the step are then known.
        if damage is not None and transactions is not None and transactions.end_offset < task.pieces[-1].to_offset:
            yield from self._undecided(task.pieces[-1], damage)
        if self._lost:
            LOGGER.warning("seglog: mode %s left out %d damaged ranges", DROP_CORRUPT, self._lost)
        if self._undecodable:
            LOGGER.warning("seglog: mode %s left out %d undecoded records", DROP_CORRUPT, self._undecodable)

    def _undecided(self, piece: Piece, damage: FormatError) -> Iterator[pa.RecordBatch]:
        """Report that records after damage are not read: the outcome of transactions there is unknown."""
        if self.mode == FAIL_FAST:
            raise copied(damage)
        yield from self._damage_rows(piece, Damage.of_error(damage))

    def _piece(self, piece: Piece, segment: LogSegment, transactions: Transactions | None) -> Iterator[pa.RecordBatch]:
        for part in parts_of(piece, segment, skips_damage=self.mode != FAIL_FAST):
            if isinstance(part, Damage):
                yield from self._damage_rows(piece, part)
            else:
                yield from self._run(part, segment, transactions)

    def _run(self, piece: Piece, segment: LogSegment, transactions: Transactions | None) -> Iterator[pa.RecordBatch]:
        source, damaged = PieceSource(piece, segment, transactions), list[FormatError]()
        request = scan_request(
            self.columns.scanned,
            "binary",
            offsets=(piece.from_offset, source.to_offset),
            timestamps_ms=(self.narrowed.from_timestamp_ms, self.narrowed.to_timestamp_ms),
            batch_rows=self._batch_rows(segment, piece.start),
            limit=piece.limit,
            aborted=() if transactions is None else transactions.aborted,
            on_corrupt=None if self.mode == FAIL_FAST else damaged.append,
            borders=None,
            statistics=ScanStatistics(),
        )
        start = scan_start(piece.start, piece.previous, piece.from_offset, piece.end)
        run = self._read_run(source, request, start)
        for batch in run.batches():
            yield self._converted(batch, piece)
            yield from self._damage_rows_all(piece, damaged)
            segment.release_before(run.position)
        yield from self._damage_rows_all(piece, damaged)
        if source.end_of_log is not None:
            if self.mode == FAIL_FAST:
                refuse_unexpected_end(piece, segment, source.end_of_log)
            if piece.has_to_reach and run.floor < piece.to_offset:
                msg = f"{piece.log} was cut back: it ends at offset {run.floor}, and had reached {piece.to_offset}"
                raise UsageError(msg)

    def _converted(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """Return the rows for Spark; those that do not decode are treated as the mode says."""
        made, reasons = self.columns.of(batch, piece)
        if not reasons:
            return made
        if self.mode == PERMISSIVE:
            return self.columns.with_reasons(made, batch, piece, reasons)
        if self.mode == FAIL_FAST:
            row = min(reasons)
            msg = f"{piece.log}: offset {batch.column('offset')[row]}: {reasons[row]}"
            raise UndecodedRecordError(msg)
        self._undecodable += len(reasons)
        return made.filter(pa.array([row not in reasons for row in range(len(made))]))

    def _batch_rows(self, segment: LogSegment, position: int) -> int:
        """Return the number of rows of about `BATCH_SIZE`, by the first entry; the engine limits compressed entries."""
        if not {"key", "value", "headers"}.intersection(self.columns.scanned):
            return MAX_ROWS
        try:
            found = segment.frame_at(position)
        except FormatError:
            return MAX_ROWS
        if not isinstance(found, Frame) or found.header.codec_id:
            return MAX_ROWS
        header = found.header
        count = header.records_count if isinstance(header, RecordBatchHeader) else 1
        rows = BATCH_SIZE * max(count, 1) // max(found.end - found.position, 1)
        return min(max(rows, MIN_ROWS), MAX_ROWS)

    def _damage_rows_all(self, piece: Piece, damaged: list[FormatError]) -> Iterator[pa.RecordBatch]:
        while damaged:
            yield from self._damage_rows(piece, Damage.of_error(damaged.pop(0)))

    def _damage_rows(self, piece: Piece, damage: Damage) -> Iterator[pa.RecordBatch]:
        """Yield a row that describes damage, if such rows are wanted."""
        self._lost += self.mode == DROP_CORRUPT
        if self.mode == PERMISSIVE:
            yield self.columns.of_damage(damage, piece)


def _transactions(task: Task, storage: TaskStorage) -> Transactions | None:
    """Return the transactions of the partition, if they decide which records the task reads."""
    if task.directory is None:
        return None
    limit = task.pieces[0].limit
    with Partition(storage.listing(task.directory), limit=limit) as partition:
        return partition.transactions
