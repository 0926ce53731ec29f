"""Values that stock serializers have made are columns with every field, whatever version of the schema they have."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest
from helpers.batches import batch, record
from helpers.serialized import make_topics
from helpers.walking import each_of
from pyiceberg.catalog.sql import SqlCatalog

from proofs.serialized import KINDS, expected_rows, registry_says, unpack_topics
from seglog_format import export, open_partition, read_schemas
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.tables.partition_export import PartitionExport
from seglog_format.values.schemas import schemas_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.values.schemas import SchemaText


WAYS = {
    "text": make_topics,
    "descriptors": partial(make_topics, has_text=False),
    "registry": unpack_topics,
}


@pytest.fixture(scope="module", params=WAYS)
def topics(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("serialized") / "logs"
    WAYS[request.param](directory)
    return directory


def plain(value: Any) -> Any:  # noqa: ANN401 - decoded objects
    """Return an object as the serializers took it: times as milliseconds, numbers as such."""
    if isinstance(value, datetime):
        return round(value.replace(tzinfo=value.tzinfo or UTC).timestamp() * 1000)
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def with_maps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose maps, which Arrow gives as lists of pairs, are maps."""
    return [{**row, "tags": dict(row["tags"])} if "tags" in row else row for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_duckdb_reads_every_field(kind: str, topics: Path, tmp_path: Path) -> None:
    (exported,) = export(
        topics, tmp_path / "out", topics=[f"orders-{kind}"], value=kind, partition_by=(), times="written"
    )
    assert (exported.row_count, exported.undecoded_count) == (21, 0)
    query = f"select value from '{tmp_path}/out/*.parquet' order by \"offset\""  # noqa: S608 - our own
    found = duckdb.sql(query).to_arrow_table().column("value").to_pylist()
    assert with_maps([plain(each) for each in found]) == expected_rows(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_pyiceberg_reads_every_field(kind: str, topics: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(topics, out, topics=[f"orders-{kind}"], value=kind, format="iceberg", times="written")
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db")
    rows = catalog.load_table("seglog.records").scan().to_arrow().sort_by("offset")
    catalog.close()
    found = with_maps([plain(each) for each in rows.column("value").to_pylist()])
    assert found == [read_by_pyiceberg(row) for row in expected_rows(kind)]
    (file,) = (out / "data").iterdir()
    in_file = pq.ParquetFile(file).read().column("value").to_pylist()
    assert with_maps([plain(each) for each in in_file]) == expected_rows(kind)


def read_by_pyiceberg(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as pyiceberg reads it: a list that is null is an empty one, other than in the file."""
    return {**row, "items": row["items"] or []} if "items" in row else row


# -- the registry's topic


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("registry") / "logs"
    unpack_topics(directory)
    return directory


def test_schemas_are_those_that_the_registry_says(registry: Path) -> None:
    schemas, says = read_schemas(registry / "_schemas-0"), registry_says()
    assert schemas.subjects() == sorted(says["latest"])
    found = {subject: schemas.latest(subject) for subject in says["latest"]}
    found |= {id_: schemas.by_id(int(id_)) for id_ in says["ids"]}
    for name, expected in (says["latest"] | says["ids"]).items():
        schema = found[name]
        assert schema is not None
        assert (schema.text, schema.type) == (expected["schema"], expected.get("schemaType", "AVRO"))
        assert [name for name, _ in schema.references] == [each["name"] for each in expected.get("references", ())]
    assert schemas.by_id(len(says["ids"]) + 1) is None
    assert [schemas.latest(subject) for subject in ("all-gone", "no-more")] == [None, None]


def test_schema_that_refers_to_another_decodes(registry: Path, tmp_path: Path) -> None:
    (exported,) = export(registry, tmp_path / "out", topics=["priced"], value="protobuf")
    assert (exported.row_count, exported.undecoded_count) == (7, 0)
    found = duckdb.sql(f"select distinct value.price.cents from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
    assert found == [(250,)]


def stored(subject: str, schema: str, *, id_: int = 1, version: int = 1, **more: object) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": id_, "schema": schema, "deleted": False, **more}
    return json.dumps(key).encode(), json.dumps(value).encode()


def text_of(schema: SchemaText | None) -> str | None:
    return None if schema is None else schema.text


MONEY = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}
PRICED = {"type": "record", "name": "Priced", "fields": [{"name": "price", "type": "shop.Money"}]}
JSON_MONEY = {"type": "object", "properties": {"cents": {"type": "integer"}}}
JSON_PRICED = {"type": "object", "properties": {"price": {"$ref": "money.json"}}}
REFERRING: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], bytes]] = {
    "avro": ("AVRO", "shop.Money", MONEY, PRICED, b"\xf4\x03"),
    "json-schema": ("JSON", "money.json", JSON_MONEY, JSON_PRICED, b'{"price":{"cents":250}}'),
}


@pytest.mark.parametrize("kind", REFERRING)
def test_references_of_other_types_are_followed(kind: str, tmp_path: Path) -> None:
    schema_type, name, money, priced, value = REFERRING[kind]
    reference = {"name": name, "subject": "money", "version": 1}
    schemas = schemas_of(
        [
            stored("money", json.dumps(money), schemaType=schema_type),
            stored("t-value", json.dumps(priced), id_=2, schemaType=schema_type, references=[reference]),
        ]
    )
    log = log_of(tmp_path / "t-0", HEADER + b"\x02" + value)
    (exported,) = export(log, tmp_path / "out", value=kind, schemas=schemas)
    assert (exported.row_count, exported.undecoded_count) == (1, 0)
    found = duckdb.sql(f"select value.price.cents from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
    assert found == [(250,)]


def test_ids_of_other_contexts_are_others() -> None:
    records = [
        stored("t-value", '"int"'),
        stored(":.west:t-value", '"long"'),
        stored(":.west:priced", '"bytes"', id_=2, references=[{"name": "N", "subject": "t-value", "version": 1}]),
        stored(":.west:more", '"bytes"', id_=3, references=[{"name": "N", "subject": ":.:t-value", "version": 1}]),
        stored(":.:u-value", '"float"', id_=4),
        (b'{"keytype":"CONTEXT","tenant":"default","context":".west","magic":0}', b'{"tenant":"default"}'),
    ]
    schemas = schemas_of(records)
    assert text_of(schemas.by_id(1)) == '"int"'
    assert [schemas.by_id(id_) for id_ in (2, 3)] == [None, None]
    assert text_of(schemas.latest("t-value")) == '"int"'
    assert text_of(schemas.latest(":.west:t-value")) == '"long"'
    assert text_of(schemas.latest("u-value")) == text_of(schemas.by_id(4)) == '"float"'
    references = [schemas.latest(f":.west:{name}") for name in ("priced", "more")]
    assert [each and each.references for each in references] == [(("N", '"long"'),), (("N", '"int"'),)]


@pytest.mark.parametrize("value", [b"", None])
def test_schemas_are_deleted_and_come_back(value: bytes | None) -> None:
    first, second, third = (
        stored("s", f'"{kind}"', id_=id_, version=id_) for kind, id_ in (("int", 1), ("long", 2), ("bytes", 3))
    )
    everything = b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":2}'
    assert text_of(schemas_of([first, second, (second[0], value)]).latest("s")) == '"int"'
    assert schemas_of([first, second, everything]).latest("s") is None
    assert text_of(schemas_of([first, second, everything, third]).latest("s")) == '"bytes"'
    assert text_of(schemas_of([first, second, everything, first]).latest("s")) == '"int"'
    gone = schemas_of([first, second, everything, (first[0], value), (second[0], value)])
    assert [text_of(gone.by_id(id_)) for id_ in (1, 2)] == ['"int"', '"long"']


@pytest.mark.parametrize("value", [None, b"", b"{}", b'{"mode":"READONLY"}', b'{"subject":"s","version":"x"}'])
@each_of(
    "key",
    [
        b'{"keytype":"NOOP","magic":0}',
        b'{"keytype":"CONFIG","subject":"s","magic":0}',
        b'{"keytype":"MODE","subject":"s","magic":0}',
        b'{"keytype":"DELETE_SUBJECT","subject":"other","magic":0}',
        b'{"keytype":"DELETE_SUBJECT","subject":3,"magic":0}',
        b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}',
        b'{"keytype":"SCHEMA","subject":"s"}',
        b"[]",
        b"",
        None,
    ],
)
def test_other_records_of_the_topic_change_nothing(key: bytes | None, value: bytes | None) -> None:
    schemas = schemas_of([stored("s", '"int"'), (key, value)])
    assert text_of(schemas.latest("s")) == text_of(schemas.by_id(1)) == '"int"'


def test_subject_of_another_context_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas_log(tmp_path / "logs" / "_schemas-0", *stored(":.west:t-value", SCHEMA))
    log = log_of(tmp_path / "logs" / "t-0", HEADER + b"\x01\x02")
    assert run(["export", str(log), "--to", str(tmp_path / "out"), "--value", "avro"]) == 2
    error = capsys.readouterr().err
    assert "no schema for the subject t-value: only the context .west of the topic _schemas has it" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


# -- what cannot be decoded


def undecoded(out: Path) -> list[dict[str, Any]]:
    beside = out.with_name(f"{out.name}-undecoded")
    return duckdb.sql(f"select * from '{beside}/**/*.parquet' order by \"offset\"").to_arrow_table().to_pylist()  # noqa: S608


def log_of(directory: Path, *values: bytes | None) -> Path:
    """Add a segment with these values to a partition."""
    first = open_partition(directory).log_end_offset if directory.exists() else 0
    section = b"".join(record(number, number, b"k", value) for number, value in enumerate(values))
    directory.mkdir(parents=True, exist_ok=True)
    data = batch(section, len(values), base_offset=first, last_offset_delta=len(values) - 1)
    (directory / f"{first:020}.log").write_bytes(data)
    return directory


HEADER = b"\x00\x00\x00\x00"
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
WITH_KEY = b'{"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}'
STORED = json.dumps({"subject": "t-value", "version": 1, "id": 1, "schema": SCHEMA, "deleted": False}).encode()


def schemas_log(directory: Path, key: bytes = WITH_KEY, value: bytes = STORED) -> Path:
    section = record(0, 0, key, value)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{0:020}.log").write_bytes(batch(section, 1))
    return directory


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Write a partition with a value that decodes, some that do not, and one more."""
    schemas_log(tmp_path / "logs" / "_schemas-0")
    return log_of(
        tmp_path / "logs" / "t-0",
        HEADER + b"\x01\x02",
        HEADER + b"\x07\x02",
        b"text",
        HEADER + b"\x01",
        HEADER + b"\x01\x02\x02",
        None,
        HEADER + b"\x01\x04",
    )


REASONS = [
    (1, "value: schema 7 is not in the registry's topic"),
    (2, "value: no header of Schema Registry: first byte 116, 4 bytes"),
    (3, "value: not a value of its Avro schema: "),
    (4, "value: 1 bytes after the Avro value"),
]


@pytest.mark.parametrize("table_format", ["parquet", "iceberg"])
def test_what_cannot_be_decoded_is_set_aside_once(table_format: str, broken: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"value": "avro", "format": table_format}
    (exported,) = export(broken, tmp_path / "out", **options)
    assert (exported.row_count, exported.undecoded_count, exported.next_offset) == (3, 4, 7)
    (again,) = export(broken, tmp_path / "out", **options)
    assert (again.row_count, again.undecoded_count) == (0, 0)
    log_of(broken, b"more", HEADER + b"\x01\x06")
    (more,) = export(broken, tmp_path / "out", **options)
    assert (more.row_count, more.undecoded_count) == (1, 1)
    rows = undecoded(tmp_path / "out")
    assert [
        (row["offset"], row["reason"][: len(text)]) for row, (_, text) in zip(rows, REASONS, strict=False)
    ] == REASONS
    assert [row["value"] for row in rows] == [
        HEADER + b"\x07\x02",
        b"text",
        HEADER + b"\x01",
        HEADER + b"\x01\x02\x02",
        b"more",
    ]
    assert [row["key"] for row in rows] == [b"k"] * 5
    found = duckdb.sql(f"select value.a as a from '{tmp_path}/out/**/*.parquet' order by \"offset\"").fetchall()  # noqa: S608
    assert found == [(1,), (None,), (2,), (3,)]


def test_run_that_ends_between_both_tables_adds_nothing_twice(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(PartitionExport, "_write", _end)
        with pytest.raises(KeyboardInterrupt):
            export(broken, tmp_path / "out", value="avro")
    assert not list((tmp_path / "out").rglob("*.parquet"))
    export(broken, tmp_path / "out", value="avro")
    assert [row["offset"] for row in undecoded(tmp_path / "out")] == [1, 2, 3, 4]


def _end(self: PartitionExport, *_: object) -> None:
    assert self.undecoded is not None
    self.undecoded.publish()
    raise KeyboardInterrupt


def test_strict_export_ends_there_in_one_line(broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(broken), "--to", str(tmp_path / "out"), "--value", "avro", "--strict"]
    assert run(arguments) == 3
    error = capsys.readouterr().err
    assert "t-0: offset 1: value: schema 7 is not in the registry's topic" in error
    assert duckdb.sql(f"select \"offset\" from '{tmp_path}/out/**/*.parquet'").fetchall() == [(0,)]  # noqa: S608
    assert not (tmp_path / "out-undecoded").exists()
    assert run(arguments[:-1]) == 1
    assert "t-0: 2 rows in 1 file" in (shown := capsys.readouterr().out)
    assert "4 records not decoded (value: schema 7 is not in the registry's topic" in shown


def test_table_grows_to_the_newest_schema_of_its_topic(broken: Path, tmp_path: Path) -> None:
    export(broken, tmp_path / "out", value="avro")
    newer = SCHEMA.replace('"int"}', '"int"}, {"name": "b", "type": "int", "default": 0}')
    stored = json.dumps({"subject": "t-value", "version": 2, "id": 2, "schema": newer, "deleted": False}).encode()
    section = record(0, 0, WITH_KEY.replace(b'"version":1', b'"version":2'), stored)
    (broken.parent / "_schemas-0" / f"{1:020}.log").write_bytes(batch(section, 1, base_offset=1))
    log_of(broken, HEADER + b"\x02\x08\x0a")
    (exported,) = export(broken, tmp_path / "out", value="avro")
    assert (exported.row_count, exported.undecoded_count) == (1, 0)
    files = f"read_parquet('{tmp_path}/out/**/*.parquet', union_by_name=true)"
    assert duckdb.sql(f'select value from {files} where "offset" = 7').fetchall() == [({"a": 4, "b": 5},)]  # noqa: S608
    with pytest.raises(UsageError, match=r"begun with value avro by the schema .* not bytes"):
        export(broken, tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (
            ["--value", "avro"],
            2,
            "no schema for the subject t-value: there is no topic _schemas; give a schema as a file",
        ),
        (["--value", "avro", "--plain"], 2, "--plain needs --schema"),
        (["--value", "avro", "--schema", "{tmp}/broken.avsc"], 2, "the reader's schema: not an Avro schema"),
        (["--value", "protobuf", "--schema", "{tmp}/broken.avsc"], 2, "not a Protobuf schema: seglog-schema.proto:1:"),
        (["--value", "json-schema", "--schema", "{tmp}/broken.avsc"], 2, "the reader's schema: "),
        (["--value", "avro", "--schemas", "{tmp}/missing"], 2, "missing"),
    ],
)
def test_command_fails_in_one_line(
    arguments: list[str], status: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.avsc").write_text("{")
    log = log_of(tmp_path / "alone" / "t-0", b"x")
    given = [each.format(tmp=tmp_path) for each in arguments]
    assert run(["export", str(log), "--to", str(tmp_path / "out"), *given]) == status
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["string", "json"])
def test_text_is_text_and_what_is_none_is_set_aside(kind: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", b'{"a": 1}', b"\xff", None)
    (exported,) = export(log, tmp_path / "out", value=kind, key="string")
    assert (exported.row_count, exported.undecoded_count) == (2, 1)
    found = duckdb.sql(f"select key, value from '{tmp_path}/out/**/*.parquet' order by \"offset\"").fetchall()  # noqa: S608
    assert found == [("k", '{"a": 1}'), ("k", None)]


@pytest.mark.parametrize("table_format", ["jsonl", "csv"])
def test_decoded_values_in_text_formats(table_format: str, broken: Path, tmp_path: Path) -> None:
    export(broken, tmp_path / "out", value="avro", format=table_format)
    (path,) = (tmp_path / "out").rglob(f"*.{table_format}")
    text = path.read_text("utf-8")
    assert ('"value":{"a":1}' if table_format == "jsonl" else '{""a"": 1}') in text
    assert list((tmp_path / "out-undecoded").rglob(f"*.{table_format}"))


def test_values_without_a_header_are_decoded_by_the_schema_alone(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", b"\x02", b"\x04")
    export(log, tmp_path / "out", value="avro", schema=SCHEMA, is_plain=True)
    assert duckdb.sql(f"select value.a from '{tmp_path}/out/**/*.parquet'").fetchall() == [(1,), (2,)]  # noqa: S608


# -- hostile bytes


def nested(depth: int) -> bytes:
    return b"\x02" * depth + b"\x00"


RECURSIVE = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (RECURSIVE, nested(200_000), "RecursionError"),
        ('{"type": "array", "items": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "fills more than"),
        ('"bytes"', b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "not a value of its Avro schema"),
        (
            '{"type": "array", "items": "int"}',
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00",
            "not a value of its Avro schema: ",
        ),
    ],
)
def test_hostile_avro_values_are_set_aside(schema: str, value: bytes, reason: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", value)
    export(log, tmp_path / "out", value="avro", schema=schema, is_plain=True)
    assert reason in undecoded(tmp_path / "out")[0]["reason"]


def test_recursive_values_that_are_not_hostile_are_json(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", nested(3))
    export(log, tmp_path / "out", value="avro", schema=RECURSIVE, is_plain=True)
    found = duckdb.sql(f"select value from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
    assert found == [('{"next":{"next":{"next":{"next":null}}}}',)]


def test_deep_json_and_references_that_lead_away_are_set_aside(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", b"[" * 100_000, b"{}")
    schema = '{"type": "object", "additionalProperties": {"$ref": "http://127.0.0.1:1/x.json"}}'
    export(log, tmp_path / "out", value="json-schema", schema=schema, is_plain=True)
    assert "not JSON" in undecoded(tmp_path / "out")[0]["reason"]
    more = log_of(tmp_path / "t-1", b'{"a": 1}')
    export(more, tmp_path / "more", value="json-schema", schema=schema, is_plain=True)
    assert "not checked by its JSON Schema" in undecoded(tmp_path / "more")[0]["reason"]


def test_protobuf_imports_stay_in_their_directory(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", b"")
    schema = 'syntax = "proto3"; import "../../../../../../etc/passwd"; message M {}'
    with pytest.raises(UsageError, match="the reader's schema: not a Protobuf schema"):
        export(log, tmp_path / "out", value="protobuf", schema=schema, is_plain=True)


# -- choices in JSON Schema

NULL = {"type": "null"}
CHOICES: list[tuple[dict[str, Any], str, list[Any]]] = [
    ({"enum": ["x", "y"]}, "VARCHAR", ["x", "y"]),
    ({"enum": ["x", None]}, "VARCHAR", ["x", None]),
    ({"enum": [1, 2]}, "BIGINT", [1, 2]),
    ({"enum": [1, 2.5]}, "DOUBLE", [1.0, 2.5]),
    ({"enum": [True]}, "BOOLEAN", [True]),
    ({"enum": ["x", 1, True]}, "VARCHAR", ["x", "1", "true"]),
    ({"enum": ["x", {"a": 1}]}, "VARCHAR", ['"x"', '{"a":1}']),
    ({"const": "x"}, "VARCHAR", ["x"]),
    ({"const": 7}, "BIGINT", [7]),
    ({"type": ["string", "integer"]}, "VARCHAR", ["x", "7"]),
    ({"type": ["integer", "number", "null"]}, "DOUBLE", [7.0, 1.5, None]),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "VARCHAR", ["x", "7"]),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}, NULL]}, "VARCHAR", ["x", None]),
    ({"anyOf": [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 0}]}, "VARCHAR", ["x", ""]),
    ({"oneOf": [{"enum": ["x"]}, {"enum": ["y"]}]}, "VARCHAR", ["x", "y"]),
    ({"oneOf": [{"type": "string"}, {"type": "array"}]}, "VARCHAR", ['"x"', "[1]"]),
    ({}, "VARCHAR", ['"x"', "7"]),
]


@each_of(("schema", "column", "expected"), CHOICES)
def test_choices_in_json_schema(schema: dict[str, Any], column: str, expected: list[Any], tmp_path: Path) -> None:
    texts = [json.dumps(each) if column != "VARCHAR" or each is None else _json_of(each, schema) for each in expected]
    log = log_of(tmp_path / "t-0", *(f'{{"c": {text}}}'.encode() for text in texts))
    reader = json.dumps({"type": "object", "properties": {"c": schema}})
    (exported,) = export(log, tmp_path / "out", value="json-schema", schema=reader, is_plain=True)
    assert (exported.row_count, exported.undecoded_count) == (len(expected), 0)
    query = f"select typeof(value.c), value.c from '{tmp_path}/out/**/*.parquet' order by \"offset\""  # noqa: S608
    assert duckdb.sql(query).fetchall() == [(column, each) for each in expected]


def _json_of(text: str, schema: dict[str, Any]) -> str:
    """Return the JSON of a value that a column of text shows: itself where the column is JSON, or a number."""
    is_json = not schema or text[:1] in {'"', "{", "["}
    return text if is_json or text in {"1", "7", "true"} else json.dumps(text)


@pytest.mark.parametrize("kind", ["json", "json-schema"])
@pytest.mark.parametrize("text", [b"NaN", b"[-Infinity]", b'{"a": Infinity}', b"1e400", b"[-1e400]"])
def test_what_is_no_number_in_json_is_refused(text: bytes, kind: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", text, b"1e300")
    (exported,) = export(log, tmp_path / "out", value=kind, schema="{}" if kind != "json" else None, is_plain=True)
    assert (exported.row_count, exported.undecoded_count) == (1, 1)
    assert (
        "no number" in undecoded(tmp_path / "out")[0]["reason"]
        or "too large" in undecoded(tmp_path / "out")[0]["reason"]
    )
