"""Peers of our source besides the Kafka connector: the lowest cost of any source, and a common loop by hand."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)


class Ceiling(DataSource):
    """A source that returns Arrow batches ready-made from a mapped file: no source can be faster by this interface."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ceiling"

    def schema(self) -> str:
        """Return the schema of the connector."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader with one task per file."""
        assert schema is not None
        return CeilingReader(self.options["path"])


class CeilingReader(DataSourceReader):
    """A reader that maps files and returns their batches."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> list[InputPartition]:
        """Return one task per file."""
        return [InputPartition(str(path)) for path in sorted(Path(self._path).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file; nothing is copied."""
        with pa.memory_map(partition.value) as mapped:
            yield from _batches(pa.ipc.open_file(mapped))


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - pyarrow has no types
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def prepare_ceiling(spark: SparkSession, logs: str, topic: str, target: Path) -> None:
    """Write the batches that our source returns to files, task by task and batch by batch."""
    target.mkdir(parents=True, exist_ok=True)
    frame = spark.read.format("seglog").option("subscribe", topic).load(logs)
    schema = to_arrow_schema(spark.read.format("ceiling").load(str(target)).schema, timezone="UTC")
    frame.mapInArrow(partial(_kept, str(target), schema), "batches int").collect()


def _kept(target: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the batches of one task to a file; yield their count."""
    path, count = Path(target) / f"{TaskContext.get().partitionId():05}.arrow", 0  # type: ignore[union-attr]
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))
            count += 1
    yield pa.record_batch({"batches": pa.array([count], pa.int32())})


def by_hand(spark: SparkSession, logs: str, topic: str) -> DataFrame:
    """Return a frame made in the simplest way: whole files, and a client library in a loop over pandas frames."""
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.log").load(f"{logs}/{topic}-*")
    return files.select("path", "content").mapInPandas(_parsed, SCHEMA)


def _parsed(frames: Iterator[Any]) -> Iterator[Any]:
    pd: Any = import_module("pandas")  # installed only on the worker
    memory_records: Any = import_module("aiokafka.record.memory_records")

    names = [column.split()[0] for column in SCHEMA.split(", ")]
    for frame in frames:
        for path, content in zip(frame["path"], frame["content"], strict=True):
            topic, _, number = Path(path).parent.name.rpartition("-")
            records = memory_records.MemoryRecords(bytes(content))
            while records.has_next():
                rows = [
                    (each.key, each.value, topic, int(number), each.offset, each.timestamp * 1000, each.timestamp_type)
                    for each in records.next_batch()
                ]
                made = pd.DataFrame(rows, columns=names)
                made["timestamp"] = pd.to_datetime(made["timestamp"], unit="us", utc=True)
                yield made
