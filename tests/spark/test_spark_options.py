"""Options: names and values that are known, and those that are not."""

from __future__ import annotations

import logging

import pytest
from helpers.walking import each_of

from seglog_format.errors import UsageError
from seglog_format.spark.options import OF_STREAMS, OPTIONS, UNUSED, parse_duration, parse_options, parse_size

IGNORED = {
    "groupIdPrefix": "x",
    "kafkaConsumer.pollTimeoutMs": "1",
    "fetchOffset.numRetries": "1",
    "fetchOffset.retryIntervalMs": "1",
    "maxRecordsPerPartition": "1",
}
"""Options of the connector that say nothing about a log."""


def test_defaults_are_those_of_the_connector() -> None:
    options = parse_options({"path": "data"})
    assert options.paths == ("data",)
    assert (options.starting.kind, options.ending.kind) == ("earliest", "latest")
    assert options.isolation == "read_uncommitted"
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.mode == "failfast"


def test_names_are_known_in_any_case() -> None:
    given = {"PATH": "data", "includeheaders": "TRUE", "isolationLEVEL": "READ_COMMITTED", "Mode": "DropCorrupt"}
    options = parse_options(given)
    assert options.include_headers
    assert options.is_committed_only
    assert options.mode == "dropcorrupt"


def test_several_paths_come_as_json() -> None:
    assert parse_options({"paths": '["a", "b"]'}).paths == ("a", "b")


@each_of(
    ("name", "value", "hint"),
    [
        ("startingOffset", "earliest", "did you mean startingOffsets"),
        ("subscribeTo", "orders", "did you mean subscribe"),
        ("colour", "red", "unknown option 'colour'"),
        ("mode", "failfats", "did you mean failfast"),
        ("pushedFilters", "true", "there are ignore, use"),
        ("mode", "strict", "there are failfast, dropcorrupt, permissive"),
        ("includeHeaders", "yes", "true or false"),
        ("minPartitions", "0", "1 or more"),
        ("minPartitions", "many", "minPartitions"),
        ("splitBytes", "-1", "a number of bytes"),
        ("maxLateness", "-1s", "such as 500ms"),
        ("startingOffsets", "soon", "startingOffsets"),
        ("startingOffsets", "[1]", "startingOffsets cannot be '[1]': expected a number for each partition, such as {"),
        ("startingOffsets", '{"orders": 1}', "expected a number for each partition, such as {"),
        ("endingOffsetsByTimestamp", "latest", "expected a number for each partition, such as {"),
        ("assign", "[1]", "assign cannot be '[1]': expected a list for each topic, such as {"),
        ("assign", '{"orders": 1}', "expected a list for each topic, such as {"),
        ("subscribePattern", "(", "subscribePattern"),
        ("paths", '{"a": 1}', "paths"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(name: str, value: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_options({"path": "data", name: value})
    assert hint in str(raised.value)


def test_no_path() -> None:
    with pytest.raises(UsageError, match="no path"):
        parse_options({})


def test_one_way_to_subscribe() -> None:
    with pytest.raises(UsageError, match="subscribe and assign"):
        parse_options({"path": "data", "subscribe": "a", "assign": '{"a": [0]}'})


def test_options_for_a_broker_are_told_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        options = parse_options({"path": "data", "kafka.bootstrap.servers": "localhost:9092", **IGNORED})
    assert options == parse_options({"path": "data"})
    named = [record.getMessage().split()[2] for record in caplog.records]
    assert named == ["kafka.bootstrap.servers", *map(str.lower, IGNORED)]
    assert "use splitBytes: it is ignored" in caplog.text


def test_a_timestamp_goes_before_offsets() -> None:
    given = {"path": "data", "startingTimestamp": "5", "startingOffsetsByTimestamp": '{"a": {"0": 7}}'}
    assert parse_options(given).starting.timestamp_ms == 5
    del given["startingTimestamp"]
    assert parse_options(given | {"startingOffsets": "latest"}).starting.values == {("a", 0): 7}


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("64k", 65536), ("32M", 2**25), ("1 gb", 2**30)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "duration"), [("0", 0), ("250", 250), ("30s", 30_000), ("10 M", 600_000), ("2d", 172_800_000)]
)
def test_durations(text: str, duration: int) -> None:
    assert parse_duration(text) == duration


def test_every_option_is_documented() -> None:
    from helpers.support import REPOSITORY

    page = (REPOSITORY / "docs" / "how-to" / "query-with-spark.md").read_text(encoding="utf-8")
    assert [name for name in (*OPTIONS, *OF_STREAMS, *IGNORED) if f"`{name}`" not in page] == []
    assert set(map(str.lower, IGNORED)) == set(UNUSED)


def test_topics_are_chosen_by_name_pattern_or_partition() -> None:
    def wanted(**given: str) -> list[tuple[str, int]]:
        options = parse_options({"path": "data", **given})
        return [key for key in (("a", 0), ("a", 1), ("ab", 0)) if options.wants(*key)]

    assert wanted(subscribe="a, c") == [("a", 0), ("a", 1)]
    assert wanted(subscribePattern="a.*") == [("a", 0), ("a", 1), ("ab", 0)]
    assert wanted(subscribePattern="b") == []
    assert wanted(assign='{"a": [1], "ab": [0]}') == [("a", 1), ("ab", 0)]
