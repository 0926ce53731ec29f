"""Reads as Spark does them, without Spark: the data source plans and runs tasks; and reads by the reference."""

from __future__ import annotations

import pickle
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from seglog_format import open_partition
from seglog_format.spark import SeglogDataSource, projection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import DataSourceReader, InputPartition

    from seglog_format.types import Message, Partition, Record

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


def reader_of(path: Path | str, columns: tuple[str, ...] | None = None, **options: str) -> DataSourceReader:
    """Return the reader of a query, as Spark requests it from the data source."""
    source = SeglogDataSource({"path": str(path), **options})
    ddl = source.schema() if columns is None else projection(*columns, table=options.get("table", "records"))
    return source.reader(struct_type(ddl))


def planned(reader: DataSourceReader) -> list[InputPartition]:
    """Return the tasks of a query, pickled and unpickled as between Spark's processes."""
    tasks: list[InputPartition] = pickle.loads(pickle.dumps(reader.partitions()))
    return tasks


def table_of(reader: DataSourceReader) -> pa.Table:
    """Return the rows that Spark gets for a query."""
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}  # 4.2 on
    arrow = to_arrow_schema(reader.schema, **zone)  # type: ignore[attr-defined]  # of our reader
    batches = [batch for task in planned(reader) for batch in reader.read(task)]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(arrow)
    return pa.Table.from_batches(batches, arrow)


def read(path: Path | str, columns: tuple[str, ...] | None = None, **options: str) -> pa.Table:
    """Plan and read a query."""
    return table_of(reader_of(path, columns, **options))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in the order of topic, partition and offset, with times in milliseconds."""
    found = table.to_pylist()
    for row in found:
        if row.get("timestamp") is not None:
            row["timestamp"] = milliseconds(row["timestamp"])
    return sorted(found, key=lambda row: (row.get("topic", ""), row.get("partition", 0), row.get("offset") or 0))


def milliseconds(time: Any) -> int:
    """Return milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def reference_rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the rows that the reference reads from every partition below a path, each with its directory."""
    found: list[dict[str, Any]] = []
    for directory in sorted({log.parent for log in Path(path).rglob("*.log")}):
        with open_partition(directory) as partition:
            found.extend(_rows(partition, **options))
    return sorted(found, key=by_position)


def _rows(partition: Partition, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the records of an open partition as the connector would return them."""
    name = partition.listing.name
    if name is not None and not name.state:
        named = {"topic": name.topic, "partition": name.partition, "directory": str(partition.path)}
        yield from (_row(record) | named for record in partition.records(**options))


def _row(record: Record | Message) -> dict[str, Any]:
    headers = [{"key": each.key.decode("utf-8", "replace"), "value": each.value} for each in record.headers]
    return {
        "key": record.key,
        "value": record.value,
        "offset": record.offset,
        "timestamp": None if record.timestamp_ms == -1 else record.timestamp_ms,
        "headers": headers or None,
    }


REFERENCE = ("key", "value", "topic", "partition", "offset", "timestamp", "headers", "file")
"""Columns of `reference_rows`; the file is given as its directory."""


def rows_by_directory(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of the columns `REFERENCE` in the format of `reference_rows`."""
    found = rows(table)
    for row in found:
        row["directory"] = row.pop("file").rpartition("/")[0]
    return sorted(found, key=by_position)


def by_position(row: dict[str, Any]) -> tuple[str, int]:
    """Return the directory and the offset of a row, to sort by."""
    return row["directory"], row["offset"]
