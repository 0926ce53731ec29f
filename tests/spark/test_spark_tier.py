"""Tiered partitions in queries: each remote segment a task, and every record that the broker delivered, once."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.spark_plans import pieces, read, tasks
from helpers.tier_cases import CASES, TierCase, tier_case

from proofs.spark.readers import rows
from seglog_format import open_partition
from seglog_format.errors import UsageError
from seglog_format.spark.damage import ReadError
from seglog_format.spark.options import parse_options, parse_stream_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from seglog_format.types import Message, Record

PARTITIONS = [
    pytest.param(name, each, id=f"{name}-{each['topic']}-{each['partition']}")
    for name in CASES
    for each in tier_case(name).partitions()
]
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
ORDERS = "orders-0"


def options_of(case: TierCase) -> dict[str, str]:
    keys = {id_: str(path) for id_, path in case.keys.items()}
    return {"remote": str(case.store), "remoteKeys": json.dumps(keys)}


def row_of(record: Record | Message) -> tuple[Any, ...]:
    headers = [(each.key.decode("utf-8", "replace"), each.value) for each in record.headers]
    return record.offset, record.timestamp_ms, record.key, record.value, headers


def found_rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            [(each["key"], each["value"]) for each in row["headers"] or ()],
        )
        for row in found
    ]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_a_query_reads_what_the_broker_delivered(name: str, partition: dict[str, Any], isolation: Any) -> None:
    case = tier_case(name)
    options = options_of(case) | {"isolationLevel": isolation, "includeHeaders": "true"}
    found = found_rows(rows(read(case.path(partition), COLUMNS, **options)))
    assert len(found) == partition[isolation]["records"]
    offsets = [offset for first, last in partition[isolation]["offsets"] for offset in range(first, last + 1)]
    assert [row[0] for row in found] == offsets
    with open_partition(case.path(partition), remote=case.opened()) as log:
        assert found == [row_of(record) for record in log.records(isolation=isolation)]


def test_spark_itself_reads_it(spark: SparkSession) -> None:
    case = tier_case("aiven-both")
    query = spark.read.format("seglog").options(**options_of(case))
    found = sorted(row.offset for row in query.load(str(case.local / ORDERS)).select("offset").collect())
    with open_partition(case.local / ORDERS, remote=case.opened()) as log:
        assert found == [record.offset for record in log.records()]


@pytest.mark.parametrize("name", CASES)
def test_each_remote_segment_is_a_task(name: str) -> None:
    case = tier_case(name)
    planned = tasks(case.local / ORDERS, **options_of(case))
    remote = [task for task in planned if any(piece.remote is not None for piece in task.pieces)]
    assert all(len(task.pieces) == 1 for task in remote)
    with open_partition(case.local / ORDERS, remote=case.opened()) as log, open_partition(case.local / ORDERS) as local:
        assert len(remote) == len(log.segments) - len(local.segments)
    for piece in pieces(case.local / ORDERS, **options_of(case)):
        assert piece.log.startswith(str(case.local if piece.remote is None else case.store))


def test_a_range_needs_only_the_segments_with_it() -> None:
    case = tier_case("aiven-both")
    options = options_of(case) | {
        "startingOffsets": '{"orders": {"0": 300}}',
        "endingOffsets": '{"orders": {"0": 310}}',
        "assign": '{"orders": [0]}',
    }
    found = [row["offset"] for row in rows(read(case.local, ("offset", "topic", "partition"), **options))]
    with open_partition(case.local / ORDERS, remote=case.opened()) as log:
        expected = [record.offset for record in log.records(300) if record.offset < 310]
    assert found == expected
    assert len(tasks(case.local, **options)) <= 2


@pytest.mark.parametrize("name", CASES)
def test_other_tables_show_remote_segments(name: str) -> None:
    case = tier_case(name)
    options = options_of(case)
    with open_partition(case.local / ORDERS, remote=case.opened()) as log:
        names = [segment.path for segment in log.segments]
        batches = [batch.base_offset for batch in log.batches()]
    segments = read(case.local / ORDERS, table="segments", **options).to_pylist()
    assert sorted(row["file"] for row in segments) == sorted(names)
    found = read(case.local / ORDERS, table="batches", **options).to_pylist()
    assert sorted(row["baseOffset"] for row in found) == batches
    assert all(row["crcIsValid"] for row in found)
    findings = read(case.local / ORDERS, table="findings", **options).to_pylist()
    assert [row["severity"] for row in findings if row["requirement"] == "SEG-PDR-028"] == ["note"]


@pytest.mark.parametrize("name", CASES[:1])
def test_a_query_that_skips_damage_goes_on_without_a_segment_that_the_store_lacks(name: str, tmp_path: Path) -> None:
    case, path = tier_case(name), tier_case(name).local / ORDERS
    whole = {row["offset"] for row in rows(read(path, ("offset",), **options_of(case)))}
    store = shutil.copytree(case.store, tmp_path / "store")
    log, following, *_ = (each for each in sorted(store.rglob("*.log")) if "orders" in str(each))
    log.unlink()
    options = options_of(case) | {"remote": str(store)}
    with pytest.raises(ReadError, match="SEG-PDR-028"):
        read(path, ("offset",), **options)
    found = {row["offset"] for row in rows(read(path, ("offset",), mode="dropcorrupt", **options))}
    assert whole - found == {each for each in whole if int(log.name[:20]) <= each < int(following.name[:20])}
    batches = read(path, table="batches", mode="dropcorrupt", **options).to_pylist()
    assert not {row["baseOffset"] for row in batches} & (whole - found)
    marked = rows(read(path, ("offset", "_corrupt"), mode="permissive", **options))
    assert [row["_corrupt"]["requirement"] for row in marked if row["_corrupt"]] == ["SEG-PDR-028"]
    (left,) = read(path, table="leftout", mode="dropcorrupt", **options).to_pylist()
    assert (left["kind"], left["requirement"]) == ("damaged", "SEG-PDR-028")


def test_a_key_that_is_not_at_hand_is_named() -> None:
    case = tier_case("aiven-aes")
    with pytest.raises((ReadError, UsageError), match="SEGLOG_TIER_KEY_KEY1"):
        read(case.local / ORDERS, ("offset",), remote=str(case.store))


def test_keys_of_an_address_are_in_no_text() -> None:
    parsed = parse_options({"path": "x", "remote": "s3://someone:secret@bucket/tier", "storage.secret_key": "secret"})
    assert "secret" not in repr(parsed)


@pytest.mark.parametrize("secret", ["hidden", "hid/den"])
@pytest.mark.parametrize("option", ["path", "paths"])
def test_a_path_takes_no_keys_since_columns_and_findings_show_it(option: str, secret: str) -> None:
    address = f"s3a://someone:{secret}@bucket/logs"
    with pytest.raises(UsageError, match=r"storage\.access_key") as caught:
        parse_options({option: address if option == "path" else json.dumps([address])})
    assert "s3a://bucket/logs" in str(caught.value)
    assert not any(each in str(caught.value) for each in ("someone", "hid", "den"))
    assert parse_options({"path": "gs://anonymous@bucket/logs", "storage.secret_key": secret}).paths


@pytest.mark.parametrize("text", ["[]", "key1", '{"key1": 3}'])
def test_keys_are_files_by_id(text: str) -> None:
    with pytest.raises(UsageError, match="remoteKeys"):
        parse_options({"path": "x", "remoteKeys": text})


def test_a_stream_takes_no_store() -> None:
    with pytest.raises(UsageError, match="a stream cannot have remote"):
        parse_stream_options({"path": "x", "remote": "y"})
