"""The message of a Protobuf column is that of its values (`fixtures/make/protobuf_messages.py` asked a serializer)."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from helpers.batches import batch, record
from helpers.support import FIXTURES

from seglog_format import export
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.values.schemas import schemas_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.values.schemas import Schemas

ANSWERS = json.loads((FIXTURES / "witnesses" / "protobuf_messages.json").read_text("utf-8"))
CASES = {case["message"]: case for case in ANSWERS["cases"]}
WAYS = {"text": lambda _: ANSWERS["schema"], "descriptor": lambda case: case["registered"]}


def log_of(directory: Path, *names: str, first: int = 0) -> Path:
    values = [bytes.fromhex(CASES[name]["bytes"]) for name in names]
    section = b"".join(record(number, number, b"k", value) for number, value in enumerate(values))
    directory.mkdir(parents=True, exist_ok=True)
    data = batch(section, len(values), base_offset=first, last_offset_delta=len(values) - 1)
    (directory / f"{first:020}.log").write_bytes(data)
    return directory


def registry(schema: str) -> Schemas:
    key = {"keytype": "SCHEMA", "subject": "t-value", "version": 1, "magic": 1}
    value = {"subject": "t-value", "version": 1, "id": 1, "schemaType": "PROTOBUF", "schema": schema}
    return schemas_of([(json.dumps(key).encode(), json.dumps(value).encode())])


def values_of(out: Path) -> list[dict[str, Any]]:
    rows = duckdb.sql(f"select value from '{out}/**/*.parquet' order by \"offset\"")  # noqa: S608 - our own
    return [{name: each for name, each in row.items() if each is not None} for (row,) in rows.fetchall()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_column_holds_the_message_of_the_values(name: str, way: str, tmp_path: Path) -> None:
    case = CASES[name]
    log = log_of(tmp_path / "t-0", name, name)
    (exported,) = export(log, tmp_path / "out", value="protobuf", schemas=registry(WAYS[way](case)))
    assert (exported.row_count, exported.undecoded_count) == (2, 0)
    assert values_of(tmp_path / "out") == [case["value"]] * 2


def test_other_messages_are_set_aside_with_their_names(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", "shop.Customer", "shop.Order.Line", "shop.Customer")
    schemas = registry(ANSWERS["schema"])
    (exported,) = export(log, tmp_path / "out", value="protobuf", schemas=schemas)
    assert (exported.row_count, exported.undecoded_count) == (2, 1)
    reason = duckdb.sql(f"select reason from '{tmp_path}/out-undecoded/**/*.parquet'").fetchone()  # noqa: S608
    assert reason == ("value: a message shop.Order.Line, and the column holds shop.Customer",)
    options: dict[str, Any] = {"value": "protobuf", "schemas": schemas, "message": "Order.Line"}
    (other,) = export(log, tmp_path / "lines", **options)
    assert (other.row_count, other.undecoded_count) == (1, 2)


def test_the_library_is_named_if_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(tmp_path / "t-0", "shop.Customer")
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    monkeypatch.delitem(sys.modules, "seglog_format.values.protobuf", raising=False)
    with pytest.raises(UsageError, match=r"decoding protobuf needs google\.protobuf: pip install"):
        export(log, tmp_path / "out", value="protobuf", schemas=registry(ANSWERS["schema"]))


def test_table_keeps_its_message(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", "shop.Customer")
    schemas = registry(ANSWERS["schema"])
    export(log, tmp_path / "out", value="protobuf", schemas=schemas)
    (log / f"{0:020}.log").unlink()
    log_of(log, "shop.Order", "shop.Customer", first=1)
    (exported,) = export(log, tmp_path / "out", value="protobuf", schemas=schemas)
    assert (exported.row_count, exported.undecoded_count) == (1, 1)
    assert values_of(tmp_path / "out") == [CASES["shop.Customer"]["value"]] * 2


@pytest.mark.parametrize("first", [b"", b"text", b"\x00\x00\x00\x00\x01\x02\x7e"])
def test_values_that_name_no_message_are_passed_over(
    first: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_of(tmp_path / "logs" / "t-0", "shop.Unused", first=1)
    log_of(log, "shop.Order.Refund", first=2)
    (log / f"{1:020}.log").write_bytes(batch(record(0, 0, b"k", first), 1, base_offset=1))
    schema = tmp_path / "shop.proto"
    schema.write_text(ANSWERS["schema"], encoding="utf-8")
    options = ["--value", "protobuf", "--schema", str(schema)]
    assert run(["export", str(log), "--to", str(tmp_path / "out"), *options]) == 1
    assert "t-0: 1 row" in (shown := capsys.readouterr().out)
    assert "1 record not decoded" in shown
    assert values_of(tmp_path / "out") == [CASES["shop.Order.Refund"]["value"]]


def test_keys_name_their_message_too(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    key = bytes.fromhex(CASES["shop.Order.Line"]["bytes"])
    (directory / f"{0:020}.log").write_bytes(batch(record(0, 0, key, b"x"), 1))
    schemas = schemas_of(
        [
            (
                b'{"keytype":"SCHEMA","subject":"t-key","version":1,"magic":1}',
                json.dumps(
                    {"subject": "t-key", "version": 1, "id": 1, "schemaType": "PROTOBUF", "schema": ANSWERS["schema"]}
                ).encode(),
            )
        ]
    )
    (exported,) = export(directory, tmp_path / "out", key="protobuf", schemas=schemas)
    assert (exported.row_count, exported.undecoded_count) == (1, 0)
    rows = duckdb.sql(f"select key from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
    assert rows == [(CASES["shop.Order.Line"]["value"],)]
