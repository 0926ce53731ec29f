"""Tables have what the log has: every record, each once, whatever happened on the way."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.batches import batch, record
from helpers.exported import DAY_MS, make_log, offsets_of, rows_of
from helpers.support import authentic, authentic_expected
from helpers.tier_cases import tier_case
from moto.server import ThreadedMotoServer
from pyarrow.fs import FileSystem, S3FileSystem

from proofs import export_kills
from proofs.power.fault import Fault
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format import encode_columns, export, open_partition
from seglog_format.cli.main import run
from seglog_format.errors import FormatError, UsageError, WriteError
from seglog_format.storage.output_directory import OutputDirectory
from seglog_format.tables import rows
from seglog_format.tables.export import ExportOptions, opened_export
from seglog_format.tables.progress import ChangeKind
from seglog_format.tables.settings import TableSettings, sources_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.tables.progress import ExportedPartition

CASES = ("4.3.0/segs", "4.3.0/headers", "4.3.0/codec-zstd", "4.3.0/txn", "4.3.0/compact", "0.10.2.2/plain")
TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": None}


def shown(data: bytes | None) -> str | dict[str, Any] | None:
    """Return bytes as Kafka's lines show them."""
    if data is None or len(data) <= 256:
        return None if data is None else base64.b64encode(data).decode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def as_shown(row: dict[str, Any]) -> dict[str, Any]:
    headers = [{"key": each["key"].decode(), "value": shown(each["value"])} for each in row["headers"]]
    return {**row, "key": shown(row["key"]), "value": shown(row["value"]), "headers": headers}


def expected_rows(case: str) -> Iterator[dict[str, Any]]:
    """Yield what Kafka's own classes read from a case, without control records."""
    batches: dict[tuple[str, int], dict[str, Any]] = {}
    for line in authentic_expected(case):
        entry = (line.get("file", ""), line.get("position", -1))
        if line["type"] == "batch":
            batches[entry] = line
        if line["type"] == "record" and not batches[entry]["isControl"]:
            directory, _, file = line["file"].partition("/")
            topic, _, partition = directory.rpartition("-")
            yield {
                "topic": topic,
                "partition": int(partition),
                "offset": line["offset"],
                "timestamp": None if line["timestamp"] == -1 else line["timestamp"],
                "timestamp_type": TIMESTAMP_TYPES[batches[entry]["timestampType"]],
                "key": line["key"],
                "value": line["value"],
                "headers": [{"key": key, "value": value} for key, value in line.get("headers", [])],
                "file": file,
                "position": line["position"],
            }


@pytest.mark.parametrize("case", CASES)
def test_duckdb_reads_what_kafka_reads(case: str, tmp_path: Path) -> None:
    export(authentic(case), tmp_path / "out")
    found = [as_shown(row) for row in rows_of(tmp_path / "out")]
    for row in found:
        row.pop("leader_epoch")
    assert found == sorted(expected_rows(case), key=lambda row: (row["topic"], row["partition"], row["offset"]))


def test_leader_epochs_are_there(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(10), epoch=3)
    make_log(tmp_path / "t-0", range(10, 20), epoch=5)
    export(tmp_path / "t-0", tmp_path / "out")
    assert [row["leader_epoch"] for row in rows_of(tmp_path / "out")] == [3] * 10 + [5] * 10


def test_second_run_adds_only_what_is_new(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(100))
    (first,) = export(tmp_path / "t-0", tmp_path / "out")
    assert (first.row_count, first.next_offset, first.file_count) == (100, 100, 1)
    (again,) = export(tmp_path / "t-0", tmp_path / "out")
    assert (again.row_count, again.file_count, again.changes) == (0, 0, ())
    make_log(tmp_path / "t-0", range(100, 150))
    (second,) = export(tmp_path / "t-0", tmp_path / "out")
    assert (second.first_offset, second.row_count, second.changes) == (100, 50, ())
    assert offsets_of(tmp_path / "out") == list(range(150))


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "GROUP_ROWS", 1)
    monkeypatch.setattr(rows, "BATCH_ROWS", 100)


@pytest.mark.usefixtures("small_groups")
def test_files_have_the_stated_size_and_prune_by_offset(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(2000), text="v" * 100)
    (exported,) = export(tmp_path / "t-0", tmp_path / "out", file_size=4000)
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    assert len(files) == exported.file_count > 3
    reached = 0
    for path in files:
        metadata = pq.ParquetFile(path).metadata
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            column = next(
                each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == "offset"
            )
            assert column.statistics.min == reached
            assert column.has_offset_index
            reached = column.statistics.max + 1
        assert int(path.stem) <= reached
        assert metadata.row_group(0).sorting_columns[0].column_index == pq.read_schema(path).names.index("offset")
    assert reached == 2000


@pytest.mark.parametrize("levels", [(), ("topic",), ("day",), ("topic", "partition", "day"), ("day", "topic")])
def test_any_partitioning_holds_the_same_rows(levels: tuple[str, ...], tmp_path: Path) -> None:
    for partition in range(2):
        make_log(tmp_path / "logs" / f"a b=-{partition}", range(50), step_ms=DAY_MS // 10)
    export(tmp_path / "logs", tmp_path / "out", partition_by=levels)
    found = rows_of(tmp_path / "out")
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [
        ("a b=", partition, offset) for partition in range(2) for offset in range(50)
    ]
    if "day" in levels:
        assert {str(row["day"]) for row in found} == {f"2024-10-0{day}" for day in range(4, 9)}
        assert all(row["timestamp"] // DAY_MS == 20_000 + row["offset"] // 10 for row in found)
    make_log(tmp_path / "logs" / "a b=-1", range(50, 60), step_ms=DAY_MS // 10)
    assert [each.row_count for each in export(tmp_path / "logs", tmp_path / "out", partition_by=levels)] == [0, 10]
    assert len(rows_of(tmp_path / "out")) == 110


def test_records_without_a_time_have_a_day_of_their_own(tmp_path: Path) -> None:
    case = authentic("0.8.2.2/plain")
    export(case, tmp_path / "out", partition_by=("topic", "partition", "day"))
    assert list((tmp_path / "out").rglob("day=__HIVE_DEFAULT_PARTITION__"))
    assert len(rows_of(tmp_path / "out")) == len(list(expected_rows("0.8.2.2/plain"))) > 0


def test_times_that_no_calendar_has_are_exported(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(3), time_ms=2**62 - 3)
    export(tmp_path / "t-0", tmp_path / "out", partition_by=("day",))
    export(tmp_path / "t-0", tmp_path / "out", partition_by=("day",))
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in files) == 3


EXPECTED_BYTES = {"utf8": ("a\u00fc", ""), "hex": ("61c3bc", ""), "base64": ("YcO8", "")}


def log_with_unusual_records(directory: Path) -> Path:
    directory.mkdir()
    section = record(0, 0, "a\u00fc".encode(), b"", headers=((b"h", None), (b"h,", b'"\n'))) + record(1, 1, None, None)
    times = {"base_timestamp_ms": 1000, "max_timestamp_ms": 1001, "last_offset_delta": 1}
    (directory / f"{0:020}.log").write_bytes(batch(section, 2, **times))
    return directory


@pytest.mark.parametrize("bytes_as", EXPECTED_BYTES)
def test_text_formats_tell_null_from_empty_and_keep_every_character(bytes_as: str, tmp_path: Path) -> None:
    log = log_with_unusual_records(tmp_path / "t-0")
    for text_format in ("csv", "jsonl"):
        export(log, tmp_path / text_format, format=text_format, bytes_as=bytes_as)
    (lines,) = (tmp_path / "jsonl").rglob("*.jsonl")
    (csv,) = (tmp_path / "csv").rglob("*.csv")
    objects = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    rows_of_csv = duckdb.sql(f"select * from read_csv('{csv}', all_varchar=true, allow_quoted_nulls=false)").fetchall()  # noqa: S608
    key, value = EXPECTED_BYTES[bytes_as]
    assert [(each["key"], each["value"]) for each in objects] == [(key, value), (None, None)]
    assert [(each[3], each[4]) for each in rows_of_csv] == [(key, value), (None, None)]
    assert [each["timestamp"] for each in objects] == [1000, 1001]
    assert [each[1] for each in rows_of_csv] == ["1970-01-01 00:00:01.000Z", "1970-01-01 00:00:01.001Z"]
    assert json.loads(rows_of_csv[0][5]) == objects[0]["headers"]
    assert [each["value"] is None for each in objects[0]["headers"]] == [True, False]


@pytest.mark.parametrize("text_format", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("key", record(0, 0, b"\xff", b"a")),
        ("value", record(0, 0, b"a", b"\xff")),
        ("headers", record(0, 0, b"a", b"a", ((b"h", b"\xff"),))),
    ],
)
def test_bytes_that_are_no_text_are_set_aside(
    name: str, bad: bytes, text_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    (log / f"{10:020}.log").write_bytes(batch(bad + record(1, 1, b"b", b"b"), 2, base_offset=10, last_offset_delta=1))
    assert run(["export", str(log), "--to", str(tmp_path / "out"), "--format", text_format]) == 1
    assert "t-0: 11 rows in 1 file" in (shown := capsys.readouterr().out)
    assert f"1 record not decoded ({name}: not UTF-8" in shown
    assert "; --bytes hex keeps all bytes), next offset 12\n" in shown
    (path,) = (tmp_path / "out-undecoded").rglob(f"*.{text_format}")
    assert f"{name}: not UTF-8" in path.read_text("utf-8")
    assert run(["export", str(log), "--to", str(tmp_path / "hex"), "--format", text_format, "--bytes", "hex"]) == 0


@pytest.mark.parametrize("file_format", ["arrow", "csv", "jsonl"])
def test_other_formats_hold_the_same_rows_and_are_added_to(file_format: str, tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(100))
    export(log, tmp_path / "out", format=file_format, partition_by=["day"])
    make_log(log, range(100, 150))
    export(log, tmp_path / "out", format=file_format, partition_by=["day"])
    found: list[tuple[int, str]] = []
    for path in sorted((tmp_path / "out").rglob(f"*.{file_format}")):
        if file_format == "arrow":
            read = pa.ipc.open_file(path).read_all().select(["offset", "value"]).to_pylist()
            found += [(row["offset"], row["value"].decode()) for row in read]
        else:
            found += duckdb.sql(f"select \"offset\", value from '{path}'").fetchall()  # noqa: S608
    assert found == [(offset, f"value {offset}") for offset in range(150)]


# -- ends at any moment


SETTINGS = TableSettings(partition_by=("topic", "partition", "day"))


def export_to(disk: SimulatedFiles, logs: Path) -> tuple[ExportedPartition, ...]:
    with opened_export(sources_at([logs]), OutputDirectory(disk.root, disk), SETTINGS, ExportOptions(3000)) as opened:
        return tuple(opened.run(source) for source in opened.sources)


def a_disk(root: Path, seed: int = 0) -> SimulatedFiles:
    return SimulatedFiles(root, random.Random(seed))  # noqa: S311 - chance that repeats


def read_back(disk: SimulatedFiles, target: Path) -> list[tuple[int, int]]:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    disk.store(target)
    return [(row["partition"], row["offset"]) for row in rows_of(target)]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    make_log(tmp_path / "logs" / "t-0", range(200), step_ms=DAY_MS // 120)
    make_log(tmp_path / "logs" / "t-1", range(40))
    return tmp_path / "logs"


EVERYTHING = [(0, offset) for offset in range(200)] + [(1, offset) for offset in range(40)]


def step_count(logs: Path, root: Path) -> int:
    disk = a_disk(root)
    export_to(disk, logs)
    return disk.step_count


@pytest.mark.usefixtures("small_groups")
def test_power_cut_at_any_step_leaves_no_row_twice_and_none_missing(logs: Path, tmp_path: Path) -> None:
    steps = step_count(logs, tmp_path / "disk")
    assert steps > 40
    for cut_at in range(steps):
        disk = a_disk(tmp_path / "disk", cut_at)
        disk.cut_at = cut_at
        with pytest.raises(PowerCut):
            export_to(disk, logs)
        disk.lose_power()
        between = read_back(disk, tmp_path / "read")
        assert len(between) == len(set(between)), cut_at
        export_to(disk, logs)
        assert read_back(disk, tmp_path / "read") == EVERYTHING, cut_at


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_failure_of_any_operation_is_one_error_and_the_next_run_goes_on(
    number: int, logs: Path, tmp_path: Path
) -> None:
    steps = step_count(logs, tmp_path / "disk")
    for after in range(0, steps, 2):
        disk = a_disk(tmp_path / "disk", after)
        disk.faults = [Fault("*", number, after=after)]
        with suppress(WriteError):  # what fails while something is tidied up is nothing to tell
            export_to(disk, logs)
        between = read_back(disk, tmp_path / "read")
        assert len(between) == len(set(between)), after
        disk.faults = []
        export_to(disk, logs)
        assert read_back(disk, tmp_path / "read") == EVERYTHING, after


@pytest.mark.usefixtures("small_groups")
def test_full_disk_leaves_whole_files_only(logs: Path, tmp_path: Path) -> None:
    disk = a_disk(tmp_path / "disk")
    disk.capacity = 12_000
    with pytest.raises(WriteError, match="No space left"):
        export_to(disk, logs)
    between = read_back(disk, tmp_path / "read")
    assert 0 < len(between) < len(EVERYTHING)
    assert not [path for path in (tmp_path / "read").rglob("*") if path.suffix == ".tmp"]


# -- what has become of the log


def changed_kinds(path: Path, out: Path) -> list[ChangeKind]:
    (exported,) = export(path, out)
    return [change.kind for change in exported.changes]


def test_cut_log_is_told_and_its_partition_stays(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(100), batch_size=1)
    export(log, tmp_path / "out")
    make_log(log, range(90))
    assert changed_kinds(log, tmp_path / "out") == [ChangeKind.CUT]
    make_log(log, range(120))
    assert changed_kinds(log, tmp_path / "out") == []
    make_log(log, range(140), text="other")
    assert changed_kinds(log, tmp_path / "out") == [ChangeKind.REWRITTEN]
    assert offsets_of(tmp_path / "out") == list(range(120))


def test_deleted_records_are_told_and_the_rest_is_added(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    export(log, tmp_path / "out")
    (log / f"{0:020}.log").unlink()
    make_log(log, range(30, 40))
    assert changed_kinds(log, tmp_path / "out") == [ChangeKind.DELETED]
    assert offsets_of(tmp_path / "out") == [*range(10), *range(30, 40)]
    assert changed_kinds(log, tmp_path / "out") == []


def test_retention_of_exported_records_is_nothing_to_report(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    make_log(log, range(10, 20))
    export(log, tmp_path / "out")
    (log / f"{0:020}.log").unlink()
    assert changed_kinds(log, tmp_path / "out") == []


def test_compaction_is_told_once(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(100))
    make_log(log, range(100, 110))
    export(log, tmp_path / "out")
    make_log(log, range(0, 100, 7))
    assert changed_kinds(log, tmp_path / "out") == [ChangeKind.COMPACTED]
    assert changed_kinds(log, tmp_path / "out") == []
    assert offsets_of(tmp_path / "out") == list(range(110))


def test_damage_ends_the_partition_after_the_rows_before_it(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(100), batch_size=10)
    path = log / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="SEG-"):
        export(log, tmp_path / "out")
    assert offsets_of(tmp_path / "out") == list(range(99))


def test_only_committed_records(tmp_path: Path) -> None:
    export(authentic("4.3.0/txn"), tmp_path / "out", isolation="read_committed")
    assert len(offsets_of(tmp_path / "out")) == 178


# -- the place


def test_other_content_and_other_settings_are_refused(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").touch()
    with pytest.raises(UsageError, match="not empty"):
        export(log, tmp_path / "notes")
    export(log, tmp_path / "out")
    with pytest.raises(UsageError, match="partitionBy topic,partition, not topic"):
        export(log, tmp_path / "out", partition_by=["topic"])
    (tmp_path / "out" / "_seglog.json").write_text('{"kind": 1}')
    with pytest.raises(UsageError, match=r"_seglog\.json: not a manifest"):
        export(log, tmp_path / "out")


def test_foreign_files_stay(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    export(log, tmp_path / "out")
    directory = tmp_path / "out" / "topic=t" / "partition=0"
    foreign = [tmp_path / "out" / "notes.txt", directory / "notes.parquet", directory / ".notes.tmp"]
    unfinished = [directory / f"{10:020}.parquet", directory / f".{10:020}.parquet.tmp"]
    for path in (*foreign, *unfinished):
        path.touch()
    export(log, tmp_path / "out")
    assert [path.exists() for path in (*foreign, *unfinished)] == [True] * 3 + [False] * 2


def test_second_writer_is_refused(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(10))
    with OutputDirectory(tmp_path / "out").held(), pytest.raises(UsageError, match="another process"):
        export(log, tmp_path / "out")


# -- the command


def test_command_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_log(tmp_path / "logs" / "orders-0", range(10))
    make_log(tmp_path / "logs" / "others-0", range(10))
    arguments = ["export", str(tmp_path / "logs"), "--topic", "orders", "--to", str(tmp_path / "out")]
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("orders-0: 10 rows in 1 file, ")
    assert run([*arguments, "--json"]) == 0
    assert '"rows":0,"files":0' in capsys.readouterr().out
    assert {row["topic"] for row in rows_of(tmp_path / "out")} == {"orders"}


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--to", "/proc/nowhere/out"], 4, "writing stopped: /proc/nowhere"),
        (["--to", "{tmp}/file"], 2, "is not a directory"),
        (["--to", "{tmp}/orders-0/table"], 2, "keeps its broker from starting"),
        (["--to", "{tmp}/out", "--topic", "missing"], 2, "no partition of topic 'missing' is there"),
        (["--to", "{tmp}/out", "--partition", "0", "--partition", "7"], 2, "no partition with the number 7 is there"),
        (["--to", "{tmp}/out", "--partition-by", "hour"], 2, "at most once, of topic, partition, day, found 'hour'"),
    ],
)
def test_command_fails_in_one_line(
    arguments: list[str], status: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log(tmp_path / "orders-0", range(10))
    (tmp_path / "file").touch()
    assert run(["export", str(log), *(each.format(tmp=tmp_path) for each in arguments)]) == status
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_command_ends_with_one_where_the_log_was_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log(tmp_path / "orders-0", range(100), batch_size=1)
    assert run(["export", str(log), "--to", str(tmp_path / "out")]) == 0
    make_log(log, range(50))
    assert run(["export", str(log), "--to", str(tmp_path / "out")]) == 1
    assert "orders-0: the log was cut to offset 50 since the last run" in capsys.readouterr().err


def test_one_damaged_partition_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    log = make_log(tmp_path / "logs" / "orders-0", range(10))
    make_log(tmp_path / "logs" / "orders-1", range(10))
    (log / f"{0:020}.log").write_bytes(b"\xff" * 200)
    assert run(["export", str(tmp_path / "logs"), "--to", str(tmp_path / "out")]) == 3
    assert len(rows_of(tmp_path / "out")) == 10


def test_followed_log_is_exported_while_it_grows(tmp_path: Path) -> None:
    log = make_log(tmp_path / "orders-0", range(100))
    path = log / f"{100:020}.log"
    command = [sys.executable, "-m", "seglog_format.cli", "export", str(log), "--to", str(tmp_path / "out")]
    with subprocess.Popen([*command, "--follow", "1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "100 rows" in process.stdout.readline()
        make_log(tmp_path / "more-0", range(100, 130))
        data = (tmp_path / "more-0" / path.name).read_bytes()
        path.write_bytes(data[:-5])  # the last batch is being written
        assert "next offset" in process.stdout.readline()
        with path.open("ab") as log_file:
            log_file.write(data[-5:])
        assert any("next offset 130" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert offsets_of(tmp_path / "out") == list(range(130))


@pytest.mark.parametrize("name", ["parquet", "iceberg"])
def test_exports_that_are_killed_while_the_log_grows_leave_each_record_once(name: str) -> None:
    outcome = export_kills.prove(SimpleNamespace(kills=3, records=100_000, seed=5, formats=[name]))
    assert outcome.facts[name]["kills"] == 3
    assert outcome.failures == ()


# -- object stores


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Yield an address of its own: what tests put into stores stays in this process."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    query = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1&allow_bucket_creation=true"
    settings = {"access_key": "k", "secret_key": "s", "scheme": "http", "endpoint_override": f"{host}:{port}"}
    S3FileSystem(**settings, allow_bucket_creation=True).create_dir("tables")
    yield f"s3://k:s@tables/{tmp_path.name}?{query}"
    server.stop()


def test_store_holds_a_table_that_is_added_to(bucket: str, tmp_path: Path) -> None:
    log = make_log(tmp_path / "orders-0", range(100))
    export(log, bucket)
    make_log(log, range(100, 150))
    (second,) = export(log, bucket)
    assert (second.row_count, second.file_count) == (50, 1)
    files, root = FileSystem.from_uri(bucket)
    (table,) = (pq.read_table(f"{root}/topic=orders", filesystem=files),)
    assert sorted(table.column("offset").to_pylist()) == list(range(150))


def test_store_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log(tmp_path / "orders-0", range(10))
    address = "s3://key:secret@tables/orders?scheme=http&endpoint_override=127.0.0.1:1&region=us-east-1"
    assert run(["export", str(log), "--to", address]) == 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "s3://tables/orders" in error
    assert "secret" not in error


# -- tiered segments


@pytest.mark.parametrize("name", ["lts-4.4.0", "aiven-zstd"])
def test_tiered_segments_are_exported_and_added_to(name: str, tmp_path: Path) -> None:
    case = tier_case(name)
    with open_partition(case.local / "orders-0", remote=case.opened()) as whole:
        first, expected = whole.log_start_offset, [record.offset for record in whole.records()]
    with open_partition(case.local / "orders-0") as local:
        assert local.log_start_offset > first
    (exported,) = export(case.local / "orders-0", tmp_path / "out", remote=case.opened())
    assert (exported.row_count, offsets_of(tmp_path / "out")) == (len(expected), expected)
    (again,) = export(case.local / "orders-0", tmp_path / "out", remote=case.opened())
    assert (again.row_count, again.changes) == (0, ())
    command = ["export", str(case.local / "orders-0"), "--to", str(tmp_path / "command"), "--remote", str(case.store)]
    assert run([*command, *(f"--key={id_}={path}" for id_, path in case.keys.items())]) == 0
    assert offsets_of(tmp_path / "command") == expected


# -- a disk that takes no more, and what readers pass over


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of Unix")
@pytest.mark.parametrize("file_format", ["parquet", "iceberg"])
def test_command_ends_in_one_line_where_files_cannot_grow(file_format: str, tmp_path: Path) -> None:
    import resource

    dice = random.Random(1)  # noqa: S311 - chance that repeats
    log = make_log(tmp_path / "small-0", range(10))
    arguments = ["--format", file_format, "--to", str(tmp_path / "out")]
    assert run(["export", str(log), *arguments]) == 0
    large = make_log(tmp_path / "large-0", range(2000), text=dice.randbytes(400).hex())
    values = pa.table({"value": pa.array([dice.randbytes(1000) for _ in range(1000)])})
    (large / f"{2000:020}.log").write_bytes(b"".join(encode_columns(values, base_offset=2000)))
    command = [sys.executable, "-m", "seglog_format.cli", "export", str(log), str(large), *arguments]
    limit = 300_000
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 4, done.stderr
    assert "stopped: " in done.stderr
    assert "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    left = [path for path in (tmp_path / "out").rglob("*") if path.suffix == ".tmp"]
    assert left == []
    assert run(["export", str(log), str(large), *arguments]) == 0
    query = f"select count(*), count(distinct (topic, \"offset\")) from '{tmp_path}/out/**/*.parquet'"  # noqa: S608
    assert duckdb.sql(query).fetchall() == [(3010, 3010)]


@pytest.mark.usefixtures("small_groups")
def test_readers_pass_over_row_groups_and_files_by_offset(tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    make_log(tmp_path / "t-0", range(2000), text="v" * 100)
    export(tmp_path / "t-0", tmp_path / "out", file_size=4000)
    data = ds.dataset(tmp_path / "out", partitioning="hive", exclude_invalid_files=True)
    condition = (ds.field("offset") >= 950) & (ds.field("offset") < 1150)
    whole = [len(each.row_groups) for each in data.get_fragments()]
    kept = [len(each.subset(condition).row_groups) for each in data.get_fragments()]
    assert sum(whole) >= 20  # a batch of rows also ends where a window of the log ends
    assert len(whole) > 3
    assert sum(kept) == 3
    assert sorted(data.to_table(filter=condition)["offset"].to_pylist()) == list(range(950, 1150))
    for path in (tmp_path / "out").rglob("*.parquet"):
        destroy_groups_outside(path, 950, 1150)
    query = f"select \"offset\", value from '{tmp_path}/out/**/*.parquet'"  # noqa: S608 - our own
    found = duckdb.sql(f'{query} where "offset" between 950 and 1149 order by 1').fetchall()
    assert [offset for offset, _ in found] == list(range(950, 1150))
    with pytest.raises(duckdb.Error):
        duckdb.sql(query).fetchall()


def destroy_groups_outside(path: Path, first: int, end: int) -> None:
    """Overwrite the columns of row groups without certain offsets: who reads them notices."""
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        columns = {each.path_in_schema: each for each in map(group.column, range(group.num_columns))}
        statistics = columns["offset"].statistics
        if statistics.max < first or statistics.min >= end:
            for column in columns.values():
                start = column.dictionary_page_offset or column.data_page_offset
                data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)


def test_progress_is_shown_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_log(tmp_path / "t-0", range(1000))
    seen: list[int] = []
    shown: list[tuple[str, int]] = []

    @contextmanager
    def progress(text: str, total: int, **_: bool) -> Iterator[Any]:
        shown.append((text, total))
        yield seen.append

    monkeypatch.setattr("seglog_format.cli.export.progress", progress)
    assert run(["export", str(tmp_path / "t-0"), "--to", str(tmp_path / "out")]) == 0
    ((text, total),) = shown
    assert text == "Exporting"
    assert seen == sorted(seen)
    assert seen[-1] == total == sum(path.stat().st_size for path in (tmp_path / "t-0").glob("*.log"))


@pytest.mark.parametrize("inside", ["table", "t-0/table", "."])
def test_no_table_is_written_into_what_is_read(logs: Path, inside: str) -> None:
    before = sorted(path.name for path in logs.rglob("*"))
    with pytest.raises(UsageError, match="which is read"):
        export(logs, logs / inside)
    assert sorted(path.name for path in logs.rglob("*")) == before


def test_no_topic_is_not_every_topic(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no partition is there"):
        export(logs, tmp_path / "out", topics=[])
