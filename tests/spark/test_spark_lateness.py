"""Upper bounds of times, where the caller says how late records come; and what is read where nobody does."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.spark_partitions import START_MS
from helpers.spark_plans import pieces, read

from proofs.spark.readers import rows
from seglog_format import LogConfig, PartitionWriter, new_record
from seglog_format.model import INT64_MAX
from seglog_format.spark.damage import ReadError
from seglog_format.spark.filters import EVERYTHING, Narrowed
from seglog_format.spark.options import parse_duration

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("offset", "timestamp")


@pytest.fixture(scope="module")
def disordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide records a second apart, some of them up to 20 s older than others before; then half an hour of none."""
    dice, directory = random.Random(5), tmp_path_factory.mktemp("disordered") / "orders-0"  # noqa: S311
    with PartitionWriter(directory, LogConfig(segment_bytes=2**12, index_interval_bytes=2**9)) as writer:
        for first in range(0, 400, 5):
            gap = 1_800_000 if first >= 300 else 0
            times = [START_MS + gap + 1000 * (each - dice.randrange(20)) for each in range(first, first + 5)]
            writer.append([new_record(value=b"." * 40, timestamp_ms=time) for time in times])
    return directory


def between(low: int | None, high: int) -> Narrowed:
    """Between two seconds."""
    narrowed = replace(EVERYTHING, to_timestamp_ms=START_MS + 1000 * high)
    return narrowed if low is None else replace(narrowed, from_timestamp_ms=START_MS + 1000 * low)


@pytest.mark.parametrize("lateness", ["20s", "1m", "3600000"])
def test_no_record_is_missed_that_is_as_late_as_was_said(disordered: Path, lateness: str) -> None:
    for low in range(-30, 300, 29):
        for high in (low, low + 9, low + 100):
            found = rows(read(disordered, COLUMNS, between(low, high), maxLateness=lateness))
            assert found == rows(read(disordered, COLUMNS, between(low, high)))


@pytest.mark.parametrize(("lateness", "is_less"), [("20s", True), ("4s", True), ("0", True), ("40m", False)])
def test_reading_stops_at_the_first_record_that_is_too_young(disordered: Path, lateness: str, is_less: bool) -> None:  # noqa: FBT001
    allowed_ms = START_MS + 100_000 + parse_duration(lateness)
    times = [row["timestamp"] for row in rows(read(disordered, COLUMNS))]
    expected = next((number for number, time in enumerate(times) if time > allowed_ms), INT64_MAX)
    found = pieces(disordered, between(None, 100), maxLateness=lateness)
    assert {piece.to_offset for piece in found} == {expected}
    assert (len(found) < len(pieces(disordered, between(None, 100)))) == is_less


def test_by_itself_nothing_is_left_out(disordered: Path) -> None:
    assert {piece.to_offset for piece in pieces(disordered, between(0, 1))} == {INT64_MAX}
    assert {piece.to_offset for piece in pieces(disordered, maxLateness="0")} == {INT64_MAX}
    from_below = replace(EVERYTHING, from_timestamp_ms=START_MS)
    assert {piece.to_offset for piece in pieces(disordered, from_below, maxLateness="0")} == {INT64_MAX}


def test_a_time_before_1970(disordered: Path) -> None:
    assert read(disordered, COLUMNS, replace(EVERYTHING, to_timestamp_ms=-5000), maxLateness="0").num_rows == 0


def test_damage_is_met_where_records_are_read(disordered: Path, tmp_path: Path) -> None:
    """Looking a time up does not fail the plan: what becomes of damage is up to the mode."""
    copy = shutil.copytree(disordered, tmp_path / "orders-0")
    for log in sorted(copy.glob("*.log"))[1:]:
        data = bytearray(log.read_bytes())
        data[16] = 9  # no such magic
        log.write_bytes(data)
    assert read(copy, COLUMNS, between(None, 200), maxLateness="0", mode="dropcorrupt").num_rows
    with pytest.raises(ReadError, match="SEG-BAT-004"):
        read(copy, COLUMNS, between(None, 200), maxLateness="0")
