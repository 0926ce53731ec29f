"""Filters that Spark pushes: what is taken over, and what is left to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from helpers.walking import each_of
from pyspark.sql import datasource as spark

from seglog_format.spark.filters import EVERYTHING, push_down

TOPIC, PARTITION, OFFSET, TIME, VALUE = (("topic",), ("partition",), ("offset",), ("timestamp",), ("value",))
KEYS = [("ab", 0), ("ab", 1), ("b", 0), ("b", 2)]


def equal(column: tuple[str, ...], value: Any) -> spark.Filter:
    return spark.EqualTo(column, value)


@each_of(
    ("pushed", "passing"),
    [
        (equal(TOPIC, "b"), [("b", 0), ("b", 2)]),
        (spark.In(TOPIC, ("x", "ab")), [("ab", 0), ("ab", 1)]),
        (spark.Not(equal(TOPIC, "b")), [("ab", 0), ("ab", 1)]),
        (spark.StringStartsWith(TOPIC, "a"), [("ab", 0), ("ab", 1)]),
        (spark.StringEndsWith(TOPIC, "b"), KEYS),
        (spark.StringContains(TOPIC, "a"), [("ab", 0), ("ab", 1)]),
        (spark.IsNotNull(TOPIC), KEYS),
        (equal(PARTITION, 0), [("ab", 0), ("b", 0)]),
        (spark.EqualNullSafe(PARTITION, 2), [("b", 2)]),
        (spark.GreaterThan(PARTITION, 0), [("ab", 1), ("b", 2)]),
        (spark.GreaterThanOrEqual(PARTITION, 2), [("b", 2)]),
        (spark.LessThan(PARTITION, 1), [("ab", 0), ("b", 0)]),
        (spark.LessThanOrEqual(PARTITION, 1), [("ab", 0), ("ab", 1), ("b", 0)]),
        (spark.Not(spark.In(PARTITION, (0, 1))), [("b", 2)]),
    ],
)
def test_topic_and_partition_are_taken_over_whole(pushed: spark.Filter, passing: list[tuple[str, int]]) -> None:
    narrowed, left = push_down([pushed])
    assert left == []
    assert [key for key in KEYS if narrowed.wants(*key)] == passing


@pytest.mark.parametrize(
    ("pushed", "bounds"),
    [
        ([equal(OFFSET, 7)], (7, 8)),
        ([spark.In(OFFSET, (9, 4))], (4, 10)),
        ([spark.GreaterThan(OFFSET, 3), spark.LessThan(OFFSET, 9)], (3, 10)),
        ([spark.GreaterThanOrEqual(OFFSET, 3), spark.LessThanOrEqual(OFFSET, 9), equal(OFFSET, 5)], (5, 6)),
    ],
)
def test_offsets_narrow_and_stay_with_spark(pushed: list[spark.Filter], bounds: tuple[int, int]) -> None:
    narrowed, left = push_down(pushed)
    assert (narrowed.from_offset, narrowed.to_offset) == bounds
    assert left == pushed


def test_times_narrow_in_milliseconds() -> None:
    low = datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)
    high = low.astimezone(timezone(timedelta(hours=5))) + timedelta(seconds=1)
    narrowed, left = push_down([spark.GreaterThan(TIME, low), spark.LessThan(TIME, high)])
    assert len(left) == 2
    assert narrowed.from_timestamp_ms == 1_767_225_600_001
    assert narrowed.to_timestamp_ms == 1_767_225_601_001


@pytest.mark.parametrize(
    "pushed",
    [
        equal(VALUE, b"x"),
        spark.Not(equal(OFFSET, 7)),
        spark.IsNotNull(OFFSET),
        spark.IsNull(TOPIC),
        equal(TIME, "yesterday"),
        spark.Not(spark.In(TOPIC, ("a", None))),
        equal(("headers", "key"), "x"),
    ],
)
def test_what_says_nothing_is_left_to_spark(pushed: spark.Filter) -> None:
    narrowed, left = push_down([pushed])
    assert left == [pushed]
    assert narrowed == EVERYTHING
