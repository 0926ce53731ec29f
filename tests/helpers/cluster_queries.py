"""The program of `test_spark_cluster.py`: a Spark session whose executors are killed, or run tasks twice."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from proofs.spark.session import QUIET
from proofs.spark.spark_kills import TOO_BUSY
from seglog_format.spark import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

    Trouble = Callable[[Iterator[Row]], Iterator[Row]]

ROWS = 20_000
FEW = 2_000
"""Rows of the write whose tasks run twice."""
PARTITIONS = 4
TASKS = 2
STEP = 2_000
"""Rows of a step of the stream."""
VALUE_SIZE = 4096
"""Bytes of a value: a task has 40 MB, more than a writer keeps before it writes its first file."""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
"""Tasks are slow soon, once another one of their stage has ended."""
LIMIT_SECONDS = 60.0


def killed(target: str, noted: str) -> Trouble:
    """Pass rows on, and kill the first executor that has read some, or has flushed a staged file below `target`."""

    def through(rows: Iterator[Row]) -> Iterator[Row]:
        def staged() -> list[str]:  # a task begins its second file when its first is on the disk
            return sorted(map(str, Path(target).glob("_seglog_staging/*/*/1.batches")))

        def kill(files: list[str]) -> None:
            status = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            java = int(status[1])  # which started the parent of this Python
            try:
                with Path(noted).open("x") as file:
                    json.dump({"java": java, "files": files}, file)
            except FileExistsError:
                return
            os.kill(java, signal.SIGKILL)
            time.sleep(LIMIT_SECONDS)

        for count, row in enumerate(rows):
            yield row
            if count % 100 == 99:
                files = staged()
                if files or not target:
                    kill(files)
        deadline = time.monotonic() + LIMIT_SECONDS
        while target and not Path(noted).exists() and time.monotonic() < deadline:
            if files := staged():
                kill(files)
            time.sleep(0.05)

    return through


def doubled(noted: str) -> Trouble:
    """Pass rows on; the first attempt of task 0 waits after its first row until a second one has begun."""

    def through(rows: Iterator[Row]) -> Iterator[Row]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number, attempt = context.partitionId(), context.attemptNumber()
        Path(noted).mkdir(exist_ok=True)
        Path(noted, f"{number}-{attempt}").touch()
        deadline = time.monotonic() + LIMIT_SECONDS
        for row in rows:
            yield row
            while not (number or attempt or Path(noted, "0-1").exists()) and time.monotonic() < deadline:
                time.sleep(0.05)

    return through


def write(spark: SparkSession, target: Path, count: int, trouble: Trouble) -> None:
    """Write rows, each with its number at the front."""
    rows = spark.range(0, count, 1, TASKS).selectExpr(
        f"cast(rpad(cast(id as string), {VALUE_SIZE}, '.') as binary) as value", f"int(id % {PARTITIONS}) as partition"
    )
    troubled = spark.createDataFrame(rows.rdd.mapPartitions(trouble), rows.schema, verifySchema=False)
    writer = troubled.write.format("seglog").option("topic", "t")
    writer.option("segmentBytes", "4m").mode("append").save(str(target))


def scan(spark: SparkSession, target: Path, trouble: Trouble) -> dict[str, int]:
    """Read everything; return the counts of rows, of different offsets and of different numbers."""
    loaded = spark.read.format("seglog").option("splitBytes", "4m").load(str(target))
    rows = spark.createDataFrame(loaded.rdd.mapPartitions(trouble), loaded.schema, verifySchema=False)
    found = rows.selectExpr(
        "count(*) as rows",
        "count(distinct partition, offset) as offsets",
        "count(distinct int(trim('.' from string(value)))) as numbers",
    )
    return found.collect()[0].asDict()


def follow(spark: SparkSession, root: Path, trigger: Mapping[str, bool | str]) -> dict[str, int]:
    """Write the log to Parquet in steps; return the counts of rows and of different offsets in the end.

    The query starts again if this machine is too busy to start a Python worker in time.
    """
    while True:
        reader = spark.readStream.format("seglog").option("startingOffsets", "earliest")
        rows: DataFrame = reader.option("maxOffsetsPerTrigger", str(STEP)).load(str(root / "log")).drop("value")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(root / "checkpoint"))
        try:
            writer.trigger(**trigger).start(str(root / "sink")).awaitTermination()  # type: ignore[arg-type]
            break
        except StreamingQueryException as error:
            if TOO_BUSY not in str(error):
                raise
    found = spark.read.parquet(str(root / "sink"))
    return found.selectExpr("count(*) as rows", "count(distinct partition, offset) as offsets").collect()[0].asDict()


def main() -> None:
    """Run one of the two sessions; write what it found before the stream, and again after it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("killed", "doubled"))
    parser.add_argument("master")
    parser.add_argument("root", type=Path)
    options = parser.parse_args()
    root: Path = options.root
    is_killed = options.kind == "killed"
    settings = {
        **QUIET,
        **SPECULATION,
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.local.dir": str(root / "spark"),
        "spark.sql.warehouse.dir": str(root / "warehouse"),
    }
    spark = session("cluster", master=options.master, settings=settings)
    log, result = root / ("log" if is_killed else "again"), root / f"{options.kind}.json"
    in_write, in_scan = (str(root / f"{options.kind}-{each}") for each in ("write", "scan"))
    write(spark, log, ROWS if is_killed else FEW, killed(str(log), in_write) if is_killed else doubled(in_write))
    found: dict[str, Any] = {"staged": [*map(str, log.glob("_seglog_*"))]}
    found["scan"] = scan(spark, log, killed("", in_scan) if is_killed else doubled(in_scan))
    result.write_text(json.dumps(found), encoding="utf-8")
    found["streamed"] = follow(spark, root, {"processingTime": "0 seconds"} if is_killed else {"availableNow": True})
    result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
