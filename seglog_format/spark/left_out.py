"""On an executor: the table of what a query of records leaves out."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.errors import FormatError
from seglog_format.log.partition import Partition
from seglog_format.spark.arrow import ARROW, decoders_of
from seglog_format.spark.columns import COLUMNS, CORRUPT, HEADERS
from seglog_format.spark.options import PERMISSIVE
from seglog_format.spark.pieces import DirectoryTask
from seglog_format.spark.reading import TaskReader
from seglog_format.spark.tables import rows_as_batch
from seglog_format.tables.rows import HEADERS_MAP
from seglog_format.values.schemas import AS_MAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.gaps import Gap
    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask, Piece
    from seglog_format.spark.task_storage import TaskStorage

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
    with Partition(storage.listing(task.path), limit=options.limit) as partition:
        first = task.offsets[0] if task.offsets[0] > partition.log_start_offset else None
        with suppress(FormatError):  # damage that hides where the range begins, which the task of its piece reports
            for _ in partition.scan(["offset"], first, task.offsets[1], on_corrupt=lambda _: None, on_gap=gaps.append):
                pass
    return [
        {
            "topic": task.topic,
            "partition": task.partition,
            "file": str(gap.path),
            "kind": "missing",
            "position": gap.position,
            "size": None,
            "offset": gap.first_offset,
            "nextOffset": gap.next_offset,
            "requirement": None,
            "message": str(gap),
        }
        for gap in gaps
        if gap.is_loss
    ]
