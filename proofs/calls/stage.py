"""A write of the data source for Spark, as far as it needs no Spark: rows are staged, then committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from seglog_format import LogWriter
from seglog_format.spark.committing import STAGING
from seglog_format.spark.committing import commit as commit_staged
from seglog_format.spark.staging import Stager
from seglog_format.spark.write_options import WriteOptions

if TYPE_CHECKING:
    from pathlib import Path


def commit(root: Path) -> None:
    """Write two batches of rows to a topic that was closed, one after the other."""
    with LogWriter(root) as logs:
        logs.open("t", 0)
    for job in ("first", "second"):
        stager = Stager(root / STAGING / job / "task_0", WriteOptions(root))
        rows = {"topic": pa.array(["t"] * 3), "partition": pa.array([0] * 3, pa.int32()), "value": [b"a", b"b", b"c"]}
        stager.add(pa.RecordBatch.from_pydict(rows))
        commit_staged(root, job, stager.finish(), keeps_offsets=False, interval_bytes=200)
