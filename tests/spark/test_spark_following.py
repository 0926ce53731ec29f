"""Steps of a stream, without Spark: where they end, what they read, what is lost."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.spark_partitions import START_MS, partition

from proofs.spark.readers import read, struct_type
from seglog_format import LogConfig, PartitionWriter, new_record, walk
from seglog_format.errors import UsageError
from seglog_format.spark import following
from seglog_format.spark.columns import projection
from seglog_format.spark.damage import ReadError
from seglog_format.spark.executing import batches_of
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.following import DataLossError, Follower
from seglog_format.spark.options import parse_stream_options
from seglog_format.spark.source import stream_reader
from seglog_format.spark.source_parts import arrow_schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.spark.following import Offsets

ORDERS = ("orders", 0)


def follower(path: Path, **options: str) -> Follower:
    return Follower(parse_stream_options({"path": str(path), "startingOffsets": "earliest", **options}))


def step(of: Follower, start: Offsets, end: Offsets) -> list[tuple[int, int]]:
    """Partition and offset of what a step reads."""
    arrow = arrow_schema_of(struct_type(projection("partition", "offset")))
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
            for log, later in itertools.pairwise([*closed, max(directory.glob("*.log"))]):
                if int(later.stem) <= start[ORDERS]:
                    for file in directory.glob(f"{log.stem}.*"):
                        file.unlink()
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


BATCHES, IN_BATCH = 100, 10
SIZE_FIELD, CRC_FIELD, MAGIC_FIELD = 8, 17, 16

DAMAGES = {
    "its size is too small": (SIZE_FIELD, b"\0\0\0\7"),
    "its size is too large": (SIZE_FIELD, b"\x10\0\0\0"),
    "its size is negative": (SIZE_FIELD, b"\xff\xff\xff\xf0"),
    "its magic": (MAGIC_FIELD, b"\7"),
    "its offset is the first of all": (0, bytes(8)),
}
"""Bytes to write at a place in an entry, after which nobody can frame it, or its offset is impossible."""


def hundred_batches(root: Path, number: int, damage: str, *, indexed: bool) -> Path:
    """Write 100 batches of 10 records into one segment, damage one, and return its log."""
    directory = partition(root / "orders-0", BATCHES * IN_BATCH, in_batch=IN_BATCH, segment_bytes=2**20)
    log = next(directory.glob("*.log"))
    data = bytearray(log.read_bytes())
    position, content = DAMAGES[damage]
    start = next(frame.position for frame in walk(data) if frame.header.base_offset == number * IN_BATCH)
    data[start + position : start + position + len(content)] = content
    log.write_bytes(data)
    if not indexed:
        for path in directory.glob("*.*index"):
            path.unlink()
    return log


def batch_query(root: Path, mode: str) -> list[tuple[int, str | None]]:
    """Offset, or position of damage, of every row of the batch query."""
    marked = ("offset", "_corrupt") if mode == "permissive" else ("offset",)
    found = read(root, marked, mode=mode).to_pylist()
    return [(row["offset"], str(row["_corrupt"]["position"]) if row.get("_corrupt") else None) for row in found]


def streamed(of: Follower, *, rows: int | None) -> list[tuple[int, str | None]]:
    """Return the same, of a stream that ends when nothing is left."""
    names = ("offset", "_corrupt") if of.options.mode == "permissive" else ("offset",)
    arrow = arrow_schema_of(struct_type(projection(*names)))
    start: Offsets = {}
    seen: list[tuple[int, str | None]] = []
    latest = of.latest()
    while (end := of.next(start, latest, rows=rows)) != start:
        for task in of.tasks(start, end):
            for batch in batches_of(task, arrow, of.options, EVERYTHING):
                found = batch.to_pylist()
                seen += [
                    (row["offset"], str(row["_corrupt"]["position"]) if row.get("_corrupt") else None) for row in found
                ]
        start = end
    return seen


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "not indexed"])
@pytest.mark.parametrize("number", [1, 50, 98])
@pytest.mark.parametrize("damage", DAMAGES)
class TestDamage:
    """A stream does about damage in the middle of a log what the mode says, as the batch query does."""

    def test_failfast_fails(self, damage: str, number: int, indexed: bool, tmp_path: Path) -> None:  # noqa: FBT001
        log = hundred_batches(tmp_path, number, damage, indexed=indexed)
        with pytest.raises(ReadError, match=r"SEG-.*option mode: dropcorrupt"):
            batch_query(tmp_path, "failfast")
        with pytest.raises(ReadError, match=rf"{log}:\d+.*SEG-.*option mode: dropcorrupt"):
            streamed(follower(tmp_path), rows=None)

    @pytest.mark.parametrize("mode", ["dropcorrupt", "permissive"])
    def test_the_other_modes_pass_over_it(
        self, mode: str, damage: str, number: int, indexed: bool, tmp_path: Path  # noqa: FBT001
    ) -> None:  # fmt: skip
        hundred_batches(tmp_path, number, damage, indexed=indexed)
        wanted = batch_query(tmp_path, mode)
        intact = [offset for offset, where in wanted if where is None]
        assert intact == [n for n in range(1000) if n // IN_BATCH != number]
        assert len(wanted) - len(intact) == (mode == "permissive")
        for rows in (None, 137):
            seen = streamed(follower(tmp_path, mode=mode), rows=rows)
            assert sorted(seen, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("mode", ["failfast", "dropcorrupt", "permissive"])
@pytest.mark.parametrize("rest", [9, 16, 40, None], ids=str)
def test_an_incomplete_end_is_waited_for_and_reported(
    mode: str, rest: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = partition(tmp_path / "orders-0", 30, in_batch=10, segment_bytes=2**20)
    log = next(directory.glob("*.log"))
    data = log.read_bytes()
    *_, last = walk(data)
    log.write_bytes(data[:-7] + bytes(7) if rest is None else data[: last.position + rest])
    now = [1000.0]
    monkeypatch.setattr(following.time, "monotonic", lambda: now[0])
    of = follower(tmp_path, mode=mode)
    for _ in range(following.PATIENT_TRIGGERS):
        assert of.latest() == {ORDERS: 20}
    assert caplog.messages == [], "a quick stream looks many times in a second"
    now[0] += following.PATIENT_SECONDS
    for _ in range(3):
        assert of.latest() == {ORDERS: 20}
    (message,) = caplog.messages
    assert message.startswith(f"seglog: {log}:{last.position}: the log ends with an incomplete entry (11 triggers)")
    log.write_bytes(data)
    assert of.latest() == {ORDERS: 30}
    assert follower(tmp_path, mode=mode).latest(is_final=True) == {ORDERS: 30}
    log.write_bytes(data[:-7])
    follower(tmp_path, mode=mode).latest(is_final=True)
    assert "incomplete entry (1 triggers)" in caplog.messages[1], "a query that ends there says so at once"


def test_a_wrong_index_is_no_damage(tmp_path: Path) -> None:
    directory = partition(tmp_path / "orders-0", 1000, in_batch=10, segment_bytes=2**20)
    index = next(directory.glob("*.index"))
    data = bytearray(index.read_bytes())
    for position in (int.from_bytes(data[-4:], "big") + 5, 2**30):
        data[-4:] = position.to_bytes(4, "big")
        index.write_bytes(data)
        assert follower(tmp_path).latest() == {ORDERS: 1000}


@pytest.mark.parametrize("mode", ["failfast", "dropcorrupt", "permissive"])
def test_committed_records_end_at_damage_and_that_is_said(
    mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = hundred_batches(tmp_path, 50, "its magic", indexed=True)
    of = follower(tmp_path, mode=mode, isolationLevel="read_committed")
    if mode == "failfast":
        with pytest.raises(ReadError, match=rf"{log}:\d+.*SEG-BAT-004"):
            of.latest()
        return
    assert of.latest() == {ORDERS: 500}
    assert "no record after damage is committed for certain" in caplog.text
    assert step(of, {}, of.latest()) == [(0, offset) for offset in range(500)]


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
        arrow = arrow_schema_of(struct_type(projection("offset")))
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


def test_a_step_waits_for_its_minimum_or_for_the_longest_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1.0)
    monkeypatch.setattr(following, "time", SimpleNamespace(monotonic=lambda: clock.now))
    options = {"minOffsetsPerTrigger": "25", "maxTriggerDelay": "1m", "startingOffsets": "earliest"}
    partition(tmp_path / "orders-0", 10)
    parsed = parse_stream_options({"path": str(tmp_path), **options})
    reader = stream_reader(parsed, struct_type(projection("offset")))
    start, ends = reader.initialOffset(), []
    for seconds, count in ((0, 0), (1, 24), (58, 0), (1, 0), (1, 24), (1, 1)):
        clock.now += seconds
        append(tmp_path / "orders-0", count)
        start = reader.latestOffset(start, None)
        ends.append(start["orders"]["0"])
    assert ends == [10, 10, 10, 34, 34, 59], "the first at once, the next after a minute, then by number"
    append(tmp_path / "orders-0", 1)
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    assert reader.latestOffset(start, None) == {"orders": {"0": 60}}, "the rest of a query that ends there"
