"""A sample of ``proofs/spark/spark_damage.py``, without Spark; the full run through Spark is in ``reports/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.walking import each_of

pytest.importorskip("pyarrow")

from proofs.spark.readers import read
from proofs.spark.spark_damage import make
from seglog_format.spark.executing import ReadError

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("topic", "offset", "value")


@each_of("seed", range(24))
def test_what_is_intact_is_read_and_the_rest_is_told(seed: int, tmp_path: Path) -> None:
    case = make(tmp_path, seed)
    dropped = read(tmp_path, COLUMNS, mode="dropcorrupt", splitBytes="1k").column("offset").to_pylist()
    assert sorted(dropped) == sorted(case.intact)
    table = read(tmp_path, (*COLUMNS, "_corrupt"), mode="permissive", splitBytes="1k").to_pylist()
    assert sorted(row["offset"] for row in table if row["_corrupt"] is None) == sorted(case.intact)
    marks = [row["_corrupt"] for row in table if row["_corrupt"] is not None]
    if not case.is_reported:
        assert read(tmp_path, COLUMNS).num_rows == len(case.intact)
        return
    assert all(f"{case.topic}-0" in mark["file"] and mark["requirement"].startswith("SEG-") for mark in marks)
    assert marks
    with pytest.raises(ReadError, match=rf"{case.topic}-0/\d+\.log.*SEG-"):
        read(tmp_path, COLUMNS)
