"""Steps of a stream, without Spark: where they end, what they read, what is lost."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")

from helpers.spark_partitions import START_MS, partition
from pyspark.sql.pandas.types import to_arrow_schema

from proofs.spark.readers import struct_type
from seglog_format import LogConfig, PartitionWriter, new_record
from seglog_format.errors import UsageError
from seglog_format.spark.columns import projection
from seglog_format.spark.executing import ReadError, batches_of
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.following import DataLossError, Follower
from seglog_format.spark.options import parse_stream_options
from seglog_format.spark.streaming import stream_reader

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.spark.following import Offsets

ORDERS = ("orders", 0)


def follower(path: Path, **options: str) -> Follower:
    return Follower(parse_stream_options({"path": str(path), "startingOffsets": "earliest", **options}))


def step(of: Follower, start: Offsets, end: Offsets) -> list[tuple[int, int]]:
    """Partition and offset of what a step reads."""
    arrow = to_arrow_schema(struct_type(projection("partition", "offset")), timezone="UTC")
    return sorted(
        (row["partition"], row["offset"])
        for task in of.tasks(start, end)
        for batch in batches_of(task, arrow, of.options, EVERYTHING)
        for row in batch.to_pylist()
    )


def append(directory: Path, count: int) -> None:
    config = LogConfig(segment_bytes=4096, index_interval_bytes=512)
    with PartitionWriter(directory, config) as writer:
        for _ in range(count):
            writer.append([new_record(value=b"v" * 50, timestamp_ms=START_MS)])


def test_a_stream_starts_at_the_end_unless_told_otherwise(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 30)
    assert Follower(parse_stream_options({"path": str(tmp_path)})).initial() == {ORDERS: 30}
    assert follower(tmp_path).initial() == {ORDERS: 0}
    assert follower(tmp_path, startingOffsets='{"orders":{"0":7}}').initial() == {ORDERS: 7}
    assert follower(tmp_path, startingTimestamp=str(START_MS + 5000)).initial() == {ORDERS: 5}


@pytest.mark.parametrize(
    "options",
    [{"endingOffsets": "latest"}, {"table": "batches"}, {"maxOffsetsPerTrigger": "1", "maxBytesPerTrigger": "1"}],
)
def test_what_a_stream_cannot_have(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a stream cannot have"):
        parse_stream_options({"path": str(tmp_path), **options})


@pytest.mark.parametrize("limit", [{}, {"rows": 7}, {"rows": 1}, {"size": 900}, {"size": 1}])
def test_every_record_comes_once_while_the_log_grows_and_rolls(limit: dict[str, int], tmp_path: Path) -> None:
    dice = random.Random(4)  # noqa: S311
    of, start, seen = follower(tmp_path), {}, []
    total = 0
    for round_ in range(12):
        if round_ % 3 == 0:
            append(tmp_path / "orders-0", count := dice.randrange(1, 40))
            total += count
        if round_ == 4:
            append(tmp_path / "orders-1", 9)  # a new partition starts at its beginning
        end = of.next(start, of.latest(), **limit)
        seen += step(of, start, end)
        start = end
    while (end := of.next(start, of.latest(), **limit)) != start:
        seen += step(of, start, end)
        start = end
    assert sorted(seen) == [*((0, n) for n in range(total)), *((1, n) for n in range(9))]
    assert len(list((tmp_path / "orders-0").glob("*.log"))) > 1


@pytest.mark.parametrize("seed", range(6))
def test_a_query_killed_anywhere_delivers_every_record_once(seed: int, tmp_path: Path) -> None:
    """What Spark does between two kills: it notes where a step ends, reads it, hands it to the sink, notes that."""
    dice = random.Random(seed)  # noqa: S311
    directory, limit = tmp_path / "orders-0", {"rows": dice.randrange(3, 30)}
    sink: list[list[tuple[int, int]]] = []
    start: Offsets = {}
    noted: Offsets | None = None
    deleted = 0
    append(directory, 1)
    while len(sink) < 25:
        of = follower(tmp_path)  # after a kill, all that is left is what was noted
        for _ in range(dice.randrange(5)):
            append(directory, dice.randrange(1, 20))
            noted = noted or of.next(start, of.latest(), **limit)
            rows = step(of, start, noted)
            if dice.random() < 0.3:
                break  # killed, the step handed over or not
            sink.append(rows)
            start, noted = noted, None
            closed = sorted(directory.glob("*.log"))[:-1]
            for log, following in itertools.pairwise([*closed, max(directory.glob("*.log"))]):
                if int(following.stem) <= start[ORDERS]:
                    log.unlink()
                    deleted += 1
    while (end := of.next(start, of.latest())) != start:
        sink.append(step(of, start, end))
        start = end
    assert [offset for rows in sink for _, offset in rows] == list(range(start[ORDERS]))
    assert deleted > 0


def test_limits_are_shared_and_kept(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 300)
    partition(tmp_path / "orders-1", 100)
    of = follower(tmp_path)
    assert of.next({}, of.latest(), rows=40) == {ORDERS: 30, ("orders", 1): 10}
    ends = of.next({}, of.latest(), size=8000)
    assert all(0 < end < 150 for end in ends.values())


def test_an_entry_that_is_being_written_is_left_for_the_next_step(tmp_path: Path) -> None:
    directory = partition(tmp_path / "orders-0", 30, in_batch=10, segment_bytes=2**20)
    log = next(directory.glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data[:-7])
    assert follower(tmp_path).latest() == {ORDERS: 20}
    log.write_bytes(data[:-7] + bytes(7))
    assert follower(tmp_path).latest() == {ORDERS: 20}, "its size is there, its content is not"
    log.write_bytes(data)
    assert follower(tmp_path).latest() == {ORDERS: 30}
    partition(tmp_path / "empty-0", 0)
    assert follower(tmp_path).latest()["empty", 0] == 0


class TestLoss:
    """What was to be read is not there any more."""

    def test_a_log_that_was_cut_back(self, tmp_path: Path) -> None:
        directory = partition(tmp_path / "orders-0", 30)
        of = follower(tmp_path)
        start = of.latest()
        shutil.rmtree(directory)
        partition(directory, 20)
        with pytest.raises(DataLossError, match="orders-0 was cut back: it ends at offset 20"):
            of.next(start, of.latest())
        tolerant = follower(tmp_path, failOnDataLoss="false")
        assert tolerant.next(start, tolerant.latest()) == {ORDERS: 20}

    def test_a_log_that_was_cut_back_between_planning_and_reading(self, tmp_path: Path) -> None:
        directory = partition(tmp_path / "orders-0", 30, segment_bytes=2**20)
        of = follower(tmp_path)
        tasks = of.tasks({}, of.latest())
        log = next(directory.glob("*.log"))
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
        arrow = to_arrow_schema(struct_type(projection("offset")), timezone="UTC")
        with pytest.raises(ReadError, match="was cut back: it ends at offset 10, and had reached 30"):
            list(batches_of(tasks[0], arrow, of.options, EVERYTHING))

    def test_segments_that_retention_has_taken(self, tmp_path: Path) -> None:
        directory = partition(tmp_path / "orders-0", 300)
        logs = sorted(directory.glob("*.log"))
        logs[0].unlink()
        of = follower(tmp_path)
        with pytest.raises(DataLossError, match="and 3 was to be read next"):
            of.tasks({ORDERS: 3}, of.latest())
        tolerant = follower(tmp_path, failOnDataLoss="false")
        assert step(tolerant, {ORDERS: 3}, tolerant.latest())[0] == (0, int(logs[1].stem))

    def test_a_partition_that_is_gone(self, tmp_path: Path) -> None:
        partition(tmp_path / "orders-0", 30)
        of = follower(tmp_path)
        start, end = of.latest(), {ORDERS: 40}
        shutil.rmtree(tmp_path / "orders-0")
        with pytest.raises(DataLossError, match="does not exist any more"):
            of.next(start, of.latest())
        with pytest.raises(DataLossError, match="does not exist any more"):
            of.tasks(start, end)
        tolerant = follower(tmp_path, failOnDataLoss="false")
        assert tolerant.next(start, tolerant.latest()) == start
        assert tolerant.tasks(start, end) == []


def test_undecided_transactions_are_waited_for() -> None:
    from helpers.support import authentic

    path = authentic("4.3.0/txn-open")
    committed, any_ = follower(path, isolationLevel="read_committed"), follower(path)
    assert committed.latest() != any_.latest()
    assert len(step(committed, {}, committed.latest())) < len(step(any_, {}, any_.latest()))


def test_the_reader_speaks_json_as_the_connector_does(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 30)
    partition(tmp_path / "orders-1", 10)
    options = {"path": str(tmp_path), "startingOffsets": "earliest", "maxOffsetsPerTrigger": "8"}
    reader = stream_reader(parse_stream_options(options), struct_type(projection("offset")))
    first = reader.initialOffset()
    assert json.dumps(first) == '{"orders": {"0": 0, "1": 0}}'
    limit = reader.getDefaultReadLimit()
    second = reader.latestOffset(first, limit)
    assert second == {"orders": {"0": 6, "1": 2}}
    (part,) = reader.partitions(first, second)
    assert sum(batch.num_rows for batch in reader.read(part)) == 8
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    append(tmp_path / "orders-0", 5)
    assert reader.reportLatestOffset() == {"orders": {"0": 35, "1": 10}}
    while (third := reader.latestOffset(second, limit)) != second:
        second = third
    assert second == {"orders": {"0": 30, "1": 10}}, "what was written later is for the next run"
    assert reader.latestOffset() == second, "as Spark before 4.2 asks"  # type: ignore[call-arg]
