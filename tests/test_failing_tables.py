"""A table whose place fails, or whose values do not decode: one line says so, and it has nothing by half."""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.batches import batch, record
from helpers.exported import make_log
from helpers.failing_store import FailingStore, serving
from helpers.refusing_disk import seglog_without_rights
from helpers.small_disk import seglog_on_small_disk
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from seglog_format import encode_columns
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FORMATS = ("parquet", "iceberg")
PARTITIONS = 4
ROWS = 100
KIB = 1024
"""Each partition has about so many bytes a hundred times, and chance makes them, so no codec makes them fewer."""

Visible = dict[int, list[int]]
"""Offsets that readers see, by partition."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    dice = random.Random(1)  # noqa: S311 - chance that repeats
    for number in range(PARTITIONS):
        directory = tmp_path / "logs" / f"orders-{number}"
        directory.mkdir(parents=True)
        values = pa.table({"value": pa.array([dice.randbytes(KIB) for _ in range(ROWS)])})
        (directory / f"{0:020}.log").write_bytes(b"".join(encode_columns(values)))
    return tmp_path / "logs"


def visible(out: Path, file_format: str) -> Visible:
    """Return what the table has, for whoever does not know how it came to be."""
    if file_format == "iceberg":
        return by_partition(iceberg_rows(out)) if (out / "catalog.db").exists() else {}
    files = list(out.rglob("*.parquet"))
    query = f"select partition, \"offset\" from '{out}/**/*.parquet'"  # noqa: S608 - our own
    return by_partition(duckdb.sql(query).to_arrow_table().to_pylist()) if files else {}


def iceberg_rows(out: Path) -> list[dict[str, Any]]:
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db")
    try:
        if not catalog.table_exists("seglog.records"):
            return []
        found: list[dict[str, Any]] = catalog.load_table("seglog.records").scan().to_arrow().to_pylist()
    finally:
        catalog.close()
    return found


def by_partition(rows: list[dict[str, Any]]) -> Visible:
    numbers = {row["partition"] for row in rows}
    return {number: sorted(row["offset"] for row in rows if row["partition"] == number) for number in numbers}


WHOLE = list(range(ROWS))


@pytest.mark.parametrize(
    ("file_format", "size", "least"),
    [
        ("parquet", 4 * KIB, 0),
        ("parquet", 40 * KIB, 0),
        ("parquet", 180 * KIB, 1),
        ("parquet", 400 * KIB, 2),
        ("iceberg", 4 * KIB, 0),
        ("iceberg", 30 * KIB, 0),
        ("iceberg", 110 * KIB, 0),
        ("iceberg", 230 * KIB, 0),
        ("iceberg", 400 * KIB, 1),
    ],
)
def test_full_disk_is_one_line_and_leaves_whole_partitions(
    file_format: str, size: int, least: int, logs: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    arguments = ("export", str(logs), "--to", str(disk / "out"), "--format", file_format)
    answer = seglog_on_small_disk(disk, size, *arguments)
    assert answer.status == 4, answer
    assert answer.err.count("\n") == 1, answer
    assert "stopped: " in answer.err
    assert "No space left" in answer.err or "disk is full" in answer.err or "disk I/O error" in answer.err
    found = visible(disk / "out", file_format)
    assert found == dict.fromkeys(range(len(found)), WHOLE)
    assert least <= len(found) < PARTITIONS
    assert [path for path in disk.rglob("*") if path.suffix == ".tmp"] == []
    assert run(list(arguments)) == 0
    assert visible(disk / "out", file_format) == dict.fromkeys(range(PARTITIONS), WHOLE)


@pytest.mark.skipif(sys.platform == "win32", reason="rights of files are those of Unix")
@pytest.mark.parametrize("file_format", FORMATS)
def test_directory_that_may_not_be_written_is_one_line(file_format: str, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for target in (out, out / "below"):
        out.chmod(0o555)
        answer = seglog_without_rights("export", logs, "--to", target, "--format", file_format)
        out.chmod(0o755)
        assert answer.status == 4, answer
        assert answer.err.count("\n") == 1, answer
        assert "Permission denied" in answer.err or "unable to open database file" in answer.err
        assert not list(out.iterdir())


# -- object stores

KEYS = {"access_key": "k", "secret_key": "not-a-secret", "region": "us-east-1", "scheme": "http"}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[FailingStore, int]]:
    with serving() as found:
        yield found


@pytest.fixture
def store(server: tuple[FailingStore, int]) -> Iterator[FailingStore]:
    """Provide a server with an empty bucket."""
    found, port = server
    files = S3FileSystem(**KEYS, endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True)
    files.create_dir("tables")
    files.delete_dir_contents("tables")
    yield found
    found.reset()


@pytest.fixture
def files(store: FailingStore, server: tuple[FailingStore, int]) -> S3FileSystem:
    del store  # it has the bucket
    return S3FileSystem(**KEYS, endpoint_override=f"127.0.0.1:{server[1]}")


@pytest.fixture
def arguments(
    request: pytest.FixtureRequest, server: tuple[FailingStore, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Options of an export to the store, by its format."""
    endpoint = f"127.0.0.1:{server[1]}"
    if request.param == "parquet":
        query = f"scheme=http&endpoint_override={endpoint}&region=us-east-1"
        return ["--to", f"s3://k:not-a-secret@tables/orders?{query}"]
    settings = {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/farm.db",
        "WAREHOUSE": "s3://tables/warehouse",
        "S3__ENDPOINT": f"http://{endpoint}",
        "S3__ACCESS_KEY_ID": "k",
        "S3__SECRET_ACCESS_KEY": "not-a-secret",
        "S3__REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__FARM__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return ["--to", "kafka.orders", "--format", "iceberg", "--catalog", "farm"]


def in_store(files: S3FileSystem, arguments: list[str]) -> Visible:
    """Return what a table in the store has."""
    if "--catalog" in arguments:
        from pyiceberg.catalog import load_catalog

        catalog: Any = load_catalog("farm")
        rows = catalog.load_table("kafka.orders").scan().to_arrow() if catalog.table_exists("kafka.orders") else None
        catalog.close()
        return {} if rows is None else by_partition(rows.to_pylist())
    return by_partition(pq.read_table("tables/orders", filesystem=files).to_pylist())


DENIALS: dict[str, Callable[[str, str], bool]] = {
    "everything": lambda _method, _path: True,
    "what is written": lambda method, _path: method in {"PUT", "POST"},
    "files": lambda method, path: method in {"PUT", "POST"} and path.endswith(".parquet"),
    "what says that files count": lambda method, path: method in {"PUT", "POST"} and not path.endswith(".parquet"),
}


@pytest.mark.parametrize("arguments", FORMATS, indirect=True)
@pytest.mark.parametrize("denied", DENIALS)
def test_store_that_denies_is_one_line_and_nothing_of_the_run_counts(
    denied: str,
    arguments: list[str],
    store: FailingStore,
    files: S3FileSystem,
    logs: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = ["export", *(str(logs / f"orders-{number}") for number in range(PARTITIONS)), *arguments]
    assert run([command[0], command[1], *arguments]) == 0
    assert in_store(files, arguments) == {0: WHOLE}
    capfd.readouterr()
    store.refuses = DENIALS[denied]
    assert run(command) == 4
    error = capfd.readouterr().err
    assert store.failures > 0
    store.reset()
    assert error.count("\n") == 1, error
    assert "stopped: " in error
    assert "not-a-secret" not in error
    if "--catalog" in arguments:
        assert in_store(files, arguments) == {0: WHOLE}
    assert run(command) == 0
    assert in_store(files, arguments) == dict.fromkeys(range(PARTITIONS), WHOLE)


@pytest.mark.parametrize("arguments", FORMATS, indirect=True)
def test_bucket_that_is_missing_is_one_line(
    arguments: list[str], logs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__FARM__WAREHOUSE", "s3://missing/warehouse")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    assert run(["export", str(logs), *(each.replace("@tables/", "@missing/") for each in arguments)]) == 4
    error = capfd.readouterr().err
    assert error.count("\n") == 1, error
    assert "missing" in error


# -- values that do not decode

HEADER = b"\x00\x00\x00\x00"
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
SUBJECT = {"subject": "t-value", "version": 1}


@pytest.fixture
def unknown_id(tmp_path: Path) -> Path:
    """Provide a log with a value whose schema no registry has, between two that decode."""
    stored = SUBJECT | {"id": 1, "schema": SCHEMA, "deleted": False}
    key = {"keytype": "SCHEMA", **SUBJECT, "magic": 1}
    registry = record(0, 0, json.dumps(key).encode(), json.dumps(stored).encode())
    values = (HEADER + b"\x01\x02", HEADER + b"\x07\x02", HEADER + b"\x01\x04")
    section = b"".join(record(number, number, b"k", value) for number, value in enumerate(values))
    for name, data in {"_schemas-0": batch(registry, 1), "t-0": batch(section, 3, last_offset_delta=2)}.items():
        (tmp_path / "serialized" / name).mkdir(parents=True)
        (tmp_path / "serialized" / name / f"{0:020}.log").write_bytes(data)
    return tmp_path / "serialized" / "t-0"


REASON = "value: schema 7 is not in the registry's topic"


@pytest.mark.parametrize("file_format", FORMATS)
def test_unknown_schema_id_is_told_and_ends_strict_exports_only(
    file_format: str, unknown_id: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["export", str(unknown_id), "--to", str(out), "--format", file_format, "--value", "avro"]
    assert run([*command, "--strict"]) == 3
    error = capfd.readouterr().err
    assert error.count("\n") == 1, error
    assert f"t-0: offset 1: {REASON}" in error
    assert visible(out, file_format) == {0: [0]}
    assert not out.with_name("out-undecoded").exists()
    assert run(command) == 1
    shown = capfd.readouterr()
    assert "1 record not decoded" in shown.out
    assert shown.err == ""
    assert visible(out, file_format) == {0: [0, 2]}
    assert visible(out.with_name("out-undecoded"), file_format) == {0: [1]}


@pytest.mark.parametrize("arguments", FORMATS, indirect=True)
def test_unknown_schema_id_in_a_store(
    arguments: list[str], files: S3FileSystem, unknown_id: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(unknown_id), *arguments, "--value", "avro"]
    assert run([*command, "--strict"]) == 3
    assert f"t-0: offset 1: {REASON}" in capfd.readouterr().err
    assert in_store(files, arguments) == {0: [0]}
    assert run(command) == 1
    assert "1 record not decoded" in capfd.readouterr().out
    assert in_store(files, arguments) == {0: [0, 2]}


def test_followed_log_with_an_unknown_id_goes_on(unknown_id: Path, tmp_path: Path) -> None:
    make_log(unknown_id, range(3, 5))
    out = tmp_path / "out"
    assert run(["export", str(unknown_id), "--to", str(out), "--value", "avro"]) == 1
    assert visible(out, "parquet") == {0: [0, 2]}
    assert visible(out.with_name("out-undecoded"), "parquet") == {0: [1, 3, 4]}
