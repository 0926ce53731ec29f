"""Tasks as Spark sends them from its driver to its executors, and their execution."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import InputPartition

from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from seglog_format.spark.filters import Narrowed
    from seglog_format.spark.options import ReadOptions


DAEMON: Final = "pyspark.daemon"
"""Spark's program whose child processes are the Python workers: each runs many tasks in turn."""
HIDES_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""Variable that makes a worker send only the text of an error."""


class Part(InputPartition):
    """A task with its filters: Spark sends the reader, which has none, to executors before it plans tasks.

    Attributes:
        value: the task.
        narrowed: the range that filters leave.
    """

    value: Any

    def __init__(self, value: Any, narrowed: Narrowed) -> None:  # noqa: ANN401 - as Spark has it
        super().__init__(value)
        self.narrowed = narrowed


def rows_of(part: Part, schema: StructType, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    Raises:
        ReadError: one line with the error, and the option that tolerates it.
    """
    from seglog_format.spark.executing import batches_of  # noqa: PLC0415 - brings the compiled engine

    with one_line_errors():
        yield from batches_of(part.value, arrow_schema_of(schema), options, part.narrowed)
    freeze_loaded_objects()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of batches for Spark; before 4.2 Spark's own function always takes UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - on executors only

    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Have Spark show an error of this package without the lines of code that raised it; no other error is changed.

    The setting ends with the worker: a worker ends after any error.
    """
    try:
        yield
    except SeglogError:
        if _is_worker():
            os.environ[HIDES_TRACEBACK] = "1"
        raise


def _is_worker() -> bool:
    return getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", "") == DAEMON


def freeze_loaded_objects() -> None:
    """Exclude everything loaded so far in this Spark worker from garbage collection.

    A worker collects garbage after each task, and after each call of the planner. With the compiled engine in memory
    that takes longer than the rest of a short task, and frees nothing.
    """
    if _is_worker():
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
