"""A sample of ``proofs/spark/spark_damage.py``, without Spark; the full run through Spark is in ``reports/``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers.exported import make_log
from helpers.walking import each_of

pytest.importorskip("pyarrow")

from proofs.spark.readers import read
from proofs.spark.spark_damage import make
from seglog_format.spark.executing import ReadError

if TYPE_CHECKING:
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
