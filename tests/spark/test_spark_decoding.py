"""Keys and values as columns in the data source, without Spark: the same values as foreign readers and `export`."""

from __future__ import annotations

import io
import json
import logging
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

pytest.importorskip("numba")

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.support import FIXTURES
from helpers.walking import each_of
from pyspark.errors import AnalysisException

from proofs.spark.readers import struct_type, table_of
from proofs.unpacking import unpack_archive
from seglog_format import PartitionWriter, export, new_record
from seglog_format.errors import UsageError
from seglog_format.spark import SeglogDataSource, plan_ranges
from seglog_format.spark.damage import ReadError
from seglog_format.types import RecordHeader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "ratio", "type": "double"},
        {"name": "half", "type": "float"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {
            "name": "clocks",
            "type": {
                "type": "map",
                "values": {"type": "array", "items": {"type": "long", "logicalType": "time-micros"}},
            },
        },
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
        {"name": "either", "type": ["null", "long", "string"]},
    ],
}


def order(number: int) -> dict[str, Any]:
    return {
        "id": number * 2**40 - 1,
        "small": -number,
        "ratio": number / 3,
        "half": 0.5,
        "paid": number % 2 == 0,
        "note": None if number % 3 else f"ä{number}",
        "raw": bytes([number, 255]),
        "hash": b"\0\1\2" + bytes([number]),
        "state": "DONE" if number % 2 else "NEW",
        "day": date(1960, 1, 1 + number),
        "at": datetime(1965, 5, 6, 7, 8, 9, 123_000, UTC),
        "local": datetime(2026, 1, 2, 3, 4, 5, number),  # noqa: DTZ001 - a local time
        "clock": time(23, 59, 59, 1000 * number),
        "price": Decimal(-number) / 100,
        "uid": UUID(int=number),
        "tags": {"a": number} if number else {},
        "clocks": {"a": [time(1, 2, 3, number), time(0)]},
        "lines": [{"sku": f"s{each}"} for each in range(number % 3)],
        "either": [None, 7, "seven"][number % 3],
    }


def shown(value: dict[str, Any]) -> dict[str, Any]:
    """Return what fastavro reads in the form of columns."""
    either = value["either"]
    members = {
        "member0": either if isinstance(either, int) else None,
        "member1": either if isinstance(either, str) else None,
    }
    return {
        **value,
        "uid": str(value["uid"]),
        "tags": list(value["tags"].items()),
        "clocks": list(value["clocks"].items()),
        "either": None if either is None else members,
    }


def framed(id_: int, schema: dict[str, Any], value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + id_.to_bytes(4, "big") + out.getvalue()


def registry(path: Path, *schemas: tuple[str, int, int, dict[str, Any] | str, str]) -> None:
    with PartitionWriter(path / "_schemas-0") as writer:
        for subject, version, id_, schema, kind in schemas:
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            text = schema if isinstance(schema, str) else json.dumps(schema)
            stored = {"subject": subject, "version": version, "id": id_, "schema": text, "schemaType": kind}
            writer.append([new_record(key=json.dumps(key).encode(), value=json.dumps(stored).encode())])


def write(directory: Path, *values: bytes | None) -> None:
    with PartitionWriter(directory) as writer:
        writer.append([new_record(key=b"k%d" % number, value=value) for number, value in enumerate(values)])


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Provide a log directory with ``orders-0`` of eight values in Avro, a null among them, and the schemas."""
    logs = tmp_path / "logs"
    registry(logs, ("orders-value", 1, 7, AVRO, "AVRO"))
    write(logs / "orders-0", *[framed(7, AVRO, order(number)) for number in range(8)], None)
    return logs


def read(path: Path, **options: str) -> pa.Table:
    """Read as Spark does: the schema at `load`, tasks and rows later."""
    given = {"path": str(path), "subscribe": "orders", **options}
    schema = SeglogDataSource(given).schema()
    return table_of(SeglogDataSource(given).reader(struct_type(schema) if isinstance(schema, str) else schema))


def test_values_are_those_of_fastavro_and_types_those_of_an_export(orders: Path, tmp_path: Path) -> None:
    table = read(orders, valueAs="avro", keyAs="string", columns="offset, key, value")
    found = table.to_pylist()
    parsed = fastavro.parse_schema(AVRO)
    streams = [io.BytesIO(framed(7, AVRO, order(number))[5:]) for number in range(8)]
    expected = [shown(fastavro.schemaless_reader(stream, parsed, None)) for stream in streams]  # type: ignore[arg-type]
    assert [row["value"] for row in found] == [*expected, None]
    assert [row["key"] for row in found] == [f"k{number}" for number in range(9)]
    export(orders / "orders-0", tmp_path / "table", value="avro", partition_by=())
    (file,) = (tmp_path / "table").rglob("*.parquet")
    exported = pq.read_table(file).column("value")
    assert exported.to_pylist() == table.column("value").to_pylist()
    planned = plan_ranges(orders, subscribe="orders", valueAs="avro")
    ranges = pa.Table.from_batches(batch for each in planned for batch in each.read("value"))
    assert ranges.column("value").to_pylist() == exported.to_pylist()
    assert ranges.schema.field("value").type == exported.type, "the same types as in a table"


def test_values_of_older_schemas_get_the_columns_of_the_newest(orders: Path) -> None:
    last = {"id": 0.5, "paid": True, "origin": "x", "new": datetime(2026, 1, 1, tzinfo=UTC)}
    newer = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "double"},
            {"name": "paid", "type": "boolean"},
            {"name": "origin", "type": "string", "default": "?"},
            {"name": "new", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
        ],
    }
    with PartitionWriter(orders / "_schemas-0") as writer:
        key = {"keytype": "SCHEMA", "subject": "orders-value", "version": 2, "magic": 1}
        stored = {"subject": "orders-value", "version": 2, "id": 9, "schema": json.dumps(newer)}
        writer.append([new_record(key=json.dumps(key).encode(), value=json.dumps(stored).encode())])
    write(orders / "orders-0", framed(9, newer, last))
    found = read(orders, valueAs="avro", columns="value").column(0).to_pylist()
    default = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert found[1] == {"id": float(2**40 - 1), "paid": False, "origin": "?", "new": default}
    assert found[-1] == last
    chosen = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "small", "type": "int", "default": 5}]})
    assert read(orders, valueAs="avro", valueSchema=chosen, columns="value").column(0).to_pylist()[-3:] == [
        {"small": -7},
        None,
        {"small": 5},
    ]


def test_json_and_protobuf(tmp_path: Path) -> None:
    described = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"enum": ["x", "y"]},
            "l": {"type": "array", "items": {"type": "number"}},
        },
    }
    proto = (
        'syntax = "proto3"; message Order { uint64 n = 1; map<string, int32> m = 2; enum E { A = 0; B = 5; } E e = 3; }'
    )
    logs = tmp_path / "logs"
    registry(logs, ("orders-value", 1, 1, described, "JSON"), ("lines-value", 1, 2, proto, "PROTOBUF"))
    write(logs / "orders-0", b'\0\0\0\0\1{"n": 3, "s": "x", "l": [1, 2.5]}')
    write(
        logs / "lines-0", b"\0\0\0\0\2\0" + b"\x08" + b"\xff" * 9 + b"\x01" + b"\x12\x05\x0a\x01a\x10\x07" + b"\x18\x05"
    )
    assert read(logs, valueAs="json-schema").column("value").to_pylist() == [{"n": 3, "s": "x", "l": [1.0, 2.5]}]
    found = read(logs, subscribe="lines", valueAs="protobuf").column("value").to_pylist()
    assert found == [{"n": Decimal(2**64 - 1), "m": [("a", 7)], "e": "B"}]
    write(tmp_path / "plain" / "orders-0", b'{"n": 3}', b"{")
    assert read(tmp_path / "plain", valueAs="string", columns="value").column(0).to_pylist() == ['{"n": 3}', "{"]
    with pytest.raises(
        ReadError, match=r"offset 1: value: not JSON.*; option mode: dropcorrupt leaves such records out"
    ):
        read(tmp_path / "plain", valueAs="json")


def test_headers_are_a_map_if_asked(tmp_path: Path) -> None:
    pairs: list[list[tuple[bytes, bytes | None]]] = [[], [(b"a", b"1"), (b"b", None)], [(b"a", b"1"), (b"a", b"2")]]
    with PartitionWriter(tmp_path / "orders-0") as writer:
        writer.append([new_record(headers=[RecordHeader(*pair) for pair in each]) for each in pairs])
    options = {"headersAs": "map", "columns": "offset,headers"}
    with pytest.raises(ReadError, match="offset 2: headers: a map has each key once, found 'a' twice"):
        read(tmp_path, **options)
    found = read(tmp_path, **options, mode="dropcorrupt")
    assert found.column("headers").to_pylist() == [None, [("a", b"1"), ("b", None)]]
    marked = read(tmp_path, headersAs="map", includeHeaders="true", mode="permissive").to_pylist()
    assert [row["headers"] is None for row in marked] == [True, False, True]
    assert [row["_corrupt"] is None for row in marked] == [True, True, False]
    (planned,) = plan_ranges(tmp_path, headersAs="map", mode="dropcorrupt")
    assert [batch.num_rows for batch in planned.read("headers")] == [2]


def test_topics_of_kafka_are_typed_rows(tmp_path: Path) -> None:
    unpack_archive(FIXTURES / "coordinators" / "4.4.0" / "files.tar.gz", tmp_path)
    options = {"subscribe": "__consumer_offsets", "keyAs": "kafka", "valueAs": "kafka"}
    table = read(tmp_path, **options, columns="key,value")
    rows = [row for row in table.to_pylist() if row["key"]["type"] == "offsetCommit" and row["value"] is not None]
    assert {row["key"]["offsetCommit"]["topic"] for row in rows}
    assert min(row["value"]["offsetCommit"]["offset"] for row in rows) >= 0
    assert read(tmp_path, **options, columns="value").column(0).to_pylist() == table.column("value").to_pylist()
    with pytest.raises(UsageError, match="have several: subscribe to one topic"):
        read(tmp_path, **{**options, "subscribe": "__consumer_offsets,__transaction_state"})


def test_records_that_do_not_decode_are_treated_as_the_mode_says(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(orders / "orders-0", b"\0\0\0\0\x08x", b"no header", framed(7, AVRO, order(1)))
    with pytest.raises(ReadError, match=r"000.log: offset 9: value: schema 8 is not in the registry"):
        read(orders, valueAs="avro")
    with caplog.at_level(logging.WARNING):
        left = read(orders, valueAs="avro", mode="dropcorrupt", columns="offset,value")
    assert left.column("offset").to_pylist() == [*range(9), 11]
    assert "left out 2 undecoded records" in caplog.text
    marked = read(orders, valueAs="avro", mode="permissive").to_pylist()
    assert [row["offset"] for row in marked if row["_corrupt"]] == [9, 10]
    assert marked[9]["value"] is None
    assert marked[9]["key"] == b"k0", "the rest of the record is there"
    assert marked[9]["_corrupt"]["message"].startswith("offset 9: value: schema 8")
    assert marked[9]["_corrupt"]["position"] > 0


@pytest.mark.xdist_group("spark")
def test_spark_has_the_columns(spark: SparkSession, orders: Path) -> None:
    frame = spark.read.format("seglog").options(subscribe="orders", valueAs="avro").load(str(orders))
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema["value"].dataType.fields}  # type: ignore[attr-defined]
    assert (kinds["at"], kinds["price"]) == ("timestamp", "decimal(9,2)")
    found = frame.where("value.id > 0").selectExpr("value.id", "cast(value.clock as string)", "value.clocks['a'][0]")
    assert [tuple(row) for row in found.orderBy("id").collect()][:2] == [
        (2**40 * number - 1, f"23:59:59.00{number}", time(1, 2, 3, number)) for number in (1, 2)
    ]
    write(orders / "payments-0", b"x")
    with pytest.raises(AnalysisException, match="no schema for the subject payments-value"):
        spark.read.format("seglog").options(valueAs="avro").load(str(orders / "payments-0"))


def test_columns_are_chosen_by_name(orders: Path) -> None:
    assert read(orders, columns="offset, file").schema.names == ["offset", "file"]
    assert read(orders, columns="value").column(0).type == pa.binary()
    with pytest.raises(UsageError, match="unknown column 'ofset': did you mean offset"):
        read(orders, columns="ofset", valueAs="avro")
    with pytest.raises(UsageError, match="unknown column 'ofset': did you mean offset"):
        read(orders, columns="ofset")


@each_of(
    ("options", "message"),
    [
        ({"valueAs": "avro", "subscribe": ""}, "no schema for the subject|have several"),
        ({"valueAs": "protobuf"}, "is of type AVRO: protobuf does not decode it"),
        ({"valueAs": "avrò"}, "did you mean avro"),
        (
            {"valueAs": "avro", "subscribePattern": ".*", "subscribe": None},
            "orders have several: subscribe to one topic",
        ),
        ({"valueAs": "avro", "table": "batches"}, "the table batches has no keys and values"),
        ({"valueAs": "avro", "schemas": "/nowhere/_schemas-0"}, "no such file"),
        ({"keyAs": "avro"}, "no schema for the subject orders-key"),
        ({"valueAs": "avro", "valueSchema": "{"}, "the reader's schema"),
    ],
)
def test_what_cannot_be_decoded_is_refused_before_a_task_runs(
    options: dict[str, str | None], message: str, orders: Path
) -> None:
    given = {
        name: value
        for name, value in {"path": str(orders), "subscribe": "orders", **options}.items()
        if value is not None
    }
    with pytest.raises(UsageError, match=message):
        SeglogDataSource(given).schema()


@pytest.mark.xdist_group("spark")
def test_times_of_protobuf_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    proto = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
    message T { google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; }"""
    write(tmp_path / "orders-0", b"\x0a\x05\x08\x01\x10\x88\x27" + b"\x12\x02\x08\x02", b"\x0a\x02\x10\x07")
    reader = spark.read.format("seglog").options(valueAs="protobuf", valueSchema=proto, valueIsPlain="true")
    frame = reader.option("columns", "value").option("mode", "dropcorrupt").load(str(tmp_path))
    assert frame.schema.simpleString() == "struct<value:struct<at:timestamp,took:interval day to second>>"
    found = frame.selectExpr("unix_micros(value.at)", "value.took").collect()
    assert [tuple(row) for row in found] == [(1_000_005, timedelta(seconds=2))]
    whole = reader.option("columns", "value").option("times", "written").load(str(tmp_path))
    assert [row[0] for row in whole.select("value.at.nanos").collect()] == [5000, 7]
