"""A table has the columns and the records that were chosen, and goes on with the same choice only."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
import pytest
from helpers.exported import DAY_MS, make_log, offsets_of
from helpers.walking import each_of
from pyiceberg.catalog.sql import SqlCatalog

from seglog_format import PartitionWriter, export, new_record
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.tables.settings import COLUMNS, FORMATS
from seglog_format.types import RecordHeader

if TYPE_CHECKING:
    from pathlib import Path

TIME_MS = 20_000 * DAY_MS


def names_in(out: Path, table_format: str) -> list[str]:
    file = next(each for each in out.rglob("*") if each.suffix in {".parquet", ".arrow", ".csv", ".jsonl"})
    if table_format == "arrow":
        return list(pa_ipc.open_file(file).schema.names)
    if table_format == "csv":
        return file.read_text().splitlines()[0].replace('"', "").split(",")
    if table_format == "jsonl":
        return list(json.loads(file.read_text().splitlines()[0]))
    return list(pq.read_schema(file).names)


@each_of("table_format", FORMATS)
def test_columns_are_those_that_were_chosen(table_format: str, tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(10))
    make_log(tmp_path / "t-1", range(10))
    for number, chosen in enumerate([("key",), ("timestamp", "file"), ("offset", "value", "headers"), COLUMNS]):
        out = tmp_path / f"out{number}"
        options: dict[str, Any] = {"columns": chosen, "format": table_format, "partition_by": ("partition",)}
        partitions = [1] if number else None
        found = export([tmp_path / "t-0", tmp_path / "t-1"], out, partitions=partitions, **options)
        assert [each.partition for each in found] == (partitions or [0, 1])
        above = ("topic", "partition") if table_format == "iceberg" else ("topic",)
        expected = [*above, *(name for name in COLUMNS if name in {*chosen, "offset"})]
        assert names_in(out, table_format) == expected
        if number:
            make_log(tmp_path / "t-1", range(10 * number, 10 * number + 10))
            (more,) = export(tmp_path / "t-1", out, **options)
            assert (more.row_count, more.changes) == (10, ())
        others = [options | {"columns": None}] if number < 3 else []
        for other in [*others, options | {"columns": ("leader_epoch",)}]:
            with pytest.raises(UsageError, match="begun with columns"):
                export(tmp_path / "t-1", out, **other)


def test_iceberg_table_whose_snapshots_expired_goes_on_without_the_columns_of_its_check(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(10))
    out = tmp_path / "out"
    options: dict[str, Any] = {"columns": ("file",), "format": "iceberg"}
    for first in (10, 20, 30):
        export(tmp_path / "t-0", out, **options)
        make_log(tmp_path / "t-0", range(first, first + 10))
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())
    table = catalog.load_table("seglog.records")
    with table.transaction() as transaction:  # another program's snapshot does not tell how far the table reaches
        transaction.append(table.scan().to_arrow().slice(0, 0))
    kept = table.current_snapshot()
    assert kept is not None
    for each in table.snapshots():
        if each.snapshot_id != kept.snapshot_id:
            table.maintenance.expire_snapshots().by_id(each.snapshot_id).commit()
    catalog.close()
    (exported,) = export(tmp_path / "t-0", out, **options)
    assert (exported.first_offset, exported.row_count, exported.changes) == (30, 10, ())


FILTERS: list[tuple[dict[str, Any], list[str], list[int]]] = [
    ({"keys": [b"key 3"]}, ["--only-key", "key 3"], [3, 10, 17]),
    ({"keys": [b"key 3", b"key 4", b"x"]}, ["--only-key", "key 3", "--only-key", "key 4"], [3, 4, 10, 11, 17, 18]),
    ({"keys": [b"x", b"\xff"]}, ["--only-key", "x", "--only-key", "\udcff"], []),
    ({"since_ms": TIME_MS + 15}, ["--since", str(TIME_MS + 15)], [15, 16, 17, 18, 19]),
    ({"until_ms": TIME_MS + 2}, ["--until", str(TIME_MS + 2)], [0, 1]),
    (
        {"since_ms": TIME_MS + 3, "until_ms": TIME_MS + 11, "keys": [b"key 3"]},
        ["--since", str(TIME_MS + 3), "--until", str(TIME_MS + 11), "--only-key", "key 3"],
        [3, 10],
    ),
]


@each_of(("chosen", "arguments", "expected"), FILTERS)
def test_rows_are_those_that_were_chosen(
    chosen: dict[str, Any], arguments: list[str], expected: list[int], tmp_path: Path
) -> None:
    make_log(tmp_path / "t-0", range(20), batch_size=3)
    forms: list[dict[str, Any]] = [{}, {"value": "string"}, {"partition_by": ("day",)}, {"format": "iceberg"}]
    for number, more in enumerate(forms):
        (exported,) = export(tmp_path / "t-0", tmp_path / f"out{number}", **chosen, **more)
        assert (exported.row_count, exported.next_offset) == (len(expected), 20)
        if more != {"format": "iceberg"}:
            assert offsets_of(tmp_path / f"out{number}") == expected
    assert run(["export", str(tmp_path / "t-0"), "--to", str(tmp_path / "out"), "--columns", "key", *arguments]) == 0
    if expected:
        found = duckdb.sql(f"select \"offset\", key from '{tmp_path}/out/**/*.parquet'").fetchall()  # noqa: S608
        assert found == [(each, b"key %d" % (each % 7)) for each in expected]
    make_log(tmp_path / "t-0", range(20, 27), time_ms=TIME_MS)
    (again,) = export(tmp_path / "t-0", tmp_path / "out0", **chosen)
    assert again.first_offset == 20, "records that were left out are not read again"
    with pytest.raises(UsageError, match=r"begun with (keys|since|until) .* not as by default"):
        export(tmp_path / "t-0", tmp_path / "out0")


def test_a_range_of_offsets_is_exported(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(20), batch_size=3)
    for chosen, first, expected in (
        ({"from_offset": 15}, 15, [15, 16, 17, 18, 19]),
        ({"to_offset": 2}, 0, [0, 1]),
        ({"from_offset": 4, "to_offset": 7}, 4, [4, 5, 6]),
        ({"from_offset": 90}, 90, []),
        ({"to_offset": 90}, 0, list(range(20))),
    ):
        out = tmp_path / "-".join([*chosen, *map(str, chosen.values())])
        (exported,) = export(log, out, **chosen)
        assert (exported.first_offset, exported.row_count, offsets_of(out)) == (first, len(expected), expected)
        assert [each.row_count for each in export(log, out, **chosen)] == [0]
        words = [word for name, each in chosen.items() for word in (f"--{name.replace('_', '-')}", str(each))]
        assert run(["export", str(log), "--to", str(out), *words]) == 0
        if expected:
            with pytest.raises(UsageError, match=r"begun with (from|to) .* not as by default"):
                export(log, out)
    make_log(log, range(20, 27))
    chosen = {"from_offset": 4, "to_offset": 22}
    assert [
        each.row_count
        for each in (*export(log, tmp_path / "more", **chosen), *export(log, tmp_path / "more", **chosen))
    ] == [18, 0]
    with pytest.raises(UsageError, match="no offset is from 5"):
        export(log, tmp_path / "none", from_offset=5, to_offset=5)


def test_records_that_an_iceberg_table_left_out_are_not_missing_when_they_are_deleted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"keys": [b"key 3"], "format": "iceberg"}
    for offsets, count in ((range(3), 0), (range(3, 11), 2), (range(11, 14), 0), (range(14, 21), 1)):
        log = make_log(tmp_path / "t-0", offsets)
        (exported,) = export(log, out, **options)
        assert (exported.first_offset, exported.row_count, exported.changes) == (offsets[0], count, ())
        assert export(log, out, **options)[0].changes == ()
        (log / f"{offsets[0]:020}.log").unlink()  # retention deletes it
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())
    table = catalog.load_table("seglog.records")
    first = min(table.snapshots(), key=lambda each: each.timestamp_ms)
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    catalog.close()
    (again,) = export(make_log(tmp_path / "t-0", range(14, 21)), out, **options)
    assert (again.first_offset, again.row_count, again.changes) == (14, 1, ())


def test_what_is_not_chosen_need_not_decode(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(7))
    (exported,) = export(tmp_path / "t-0", tmp_path / "out", keys=[b"key 1"], value="json")
    assert (exported.row_count, exported.undecoded_count) == (0, 1)
    with pytest.raises(UsageError, match="the table needs the column value, which the chosen columns lack"):
        export(tmp_path / "t-0", tmp_path / "more", columns=["key"], value="json")
    with pytest.raises(UsageError, match="needs the column timestamp"):
        export(tmp_path / "t-0", tmp_path / "more", columns=["key"], format="iceberg", partition_by=["day"])
    with pytest.raises(UsageError, match=r"columns: expected each at most once, of offset, .* found 'kye'"):
        export(tmp_path / "t-0", tmp_path / "more", columns=["kye"])


@each_of("table_format", FORMATS)
def test_records_that_do_not_decode_are_set_aside_for_one_table_only(table_format: str, tmp_path: Path) -> None:
    """Their table goes on where it ended, so one that other settings began lacks what those did not set aside."""
    make_log(tmp_path / "t-0", range(20))
    last = {"keys": [b"key 5"], "value": "json", "format": table_format}
    others = [{"keys": None}, {"keys": None, "until_ms": TIME_MS + 19}, {"value": "string", "key": "json"}]
    for number, other in enumerate(others):
        out = tmp_path / f"out{number}"
        assert export(tmp_path / "t-0", out, **last)[0].undecoded_count == 3
        shutil.rmtree(out)
        with pytest.raises(UsageError, match=r"-undecoded: set aside by an export with other settings: remove it, or"):
            export(tmp_path / "t-0", out, **last | other)
        shutil.rmtree(out)
        assert export(tmp_path / "t-0", out, **last)[0].undecoded_count == 3


HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("a", b"1"), ("b", None), ("ä", b"\xff")],
    [("a", b"1"), ("a", b"2")],
]


@each_of("table_format", FORMATS)
def test_headers_as_a_map(table_format: str, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path / "t-0") as writer:
        writer.append(
            [new_record(headers=[RecordHeader(name.encode(), value) for name, value in each]) for each in HEADERS]
        )
    arguments = ["export", str(tmp_path / "t-0"), "--to", str(tmp_path / "out"), "--headers", "map", "--bytes", "hex"]
    assert run([*arguments, "--format", table_format]) == 1
    suffix = "parquet" if table_format == "iceberg" else table_format
    (file,) = (tmp_path / "out").rglob(f"*.{suffix}")
    if suffix == "jsonl":
        found = [json.loads(line)["headers"] for line in file.read_text().splitlines()]
    elif suffix == "csv":
        found = [json.loads(text) for (text,) in duckdb.sql(f"select headers from read_csv('{file}')").fetchall()]  # noqa: S608
    else:
        table = pa_ipc.open_file(file).read_all() if suffix == "arrow" else pq.read_table(file)
        found = [{k: v if v is None else v.hex() for k, v in row} for row in table.column("headers").to_pylist()]
    assert found == [{}, {"a": "31", "b": None, "ä": "ff"}]
    beside = next(each for each in (tmp_path / "out-undecoded").rglob(f"*.{suffix}"))
    assert b"headers: a map has each key once, found 'a' twice" in beside.read_bytes()
