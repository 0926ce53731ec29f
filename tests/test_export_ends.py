"""What an export says, and its exit status, where the table lacks records that the log has."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import batch, record
from helpers.exported import make_log, offsets_of
from helpers.support import bundled, bundled_expected
from helpers.walking import each_of

from seglog_format import export
from seglog_format.cli import export as command
from seglog_format.cli.main import DONE, USAGE, run
from seglog_format.tables.progress import OpenTransaction
from seglog_format.tables.settings import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ["1.1.1", "2.8.2", "3.9.1", "4.3.0", "4.4.0"]


def open_in(version: str) -> tuple[int, int]:
    """Return the producer and the first offset of the open transaction, by the broker's own snapshot."""
    (snapshot,) = [line for line in bundled_expected(f"{version}/txn-open") if line["type"] == "producerSnapshot"]
    open_ones = [each for each in snapshot["producers"] if each["currentTxnFirstOffset"] not in {None, -1}]
    (found,) = open_ones
    return found["producerId"], found["currentTxnFirstOffset"]


@each_of("ending", [each for each in FORMATS if each != "parquet"])
def test_a_table_is_not_named_after_another_format(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / f"out.{ending}"
    assert run(["export", str(bundled("4.4.0/txn")), "--to", str(table)]) == USAGE
    assert f"would hold parquet; add --format {ending}" in capsys.readouterr().err
    assert not table.exists()
    if ending != "iceberg":
        assert (
            run(["export", str(bundled("4.4.0/txn")), "--to", str(table), "--format", ending, "--bytes", "hex"]) == DONE
        )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_export_of_committed_records_names_the_producer_that_it_waits_for(
    version: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    producer_id, first = open_in(version)
    arguments = ["export", str(bundled(f"{version}/txn-open")), "--to", str(tmp_path / "out"), "--committed"]
    for _ in range(2):
        assert run([*arguments, *options]) == 1
        out, error = capsys.readouterr()
        waits = f"waits at offset {first} for the open transaction of producer {producer_id}: offsets {first} to 14"
        assert f"txn-open-0: {waits} are not exported" in error
        if options:
            found = json.loads(out)["waitsFor"]
            assert (found["producerId"], found["firstOffset"], found["endOffset"]) == (producer_id, first, 15)
    assert offsets_of(tmp_path / "out") == list(range(first))


def test_python_tells_what_it_waits_for(tmp_path: Path) -> None:
    path = bundled("4.4.0/txn-open")
    (waiting,) = export(path, tmp_path / "out", isolation="read_committed")
    assert waiting.waits_for == OpenTransaction(*open_in("4.4.0"), open_count=1, end_offset=15)
    assert not waiting.is_complete()
    (all_,) = export(path, tmp_path / "all")
    assert all_.waits_for is None
    assert all_.is_complete()


def test_export_of_committed_records_to_the_end_waits_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(bundled("4.4.0/txn")), "--to", str(tmp_path / "out"), "--committed"]) == 0
    assert "waits" not in capsys.readouterr().err


def test_records_after_the_open_transaction_come_when_it_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = shutil.copytree(bundled("4.4.0/txn-open") / "txn-open-0", tmp_path / "logs" / "txn-open-0")
    arguments = ["export", str(log), "--to", str(tmp_path / "out"), "--committed"]
    assert run(arguments) == 1
    producer_id, _ = open_in("4.4.0")
    marker = record(0, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")  # COMMIT
    ended = batch(marker, 1, base_offset=15, attributes=0x30, producer_id=producer_id, producer_epoch=0)
    with (log / f"{0:020}.log").open("ab") as file:
        file.write(ended)
    capsys.readouterr()
    assert run(arguments) == 0
    assert "txn-open-0: 14 rows" in capsys.readouterr().out


def test_export_that_follows_tells_a_transaction_once_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    def sleep(seconds: int) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", sleep)
    path = str(bundled("4.4.0/txn-open"))
    assert run(["export", path, "--to", str(tmp_path / "out"), "--committed", "--follow", "5"]) == 130
    assert capsys.readouterr().err.count("waits at offset") == 1
    assert waits == [5, 5, 5]


@pytest.mark.parametrize(
    ("options", "status"), [([], 1), (["--undecoded", "report"], 1), (["--undecoded", "allow"], 0)]
)
@pytest.mark.parametrize("kind", ["string", "json"])
def test_records_that_are_set_aside_change_the_exit_status(
    kind: str, options: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log(tmp_path / "t-0", range(3))
    (log / f"{3:020}.log").write_bytes(batch(record(0, 0, None, b"\xff"), 1, base_offset=3))
    arguments = ["export", str(log), "--to", str(tmp_path / "out"), "--value", kind, *options]
    assert run(arguments) == status
    assert "not decoded" in capsys.readouterr().out
    assert run(arguments) == 0  # nothing new


def test_options_that_contradict_each_other_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log(tmp_path / "t-0", range(3))
    arguments = ["export", str(log), "--to", str(tmp_path / "out"), "--strict", "--undecoded", "allow"]
    assert run(arguments) == 2
    assert "give one of them" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("table_format", ["parquet", "iceberg", "arrow", "csv", "jsonl"])
def test_python_tells_that_records_were_set_aside(table_format: str, tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(3))
    (log / f"{3:020}.log").write_bytes(batch(record(0, 0, None, b"\xff"), 1, base_offset=3))
    options: dict[str, Any] = {"value": "string", "format": table_format}
    (exported,) = export(log, tmp_path / "out", **options)
    assert exported.undecoded_count == 1
    assert [exported.is_complete(), exported.is_complete(allows_undecoded=True)] == [False, True]
