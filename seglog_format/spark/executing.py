"""On an executor: the execution of a task of any table, with an explanation of a failure."""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from copy import copy as copied
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.checks import verify
from seglog_format.engine import batch_tables, run_reader, scan_request, scan_start
from seglog_format.errors import (
    CorruptRecordError,
    FormatError,
    Location,
    SeglogError,
    UndecodedRecordError,
    UsageError,
)
from seglog_format.field_names import kafka_name
from seglog_format.log.gaps import Gap, GapKind, skipped_gap
from seglog_format.log.partition import Partition
from seglog_format.log.scanning import SegmentSource
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    INT64_MAX,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    Frame,
    RecordBatchHeader,
)
from seglog_format.scan_statistics import ScanStatistics
from seglog_format.spark.arrow import ARROW, SparkColumns, decoders_of
from seglog_format.spark.columns import COLUMNS, CORRUPT, HEADERS, OMITTED
from seglog_format.spark.damage import Damage, ReadError, explained, parts_of, refuse_unexpected_end
from seglog_format.spark.options import DROP_CORRUPT, FAIL_FAST, LEFT_OUT, PERMISSIVE
from seglog_format.spark.pieces import DirectoryTask, TaskStorage
from seglog_format.storage.remote_storage import download
from seglog_format.tables.rows import HEADERS_MAP
from seglog_format.values.schemas import AS_MAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.engine import BatchTable, ReadRun
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.log.scanning import FallbackEntry
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask, Piece, Task
    from seglog_format.storage.byte_source import Window
    from seglog_format.storage.log_storage import LogStorage
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
        if entry.overlap is not None and entry.overlap.next_offset > self._piece.from_offset:
            _, first, reached = entry.overlap
            LOGGER.warning("seglog: %s", skipped_gap(self._piece.log, reached, first, position))
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


# -- on an executor: the tables batches, segments and findings, which decode no record ---------------------------------


STORED: Final = {
    "size": "size",
    "magic": "magic",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "recordsCount": "records_count",
    "baseTimestamp": "base_timestamp_ms",
    "maxTimestamp": "max_timestamp_ms",
    "leaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "crc": "crc",
}
"""Columns that are header fields as stored; -1 if a format has no such field."""
CODECS: Final = pa.array([*(codec.label for codec in CompressionCodec), *([None] * (CODEC_MASK + 1))], pa.string())
"""Names of codecs by number; null for an unknown number."""


def batch_rows(task: Task, schema: pa.Schema, mode: str, storage: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each entry; a wrong checksum is no error but is shown in ``crcIsValid``.

    Raises:
        FormatError: in mode ``failfast``: a log that cannot be walked to its end.
    """
    for piece in task.pieces:
        with closing(storage.segment(piece)) as segment:
            for part in parts_of(piece, segment, skips_damage=mode != FAIL_FAST):
                if not isinstance(part, Damage):
                    yield from _entries(part, segment, schema)


def _entries(piece: Piece, segment: LogSegment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield entries as tables; an entry that the fast path does not cover is a row from the fallback decoder."""
    source, tables = SegmentSource(segment, INT64_MAX, None), batch_tables()
    position, previous = piece.start, piece.previous
    end = source.size if piece.end is None else piece.end
    while position < end:
        lowest = max(piece.base_offset, previous + 1)
        for table in tables(source, position=position, end=end, first_offset=lowest, last_offset=piece.last_allowed):
            yield _of_table(table, piece, schema)
            position, previous = table.end, int(table.column("last_offset")[-1])
        if position >= end:
            return
        entry = source.fallback(position, previous, 0)
        if entry is None:
            refuse_unexpected_end(piece, segment, position)
            return
        yield _of_entry(entry, position, piece, schema)
        position, previous = entry.end, entry.last_offset


def _of_table(table: BatchTable, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
    attributes, count = table.column("attributes"), len(table)
    made: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(piece.topic), count),
        "partition": pa.repeat(pa.scalar(piece.partition), count),
        "file": pa.repeat(pa.scalar(piece.log), count),
        "position": table.column("position").copy(),
        "codec": CODECS.take(pa.array(attributes & CODEC_MASK)),
        "timestampType": (attributes & TIMESTAMP_TYPE_BIT) // TIMESTAMP_TYPE_BIT,
        "isTransactional": (attributes & TRANSACTIONAL_BIT) != 0,
        "isControl": (attributes & CONTROL_BIT) != 0,
        "crcIsValid": table.column("crc_is_valid") != 0,
    }
    arrays = [
        pa.array(made[field.name] if field.name in made else table.column(STORED[field.name])).cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _of_entry(entry: FallbackEntry, position: int, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
    header = entry.header
    codec = CODECS[header.codec_id].as_py()
    row: dict[str, Any] = {
        name: -1 if (value := getattr(header, stored, None)) is None else value for name, stored in STORED.items()
    }
    row |= {
        "topic": piece.topic,
        "partition": piece.partition,
        "file": piece.log,
        "position": position,
        "size": header.size_in_bytes,
        "codec": codec,
        "timestampType": int(bool(header.attributes & TIMESTAMP_TYPE_BIT)),
        "isTransactional": isinstance(header, RecordBatchHeader) and header.is_transactional,
        "isControl": isinstance(header, RecordBatchHeader) and header.is_control,
        "crcIsValid": True,  # else the fallback decoder had refused it
    }
    return rows_as_batch([row], schema)


def segment_rows(task: DirectoryTask, schema: pa.Schema, stores: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each segment of a directory, tiered ones included; no log is opened."""
    listing = stores.listing(task.path)
    segments, storage = listing.segments, listing.storage
    following = [*(each.base_offset for each in segments[1:]), None]
    rows = [_segment(task, files, storage, next_base) for files, next_base in zip(segments, following, strict=False)]
    yield rows_as_batch(rows, schema)


def _segment(task: DirectoryTask, files: SegmentFiles, storage: LogStorage, next_base: int | None) -> dict[str, Any]:
    status = storage.status(files.log)
    return {
        "topic": task.topic,
        "partition": task.partition,
        "file": storage.name_of(files.log),
        "baseOffset": files.base_offset,
        "nextBaseOffset": next_base,
        "size": status.size,
        "offsetIndexSize": _size(files.offset_index, storage),
        "timeIndexSize": _size(files.time_index, storage),
        "transactionIndexSize": _size(files.transaction_index, storage),
        "hasSnapshot": files.snapshot is not None,
        "lastModified": None if status.modified is None else datetime.fromtimestamp(status.modified, UTC),
        "topicId": task.topic_id,
    }


def _size(path: Path | None, storage: LogStorage) -> int | None:
    return None if path is None else storage.status(path).size


def finding_rows(task: DirectoryTask, schema: pa.Schema, stores: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each finding of the validator in a directory; a remote directory is downloaded first."""
    directory, storage = Path(task.path), stores.of(task.path)
    if storage.is_local:
        yield _findings(task, directory, schema, stores.tier)
        return
    with TemporaryDirectory(prefix="seglog-") as parent:
        copy = Path(parent).resolve() / directory.name
        download(storage, directory, copy)
        yield _findings(task, copy, schema, stores.tier)


def _findings(task: DirectoryTask, directory: Path, schema: pa.Schema, remote: KnowsTiered | None) -> pa.RecordBatch:
    rows = []
    for finding in verify(directory, remote=remote):
        at = finding.location
        row = {
            "topic": task.topic,
            "partition": task.partition,
            "file": f"{task.path}/{at.path}" if at.path else task.path,
            "position": at.position,
            "field": kafka_name(at.field),
            "severity": finding.severity.value,
            "found": str(finding.found),
        }
        row |= {name: getattr(finding, name) for name in ("requirement", "expected", "message", "count")}
        rows.append(row)
    return rows_as_batch(rows, schema)


def rows_as_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to a batch with the schema's columns."""
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)


# -- on an executor: the table of what a query of records leaves out ---------------------------------------------------


BESIDE: Final = ("topic", "partition", "offset")


def left_out_rows(
    task: AnyTask, schema: pa.Schema, narrowed: Narrowed, options: ReadOptions, storage: TaskStorage
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each part of a task that a query of records with the same options leaves out.

    These are the damage that it skips, the records that do not decode, those after damage whose transaction is
    undecided, and, of a whole directory, the missing offsets.
    """
    if isinstance(task, DirectoryTask):
        yield rows_as_batch(_missing(task, options, storage), schema)
        return
    kinds = COLUMNS["records"]
    decoders = decoders_of(options)
    read = pa.schema([(name, ARROW[kinds[name]]) for name in (*BESIDE, CORRUPT)])
    for name, decoder in decoders.items():
        read = read.append(pa.field(name, decoder.type))
    if options.headers_as == AS_MAP:
        read = read.append(pa.field(HEADERS, HEADERS_MAP))
    reader = _Reader(read, narrowed, PERMISSIVE, decoders)
    for batch in reader.read(task, storage):
        marked = batch.select([*BESIDE, CORRUPT]).filter(batch.column(CORRUPT).is_valid())
        if len(marked):
            yield rows_as_batch([_row(row, reader.damaged_kind) for row in marked.to_pylist()], schema)


class _Reader(TaskReader):
    damaged_kind = "damaged"

    def _undecided(self, piece: Piece, damage: FormatError) -> Iterator[pa.RecordBatch]:
        self.damaged_kind = "undecided"  # of the rows that follow, which are the last ones
        yield from super()._undecided(piece, damage)


def _row(row: dict[str, Any], damaged_kind: str) -> dict[str, Any]:
    kind = damaged_kind if row["offset"] is None else "undecoded"
    return {**row, **row[CORRUPT], "kind": kind, "nextOffset": None if row["offset"] is None else row["offset"] + 1}


def _missing(task: DirectoryTask, options: ReadOptions, storage: TaskStorage) -> list[dict[str, Any]]:
    gaps: list[Gap] = []
    listing = storage.listing(task.path)
    with Partition(listing, limit=options.limit) as partition:
        first = task.offsets[0] if task.offsets[0] > partition.log_start_offset else None
        with suppress(FormatError):  # damage that hides where the range begins, which the task of its piece reports
            for _ in partition.scan(["offset"], first, task.offsets[1], on_corrupt=lambda _: None, on_gap=gaps.append):
                pass
    row = dict.fromkeys(OMITTED) | {"topic": task.topic, "partition": task.partition}
    blocked = [row | {"kind": "damaged"} | asdict(Damage.of_error(error)) for error in listing.blocked_logs]
    return blocked + [
        row
        | {"file": str(gap.path), "kind": "missing", "position": gap.position, "message": str(gap)}
        | {"offset": gap.first_offset, "nextOffset": gap.next_offset}
        for gap in gaps
        if gap.is_loss and gap.kind is not GapKind.HIDDEN  # a query reads the entries behind such damage
    ]


# -- on an executor ----------------------------------------------------------------------------------------------------


def batches_of(task: AnyTask, schema: pa.Schema, options: ReadOptions, narrowed: Narrowed) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task as Arrow batches.

    Raises:
        ReadError: one line with the location, the error, and the option that tolerates it.
    """
    try:
        yield from _rows(task, schema, options, narrowed)
    except SeglogError as error:
        raise ReadError(explained(error)) from error


def _rows(task: AnyTask, schema: pa.Schema, options: ReadOptions, narrowed: Narrowed) -> Iterator[pa.RecordBatch]:
    storage = TaskStorage(task, options)
    if options.table == LEFT_OUT:
        return left_out_rows(task, schema, narrowed, options, storage)
    if isinstance(task, DirectoryTask):
        return (segment_rows if options.table == "segments" else finding_rows)(task, schema, storage)
    if options.table == "batches":
        return batch_rows(task, schema, options.mode, storage)
    return TaskReader(schema, narrowed, options.mode, decoders_of(options)).read(task, storage)
