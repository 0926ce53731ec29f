"""Spark reads tables of decoded values: every field of what stock serializers have made."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serialized import make_topics
from pyspark.sql import functions as f

from proofs import spark_iceberg
from proofs.serialized import KINDS, expected_rows, unpack_topics
from seglog_format import export

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", params=[make_topics, unpack_topics], ids=["made", "registry"])
def topics(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("serialized") / "logs"
    request.param(directory)
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
    export(topics, tmp_path / "out", topics=[f"orders-{kind}"], value=kind, times="written")
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("offset")
    if kind == "avro":  # a moment, which Python would show in its own time zone
        rows = rows.withColumn("value", f.col("value").withField("at", f.unix_millis("value.at")))
    found = [row.asDict(recursive=True) for row in rows.collect()]
    assert {(row["topic"], row["partition"]) for row in found} == {(f"orders-{kind}", 0)}
    assert [plain(row["value"]) for row in found] == expected_rows(kind)


@pytest.mark.skipif(
    not spark_iceberg.is_fetched(), reason="make proof NAME=spark-iceberg fetches a Spark that there is an Iceberg for"
)
def test_spark_reads_every_field_of_iceberg_tables() -> None:
    outcome = spark_iceberg.prove(SimpleNamespace())
    assert (outcome.facts["snapshots"], outcome.failures) == (6, [])


def test_proof_with_spark_names_what_differs() -> None:
    rows = [[{"offset": 0, "value": {"a": 1}}], [{"offset": 0, "value": None}]]
    assert list(spark_iceberg.problems(rows, rows)) == ["", ""]
    assert list(spark_iceberg.problems(rows, rows[::-1])) == ["value", "value"]
    assert list(spark_iceberg.problems(rows, [[], rows[1]])) == ["0 rows, not 1", ""]
    assert list(spark_iceberg.problems(rows, rows[:1])) == ["there are 1, not 2", ""]
