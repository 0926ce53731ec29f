"""Tasks as Spark sends them from its driver to its executors, and their execution."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import InputPartition

from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.index_file import INDEX_INTERVAL_BYTES
from seglog_format.model import CompressionCodec
from seglog_format.names import require_topic
from seglog_format.spark.options import one_of, parse_count, parse_size, parsed, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


NO_PARTITION: Final = (
    "fill the column partition, or give the option partitions, the number of partitions of the topic: rows are then"
    " spread as Kafka's producer spreads them"
)

OPTIONS: Final = ("path", "topic", "partitions", "codec", "segmentBytes", "batchBytes", "indexInterval")

COLUMNS: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""Columns and the types that each may have; only the column `value` is required."""

SEGMENT_SIZE: Final = 2**30
BATCH_SIZE: Final = 2**16


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        path: of the log directory.
        topic: the topic of rows without one.
        partitions: the number of partitions of each topic, among which rows without one are spread; None: not known.
        codec: of the batches.
        segment_size: maximum bytes of a segment, unless one batch alone has more.
        batch_size: approximate bytes of a batch before compression.
        interval_bytes: bytes between index entries.
    """

    path: Path
    topic: str | None = None
    partitions: int | None = None
    codec: CompressionCodec = CompressionCodec.NONE
    segment_size: int = SEGMENT_SIZE
    batch_size: int = BATCH_SIZE
    interval_bytes: int = INDEX_INTERVAL_BYTES


def parse_write_options(raw: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write.

    Raises:
        UsageError: no path, an unknown option, or an invalid value.
    """
    given = {name.lower(): value for name, value in raw.items()}
    known = {name.lower() for name in OPTIONS}
    for name in given:
        if name not in known:
            refuse("option", name, OPTIONS)
    path, topic = given.get("path"), given.get("topic")
    if not path:
        msg = "seglog: no path: give one to save(), of a log directory"
        raise UsageError(msg)
    if topic is not None:
        require_topic(topic)
    labels = {codec.label: codec for codec in CompressionCodec}
    return WriteOptions(
        Path(path.removeprefix("file://")).absolute(),
        topic,
        parsed(given, "partitions", parse_count),
        labels[one_of("codec", given.get("codec", "none"), labels)],
        parsed(given, "segmentBytes", parse_size) or SEGMENT_SIZE,
        parsed(given, "batchBytes", parse_size) or BATCH_SIZE,
        parsed(given, "indexInterval", parse_size) or INDEX_INTERVAL_BYTES,
    )


def check_written_schema(schema: StructType, options: WriteOptions) -> None:
    """Refuse rows that cannot be written unchanged.

    Raises:
        UsageError: an unknown column, another type, no value, no topic, or no partition though the number of partitions
            is not known or rows bring offsets.
    """
    for field in schema.fields:
        if field.name not in COLUMNS:
            refuse("column", field.name, COLUMNS)
        found = field.dataType.simpleString()
        if found not in COLUMNS[field.name]:
            msg = f"seglog: column {field.name} is to be {' or '.join(COLUMNS[field.name])}, not {found}: cast it"
            raise UsageError(msg)
    names = schema.fieldNames()
    if "value" not in names or ("topic" not in names and options.topic is None):
        msg = "seglog: rows need a column value, and a column topic or the option topic"
        raise UsageError(msg)
    if "partition" not in names and "offset" in names:
        msg = "seglog: rows with a column offset need a column partition"
        raise UsageError(msg)
    if "partition" not in names and options.partitions is None:
        msg = f"seglog: rows have no partition: {NO_PARTITION}"
        raise UsageError(msg)
