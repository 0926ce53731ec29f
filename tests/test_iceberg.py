"""Iceberg tables have what the log has, at each commit, and say in their snapshots how far they reach."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.exported import DAY_MS, make_log
from helpers.support import authentic
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

from seglog_format import export
from seglog_format.cli.main import run
from seglog_format.errors import UndecodedRecordError, UsageError, WriteError
from seglog_format.tables import iceberg_table
from seglog_format.tables.export import location_of, opened_export
from seglog_format.tables.progress import ChangeKind
from seglog_format.tables.settings import TableSettings, sources_at

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

NAME = "seglog.records"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def catalog_of(out: Path) -> SqlCatalog:
    return SqlCatalog("seglog", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())


def table_at(out: Path) -> Table:
    catalog = catalog_of(out)
    try:
        return catalog.load_table(NAME)
    finally:
        catalog.close()


def offsets_of(out: Path) -> list[int]:
    return sorted(table_at(out).scan(selected_fields=("offset",)).to_arrow().column("offset").to_pylist())


def export_to(out: Path, *logs: Path, **options: Any) -> Any:  # noqa: ANN401 - options of `export`
    return export(logs, out, format="iceberg", **options)


def test_table_has_the_rows_that_parquet_files_have(tmp_path: Path, out: Path) -> None:
    case = authentic("4.3.0/headers")
    export_to(out, case)
    export(case, tmp_path / "files", partition_by=())
    import pyarrow.parquet as pq

    expected = pq.ParquetDataset(tmp_path / "files").read().to_pylist()
    found = table_at(out).scan().to_arrow().to_pylist()
    assert found == expected
    assert len(found) > 0


@pytest.mark.parametrize("levels", [(), ("topic",), ("day",), ("topic", "partition", "day")])
def test_any_partitioning_holds_the_same_rows_and_is_added_to(
    levels: tuple[str, ...], tmp_path: Path, out: Path
) -> None:
    log = make_log(tmp_path / "t-0", range(50), step_ms=DAY_MS // 10)
    export_to(out, log, partition_by=levels)
    make_log(log, range(50, 60), step_ms=DAY_MS // 10)
    (second,) = export_to(out, log, partition_by=levels)
    assert (second.first_offset, second.row_count, second.changes) == (50, 10, ())
    assert offsets_of(out) == list(range(60))
    assert [field.name for field in table_at(out).spec().fields] == [
        "timestamp_day" if level == "day" else level for level in levels
    ]
    (third,) = export_to(out, log, partition_by=levels)
    assert (third.row_count, len(table_at(out).snapshots())) == (0, 2)


def test_condition_on_offsets_reads_only_the_files_that_have_them(tmp_path: Path, out: Path) -> None:
    log = tmp_path / "t-0"
    for start in range(0, 500, 100):
        make_log(log, range(start, start + 100))
        export_to(out, log)
    scan = table_at(out).scan(row_filter=And(GreaterThanOrEqual("offset", 150), LessThan("offset", 220)))
    assert len(list(scan.plan_files())) == 2
    assert scan.to_arrow().num_rows == 70


def test_each_snapshot_has_a_whole_range_of_offsets(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglog_format.tables.rows.GROUP_ROWS", 1)
    monkeypatch.setattr("seglog_format.tables.rows.BATCH_ROWS", 100)
    log = make_log(tmp_path / "t-0", range(500), batch_size=50)
    (exported,) = export_to(out, log, file_size=1)
    table = table_at(out)
    reached = [
        table.scan(snapshot_id=each.snapshot_id, selected_fields=("offset",)).to_arrow().column("offset").to_pylist()
        for each in sorted(table.snapshots(), key=lambda each: each.sequence_number or 0)
    ]
    assert exported.file_count == len(reached) == 5
    assert [sorted(each) for each in reached] == [list(range(end)) for end in range(100, 501, 100)]


def test_rolled_back_table_gets_again_what_it_lost(tmp_path: Path, out: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    export_to(out, log)
    first = table_at(out).current_snapshot()
    assert first is not None
    make_log(log, range(10, 20))
    export_to(out, log)
    table_at(out).manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert offsets_of(out) == list(range(10))
    (again,) = export_to(out, log)
    assert (again.row_count, again.changes) == (10, ())
    assert offsets_of(out) == list(range(20))


def test_rows_say_how_far_the_table_reaches_where_snapshots_are_gone(tmp_path: Path, out: Path) -> None:
    logs = [make_log(tmp_path / f"t-{number}", range(10 + number)) for number in range(2)]
    export_to(out, *logs)
    make_log(logs[1], range(11, 20))
    export_to(out, logs[1])
    table = table_at(out)
    newest = table.current_snapshot()
    assert newest is not None
    for each in table.snapshots():
        if each is not newest and each.snapshot_id != newest.snapshot_id:
            table.maintenance.expire_snapshots().by_id(each.snapshot_id).commit()
    assert len(table_at(out).snapshots()) == 1
    make_log(logs[0], range(10, 15))
    exported = export_to(out, *logs)
    assert [(each.row_count, each.changes) for each in exported] == [(5, ()), (0, ())]
    assert offsets_of(out) == sorted([*range(15), *range(20)])


def test_run_that_ended_before_its_commit_leaves_nothing(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    export_to(out, log)
    make_log(log, range(10, 20))
    with monkeypatch.context() as patch:
        patch.setattr(iceberg_table.IcebergTable, "_try_commit", _fail)
        with pytest.raises(WriteError, match=r"writing .* stopped: .*No space left"):
            export_to(out, log)
    assert offsets_of(out) == list(range(10))
    foreign = out / "data" / "notes.txt"
    foreign.touch()
    export_to(out, log)
    assert offsets_of(out) == list(range(20))
    counted = {path.rpartition("/")[2] for path in table_at(out).inspect.all_files().column("file_path").to_pylist()}
    assert {path.name for path in (out / "data").iterdir()} == counted | {foreign.name}


def test_run_that_ended_before_there_was_a_catalog_is_gone_on_with(tmp_path: Path, out: Path) -> None:
    (out / "data").mkdir(parents=True)
    export_to(out, make_log(tmp_path / "t-0", range(10)))
    assert offsets_of(out) == list(range(10))


def _fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_two_exports_of_one_partition_never_both_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog_in(tmp_path, monkeypatch)
    log = make_log(tmp_path / "t-0", range(10))
    settings = TableSettings("iceberg")
    location = location_of("kafka.orders", "iceberg", "farm")
    with opened_export(sources_at([log]), location, settings) as first:
        with opened_export(sources_at([log]), location, settings) as second:
            second.run(second.sources[0])
        with pytest.raises(UsageError, match="another export adds rows of t-0"):
            first.run(first.sources[0])
    assert _scanned(tmp_path) == list(range(10))


def test_commit_of_somebody_else_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog_in(tmp_path, monkeypatch)
    logs = [make_log(tmp_path / f"t-{number}", range(10)) for number in range(2)]
    location = location_of("kafka.orders", "iceberg", "farm")
    with opened_export(sources_at(logs), location, TableSettings("iceberg")) as first:
        with opened_export(sources_at(logs), location, TableSettings("iceberg")) as second:
            second.run(second.sources[0])
        first.run(first.sources[1])
    assert _scanned(tmp_path) == sorted([*range(10), *range(10)])


def catalog_in(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a catalog as pyiceberg takes it from the environment."""
    (root / "warehouse").mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__FARM__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__FARM__URI", f"sqlite:///{root}/farm.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__FARM__WAREHOUSE", (root / "warehouse").as_uri())
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _configuration())


def _configuration() -> object:
    from pyiceberg.utils.config import Config

    return Config()


def _scanned(root: Path) -> list[int]:
    catalog = SqlCatalog("farm", uri=f"sqlite:///{root}/farm.db", warehouse=(root / "warehouse").as_uri())
    found = catalog.load_table("kafka.orders").scan().to_arrow().column("offset").to_pylist()
    catalog.close()
    return sorted(found)


def test_changes_of_the_log_are_told(tmp_path: Path, out: Path) -> None:
    log = make_log(tmp_path / "t-0", range(100), batch_size=1)
    make_log(log, range(100, 110))
    export_to(out, log)
    make_log(log, range(0, 100, 7))
    (compacted,) = export_to(out, log)
    assert [change.kind for change in compacted.changes] == [ChangeKind.COMPACTED]
    (third,) = export_to(out, log)
    assert third.changes == ()
    (log / f"{100:020}.log").unlink()
    (cut,) = export_to(out, log)
    assert [change.kind for change in cut.changes] == [ChangeKind.CUT]
    assert offsets_of(out) == list(range(110))


def test_other_tables_and_other_settings_are_refused(tmp_path: Path, out: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    export(log, tmp_path / "files")
    with pytest.raises(UsageError, match="not empty, and not an Iceberg table"):
        export_to(tmp_path / "files", log)
    export_to(out, log)
    with pytest.raises(UsageError, match="partitionBy topic,partition, not day"):
        export_to(out, log, partition_by=["day"])
    with table_at(out).transaction() as transaction:
        transaction.remove_properties("seglog.table")
    with pytest.raises(UsageError, match="an export did not create this table"):
        export_to(out, log)


def test_time_that_iceberg_has_not_is_refused(tmp_path: Path, out: Path) -> None:
    log = make_log(tmp_path / "t-0", range(3), time_ms=253_402_300_799_998)
    with pytest.raises(UndecodedRecordError, match="cannot hold the time of offset 2"):
        export_to(out, log)
    assert offsets_of(out) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--to", "/proc/nowhere/out"], 4, "writing stopped: /proc/nowhere"),
        (["--to", "s3://bucket/x"], 2, "an Iceberg table in a store needs a catalog"),
        (["--to", "orders", "--catalog", "prod"], 2, "has a name with a namespace"),
        (["--to", "kafka.orders", "--catalog", "prod"], 4, "opening the catalog of kafka.orders stopped"),
    ],
)
def test_command_fails_in_one_line(
    arguments: list[str], status: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log(tmp_path / "orders-0", range(10))
    assert run(["export", str(log), "--format", "iceberg", *arguments]) == status
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_command_writes_nothing_but_what_it_did(tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = make_log(tmp_path / "orders-0", range(10))
    assert run(["export", str(log), "--to", str(out), "--format", "iceberg", "--json"]) == 0
    shown = capfd.readouterr()
    assert json.loads(shown.out)["rows"] == 10
    assert shown.err == ""
