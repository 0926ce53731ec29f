"""What tasks deliver, without Spark: every column, damage in every mode, transactions, tables."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.scans import segment_directory
from helpers.spark_partitions import START_MS, partition
from helpers.spark_plans import pieces, read
from helpers.support import authentic
from helpers.walking import each_of

from proofs.fuzz.random_logs import random_log
from proofs.spark.readers import ALL, REFERENCE, reference_rows, rows, rows_by_directory, struct_type
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.partition import open_partition
from seglog_format.spark.arrow import spark_headers, spark_timestamps
from seglog_format.spark.columns import CORRUPT, RECORDS, check_schema, projection
from seglog_format.spark.damage import ReadError
from seglog_format.spark.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAMAGE_SEEDS = range(60)
COUNT, IN_BATCH = 200, 10


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a partition of 200 records in batches of ten; read it, do not change it."""
    return partition(tmp_path_factory.mktemp("damage") / "orders-0", COUNT, in_batch=IN_BATCH, segment_bytes=8192)


# -- columns ---------------------------------------------------------------------------------------------------------


def test_default_columns_are_those_of_the_connector(orders: Path) -> None:
    table = read(orders)
    assert table.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert rows(table)[7] == {
        "key": b"k7",
        "value": b"7".ljust(100, b"."),
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "timestamp": START_MS + 7000,
        "timestampType": 0,
    }
    assert read(orders, includeHeaders="true").schema.names[-1] == "headers"


def test_every_column_in_any_order(tmp_path: Path) -> None:
    records = [
        new_record(key=b"key", value=b"one", timestamp_ms=5, headers=[(b"a", b"1"), ("é".encode(), None)]),
        new_record(value=None, timestamp_ms=7),
    ]
    batch = build_batch(records, base_offset=40, producer_id=9, producer_epoch=3, base_sequence=11)
    directory = segment_directory(tmp_path / "t-3", encode_batch(batch), 40)
    first, second = rows(read(directory, tuple(reversed(ALL))))
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "é", "value": None}]
    assert second["headers"] is None, "null as from the connector, not empty"
    assert (second["key"], second["value"]) == (None, None)
    assert [first[name] for name in ("producerId", "producerEpoch", "sequence", "batchOffset")] == [9, 3, 11, 40]
    assert (second["sequence"], second["position"], second["codec"]) == (12, 0, "none")
    assert first["file"] == str(directory / f"{40:020d}.log")
    assert first["isTransactional"] is False


def test_constant_columns_alone(orders: Path) -> None:
    assert rows(read(orders, ("topic", "file")))[-1]["topic"] == "orders"
    assert read(orders, ("partition",)).num_rows == COUNT


def test_messages_without_timestamps() -> None:
    directory = authentic("0.8.2.2/codec-snappy")
    found = read(directory, ("timestamp", "timestampType", "leaderEpoch"))
    assert found.column("timestamp").null_count == found.num_rows > 0
    assert set(found.column("timestampType").to_pylist()) == {-1}
    assert set(found.column("leaderEpoch").to_pylist()) == {None}


def test_header_keys_that_are_no_text() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    scanned = pa.array(
        [[], [{"key": b"\xff", "value": b"x"}, {"key": b"k", "value": None}]],
        pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    )
    assert spark_headers(scanned, kind).to_pylist() == [
        None,
        [{"key": "\N{REPLACEMENT CHARACTER}", "value": b"x"}, {"key": "k", "value": None}],
    ]


def test_times_too_far_away_for_spark_are_null() -> None:
    kind = pa.timestamp("us", "UTC")
    times = pa.array([1, 2**62, None, -(2**63), -5], pa.timestamp("ms", "UTC"))
    assert spark_timestamps(times, kind).cast(pa.int64()).to_pylist() == [1000, None, None, None, -5000]


# -- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("`offsets` bigint", "did you mean offset"),
        ("`offset` int", "offset is bigint, not int"),
        ("`value` string", "value is binary, not string: read it so and cast it"),
        ("`offset` bigint, `offset` bigint", "columns are repeated"),
    ],
)
def test_a_schema_that_is_no_choice_of_columns(schema: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_schema(struct_type(schema), parse_options({"path": "x"}))


def test_permissive_needs_its_column() -> None:
    options = parse_options({"path": "x", "mode": "permissive"})
    with pytest.raises(UsageError, match="add it to the schema"):
        check_schema(struct_type(projection("offset")), options)


def test_projection_helps() -> None:
    assert projection("offset", "timestamp") == "`offset` bigint, `timestamp` timestamp"
    with pytest.raises(UsageError, match="did you mean partition"):
        projection("partitions")
    with pytest.raises(UsageError, match="unknown table"):
        projection("offset", table="record")
    assert set(ALL) | {"topicId", CORRUPT} == set(RECORDS)


# -- the same as the reference ---------------------------------------------------------------------------------------


def outcome(found: Iterator[dict[str, Any]] | Any) -> Any:
    """Rows, or that there is damage."""
    try:
        return found()
    except (FormatError, ReadError) as error:
        return "damage" if isinstance(error, FormatError) or isinstance(error.__cause__, FormatError) else error


@each_of("seed", range(30))
def test_logs_by_chance_read_as_the_reference_reads_them(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    for isolation in ("read_uncommitted", "read_committed"):
        expected = outcome(lambda: reference_rows(directory, isolation=isolation))  # noqa: B023 - called at once
        found = outcome(lambda: rows_by_directory(read(directory, REFERENCE, isolationLevel=isolation)))  # noqa: B023
        assert found == expected


def test_transactions_are_left_out_as_the_reference_does() -> None:
    path = authentic("4.3.0/txn")
    expected = reference_rows(path, isolation="read_committed")
    assert rows_by_directory(read(path, REFERENCE, isolationLevel="read_committed")) == expected
    assert len(expected) < read(path).num_rows


# -- damage ----------------------------------------------------------------------------------------------------------


def entries(directory: Path) -> list[tuple[Path, int, int, int]]:
    """Log, position, end and base offset of each batch."""
    with open_partition(directory) as opened:
        return [
            (segment.paths.log, frame.position, frame.end, frame.header.base_offset or 0)
            for segment in opened.segments
            for frame in segment.frames()
        ]


@pytest.mark.parametrize("seed", DAMAGE_SEEDS)
def test_one_damaged_byte(seed: int, orders: Path, tmp_path: Path) -> None:
    """Offsets stand under no checksum and are left out here; so does the leader epoch, which no reader minds."""
    dice = random.Random(seed)  # noqa: S311
    directory = tmp_path / "orders-0"
    shutil.copytree(orders, directory)
    found = entries(directory)
    log, start, end, base = dice.choice(found)
    at = dice.randrange(start + 8, end)
    data = bytearray(log.read_bytes())
    data[at] ^= dice.randrange(1, 256)
    log.write_bytes(data)
    is_harmless = start + 12 <= at < start + 16
    is_torn = at < start + 12 and (log, start) == found[-1][:2]
    lost = [] if is_harmless else list(range(base, base + IN_BATCH))
    intact = [offset for offset in range(COUNT) if offset not in lost]
    split = {"splitBytes": dice.choice(["1500", "1g"])}

    assert [row["offset"] for row in rows(read(directory, ("offset",), mode="dropcorrupt", **split))] == intact
    reported = rows(read(directory, ("offset", CORRUPT, "value"), mode="permissive", **split))
    assert [row["offset"] for row in reported if row[CORRUPT] is None] == intact
    marks = [row[CORRUPT] for row in reported if row[CORRUPT] is not None]
    if is_harmless or is_torn:
        return
    assert marks[0]["file"] == str(log)
    assert start <= marks[0]["position"] < end
    with pytest.raises(ReadError) as raised:
        read(directory, ("offset", "value"), **split)
    assert str(log) in str(raised.value)
    assert marks[0]["requirement"] in str(raised.value) or "SEG-" in str(raised.value)
    assert "dropcorrupt" in str(raised.value)


def test_an_end_that_was_cut_short_is_the_end_of_the_log_and_elsewhere_damage(orders: Path, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    shutil.copytree(orders, directory)
    logs = sorted(directory.glob("*.log"))
    logs[-1].write_bytes(logs[-1].read_bytes()[:-5])
    assert read(directory, ("offset",)).num_rows == COUNT - IN_BATCH
    assert read(directory, ("offset", CORRUPT), mode="permissive").num_rows == COUNT - IN_BATCH
    logs[0].write_bytes(logs[0].read_bytes()[:-5])
    with pytest.raises(ReadError, match="cut short, though other segments follow"):
        read(directory, ("offset",))
    assert read(directory, ("offset",), mode="dropcorrupt").num_rows == COUNT - 2 * IN_BATCH


def test_damage_behind_which_transactions_are_undecided(tmp_path: Path) -> None:
    directory = tmp_path / "txn-0"
    shutil.copytree(next(path for path in authentic("4.3.0/txn").rglob("txn-0")), directory)
    log = next(directory.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    with pytest.raises(ReadError):
        read(directory, isolationLevel="read_committed")
    assert read(directory, isolationLevel="read_committed", mode="dropcorrupt").num_rows > 0


# -- tables ----------------------------------------------------------------------------------------------------------


def test_batches(orders: Path) -> None:
    found = read(orders, table="batches", splitBytes="2000").to_pylist()
    assert [(row["file"], row["position"], row["size"], row["baseOffset"]) for row in found] == [
        (str(log), start, end - start, base) for log, start, end, base in entries(orders)
    ]
    assert {row["crcIsValid"] for row in found} == {True}
    assert {row["recordsCount"] for row in found} == {IN_BATCH}
    assert {row["codec"] for row in found} == {"none"}
    assert found[-1]["maxTimestamp"] == START_MS + 1000 * (COUNT - 1)


def test_batches_of_every_format_are_those_of_the_reference() -> None:
    for name in ("0.10.2.2/codec-gzip", "1.1.1/mixed-segs", "4.3.0/txn"):
        path = authentic(name)
        expected = sum(len(entries(log.parent)) for log in path.rglob("*0000.log"))
        assert read(path, table="batches").num_rows == expected, name


def test_a_wrong_checksum_is_a_row_and_a_wrong_size_an_error(orders: Path, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    shutil.copytree(orders, directory)
    log, start, _, _ = entries(directory)[1]
    data = bytearray(log.read_bytes())
    data[start + 70] ^= 1
    log.write_bytes(data)
    found = read(directory, table="batches").column("crcIsValid").to_pylist()
    assert found.count(False) == 1
    assert len(found) == COUNT // IN_BATCH
    data[start + 8] ^= 0x40
    log.write_bytes(data)
    with pytest.raises(ReadError):
        read(directory, table="batches")
    assert read(directory, table="batches", mode="dropcorrupt").num_rows == COUNT // IN_BATCH - 1


def test_segments(orders: Path) -> None:
    found = read(orders, table="segments").to_pylist()
    assert [row["baseOffset"] for row in found[1:]] == [row["nextBaseOffset"] for row in found[:-1]]
    assert sum(row["size"] for row in found) == sum(log.stat().st_size for log in orders.glob("*.log"))
    assert all(row["offsetIndexSize"] is not None for row in found)


def test_findings() -> None:
    found = read(authentic("4.3.0/crash-flip"), table="findings", replicas="all").to_pylist()
    assert any(row["severity"] == "error" for row in found)
    assert all(row["requirement"].startswith("SEG-") for row in found)


def test_columns_of_a_table(orders: Path) -> None:
    found = read(orders, ("baseOffset", "crcIsValid"), table="batches")
    assert found.schema.names == ["baseOffset", "crcIsValid"]
    assert len(pieces(orders, table="batches")) > 1
