"""On an executor: a task of any table, and what its failure says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError, SeglogError
from seglog_format.spark.elsewhere import mirrors_of
from seglog_format.spark.pieces import DirectoryTask, Task
from seglog_format.spark.reading import TaskReader
from seglog_format.spark.tables import batch_rows, finding_rows, segment_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.options import ReadOptions


class ReadError(SeglogError):
    """A task that cannot be done. Spark shows the text, and not much else."""


def batches_of(
    task: Task | DirectoryTask, schema: pa.Schema, options: ReadOptions, narrowed: Narrowed
) -> Iterator[pa.RecordBatch]:
    """The rows of a task as Arrow batches.

    Raises:
        ReadError: where, what, and which option relaxes it, in one line.
    """
    try:
        with mirrors_of(options.storage) as mirrors:
            yield from _rows(mirrors.here(task), schema, options, narrowed)
    except SeglogError as error:
        raise ReadError(explained(error)) from error


def _rows(
    task: Task | DirectoryTask, schema: pa.Schema, options: ReadOptions, narrowed: Narrowed
) -> Iterator[pa.RecordBatch]:
    if isinstance(task, DirectoryTask):
        return (segment_rows if options.table == "segments" else finding_rows)(task, schema)
    if options.table == "batches":
        return batch_rows(task, schema, options.mode)
    return TaskReader(schema, narrowed, options.mode).read(task)


def explained(error: SeglogError) -> str:
    """An error, and what helps."""
    hint = "; option mode: dropcorrupt leaves damaged entries out, permissive marks them"
    return f"seglog: {error}{hint if isinstance(error, FormatError) else ''}"
