"""A write of the data source for Spark, called as Spark does, but without Spark: rows are staged, then committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from seglog_format import LogWriter
from seglog_format.spark import SeglogDataSource

if TYPE_CHECKING:
    from pathlib import Path


def commit(root: Path) -> None:
    """Write two batches of rows to a closed topic, one after the other."""
    with LogWriter(root) as logs:
        logs.open("t", 0)
    schema = StructType().add("topic", StringType()).add("partition", IntegerType()).add("value", BinaryType())
    for _ in range(2):
        writer = SeglogDataSource({"path": str(root), "indexInterval": "200"}).writer(schema, overwrite=False)
        rows = {"topic": pa.array(["t"] * 3), "partition": pa.array([0] * 3, pa.int32()), "value": [b"a", b"b", b"c"]}
        staged = writer.write(iter([pa.RecordBatch.from_pydict(rows)]))
        writer.commit([staged])
