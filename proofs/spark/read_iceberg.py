"""Read Iceberg tables by Spark, and print their rows: a line of JSON for each table.

`proofs.spark_iceberg` runs this with the Python path of a release of Spark that Iceberg supports.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    """Read the tables whose metadata files are the arguments, all rows of each snapshot."""
    session = SparkSession.Builder().master("local[2]").appName("tables").config("spark.sql.session.timeZone", "UTC")
    spark = session.config("spark.ui.enabled", "false").getOrCreate()
    for metadata in sys.argv[1:]:
        print(json.dumps({"version": spark.version, "snapshots": _snapshots(spark, metadata)}))
    spark.stop()


def _snapshots(spark: SparkSession, metadata: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each snapshot, the oldest first."""
    known = spark.read.format("iceberg").load(f"{metadata}#snapshots").orderBy("committed_at").collect()
    return [_rows(spark, metadata, each["snapshot_id"]) for each in known]


def _rows(spark: SparkSession, metadata: str, snapshot: int) -> list[dict[str, Any]]:
    table = spark.read.format("iceberg").option("versionAsOf", snapshot).load(metadata)
    return [plain(row.asDict(recursive=True)) for row in table.orderBy("partition", "offset").collect()]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: bytes as hex digits, times as milliseconds, numbers unchanged."""
    if isinstance(value, (bytes, bytearray)):
        return {"hex": value.hex()}
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
