"""Spark reads tables of decoded values: every field of what stock serializers have made."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serialized import KINDS, expected_rows, make_topics
from pyspark.sql import functions as f

from seglog_format import export

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("serialized") / "logs"
    make_topics(directory)
    return directory


def plain(value: Any) -> Any:
    """Return a value as the serializers took it."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS)
def test_spark_reads_every_field(kind: str, topics: Path, tmp_path: Path, spark: SparkSession) -> None:
    export(topics, tmp_path / "out", topics=[f"orders-{kind}"], value=kind)
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("offset")
    if kind == "avro":  # a moment, which Python would show in its own time zone
        rows = rows.withColumn("value", f.col("value").withField("at", f.unix_millis("value.at")))
    found = [row.asDict(recursive=True) for row in rows.collect()]
    assert {(row["topic"], row["partition"]) for row in found} == {(f"orders-{kind}", 0)}
    assert [plain(row["value"]) for row in found] == expected_rows(kind)
