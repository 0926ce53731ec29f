"""Spark's programs and workers take nothing from the current directory."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.planted import Planted
from helpers.spark_partitions import partition

from seglog_format.storage import child_processes

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from seglog_format.spark import prepared, session
spark = session(master="local[1]", settings={"spark.log.level": "OFF"})
read = spark.read.format("seglog").load("logs")
print("rows", read.count())
prepared(read.drop("timestampType")).write.format("seglog").mode("append").save("copy")
frame = spark.readStream.format("seglog").option("startingOffsets", "earliest").load("logs")
writer = frame.writeStream.format("parquet").option("checkpointLocation", "checkpoint")
writer.trigger(availableNow=True).start("streamed").awaitTermination()
print("streamed", spark.read.parquet("streamed").count())
spark.stop()
"""


def test_a_session_in_a_planted_directory(tmp_path: Path) -> None:
    """Paths of a query are still those of the current directory."""
    directory = tmp_path / "here"
    directory.mkdir()
    planted = Planted(directory)
    partition(directory / "logs" / "orders-0", 30)
    done = child_processes.run(
        [sys.executable, "-c", PROGRAM],
        directory=directory,
        changes={"PATH": os.pathsep.join(["", ".", "bin", os.environ["PATH"]]), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert planted.used == []
    assert "rows 30" in done.stdout, done.stderr
    assert "streamed 30" in done.stdout, done.stderr
