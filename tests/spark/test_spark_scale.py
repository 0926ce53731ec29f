"""A sample of ``proofs/spark/spark_scale.py``; the full run is in ``reports/``."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from proofs.spark import spark_scale
from proofs.spark.file_pages import evict, resident
from seglog_format import verify
from seglog_format.spark import planning
from tools.docs import spark_scale_page
from tools.docs.spark_scale_page import line, pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORT = Path(__file__).resolve().parents[2] / "reports" / "spark-scale.json"


def test_the_logs_are_as_brokers_write_them(tmp_path: Path) -> None:
    directory = spark_scale.large(tmp_path, 1)
    assert list(verify(directory)) == []
    assert sum(path.stat().st_size for path in directory.glob("*.log")) > 0.95 * spark_scale.MIB


def test_planning_opens_segments_and_not_more(tmp_path: Path) -> None:
    found = spark_scale.planning(tmp_path, 40, 4)
    assert found["all"]["tasks"] == 1
    assert found["one_day_by_timestamp"]["pickled_bytes"] < found["all"]["pickled_bytes"]
    assert found["committed_only"]["tasks"] == 4


def test_memory_and_processor_time_of_spark_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    found = spark_scale.reading(spark, spark_scale.large(tmp_path, 4))
    assert found["records"] == found["bytes_of_values"] // 489
    assert 2**25 < found["peak_private_bytes"] < found["peak_rss_bytes"] < spark_scale.MEMORY_LIMIT
    assert found["processor_seconds"] > 0


def test_pages_that_were_read_are_counted(tmp_path: Path) -> None:
    directory = spark_scale.large(tmp_path, 2)
    evict(directory)
    if resident(directory):
        pytest.skip("this file system does not forget what it was told to")
    for log in directory.glob("*.log"):
        log.read_bytes()
        assert 0 <= resident(directory) - log.stat().st_size < 2**14


def test_a_report_says_what_is_beyond_its_limit() -> None:
    report: dict[str, Any] = json.loads(REPORT.read_text(encoding="utf-8"))
    assert spark_scale.failures(report) == report["beyond_limits"]
    worse = copy.deepcopy(report)
    worse["many_segments"]["peak_rss_bytes"] = spark_scale.MEMORY_LIMIT
    worse["planning"]["all"]["wall_seconds"] = 10.5
    worse["point_queries"]["one_offset"]["share"] = 0.02
    assert spark_scale.failures(worse) == ["memory: many_segments", "planning: all", "bytes: one_offset"]


def test_the_line_through_three_points() -> None:
    assert line([(1, 3), (2, 5), (4, 9)]) == pytest.approx((1, 2))
    (page,) = pages("").values()
    assert "1,048,576" in page


def test_the_page_knows_the_most_tasks_of_a_query() -> None:
    assert spark_scale_page.MAX_TASKS == planning.MAX_TASKS
