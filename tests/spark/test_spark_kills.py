"""A sample of ``tools/spark_kills.py``: a stream is killed while its log grows; the full run is in ``reports/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")

import spark_kills

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("spark")


def test_a_stream_that_is_killed_delivers_every_record_once(tmp_path: Path) -> None:
    found, _, _ = spark_kills.run(spark_kills.Place(tmp_path), seconds=10, kills=1, seed=3)
    assert found["finished"] is True
    assert found["kills"] >= 1
    assert found["written"] > 0
    assert (found["missing"], found["twice"], found["foreign"]) == (0, 0, 0)
