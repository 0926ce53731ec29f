"""On an executor: execution of a task of any table, with an explanation of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError, SeglogError, UndecodedRecordError
from seglog_format.spark.arrow import decoders_of
from seglog_format.spark.left_out import left_out_rows
from seglog_format.spark.options import LEFT_OUT
from seglog_format.spark.pieces import DirectoryTask
from seglog_format.spark.reading import TaskReader
from seglog_format.spark.tables import batch_rows, finding_rows, segment_rows
from seglog_format.spark.task_storage import TaskStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask


class ReadError(SeglogError):
    """A task failed. Spark shows hardly more than the text."""


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


def explained(error: SeglogError) -> str:
    """Return the text of an error with a hint."""
    what = {FormatError: "damaged entries", UndecodedRecordError: "such records"}
    hints = [
        f"; option mode: dropcorrupt leaves {name} out, permissive marks them"
        for kind, name in what.items()
        if isinstance(error, kind)
    ]
    return f"seglog: {error}{''.join(hints)}"
