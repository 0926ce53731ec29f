"""A default of each logical type, in each place, is in tables of each format what Apache Avro's library reads."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.batches import batch, record
from helpers.support import FIXTURES
from test_avro_answers import as_column, plain

from seglog_format import export
from seglog_format.errors import UsageError
from seglog_format.values.schemas import schemas_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANSWERS = json.loads((FIXTURES / "witnesses" / "avro_answers.json").read_text("utf-8"))
DEFAULTS = [case for case in ANSWERS["cases"] if case["bytes"] == "0a" and "id" in str(case["writer"])]
WRITER = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
VALUE = b"\x00\x00\x00\x00\x01\x0a"


def in_namespace(schema: Any, namespace: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a schema whose named types are in a namespace: many defaults stand in one record."""
    if isinstance(schema, list):
        return [in_namespace(each, namespace) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: in_namespace(each, namespace) if name in {"type", "items", "values", "fields"} else each
        for name, each in schema.items()
    }
    return (
        {**found, "namespace": namespace}
        if "name" in schema and schema["type"] in ("record", "enum", "fixed")
        else found
    )


def reader_of(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a schema with the field of each case."""
    fields = [
        {**case["reader"]["fields"][1], "name": f"x{number}", "type": in_namespace(_type_of(case), f"n{number}")}
        for number, case in enumerate(cases)
    ]
    return {**WRITER, "fields": [*WRITER["fields"], *fields]}


def _type_of(case: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    return case["reader"]["fields"][1]["type"]


def stored(version: int, schema: object) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": "t-value", "version": version, "magic": 1}
    value = {"subject": "t-value", "version": version, "id": version, "schema": json.dumps(schema)}
    return json.dumps(key).encode(), json.dumps(value).encode()


def of_parquet(directory: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(directory.rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()]


def of_arrow(directory: Path) -> list[dict[str, Any]]:
    (path,) = directory.rglob("*.arrow")
    rows: list[dict[str, Any]] = pa.ipc.open_file(path).read_all().to_pylist()
    return rows


def of_json(directory: Path) -> list[dict[str, Any]]:
    (path,) = directory.rglob("*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def of_csv(directory: Path) -> list[dict[str, Any]]:
    (path,) = directory.rglob("*.csv")
    csv.field_size_limit(10**9)
    with path.open(encoding="utf-8", newline="") as file:
        return [row | {"value": json.loads(row["value"])} for row in csv.DictReader(file)]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "parquet": of_parquet,
    "iceberg": of_parquet,
    "arrow": of_arrow,
    "jsonl": of_json,
    "csv": of_csv,
}


def as_text(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return an answer of the library as text formats hold it, with bytes as hex."""
    if isinstance(answer, list):
        return [as_text(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    ((kind, value),) = answer.items()
    if kind == "record":
        return {name: as_text(each) for name, each in value.items()}
    if kind == "map":
        return [[key, as_text(each)] for key, each in value.items()]
    return TEXTS[kind](value) if kind in TEXTS else value


def moment(nanos: str) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    return epoch + timedelta(microseconds=int(nanos) // 1000)


TEXTS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float.fromhex,
    "date": lambda days: str(date(1970, 1, 1) + timedelta(int(days))),
    "time": lambda nanos: str(moment(nanos).time()),
    "instant": lambda nanos: str(moment(nanos).replace(tzinfo=UTC)),
    "local": lambda nanos: str(moment(nanos)),
}


def without_members(value: Any) -> Any:  # noqa: ANN401 - as above
    """Return a value of a text format with the present member of each union in its place."""
    if isinstance(value, list):
        return [without_members(each) for each in value]
    if not isinstance(value, dict):
        return value
    if any(name.startswith("member") for name in value):
        return next((without_members(each) for each in value.values() if each is not None), None)
    return {name: without_members(each) for name, each in value.items()}


NOT_IN_ICEBERG = ("null", "wide decimal")


@pytest.mark.parametrize("name", NOT_IN_ICEBERG)
def test_type_that_iceberg_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    reader = reader_of([case for case in DEFAULTS if case["name"].startswith(f"{name}: omitted")])
    log = tmp_path / "t-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(batch(record(0, 0, b"", VALUE), 1))
    with pytest.raises(UsageError, match=r"an Iceberg table cannot hold the type .* of value\.x0\.q"):
        export(log, tmp_path / "out", value="avro", schema=json.dumps(reader), format="iceberg")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("table_format", READERS)
def test_defaults_of_all_types_in_all_places(table_format: str, tmp_path: Path) -> None:
    is_text = table_format in {"csv", "jsonl"}
    left_out = NOT_IN_ICEBERG if table_format == "iceberg" else ()
    cases = [case for case in DEFAULTS if case["name"].partition(":")[0] not in left_out]
    log = tmp_path / "t-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(batch(record(0, 0, b"", VALUE), 1))
    options: dict[str, Any] = {"format": table_format, "bytes_as": "hex" if is_text else "utf8"}
    schemas = schemas_of([stored(1, WRITER), stored(2, reader_of(cases))])
    (exported,) = export(log, tmp_path / "out", value="avro", schemas=schemas, **options)
    assert (exported.row_count, exported.undecoded_count) == (1, 0)
    (row,) = READERS[table_format](tmp_path / "out")
    wrong = {}
    for number, case in enumerate(cases):
        answer = case["value"]["record"]["x"]
        if "nanos" in case["name"]:  # nanoseconds stay numbers
            answer = json.loads(json.dumps(answer).replace('"instant"', '"int"').replace('"local"', '"int"'))
        found, expected = row["value"][f"x{number}"], as_text(answer) if is_text else as_column(answer)
        if (without_members(found) if is_text else plain(found)) != expected:
            wrong[case["name"]] = found, expected
    assert len(cases) > 300
    assert wrong == {}


@pytest.mark.parametrize("default", ["\u0100", "text of more", 7, None, [1], {"a": 1}])
def test_default_of_another_type_sets_records_aside(default: object, tmp_path: Path) -> None:
    reader = {
        **WRITER,
        "fields": [{"name": "x", "type": {"type": "fixed", "name": "F", "size": 1}, "default": default}],
    }
    log = tmp_path / "t-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(batch(record(0, 0, b"", VALUE), 1))
    schemas = schemas_of([stored(1, WRITER), stored(2, reader)])
    (exported,) = export(log, tmp_path / "out", value="avro", schemas=schemas)
    assert (exported.row_count, exported.undecoded_count) == (0, 1)
