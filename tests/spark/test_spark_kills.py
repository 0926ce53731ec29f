"""A sample of ``proofs/spark/spark_kills.py``: a stream is killed while its log grows; `reports/` has the full run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from proofs.spark import spark_kills
from proofs.spark.kills_roles import Directories

pytestmark = pytest.mark.xdist_group("spark")


def test_a_stream_that_is_killed_delivers_every_record_once(tmp_path: Path) -> None:
    found, _, _ = spark_kills.run(Directories(tmp_path), seconds=10, kills=1, seed=3)
    assert found["finished"] is True
    assert found["kills"] >= 1
    assert found["written"] > 0
    assert (found["missing"], found["twice"], found["foreign"]) == (0, 0, 0)


FINE = {
    "kills_wanted_after_steps": 2,
    "kills_after_steps": 2,
    "segments_deleted_meanwhile": 5,
    "ended_by_itself": {},
    "finished": True,
    "missing": 0,
    "twice": 0,
    "foreign": 0,
    "unclean_truncation": {
        "query_failed_with_data_loss": True,
        "goes_on_where_told": True,
        "new_records_in_sink": spark_kills.NEW,
    },
}


@pytest.mark.parametrize(
    "change",
    [
        {"kills_after_steps": 1},
        {"segments_deleted_meanwhile": 0},
        {"ended_by_itself": {"orders-0 starts at offset 9, and 7 was to be read next": 1}},
        {"finished": "cut back"},
        {"twice": 1},
        {"unclean_truncation": FINE["unclean_truncation"] | {"query_failed_with_data_loss": False}},  # type: ignore[operator]
    ],
)
def test_a_run_that_proves_nothing_is_not_fine(change: dict[str, Any]) -> None:
    assert spark_kills.is_fine(FINE)
    assert spark_kills.is_fine(FINE | {"ended_by_itself": {f"Python worker {spark_kills.TOO_BUSY}": 1}})
    assert not spark_kills.is_fine(FINE | change)


def test_kills_count_where_a_step_was_committed_before_them() -> None:
    kills = spark_kills.Kills(Directories(Path()), random.Random(0))  # noqa: S311
    kills.steps_at_kill = [0, 1, 1, 3, 3]
    assert kills.after_steps == 2


def test_what_a_query_said_is_not_the_source_that_it_quotes() -> None:
    said = (
        '  self._lost(f"{topic} was cut back: it ends")\nDataLossError: seglog: orders-0 was cut back: it ends at 3\n'
    )
    assert spark_kills.reports_of(said) == "DataLossError: seglog: orders-0 was cut back: it ends at 3"
