"""What one version of Spark can do with the data source, as a JSON object: the program of `test_spark_versions.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import __version__
from pyspark.errors import PySparkException

from seglog_format.spark import prepared, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ROWS = 5_000
QUIET = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"}


def works(check: Callable[[], bool]) -> bool:
    """Return whether a check succeeds; False if Spark refuses it."""
    try:
        return check()
    except (PySparkException, AttributeError):
        return False


def features(spark: SparkSession, root: Path) -> dict[str, bool]:
    """Write a log, and read it in each way."""
    log = str(root / "log")

    def load(**options: str) -> DataFrame:
        return spark.read.format("seglog").options(**options).load(log)

    def written() -> bool:
        rows = spark.range(ROWS).selectExpr("cast(id as string) as value", "int(id % 2) as partition")
        prepared(rows).write.format("seglog").option("topic", "t").mode("append").save(log)
        return load().count() == ROWS

    def read() -> bool:
        marked = load(mode="permissive").where("_corrupt is null").count()
        return marked == ROWS and load(table="findings").where("severity != 'note'").count() == 0

    def pushed() -> bool:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        frame = load(pushedFilters="use", minPartitions="2", splitBytes="1k").where("partition = 1 and offset = 7")
        is_empty = (
            load(pushedFilters="use", minPartitions="2", splitBytes="1k").where("partition = 7").rdd.getNumPartitions()
            <= 1
        )
        rows = [row.offset for row in frame.collect()]
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
        return rows == [7] and is_empty

    def streamed(name: str, options: dict[str, str], trigger: dict[str, bool | str]) -> bool:
        rows = spark.readStream.format("seglog").options(startingOffsets="earliest", **options).load(log)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(root / f"{name}-checkpoint"))
        query = writer.trigger(**trigger).start(str(root / name))  # type: ignore[arg-type]
        if trigger.get("availableNow"):
            query.awaitTermination(300)
        else:
            query.processAllAvailable()
        steps = len(list((root / f"{name}-checkpoint" / "commits").glob("[0-9]*")))
        query.stop()
        return spark.read.parquet(str(root / name)).count() == ROWS and steps > bool(options)

    return {
        "writing": works(written),
        "reading, schemas, modes, tables": works(read),
        "filters choose files": works(pushed),
        "streams": works(lambda: streamed("plain", {}, {"processingTime": "0 seconds"})),
        "limits of a micro-batch, `availableNow`": works(
            lambda: streamed("limited", {"maxOffsetsPerTrigger": "1000"}, {"availableNow": True})
        ),
    }


if __name__ == "__main__":
    made = session("features", master="local[2]", settings=QUIET)
    found = features(made, Path(sys.argv[1]))
    Path(sys.argv[1], "found.json").write_text(json.dumps({"version": __version__, **found}), encoding="utf-8")
