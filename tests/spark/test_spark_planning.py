"""Plans: which directories, which segments, cut where; all without Spark."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.spark_partitions import START_MS, partition, topic_id
from helpers.spark_plans import pieces, read, tasks
from helpers.walking import each_of

from proofs.spark.readers import rows, struct_type
from seglog_format import LogConfig, PartitionWriter, build_batch, new_record
from seglog_format.errors import UsageError
from seglog_format.model import CompressionCodec
from seglog_format.spark import planning
from seglog_format.spark.executing import ReadError, batches_of
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.following import Follower
from seglog_format.spark.options import parse_options, parse_stream_options
from seglog_format.spark.pieces import Task
from seglog_format.spark.source_parts import arrow_schema_of

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a log directory with ``orders-0`` of 400 records and ``orders-1`` of 40; read it, do not change it."""
    logs = tmp_path_factory.mktemp("orders")
    partition(logs / "orders-0")
    partition(logs / "orders-1", 40)
    return logs


def offsets(path: Path, **options: str) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows(read(path, ("partition", "offset"), **options))]


def test_a_path_is_a_log_directory_a_partition_or_a_tree(orders: Path, tmp_path: Path) -> None:
    assert len(offsets(orders)) == 440
    assert len(offsets(orders / "orders-1")) == 40
    (tmp_path / "broker-1").symlink_to(orders)
    shutil.copytree(orders, tmp_path / "tree" / "broker-2")
    assert len(offsets(tmp_path / "tree")) == 440, "a directory of a broker may look like a partition"
    assert len(offsets(tmp_path / "broker-1")) == 440
    assert len(offsets(f"file://{orders}")) == 440  # type: ignore[arg-type]


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        tasks(tmp_path / "absent")


def test_a_pattern_is_what_it_matches(orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / "broker-1")
    shutil.copytree(orders / "orders-0", tmp_path / "broker-2" / "payments-0")
    (tmp_path / "broker-2" / "payments-9").symlink_to(orders / "orders-1")
    (tmp_path / "broker-2" / "payments-1.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "broker-3").write_text("no directory")
    assert len(offsets(f"{tmp_path}/broker-*")) == 440 + 400  # type: ignore[arg-type]
    assert len(offsets(f"file:{tmp_path}/broker-?/payments-[01]*")) == 400  # type: ignore[arg-type]
    shutil.copytree(orders / "orders-1", tmp_path / "[a]" / "x-0")
    assert len(offsets(tmp_path / "[a]")) == 40, "a name of a directory is no pattern"
    for nothing in ("broker-3*", "none-*/orders-0", "broker-2/*-delete", "\0*"):
        with pytest.raises(UsageError, match=r"no (partition )?directory"):
            tasks(f"{tmp_path}/{nothing}")


def test_a_stream_of_an_address() -> None:
    with pytest.raises(UsageError, match="only local paths"):
        Follower(parse_stream_options({"path": "s3a://bucket/logs"})).latest()


def test_segments_without_a_partition_name(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 10)
    (tmp_path / "orders-0").rename(tmp_path / "orders")
    with pytest.raises(UsageError, match="is not <topic>-<partition>"):
        tasks(tmp_path / "orders")


def test_a_log_directory_without_partitions_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n", encoding="utf-8")
    assert tasks(tmp_path) == []
    assert read(tmp_path).num_rows == 0


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an empty directory, without any Kafka files; is a disk not mounted"):
        tasks(tmp_path)


def test_directories_out_of_use_are_left_out(orders: Path, tmp_path: Path) -> None:
    for name in ("orders-1", "orders-1.0123456789abcdef0123456789abcdef-delete"):
        shutil.copytree(orders / "orders-1", tmp_path / name)
    assert len(offsets(tmp_path)) == 40


@pytest.mark.parametrize("split", ["1", "1500", "4k", "1g"])
def test_pieces_make_the_whole(orders: Path, split: str) -> None:
    assert offsets(orders, splitBytes=split) == [*((0, n) for n in range(400)), *((1, n) for n in range(40))]


def test_large_segments_are_cut_and_small_ones_put_together(orders: Path) -> None:
    segments = {piece.log for piece in pieces(orders)}
    assert len(tasks(orders)) == 1
    assert len(tasks(orders, minPartitions="8")) >= 8
    cut = pieces(orders, splitBytes="3000")
    assert len(cut) > 2 * len(segments)
    assert {piece.start for piece in cut} != {0}


@each_of("codec", [CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.ZSTD])
def test_tasks_are_cut_by_their_decompressed_bytes(
    codec: CompressionCodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MIN_SPLIT", 2**16)
    monkeypatch.setattr(planning, "SAMPLED_SIZE", 1)
    values = [bytes([number % 251]) * 1000 for number in range(1000)]
    with PartitionWriter(tmp_path / "orders-0", LogConfig(index_interval_bytes=100)) as writer:
        for first in range(0, 1000, 10):
            records = [new_record(value=value) for value in values[first : first + 10]]
            writer.append(build_batch(records, codec=codec))
    found = tasks(tmp_path)
    assert 10 <= len(found) <= 17, "a million bytes in tasks of 64 KiB"
    assert read(tmp_path, ("value",)).column(0).to_pylist() == values
    assert len(tasks(tmp_path, splitBytes="100k")) == (9 if codec is CompressionCodec.NONE else 1), "as stored"


def test_one_entry_of_a_partition_says_what_it_decompresses_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[str] = []

    def factor(segment: LogSegment, position: int) -> float:
        assert position == 0
        sampled.append(segment.path)
        return 1.0

    monkeypatch.setattr(planning, "SAMPLED_SIZE", 1000)
    monkeypatch.setattr(planning, "_factor", factor)
    for number in range(3):
        partition(tmp_path / f"orders-{number}", 400)
    partition(tmp_path / "small-0", 2)
    tasks(tmp_path)
    assert [Path(path).parent.name for path in sampled] == ["orders-0", "orders-1", "orders-2"]


def test_pieces_are_cut_without_an_index_only_between_segments(orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / "logs")
    for index in (tmp_path / "logs").rglob("*.index"):
        index.unlink()
    assert all(piece.start == 0 for piece in pieces(tmp_path / "logs", splitBytes="3000"))
    assert len(offsets(tmp_path / "logs", splitBytes="3000")) == 440


def test_an_index_that_lies_loses_nothing(orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / "logs")
    for number, index in enumerate(sorted((tmp_path / "logs").rglob("*.index"))):
        data = bytearray(index.read_bytes())
        for at in range(4 + 8 * (number % 3), len(data), 8):
            data[at + 3] ^= 0x55  # positions that are no starts of entries
        index.write_bytes(bytes(data))
    assert len(offsets(tmp_path / "logs", splitBytes="2000")) == 440
    assert offsets(tmp_path / "logs", startingOffsets='{"orders": {"0": 333, "1": -2}}')[0] == (0, 333)


@pytest.mark.req("SEG-IDX-009")
def test_a_piece_that_ends_inside_an_entry_is_refused(orders: Path) -> None:
    """As one that was planned by an index which names bytes within a value."""
    (piece,) = pieces(orders / "orders-1")
    schema = arrow_schema_of(struct_type("`offset` bigint"))
    options = parse_options({"path": str(orders)})
    task = Task((replace(piece, end=100),))
    with pytest.raises(ReadError, match=r"orders-1/0+\.log.*SEG-IDX-009"):
        list(batches_of(task, schema, options, EVERYTHING))


@pytest.mark.parametrize("seed", range(8))
def test_an_index_in_any_order_loses_nothing(orders: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    shutil.copytree(orders, tmp_path / "logs")
    for index in (tmp_path / "logs").rglob("*.index"):
        data = index.read_bytes()
        slots = [data[at : at + 8] for at in range(0, len(data), 8)]
        dice.shuffle(slots)
        extra = [dice.randbytes(8) for _ in range(seed % 3)]
        index.write_bytes(b"".join(slots + extra))
    assert len(offsets(tmp_path / "logs", splitBytes="2000")) == 440
    for low in range(0, 400, 23):
        narrowed = replace(EVERYTHING, from_offset=low, to_offset=low + 11, partition_tests=(("EqualTo", False, (0,)),))
        found = [row["offset"] for row in rows(read(tmp_path / "logs", ("offset",), narrowed, splitBytes="2000"))]
        assert found == list(range(low, min(low + 11, 400)))


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 123, 398, 399])
def test_a_range_of_offsets_reads_no_more_than_it_needs(orders: Path, offset: int) -> None:
    narrowed = replace(
        EVERYTHING, from_offset=offset, to_offset=offset + 1, partition_tests=(("EqualTo", False, (0,)),)
    )
    found = pieces(orders, narrowed)
    assert len(found) == 1
    assert [row["offset"] for row in rows(read(orders, ("offset",), narrowed))] == [offset]
    (piece,) = found
    end = piece.end if piece.end is not None else (orders / "orders-0" / piece.log).stat().st_size
    assert end - piece.start < 8000, "a few entries of the index, not the segment of 16 KiB"


def test_every_range_of_offsets_is_exact(orders: Path) -> None:
    for low in range(0, 41, 3):
        for high in range(low, 42, 4):
            narrowed = replace(EVERYTHING, from_offset=low, to_offset=high)
            found = [row["offset"] for row in rows(read(orders / "orders-1", ("offset",), narrowed, splitBytes="700"))]
            assert found == list(range(low, min(high, 40)))


def test_a_time_range_skips_segments(orders: Path) -> None:
    narrowed = replace(EVERYTHING, from_timestamp_ms=START_MS + 350_000, to_timestamp_ms=START_MS + 352_000)
    found = pieces(orders / "orders-0", narrowed)
    assert len(found) < len(pieces(orders / "orders-0"))
    assert [row["offset"] for row in rows(read(orders / "orders-0", ("offset",), narrowed))] == [350, 351, 352]


def test_a_time_index_that_lies_is_not_believed_where_it_is_said(orders: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(orders / "orders-0", tmp_path / "orders-0")
    for index in copy.glob("*.timeindex"):
        index.write_bytes(b"\0" * 7 + b"\1" + b"\0\0\0\1")  # nothing up to offset 1 is younger than 1 ms after 1970
    narrowed = replace(EVERYTHING, from_timestamp_ms=START_MS + 350_000, to_timestamp_ms=START_MS + 352_000)
    assert len(pieces(copy, narrowed)) == 1
    found = rows(read(copy, ("offset",), narrowed, timeIndex="ignore"))
    assert [row["offset"] for row in found] == [350, 351, 352]


def test_timestamps_are_looked_up_without_reading_an_index_whole(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        msg = "an index was read whole"
        raise AssertionError(msg)

    monkeypatch.setattr("seglog_format.log.index_file.usable_time_slots", fail)
    monkeypatch.setattr("seglog_format.log.index_file.usable_offset_slots", fail)
    for first in (0, 37, 105, 222, 350, 380):
        bounds = (START_MS + first * 1000, START_MS + (first + 3) * 1000)
        by_options = {"startingTimestamp": str(bounds[0]), "endingTimestamp": str(bounds[1])}
        assert offsets(orders / "orders-0", **by_options) == [(0, first + each) for each in range(3)]
        narrowed = replace(EVERYTHING, from_timestamp_ms=bounds[0], to_timestamp_ms=bounds[1])
        found = rows(read(orders / "orders-0", ("offset",), narrowed))
        assert [row["offset"] for row in found] == list(range(first, first + 4))


@pytest.mark.parametrize("seed", range(6))
def test_entries_that_were_taken_back_mislead_nobody(tmp_path: Path, seed: int) -> None:
    """Cutting a log back leaves them behind the others, until the segment is closed."""
    dice = random.Random(seed)  # noqa: S311
    directory = partition(tmp_path / "orders-0", segment_bytes=2**20)
    (index,) = directory.glob("*.timeindex")
    taken_back = [
        (START_MS + 1000 * dice.randrange(390)).to_bytes(8, "big") + dice.randrange(400).to_bytes(4, "big")
        for _ in range(dice.randrange(1, 60))
    ]
    index.write_bytes(index.read_bytes() + b"".join(taken_back))
    for first in range(0, 397, 13):
        at = START_MS + first * 1000
        assert offsets(directory, startingTimestamp=str(at), endingTimestamp=str(at + 1)) == [(0, first)]
        narrowed = replace(EVERYTHING, from_timestamp_ms=at, to_timestamp_ms=at)
        assert [row["offset"] for row in rows(read(directory, ("offset",), narrowed))] == [first]


class TestOffsets:
    """Start and end by options."""

    def test_by_partition(self, orders: Path) -> None:
        found = offsets(
            orders, startingOffsets='{"orders":{"0":398,"1":-2}}', endingOffsets='{"orders":{"0":-1,"1":2}}'
        )
        assert found == [(0, 398), (0, 399), (1, 0), (1, 1)]

    def test_latest_is_where_nothing_is(self, orders: Path) -> None:
        assert offsets(orders, startingOffsets="latest") == []

    def test_each_partition_has_to_be_named(self, orders: Path) -> None:
        with pytest.raises(UsageError, match="the start does not name orders-1"):
            tasks(orders, startingOffsets='{"orders":{"0":1}}')
        with pytest.raises(UsageError, match="names partitions that are not read: orders-7"):
            tasks(orders, endingOffsets='{"orders":{"0":1,"1":1,"7":1}}')

    def test_by_timestamp(self, orders: Path) -> None:
        bounds = {"startingTimestamp": str(START_MS + 37_500), "endingTimestamp": str(START_MS + 41_000)}
        assert offsets(orders, **bounds) == [(0, 38), (0, 39), (0, 40), (1, 38), (1, 39)]
        each = f'{{"orders":{{"0":{START_MS + 399_000},"1":{START_MS + 39_000}}}}}'
        assert offsets(orders, startingOffsetsByTimestamp=each) == [(0, 399), (1, 39)]

    def test_a_timestamp_that_nothing_reaches(self, orders: Path) -> None:
        late = str(START_MS + 100_000)
        with pytest.raises(UsageError, match="orders-1 has no record"):
            tasks(orders, startingTimestamp=late)
        found = offsets(orders, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest")
        assert found[0] == (0, 100)
        assert all(number == 0 for number, _ in found)

    def test_an_offset_that_is_not_there(self, orders: Path) -> None:
        beyond = '{"orders":{"0":401,"1":0}}'
        with pytest.raises(UsageError, match=r"starting offset 401 is not there: the log has 0 to 400"):
            tasks(orders, startingOffsets=beyond)
        assert len(offsets(orders, startingOffsets=beyond, failOnDataLoss="false")) == 40
        with pytest.raises(UsageError, match="ending offset 401"):
            tasks(orders, endingOffsets=beyond)

    def test_nothing_ends_at_the_earliest(self, orders: Path) -> None:
        with pytest.raises(UsageError, match="cannot be earliest"):
            tasks(orders, endingOffsets="earliest")

    def test_what_is_subscribed_has_to_be_there(self, orders: Path) -> None:
        with pytest.raises(UsageError, match="payments is not below"):
            tasks(orders, subscribe="orders,payments")
        with pytest.raises(UsageError, match="orders-5 is not below"):
            tasks(orders, assign='{"orders":[0,5]}')

    def test_the_log_start_offset_hides_what_is_below(self, orders: Path, tmp_path: Path) -> None:
        shutil.copytree(orders, tmp_path / "logs")
        (tmp_path / "logs" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 390\n", encoding="utf-8")
        assert offsets(tmp_path / "logs", assign='{"orders":[0]}')[0] == (0, 390)
        assert offsets(tmp_path / "logs", assign='{"orders":[0]}', logStartOffset="ignore")[0] == (0, 0)


class TestReplicas:
    """The same partition in several directories."""

    @pytest.fixture
    def cluster(self, tmp_path: Path) -> Path:
        partition(tmp_path / "a" / "orders-0", 30)
        partition(tmp_path / "b" / "orders-0", 50)
        return tmp_path

    def test_the_longest_is_taken(self, cluster: Path) -> None:
        assert len(offsets(cluster)) == 50

    def test_or_the_first_or_all(self, cluster: Path) -> None:
        assert len(offsets(cluster, replicas="first")) == 30
        assert len(offsets(cluster, replicas="all")) == 80

    def test_of_equal_ones_the_one_that_reaches_further_back(self, cluster: Path) -> None:
        partition(cluster / "0" / "orders-0", 50)
        (cluster / "0" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n", encoding="utf-8")
        assert len(offsets(cluster)) == 50

    def test_a_recreated_topic_is_refused_or_told(self, cluster: Path) -> None:
        topic_id(cluster / "a" / "orders-0", "AAAAAAAAAAAAAAAAAAAAAQ")
        assert len(offsets(cluster)) == 50, "a directory without an id may be of the same topic"
        topic_id(cluster / "b" / "orders-0", "BBBBBBBBBBBBBBBBBBBBBA")
        with pytest.raises(UsageError, match="orders was created again"):
            tasks(cluster)
        found = read(cluster, recreatedTopics="keep")
        assert found.schema.names[-1] == "topicId"
        assert sorted(found.column("topicId").value_counts().to_pylist(), key=str) == [
            {"values": "AAAAAAAAAAAAAAAAAAAAAQ", "counts": 30},
            {"values": "BBBBBBBBBBBBBBBBBBBBBA", "counts": 50},
        ]


def test_ten_thousand_segments_are_planned_in_seconds(tmp_path: Path) -> None:
    """A hundredth of a second for each ten segments, here in a hundred partitions."""
    template = partition(tmp_path / "template-0", 10)
    data = (template / f"{0:020d}.log").read_bytes()
    for number in range(100):
        directory = tmp_path / "logs" / f"many-{number}"
        directory.mkdir(parents=True)
        for base in range(0, 1000, 50):
            (directory / f"{base:020d}.log").write_bytes(data)
            (directory / f"{base:020d}.index").touch()
    start = time.process_time()
    planned = pieces(tmp_path / "logs")
    assert len(planned) == 2000
    assert time.process_time() - start < 5, "ten thousand may take ten seconds on a busy machine"
