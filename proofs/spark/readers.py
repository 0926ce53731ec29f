"""Reading as Spark does, without Spark: options, plan, tasks; and what the reference reads."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from seglog_format import open_partition
from seglog_format.spark.columns import check_schema, default_schema, projection
from seglog_format.spark.discovery import find_replicas
from seglog_format.spark.executing import batches_of
from seglog_format.spark.filters import EVERYTHING, Narrowed
from seglog_format.spark.options import parse_options
from seglog_format.spark.planning import plan

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.spark.discovery import Replica
    from seglog_format.spark.pieces import Piece, Task
    from seglog_format.types import Message, Record

ALL = (
    *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "leaderEpoch"),
    *("producerId", "producerEpoch", "sequence", "isTransactional", "batchOffset", "codec", "file", "position"),
)
"""Every column but those about replicas and damage."""


def struct_type(ddl: str) -> StructType:
    """Return a schema, without a session."""
    parsed = StructType()
    for column in ddl.split(", `"):
        name, _, kind = column.strip("`").partition("` ")
        parsed.add(name, SPARK_TYPES[kind]())
    return parsed


SPARK_TYPES: dict[str, Any] = {
    "binary": types.BinaryType,
    "string": types.StringType,
    "int": types.IntegerType,
    "bigint": types.LongType,
    "smallint": types.ShortType,
    "boolean": types.BooleanType,
    "timestamp": types.TimestampType,
    "array<struct<key:string,value:binary>>": lambda: types.ArrayType(
        StructType().add("key", types.StringType()).add("value", types.BinaryType())
    ),
    "struct<file:string,position:bigint,size:bigint,requirement:string,message:string>": lambda: (
        StructType()
        .add("file", types.StringType())
        .add("position", types.LongType())
        .add("size", types.LongType())
        .add("requirement", types.StringType())
        .add("message", types.StringType())
    ),
}


def tasks(path: Path | str, narrowed: Narrowed = EVERYTHING, **options: str) -> list[Task]:
    """Return the tasks of a query."""
    return plan(parse_options({"path": str(path), **options}), narrowed)  # type: ignore[return-value]


def pieces(path: Path | str, narrowed: Narrowed = EVERYTHING, **options: str) -> list[Piece]:
    """All pieces of them."""
    return [piece for task in tasks(path, narrowed, **options) for piece in task.pieces]


def read(
    path: Path | str, columns: tuple[str, ...] | None = None, narrowed: Narrowed = EVERYTHING, **options: str
) -> pa.Table:
    """Return what Spark gets; what travels between its processes is pickled."""
    parsed = parse_options({"path": str(path), **options})
    schema = struct_type(default_schema(parsed) if columns is None else projection(*columns, table=parsed.table))
    check_schema(schema, parsed)
    arrow = to_arrow_schema(schema, timezone="UTC")
    planned = pickle.loads(pickle.dumps(plan(parsed, narrowed)))
    batches = [batch for task in planned for batch in batches_of(task, arrow, parsed, narrowed)]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(arrow)
    return pa.Table.from_batches(batches, arrow)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in the order of topic, partition and offset; times in milliseconds."""
    found = table.to_pylist()
    for row in found:
        if row.get("timestamp") is not None:
            row["timestamp"] = milliseconds(row["timestamp"])
    return sorted(found, key=lambda row: (row.get("topic", ""), row.get("partition", 0), row.get("offset") or 0))


def milliseconds(time: Any) -> int:
    """Since 1970."""
    return round(time.timestamp() * 1000)


def reference_rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the same from the reference reader, of every partition below a path, with the directory of each."""
    found: list[dict[str, Any]] = []
    for replica in find_replicas([str(path)]):
        with open_partition(replica.path) as partition:
            found.extend(_row(record, replica) for record in partition.records(**options))
    return sorted(found, key=by_position)


def _row(record: Record | Message, replica: Replica) -> dict[str, Any]:
    """One record, as the connector would show it."""
    headers = [{"key": each.key.decode("utf-8", "replace"), "value": each.value} for each in record.headers]
    return {
        "key": record.key,
        "value": record.value,
        "topic": replica.topic,
        "partition": replica.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp_ms == -1 else record.timestamp_ms,
        "headers": headers or None,
        "directory": str(replica.path),
    }


REFERENCE = ("key", "value", "topic", "partition", "offset", "timestamp", "headers", "file")
"""Columns that `reference_rows` gives, the file as its directory."""


def rows_by_directory(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of the columns `REFERENCE`, as `reference_rows` gives them."""
    found = table.to_pylist()
    for row in found:
        row["directory"] = row.pop("file").rpartition("/")[0]
        if row["timestamp"] is not None:
            row["timestamp"] = milliseconds(row["timestamp"])
    return sorted(found, key=by_position)


def by_position(row: dict[str, Any]) -> tuple[str, int]:
    """Return where a row is from."""
    return row["directory"], row["offset"]
