"""The decoded columns of a table grow with the schemas of its topic, and every reader gets one table."""

from __future__ import annotations

import io
import itertools
import json
import time
from typing import TYPE_CHECKING, Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from helpers.batches import batch, record
from helpers.walking import each_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ResolveError
from pyiceberg.schema import promote

from seglog_format import export, open_partition
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.values.shape import ALIASES, BRANCH, first_names, grown, with_names

if TYPE_CHECKING:
    from pathlib import Path

ITEM: dict[str, Any] = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
NOTE = {"name": "note", "type": "string", "default": "none"}
TAG = {"name": "tag", "type": ["null", "string"], "default": None}


def schema_of(*fields: dict[str, Any], item: dict[str, Any] = ITEM) -> dict[str, Any]:
    items = {"name": "items", "type": {"type": "array", "items": item}}
    return {"type": "record", "name": "Order", "fields": [*fields, items]}


ID, PRICE = {"name": "id", "type": "int"}, {"name": "price", "type": "float"}
LONG_ID, DOUBLE = {"name": "id", "type": "long"}, {"name": "price", "type": "double"}
AMOUNT = {"name": "amount", "type": "double", "aliases": ["price"]}
TAGGED = ITEM | {"fields": [*ITEM["fields"], TAG]}
COUNTED = ITEM | {"fields": [{"name": "count", "type": "long", "aliases": ["n"]}, TAG]}
VERSIONS = [
    (schema_of(ID, PRICE), {"id": 1, "price": 0.5, "items": [{"n": 1}]}),
    (schema_of(ID, PRICE, NOTE, item=TAGGED), {"id": 2, "price": 1.5, "note": "b", "items": [{"n": 2, "tag": "t"}]}),
    (schema_of(LONG_ID, DOUBLE, NOTE, item=TAGGED), {"id": 2**40, "price": 1e300, "note": "c", "items": []}),
    (schema_of(LONG_ID, AMOUNT, item=COUNTED), {"id": 4, "amount": 4.5, "items": [{"count": 2**40, "tag": None}]}),
]
"""Versions of a schema: fields are added, widened, renamed by alias and left out; each with a value."""
EXPECTED: list[dict[str, Any]] = [
    {"id": 1, "price": 0.5, "items": [{"n": 1, "tag": None}], "note": None},
    {"id": 2, "price": 1.5, "items": [{"n": 2, "tag": "t"}], "note": "b"},
    {"id": 2**40, "price": 1e300, "items": [], "note": "c"},
    {"id": 4, "price": 4.5, "items": [{"n": 2**40, "tag": None}], "note": None},
]


def add_version(logs: Path, number: int, schema: Any, value: Any, topic: str = "t") -> None:  # noqa: ANN401 - any JSON
    """Add a schema to the registry's topic, and a record with a value that was written by it."""
    key = {"keytype": "SCHEMA", "subject": f"{topic}-value", "version": number, "magic": 1}
    text = {"subject": f"{topic}-value", "version": number, "id": number, "schema": json.dumps(schema)}
    _append(logs / "_schemas-0", json.dumps(key).encode(), json.dumps(text | {"deleted": False}).encode())
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), value)
    _append_record(logs / f"{topic}-0", b"\x00" + number.to_bytes(4, "big") + data.getvalue())


def _append_record(directory: Path, value: bytes) -> None:
    _append(directory, b"k", value)


def _append(directory: Path, key: bytes, value: bytes) -> None:
    first = open_partition(directory).log_end_offset if directory.exists() else 0
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{first:020}.log").write_bytes(batch(record(0, 0, key, value), 1, base_offset=first))


def with_newest_names(row: dict[str, Any]) -> dict[str, Any]:
    row = {"amount" if name == "price" else name: value for name, value in row.items()}
    return row | {"items": [{"count": each["n"], "tag": each["tag"]} for each in row["items"]]}


def iceberg_values(out: Path) -> list[Any]:
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())
    try:
        rows = catalog.load_table("seglog.records").scan().to_arrow().sort_by("offset")
    finally:
        catalog.close()
    return list(rows.column("value").to_pylist())


def duckdb_values(out: Path) -> list[Any]:
    query = f"select value from read_parquet('{out}/**/*.parquet', union_by_name=true) order by \"offset\""  # noqa: S608
    return list(duckdb.sql(query).to_arrow_table().column("value").to_pylist())


def dataset_values(out: Path) -> list[Any]:
    schema = pq.read_schema(out / "_common_metadata")
    rows = ds.dataset(out, schema=schema, partitioning="hive").to_table().sort_by("offset")
    return list(rows.column("value").to_pylist())


def test_every_reader_gets_one_table_that_has_grown(tmp_path: Path) -> None:
    logs, files, lake = tmp_path / "logs", tmp_path / "files", tmp_path / "lake"
    for number, (schema, value) in enumerate(VERSIONS, 1):
        add_version(logs, number, schema, value)
        for out, table_format in ((files, "parquet"), (lake, "iceberg")):
            for rows in (1, 0):  # with the same schema the table does not change
                (found,) = export(logs, out, topics=["t"], value="avro", format=table_format)
                assert (found.row_count, found.undecoded_count, found.changes) == (rows, 0, ())
        assert (files / "_common_metadata").exists() == (number > 1)
        assert [row["id"] for row in iceberg_values(lake)] == [row["id"] for row in EXPECTED[:number]]
    assert duckdb_values(files) == EXPECTED
    assert dataset_values(files) == EXPECTED
    assert iceberg_values(lake) == list(map(with_newest_names, EXPECTED))
    newest = max(files.rglob("*.parquet"))
    common = pq.read_schema(files / "_common_metadata")
    assert common.names[:2] == ["topic", "partition"]
    assert pq.read_schema(newest) == common.remove(0).remove(0)


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


TEXT_ID = {"name": "id", "type": "string"}
NEW_PRICE = {"name": "price", "type": "string", "default": ""}
OTHER = {"name": "other", "type": "int", "default": 1}


def of_branches(*names: str) -> dict[str, Any]:
    """Return a field with a union of null and records."""
    branches = [{"type": "record", "name": each, "fields": [{"name": each, "type": "int"}]} for each in names]
    return {"name": "id", "type": ["null", *branches]}


REFUSED = {
    "another type": ([schema_of(ID), schema_of(TEXT_ID)], "value.id has the type int32 in the table, and string"),
    "an item's": (
        [schema_of(ID), schema_of(ID, item=ITEM | {"fields": [{"name": "n", "type": "double"}]})],
        "value.items.element.n has the type int32 in the table, and double",
    ),
    "a union": (
        [schema_of(ID), schema_of({"name": "id", "type": ["int", "string"]})],
        "value.id has the type int32 in the table, and struct<member0: int32, member1: string>",
    ),
    "an older name": (
        [schema_of(ID, DOUBLE), schema_of(ID, AMOUNT), schema_of(ID, AMOUNT, NEW_PRICE)],
        (
            "value: by names, aliases and numbers, the table's amount with the type double is not the same as one field"
            " of the schema: amount with the type double, price with the type string: give"
        ),
    ),
    "names that moved": (
        [
            schema_of(ID, OTHER),
            schema_of(OTHER | {"aliases": ["id"]}, {"name": "new", "type": "int", "aliases": ["other"]}),
        ],
        "value: by names, aliases and numbers, the table's other with the type int32 is not",
    ),
    "names swapped": (
        [schema_of(ID, OTHER), schema_of(ID | {"aliases": ["other"]}, OTHER | {"aliases": ["id"]})],
        "value: by names, aliases and numbers, the table's id with the type int32 is not",
    ),
    "two of one": (
        [schema_of(ID), schema_of(OTHER | {"aliases": ["id"]}, {"name": "new", "type": "int", "aliases": ["id"]})],
        "value: by names, aliases and numbers, the table's id with the type int32 is not",
    ),
    "one of two": (
        [schema_of(ID, OTHER), schema_of({"name": "new", "type": "int", "aliases": ["id", "other"]})],
        "value: by names, aliases and numbers, the table's other with the type int32 is not",
    ),
    "a branch before others": (
        [schema_of(of_branches("A", "B")), schema_of(of_branches("A", "C", "B"))],
        (
            "value.id: by names, aliases and numbers, the table's member1 of B with the type struct<B: int32> is not"
            " the same as one field of the schema: member1 of C with the type struct<C: int32>: give"
        ),
    ),
    "a record that becomes a branch": (
        [schema_of(of_branches("A")), schema_of(of_branches("A", "B"))],
        "value.id has the type struct<A: int32> in the table, and struct<member0: struct<A: int32>, member1: ",
    ),
}


def value_by(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value of a schema."""
    *fields, _ = schema["fields"]
    found = {each["name"]: "x" if each["type"] == "string" else 1 for each in fields}
    return found | {each["name"]: None for each in fields if "null" in each["type"]} | {"items": []}


@each_of("case", REFUSED)
def test_what_cannot_grow_is_refused_before_a_byte_is_written(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *accepted, refused = REFUSED[case][0]
    logs = tmp_path / "logs"
    for number, schema in enumerate(accepted, 1):
        add_version(logs, number, schema, value_by(schema))
        for table_format in ("parquet", "iceberg"):
            export(logs, tmp_path / table_format, topics=["t"], value="avro", format=table_format)
    add_version(logs, len(accepted) + 1, refused, value_by(refused))
    for table_format in ("parquet", "iceberg"):
        before = content_of(tmp_path / table_format)
        out = str(tmp_path / table_format)
        assert run(["export", str(logs), "--topic", "t", "--to", out, "--value", "avro", "--format", table_format]) == 2
        error = capsys.readouterr().err
        assert REFUSED[case][1] in error
        assert error.count("\n") == 1
        assert content_of(tmp_path / table_format) == before
        (found,) = export(logs, out, topics=["t"], value="avro", format=table_format, schema=json.dumps(accepted[-1]))
        assert found.row_count + found.undecoded_count == 1  # an older schema that was given decodes what it can


def test_table_that_has_grown_goes_on_with_the_same_records_set_aside_and_with_days(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number, (schema, value) in enumerate(VERSIONS, 1):
        _append_record(logs / "t-0", b"\x00\x00\x00\x00\x63broken")
        add_version(logs, number, schema, value)
        (found,) = export(logs, out, topics=["t"], value="avro", partition_by=["topic", "day"])
        assert (found.row_count, found.undecoded_count) == (1, 1)
    assert dataset_values(out) == EXPECTED
    schema = pq.read_schema(out / "_common_metadata")
    assert ds.dataset(out, schema=schema, partitioning="hive").to_table().column("day").null_count == 0
    set_aside = ds.dataset(tmp_path / "out-undecoded", partitioning="hive").to_table()
    assert set_aside.sort_by("offset").column("offset").to_pylist() == [0, 2, 4, 6]


# -- fields of Protobuf, which values have by number


def protobuf_of(order: str, item: str = "int32 n = 1;") -> str:
    return f'syntax = "proto3"; message Order {{ {order} repeated Item items = 9; }} message Item {{ {item} }}'


NUMBERED = [
    protobuf_of("int32 id = 1; float price = 2;"),
    protobuf_of("float amount = 2; string note = 3; int32 id = 1;", "int32 count = 1; string tag = 2;"),
    protobuf_of("int64 key = 1; float amount = 2;", "int64 count = 1;"),
]
"""Versions of a message: fields are renamed at both depths, moved, added, widened and left out."""
NUMBERED_VALUE = bytes.fromhex("080715000000 3f4a020805")
"""Field 1 is 7, field 2 is 0.5 as a float, and field 9 has one item, whose field 1 is 5."""
NOT_NUMBERED = {
    "the name of another number": (
        protobuf_of("int32 id = 3; float price = 2;"),
        (
            "value: by names, aliases and numbers, the table's id of number 1 with the type int32 is not the same"
            " as one field of the schema: id of number 3 with the type int32: give"
        ),
    ),
    "names swapped": (
        protobuf_of("int32 other = 1; float price = 2; int32 id = 3;"),
        "value: by names, aliases and numbers, the table's id of number 1 with the type int32 is not",
    ),
    "a name that moved": (
        protobuf_of("int32 price = 1;"),
        "value: by names, aliases and numbers, the table's price of number 2 with the type float is not",
    ),
    "another type of the number": (protobuf_of("string name = 1;"), "value.id has the type int32 in the table, and"),
}


def export_numbered(logs: Path, out: Path, table_format: str, schema: str) -> None:
    _append_record(logs / "t-0", NUMBERED_VALUE)
    (found,) = export(logs, out, topics=["t"], value="protobuf", format=table_format, schema=schema, is_plain=True)
    assert (found.row_count, found.undecoded_count) == (1, 0)


def test_fields_of_a_number_stay_one_column_under_any_name(tmp_path: Path) -> None:
    for table_format in ("parquet", "iceberg"):
        for schema in NUMBERED:
            export_numbered(tmp_path / f"{table_format}-logs", tmp_path / table_format, table_format, schema)
    items = [[{"n": 5, "tag": tag}] for tag in (None, "", None)]
    expected = [{"id": 7, "price": 0.5, "items": each, "note": each[0]["tag"]} for each in items]
    assert dataset_values(tmp_path / "parquet") == duckdb_values(tmp_path / "parquet") == expected
    kind = pq.read_schema(tmp_path / "parquet" / "_common_metadata").field("value").type
    assert [each.metadata for each in kind] == [None] * 4
    renamed = [
        {"key": 7, "amount": 0.5, "items": [{"count": each[0]["n"], "tag": each[0]["tag"]}], "note": each[0]["tag"]}
        for each in items
    ]
    assert iceberg_values(tmp_path / "iceberg") == renamed


@each_of("case", NOT_NUMBERED)
def test_numbers_that_cannot_keep_their_column_are_refused_before_a_byte_is_written(case: str, tmp_path: Path) -> None:
    schema, message = NOT_NUMBERED[case]
    for table_format in ("parquet", "iceberg"):
        logs, out = tmp_path / f"{table_format}-logs", tmp_path / table_format
        export_numbered(logs, out, table_format, NUMBERED[0])
        before = content_of(out)
        with pytest.raises(UsageError) as refused:
            export_numbered(logs, out, table_format, schema)
        assert message in str(refused.value)
        assert content_of(out) == before


# -- the rule of what may grow


LEAVES = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()]
LEAVES += [pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 3), pa.binary(4), pa.timestamp("us", "UTC")]
LEAVES += [pa.timestamp("us"), pa.time64("us")]
NOT_NUMBERS = {pa.string(), pa.binary()}
"""Iceberg also reads text as bytes, and bytes as text."""


def leaf_in_iceberg(kind: pa.DataType) -> Any:  # noqa: ANN401 - pyiceberg's type
    return Catalog._convert_schema_if_needed(pa.schema([("x", kind)])).fields[0].field_type


def may_promote(was: pa.DataType, now: pa.DataType) -> bool:
    if was == now:
        return True
    try:
        promote(leaf_in_iceberg(was), leaf_in_iceberg(now))
    except ResolveError:
        return False
    is_same_scale = not (pa.types.is_decimal(was) and pa.types.is_decimal(now)) or was.scale == now.scale
    return {was, now} != NOT_NUMBERS and is_same_scale  # the scale is in Iceberg's specification, not in `promote`


@each_of("was", LEAVES)
def test_numbers_grow_as_iceberg_promotes_them(was: pa.DataType) -> None:
    for now in LEAVES:
        if may_promote(was, now) or may_promote(now, was):
            assert grown(was, now, "x") == (now if may_promote(was, now) else was)
        else:
            with pytest.raises(UsageError, match=r"x has the type .* in the table, and .* by the schema"):
                grown(was, now, "x")


NUMBERS = st.sampled_from([pa.int32(), pa.int64()])


def nested(inside: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    """Return types that hold others."""
    fields = st.dictionaries(st.sampled_from("abcd"), inside, min_size=1, max_size=3)
    return st.one_of(fields.map(lambda of: pa.struct(of.items())), inside.map(pa.list_), inside.map(as_map))


def as_map(kind: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), kind)


KINDS = nested(st.one_of(NUMBERS, nested(NUMBERS)))


def value_of(kind: pa.DataType) -> Any:  # noqa: ANN401 - objects for Arrow
    """Return a value that fills all fields of a type."""
    if pa.types.is_struct(kind):
        return {each.name: value_of(each.type) for each in kind}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type)]
    if pa.types.is_map(kind):
        return [("k", value_of(kind.item_type))]
    return 2 ** (kind.bit_width - 2)


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return type(value)(map(without_nulls, value)) if isinstance(value, (list, tuple)) else value


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(was=KINDS, now=KINDS)
def test_grown_column_holds_the_values_of_both_schemas(was: pa.DataType, now: pa.DataType) -> None:
    try:
        kind = grown(was, now, "x")
    except UsageError:
        return
    for each in (was, now):
        value = value_of(each)
        assert without_nulls(pa.array([value], kind).to_pylist()[0]) == value
    assert grown(kind, now, "x") == kind == grown(kind, was, "x")
    assert first_names(kind) == kind


def with_aliases(names: list[str], before: list[str]) -> pa.DataType:
    """Return the type of a schema that renames the fields of another."""
    pairs = zip(names, before, strict=True)
    return pa.struct([with_names(pa.field(name, pa.int64()), ALIASES, [old]) for name, old in pairs])


@settings(max_examples=40)
@given(st.lists(st.permutations("abcdef").map(lambda names: names[:2]), min_size=2, max_size=5))
def test_renamed_fields_keep_their_column(versions: list[list[str]]) -> None:
    kind = pa.struct([(name, pa.int64()) for name in versions[0]])
    for before, names in itertools.pairwise(versions):
        if set(names) & set(before):
            return  # a name that goes on to another field is told by no alias
        try:
            kind = grown(kind, with_aliases(names, before), "x")
        except UsageError:
            return
        assert [each.name for each in kind] == names
        assert [each.name for each in first_names(kind)] == versions[0]


def test_union_grows_by_a_branch_after_the_others_and_by_a_renamed_one() -> None:
    branches = {"a": ["A"], "b": ["B", "A"], "c": ["C"]}
    first, second, third = (
        with_names(pa.field(f"member{n}", pa.int32()), BRANCH, branches[n_]) for n, n_ in enumerate("abc")
    )
    renamed = with_names(pa.field("member0", pa.int64()), BRANCH, ["D", "A"])
    kind = grown(pa.struct([first, second]), pa.struct([renamed, second, third]), "x")
    assert kind == pa.struct([("member0", pa.int64()), ("member1", pa.int32()), ("member2", pa.int32())])
    assert grown(kind, pa.struct([first, second]), "x") == kind


def test_wide_structs_with_no_field_in_common_grow_in_linear_time() -> None:
    was, now = (
        pa.struct(
            [
                with_names(pa.field(f"{name}{number}", pa.int32()), ALIASES, ["z" + name + str(number)])
                for number in range(2000)
            ]
        )
        for name in "ab"
    )
    begun = time.process_time()
    assert grown(was, now, "x").num_fields == 4000
    assert time.process_time() - begun < 2
