"""Times of Protobuf and JSON are columns of times that hold what the schema's own library reads, or are refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from helpers.batches import batch, record
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

from seglog_format import export, value_decoder
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.tables.file_table import MANIFEST_NAME
from seglog_format.tables.iceberg_table import SETTINGS_PROPERTY
from seglog_format.values.decoder import decoded, type_of
from seglog_format.values.protobuf import file_of
from seglog_format.values.schemas import SchemaText

if TYPE_CHECKING:
    from pathlib import Path

PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message T {
  google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; repeated google.protobuf.Timestamp all = 3;
  map<string, google.protobuf.Duration> named = 4; google.protobuf.StringValue note = 5;
}"""
Message: Any = GetMessageClass(file_of(SchemaText("PROTOBUF", PROTO)).message_types_by_name["T"])
SECONDS = st.one_of(
    st.integers(-62_135_596_801, 253_402_300_801),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, -1, 315_576_000_000, 315_576_000_001, -315_576_000_000]),
)
NANOS = st.one_of(
    st.sampled_from([0, 1, 999, 1000, 999_999_000, 1_000_000_000, -1, -1000]),
    st.integers(0, 999_999).map(lambda micros: micros * 1000),
    st.integers(-(2**31), 2**31 - 1),
)
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DATE_TIME = {"type": "string", "format": "date-time"}
TIMES = {"type": "object", "properties": {"at": {"type": ["string", "null"], "format": "date-time"}}}


def message_of(seconds: int, nanos: int, name: str) -> bytes:
    message = Message()
    getattr(message, name).seconds = seconds
    getattr(message, name).nanos = nanos
    data: bytes = message.SerializeToString()
    return data


def read_by_protobuf(data: bytes, name: str) -> datetime | timedelta | None:
    """Return what protobuf's own classes make of a time; None where they refuse it, or lose a part of it."""
    found = getattr(Message.FromString(data), name)
    try:
        found.ToJsonString()  # checks the ranges
        made: datetime | timedelta = found.ToDatetime(UTC) if name == "at" else found.ToTimedelta()
    except (ValueError, OverflowError):
        return None
    back = type(found)()
    (back.FromDatetime if name == "at" else back.FromTimedelta)(made)
    return made if back == found else None


decoder_of = cache(partial(value_decoder, is_plain=True))


def in_column(kind: str, schema: str, data: bytes) -> tuple[Any, list[str]]:
    column, failures = decoded(decoder_of(kind, schema=schema), pa.array([data]))
    return column.to_pylist()[0], [failure.reason for failure in failures]


@given(SECONDS, NANOS, st.sampled_from(["at", "took"]))
def test_protobuf_times_are_those_of_its_library_or_refused(seconds: int, nanos: int, name: str) -> None:
    data = message_of(seconds, nanos, name)
    expected = read_by_protobuf(data, name)
    found, reasons = in_column("protobuf", PROTO, data)
    if expected is None:
        assert found is None
        (reason,) = reasons
        assert reason.startswith(f"{name}: the reader's schema expects a ")
        assert reason.endswith(f"found '{seconds} s and {nanos} ns'")
    else:
        assert (found[name], reasons) == (expected, [])


@given(st.datetimes(), ZONES, st.integers(0, 999), st.sampled_from("Tt"))
def test_json_times_are_what_was_written_or_refused(naive: datetime, zone: timezone, nanos: int, sign: str) -> None:
    east = zone.utcoffset(None)
    minutes = abs(east) // timedelta(minutes=1)
    offset = f"{'-' if east < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"
    text = f"{naive.isoformat('T', 'microseconds').replace('T', sign)}{nanos:03}{offset}"
    found, reasons = in_column("json-schema", json.dumps(TIMES), json.dumps({"at": text}).encode())
    try:
        expected = (naive.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        expected = None
    if nanos or expected is None:
        assert (found, len(reasons)) == (None, 1)
        assert reasons[0].startswith("at: the reader's schema expects a")
    else:
        assert (found, reasons) == ({"at": expected}, [])


@each_of(
    ("given_value", "schema", "expected"),
    [
        ("2026-01-02T03:04:05Z", DATE_TIME, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            "1969-12-31t23:59:59.5z",
            DATE_TIME,
            datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
        ),
        (None, {"type": ["null", "string"], "format": "date-time"}, None),
        ("2024-02-29", {"type": "string", "format": "date"}, date(2024, 2, 29)),
        ("10:00", {"type": "string", "format": "time"}, "10:00"),
        ("x", {"type": "string", "format": {"no": "name"}}, "x"),
        (
            "2026-01-02T03:04:05Z",
            {"oneOf": [DATE_TIME, {"type": "integer"}]},
            "2026-01-02T03:04:05Z",
        ),
        (7, {"oneOf": [DATE_TIME, {"type": "integer"}]}, "7"),
        (2**53, {"type": "number"}, 2.0**53),
        (2**100, {"type": "number"}, 2.0**100),
        (2**63 - 1, {"type": "integer"}, 2**63 - 1),
    ],
)
def test_formats_of_json(given_value: Any, schema: dict[str, Any], expected: Any) -> None:  # noqa: ANN401
    whole = json.dumps({"type": "object", "properties": {"c": schema}})
    assert in_column("json-schema", whole, json.dumps({"c": given_value}).encode()) == ({"c": expected}, [])


@each_of(
    ("text", "schema", "reason"),
    [
        (
            '"yesterday"',
            DATE_TIME,
            "expects a date-time of RFC 3339, found 'yesterday'",
        ),
        ('"2026-01-02T03:04:05"', DATE_TIME, "expects a date-time of RFC 3339"),
        ('"2026-01-02 03:04:05Z"', DATE_TIME, "expects a date-time of RFC 3339"),
        ('"2026-02-29T03:04:05Z"', DATE_TIME, "expects an existing date-time of the years"),
        ('"2016-12-31T23:59:60Z"', DATE_TIME, "expects an existing date-time of the years"),
        ('"2023-02-29"', {"type": "string", "format": "date"}, "expects a date of RFC 3339, found '2023-02-29'"),
        ('"20230228"', {"type": "string", "format": "date"}, "expects a date of RFC 3339"),
        ("9007199254740993", {"type": "number"}, "expects a number of 64 bits, found 9007199254740993"),
        ("1" + "0" * 400, {"type": "number"}, "expects a number of 64 bits, found 1000"),
        ("9223372036854775808", {"type": "integer"}, "expects an integer of 64 bits, found 9223372036854775808"),
        ("1e19", {"type": "integer"}, "expects an integer of 64 bits, found 1e+19"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_its_field(
    text: str, schema: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "schema.json"
    inside = {"type": "object", "properties": {"c": schema}}
    whole.write_text(json.dumps({"type": "object", "properties": {"a": {"type": "array", "items": inside}}}))
    log = log_of(tmp_path / "t-0", b'{"a": [{"c": %s}]}' % text.encode())
    arguments = ["export", str(log), "--value", "json-schema", "--plain", "--schema", str(whole), "--to"]
    assert run([*arguments, str(tmp_path / "out")]) == 1
    rows = duckdb.sql(f"select file, \"offset\", reason from '{tmp_path}/out-undecoded/**/*.parquet'").fetchall()  # noqa: S608
    ((file, offset, found),) = rows
    assert (file, offset) == (f"{0:020}.log", 0)
    assert found.startswith("value: a.c: the reader's schema ")
    assert reason in found
    assert run([*arguments, str(tmp_path / "strict"), "--strict"]) == 3
    assert f"t-0: offset 0: value: a.c: the reader's schema {reason[:7]}" in (shown := capsys.readouterr().err)
    assert shown.count(file) == 1


def log_of(directory: Path, *values: bytes) -> Path:
    section = b"".join(record(number, number, b"k", value) for number, value in enumerate(values))
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(batch(section, len(values), last_offset_delta=len(values) - 1))
    return directory


def full_message() -> bytes:
    message = Message(
        at={"seconds": 1, "nanos": 5000}, took={"seconds": -1, "nanos": -500_000_000}, note={"value": "n"}
    )
    message.all.add(seconds=-1)
    message.named["a"].seconds = 2
    data: bytes = message.SerializeToString()
    return data


@each_of(
    ("table_format", "expected"),
    [
        ("parquet", {"at": "TIMESTAMP WITH TIME ZONE", "took": "BIGINT"}),
        ("jsonl", {"at": "1970-01-01 00:00:01.000005+00:00", "took": "-1.5s"}),
    ],
)
def test_times_in_tables(table_format: str, expected: dict[str, str], tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", full_message())
    export(log, tmp_path / "out", value="protobuf", schema=PROTO, is_plain=True, format=table_format)
    (file,) = (tmp_path / "out").rglob(f"*.{table_format}")
    if table_format == "jsonl":
        row = json.loads(file.read_text())["value"]
    else:
        columns = ", ".join(f"typeof(value.{name})" for name in expected)
        row = dict(zip(expected, duckdb.sql(f"select {columns} from '{file}'").fetchall()[0], strict=True))  # noqa: S608
        assert duckdb.sql(f"select value.took from '{file}'").fetchall() == [(-1_500_000,)]  # noqa: S608
    assert {name: row[name] for name in expected} == expected


def test_times_stay_as_they_were_written_if_asked(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", full_message(), message_of(5, 7, "at"))
    options: dict[str, Any] = {"value": "protobuf", "schema": PROTO, "is_plain": True}
    (exported,) = export(log, tmp_path / "out", **options, times="written")
    assert exported.undecoded_count == 0
    found = duckdb.sql(f"select value.at from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
    assert found == [({"seconds": 1, "nanos": 5000},), ({"seconds": 5, "nanos": 7},)]
    with pytest.raises(
        UsageError, match=r"begun with value protobuf by .*, plain True, times written, not protobuf by"
    ):
        export(log, tmp_path / "out", **options)
    with pytest.raises(UsageError, match="times are typed or written, not 'x'"):
        export(log, tmp_path / "more", **options, times="x")
    with pytest.raises(UsageError, match=r"Iceberg table cannot hold the type duration\[us\] of value.took"):
        export(log, tmp_path / "ice", **options, format="iceberg")
    (whole,) = export(log, tmp_path / "ice", **options, format="iceberg", times="written")
    assert whole.row_count == 2


def forget_types(out: Path, table_format: str) -> None:
    """Make a table one of a version that did not store the types of its columns."""
    if table_format != "iceberg":
        stored = json.loads((out / MANIFEST_NAME).read_text())
        del stored["table"]["value"]["type"]
        (out / MANIFEST_NAME).write_text(json.dumps(stored))
        return
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())
    table = catalog.load_table("seglog.records")
    stored = json.loads(table.properties[SETTINGS_PROPERTY])
    del stored["value"]["type"]
    with table.transaction() as transaction:
        transaction.set_properties({SETTINGS_PROPERTY: json.dumps(stored)})
    catalog.close()


SIMPLE = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message T { google.protobuf.Timestamp at = 1; repeated google.protobuf.StringValue note = 2;
map<string, int32> m = 3; }"""
FORMS = [(kind, has) for kind in ("parquet", "arrow", "iceberg", "jsonl", "csv") for has in (True, False)]


@each_of(("table_format", "has_types"), FORMS)
def test_table_whose_types_were_others_is_refused_before_a_byte(
    table_format: str,
    has_types: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A version with other rules began the table: times were structs, and wrappers too."""
    log, out = log_of(tmp_path / "t-0", message_of(1, 0, "at")), tmp_path / "out"
    options: dict[str, Any] = {"value": "protobuf", "schema": SIMPLE, "is_plain": True, "format": table_format}
    with monkeypatch.context() as older:
        older.setattr("seglog_format.values.protobuf.PROTOBUF_TIMES", {})
        older.setattr("seglog_format.values.protobuf.WRAPPERS", set())
        type_of.cache_clear()
        export(log, out, **options)
    type_of.cache_clear()
    if not has_types:
        forget_types(out, table_format)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    with pytest.raises(UsageError, match=r"this table's column value has the type .*: export to another directory"):
        export(log, out, **options)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


@each_of("table_format", ["parquet", "arrow", "iceberg"])
def test_table_without_types_goes_on_if_its_files_have_them(table_format: str, tmp_path: Path) -> None:
    log, out = log_of(tmp_path / "t-0", message_of(1, 0, "at")), tmp_path / "out"
    options: dict[str, Any] = {"value": "protobuf", "schema": SIMPLE, "is_plain": True, "format": table_format}
    export(log, out, **options)
    forget_types(out, table_format)
    assert [each.row_count for each in export(log, out, **options)] == [0]
