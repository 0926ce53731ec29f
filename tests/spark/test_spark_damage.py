"""A sample of ``proofs/spark/spark_damage.py``, without Spark; the full run through Spark is in ``reports/``."""

from __future__ import annotations

import json
import os
import struct
from typing import TYPE_CHECKING, Any

import pytest
from helpers.exported import make_log, offsets_of
from helpers.walking import each_of

pytest.importorskip("pyarrow")

from proofs.entries import sealed
from proofs.spark.readers import read
from proofs.spark.spark_damage import make
from seglog_format import LogConfig, PartitionWriter, new_record
from seglog_format.cli.main import run
from seglog_format.spark.damage import ReadError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def left_out(path: Path, **options: str) -> list[dict[str, Any]]:
    """Return the table of what a query leaves out, without the parts that are only said by missing offsets."""
    return read(path, table="leftout", **options).to_pylist()


COLUMNS = ("topic", "offset", "value")


@each_of("seed", range(24))
def test_what_is_intact_is_read_and_the_rest_is_told(seed: int, tmp_path: Path) -> None:
    case = make(tmp_path, seed)
    dropped = read(tmp_path, COLUMNS, mode="dropcorrupt", splitBytes="1k").column("offset").to_pylist()
    assert sorted(dropped) == sorted(case.intact)
    table = read(tmp_path, (*COLUMNS, "_corrupt"), mode="permissive", splitBytes="1k").to_pylist()
    assert sorted(row["offset"] for row in table if row["_corrupt"] is None) == sorted(case.intact)
    rows = [row for row in left_out(tmp_path, splitBytes="1k") if row["kind"] == "damaged"]
    marks = [row["_corrupt"] for row in table if row["_corrupt"] is not None]
    facts = ("file", "position", "size", "requirement", "message")
    assert [{name: row[name] for name in facts} for row in rows] == marks
    if not case.is_reported:
        assert read(tmp_path, COLUMNS).num_rows == len(case.intact)
        return
    assert all(f"{case.topic}-0" in mark["file"] and mark["requirement"].startswith("SEG-") for mark in marks)
    assert marks
    with pytest.raises(ReadError, match=rf"{case.topic}-0/\d+\.log.*SEG-"):
        read(tmp_path, COLUMNS)


def test_missing_offsets_and_undecoded_records_are_told(tmp_path: Path) -> None:
    for base in (0, 10, 20):
        make_log(tmp_path / "t-0", range(base, base + 10))
    (tmp_path / "t-0" / f"{10:020}.log").unlink()
    (found,) = left_out(tmp_path)
    assert (found["kind"], found["topic"], found["offset"], found["nextOffset"]) == ("missing", "t", 10, 20)
    assert "10 to 19" in found["message"]
    assert left_out(tmp_path, startingOffsets='{"t": {"0": 20}}') == []
    undecoded = [row for row in left_out(tmp_path, valueAs="json") if row["kind"] == "undecoded"]
    assert [row["offset"] for row in undecoded] == [*range(10), *range(20, 30)]
    assert undecoded[0]["message"].startswith("offset 0: value: not JSON")


def test_records_after_damage_of_a_committed_query_are_undecided(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0", range(20), batch_size=1) / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2 + 40] ^= 1
    log.write_bytes(data)
    found = left_out(tmp_path, isolationLevel="read_committed")
    assert sorted((row["kind"], row["message"].startswith(row["file"])) for row in found) == [
        ("damaged", False),
        ("undecided", True),
    ]
    assert {row["kind"] for row in left_out(tmp_path)} == {"damaged"}


# -- kinds of damage: what a query leaves out is what `ls` and `export` find -------------------------------------------

SEGMENTS = (0, 15, 30, 45)
END = 60


def _entry(log: Path, change: Callable[[bytearray], None]) -> None:
    """Change the second of the three entries of a log, with offsets 20 to 24."""
    data = bytearray(log.read_bytes())
    start = 12 + int.from_bytes(data[8:12])
    end = start + 12 + int.from_bytes(data[start + 8 : start + 12])
    entry = data[start:end]
    change(entry)
    log.write_bytes(data[:start] + entry + data[end:])


def _set(position: int, code: str, value: int, *, seal: bool = False) -> Callable[[Path], None]:
    def change(entry: bytearray) -> None:
        struct.pack_into(code, entry, position, value)
        entry[:] = sealed(entry) if seal else entry

    return lambda log: _entry(log, change)


def _zero(entry: bytearray) -> None:
    entry[:] = bytes(len(entry))


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(log: Path) -> None:
        log.unlink()
        make(log)

    return change


def _linked(log: Path) -> None:
    log.symlink_to(log.rename(log.with_name("moved.bin")))


KINDS: dict[str, tuple[Callable[[Path], object], list[int]]] = {
    "flipped byte": (_set(40, ">b", 99), [*range(20, 25)]),
    "zeros": (
        lambda log: _entry(log, lambda entry: entry.__setitem__(slice(None), bytes(len(entry)))),
        [*range(20, 25)],
    ),
    "wrong size": (_set(8, ">i", 9999), [*range(20, 25)]),
    "wrong size in the last segment": (
        lambda log: _set(8, ">i", 9999)(log.with_name(f"{45:020}.log")),
        [*range(50, 55)],
    ),
    "truncated": (lambda log: os.truncate(log, log.stat().st_size - 7), [*range(25, 30)]),
    "hole between segments": (lambda log: log.unlink(), [*range(15, 30)]),
    "overlapping entries": (_set(0, ">q", 17), [*range(22, 25)]),
    "wrong base offset": (_set(0, ">q", 10**12), [*range(20, 25)]),
    "wrong base offset in the name": (lambda log: log.rename(log.with_name(f"{18:020}.log")), [*range(15, 20)]),
    "control bit on data": (_set(21, ">h", 0x20, seal=True), [*range(20, 25)]),
    "empty file": (lambda log: os.truncate(log, 0), [*range(15, 30)]),
    "FIFO": (_instead(os.mkfifo), [*range(15, 30)]),
    "directory": (_instead(lambda log: log.mkdir()), [*range(15, 30)]),
    "link to nowhere": (_instead(lambda log: log.symlink_to("nowhere")), [*range(15, 30)]),
    "link to a file": (_linked, []),
}
"""What is done to the second of four segments, or the last one, and the offsets that a query then leaves out."""


@each_of("kind", KINDS)
def test_what_is_left_out_is_what_commands_find(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, lost = KINDS[kind]
    logs, log = tmp_path / "logs", tmp_path / "logs" / "t-0"
    logs.mkdir()
    with PartitionWriter(log, LogConfig(segment_bytes=500)) as writer:
        for base in range(0, END, 5):
            writer.append([new_record(value=b"%02d" % offset * 6) for offset in range(base, base + 5)])
    for index in log.glob("*index"):  # else it says where the entries of a log are that is no file
        index.unlink()
    assert [int(path.stem) for path in sorted(log.glob("*.log"))] == list(SEGMENTS)
    change(log / f"{15:020}.log")
    left = [offset for offset in range(END) if offset not in lost]

    dropped = read(logs, COLUMNS, mode="dropcorrupt").column("offset").to_pylist()
    marked = read(logs, (*COLUMNS, "_corrupt"), mode="permissive").to_pylist()
    omitted = left_out(logs)
    assert sorted(dropped) == sorted(row["offset"] for row in marked if row["_corrupt"] is None) == left
    assert {(row["topic"], row["partition"]) for row in omitted} == ({("t", 0)} if lost else set())

    capsys.readouterr()
    listed = run(["ls", str(log)])
    capsys.readouterr()
    status = run(["export", str(log), "--to", str(tmp_path / "table"), "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    changes = [change for line in lines for change in (line, *line.get("changes", ()))]
    missing = {tuple(each.get("missing", each)[name] for name in RANGE) for each in changes if _is_missing(each)}
    lacking = {each for each in missing if set(left).isdisjoint(range(*each))}  # commands end at damage, Spark does not
    assert {(row["offset"], row["nextOffset"]) for row in omitted if row["kind"] == "missing"} >= lacking
    if status == 3:
        with pytest.raises(ReadError, match=r"SEG-.*option mode: dropcorrupt"):
            read(logs, COLUMNS)
        exported = offsets_of(tmp_path / "table") if lines else []
        assert exported == left[: len(exported)]
        assert any(row["kind"] == "damaged" for row in omitted) or missing
    elif kind == "control bit on data":  # commands go on behind it, with the status of a loss; ls reads headers only
        with pytest.raises(ReadError, match=r"SEG-CTL-001.*option mode: dropcorrupt"):
            read(logs, COLUMNS)
        assert (status, listed, offsets_of(tmp_path / "table")) == (1, 0, left)
    else:
        assert read(logs, COLUMNS).column("offset").to_pylist() == offsets_of(tmp_path / "table") == left
        assert status == listed == bool(omitted)


RANGE = ("firstOffset", "nextOffset")


def _is_missing(change: dict[str, Any]) -> bool:
    return "missing" in change or change.get("type") == "missing"
