"""Scans deliver what the reference delivers, of every authentic log and of random logs."""

from __future__ import annotations

import io
import itertools
import pickle
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.scans import assert_equal_reading, count_fallbacks, expected, scanned, segment_directory
from helpers.support import authentic, authentic_names
from helpers.walking import each_of

from proofs.fuzz.delivered_rows import COLUMNS
from proofs.fuzz.random_logs import random_log
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import OffsetOutOfRangeError, UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

CODECS = tuple(CompressionCodec)
START_MS = 1_700_000_000_000


def partitions(name: str) -> list[Path]:
    return sorted({path.parent for path in authentic(name).rglob("*.log")})


@each_of("name", authentic_names())
def test_every_authentic_log_reads_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fallbacks = count_fallbacks(monkeypatch)
    for path in partitions(name):
        assert_equal_reading(path)
    assert not fallbacks, "brokers write nothing that the engine would leave to the reference"


@each_of("name", [name for name in authentic_names() if "txn" in name])
def test_transactions_read_the_same(name: str) -> None:
    for path in partitions(name):
        assert_equal_reading(path, isolation="read_committed")


@each_of("seed", range(40))
def test_logs_by_chance_read_the_same(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    assert_equal_reading(directory, batch_rows=random.Random(seed).choice((1, 3, 100, 65_536)))  # noqa: S311
    assert_equal_reading(directory, isolation="read_committed")


def records(count: int, size: int = 40) -> list[Any]:
    dice = random.Random(count)  # noqa: S311
    headers = ((b"trace", dice.randbytes(16)), (b"", None), (b"a longer header key", b""))
    return [
        new_record(
            key=None if number % 7 == 0 else dice.randbytes(number % 20),
            value=None if number % 11 == 0 else b"ab" * dice.randrange(size),
            timestamp_ms=START_MS + number,
            headers=headers[: number % 4],
        )
        for number in range(count)
    ]


def batches_log(codec: CompressionCodec, batches: int = 5, count: int = 50) -> bytes:
    return b"".join(
        encode_batch(build_batch(records(count), base_offset=number * count, codec=codec)) for number in range(batches)
    )


@pytest.mark.parametrize("layout", ["view", "binary", "large_binary"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_and_layout_reads_the_same(
    codec: CompressionCodec, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallbacks = count_fallbacks(monkeypatch)
    directory = segment_directory(tmp_path / "codec-0", batches_log(codec))
    assert_equal_reading(directory, layout=layout, batch_rows=120)
    assert not fallbacks


@pytest.mark.parametrize("codec", CODECS)
def test_threads_keep_the_order(codec: CompressionCodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglog_format.columnar import scan

    monkeypatch.setattr(scan, "RANGE_SIZE", 5000)
    directory = segment_directory(tmp_path / "threads-0", batches_log(codec, batches=40))
    assert_equal_reading(directory, threads=3, batch_rows=100)
    log = directory / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    assert_equal_reading(directory, threads=2)


@pytest.mark.parametrize("seed", range(10))
def test_threads_read_logs_by_chance_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglog_format.columnar import scan

    monkeypatch.setattr(scan, "RANGE_SIZE", 300)
    log = random_log(seed)
    assert_equal_reading(segment_directory(tmp_path / "chance-0", log.data, log.base_offset), threads=2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("codec", CODECS)
def test_parts_make_the_whole(
    codec: CompressionCodec, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seglog_format.columnar import scan

    monkeypatch.setattr(scan, "RANGE_SIZE", 3000)
    data = batches_log(codec, batches=20)
    directory = segment_directory(tmp_path / "parts-0", data)
    with open_partition(directory) as partition:
        rows, _ = expected(partition)
        starts = list(partition.segments[0].entries.positions)
        edges = [*starts[::6], len(data)]
        found: list[Any] = []
        for start, end in itertools.pairwise(edges):
            some, error = scanned(partition, part=(0, start, end), threads=threads)
            assert not error
            found += some
        assert found == rows
        one, _ = scanned(partition, part=(0, starts[1], starts[1] + 1), threads=threads)
        assert one == rows[50:100], "an entry belongs to the part that it starts in"
        assert scanned(partition, part=(0, starts[3], starts[3])) == ([], "")
        assert scanned(partition, part=(0, starts[1], starts[3]), from_offset=70, to_offset=120)[0] == rows[70:120]
        for part in ((5, 0, 10), (-1, 0, 10), (0, 10, 5), (0, -1, 5)):
            with pytest.raises(UsageError):
                partition.scan(part=part)


def test_columns_are_those_asked_for(tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "columns-0", batches_log(CompressionCodec.LZ4))
    with open_partition(directory) as partition:
        whole = partition.scan(COLUMNS).read_all()
        for columns in (["offset"], ["value", "offset"], ["headers"], ["timestamp", "key"], []):
            table = partition.scan(columns).read_all()
            assert table.column_names == columns
            assert table.equals(whole.select(columns)) or not columns


def test_timestamps_are_filtered(tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "times-0", batches_log(CompressionCodec.NONE))
    with open_partition(directory) as partition:
        rows, _ = expected(partition)
        found, _ = scanned(partition, from_timestamp_ms=START_MS + 10, to_timestamp_ms=START_MS + 20)
        assert found == [row for row in rows if START_MS + 10 <= row[1] < START_MS + 20]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_travels_takes_its_own_bytes_only(codec: CompressionCodec, tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "narrow-0", batches_log(codec, batches=200))
    with open_partition(directory) as partition:
        every = ["value"], ["key"], ["offset", "key", "value"], ["headers"], ["offset", "key", "value", "headers"]
        for columns in every:
            batch = next(iter(partition.scan(columns, batch_rows=500)))
            parts = [batch.column(name) for name in columns if name in {"key", "value"}]
            parts += [part for name in columns if name == "headers" for part in batch.column(name).flatten().flatten()]
            values = [value for part in parts for value in part.to_pylist()]
            payload = sum(len(value or b"") + 16 for value in values) + 8 * len(batch)
            assert len(pickle.dumps(batch)) < 2 * payload + 20_000
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            assert sink.tell() < 2 * payload + 20_000


def test_batches_outlive_their_partition(tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "outlive-0", batches_log(CompressionCodec.SNAPPY, batches=30))
    with open_partition(directory) as partition:
        rows, _ = expected(partition)
        kept = list(partition.scan(["value"], batch_rows=50))
    assert [value for batch in kept for value in batch.column(0).to_pylist()] == [row[3] for row in rows]


def test_damage_ends_a_scan_or_is_told(tmp_path: Path) -> None:
    data = bytearray(batches_log(CompressionCodec.NONE))
    end_of_first = 12 + int.from_bytes(data[8:12])
    data[end_of_first + 100] ^= 1
    directory = segment_directory(tmp_path / "damage-0", bytes(data))
    with open_partition(directory) as partition:
        rows, error = scanned(partition)
        assert (rows, error) == expected(partition)
        assert "SEG-BAT-003" in error
        reported: list[str] = []
        kept, none = scanned(partition, on_corrupt=lambda problem: reported.append(str(problem)))
        assert (reported, none, len(kept)) == ([error], "", 200)
        assert kept[:50] == rows


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "sense-0", batches_log(CompressionCodec.NONE))
    with open_partition(directory) as partition:
        for options in (
            {"columns": ["what"]},
            {"columns": ["key", "key"]},
            {"layout": "x"},
            {"batch_rows": 0},
            {"threads": 0},
        ):
            with pytest.raises(UsageError):
                partition.scan(**options)  # type: ignore[arg-type]
        with pytest.raises(OffsetOutOfRangeError):
            partition.scan(from_offset=10_000)


def test_a_stream_is_taken_by_whoever_takes_streams(tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "stream-0", batches_log(CompressionCodec.ZSTD))
    with open_partition(directory) as partition:
        table = pa.table(partition.scan(layout="binary"))
        assert table.num_rows == 250
        assert pa.RecordBatchReader.from_stream(partition.scan()).read_all().num_rows == 250


def test_an_entry_larger_than_a_block_makes_a_block_of_its_own(tmp_path: Path) -> None:
    data = batches_log(CompressionCodec.GZIP, batches=3, count=500)
    directory = segment_directory(tmp_path / "large-0", data)
    assert_equal_reading(directory, batch_rows=7)
    with open_partition(directory) as partition:
        assert [len(batch) for batch in partition.scan(batch_rows=7)] == [500, 500, 500]


def test_more_decompressed_bytes_than_the_arena_holds(tmp_path: Path) -> None:
    values = [new_record(value=bytes([number]) * 3_000_000, timestamp_ms=START_MS) for number in range(4)]
    for codec in CODECS:
        data = encode_batch(build_batch(values, base_offset=0, codec=codec))
        assert_equal_reading(segment_directory(tmp_path / f"arena-{int(codec)}", data))


def test_the_limit_is_kept(tmp_path: Path) -> None:
    values = [new_record(value=bytes(300_000), timestamp_ms=START_MS)]
    for codec in CODECS[1:]:
        data = encode_batch(build_batch(values, base_offset=0, codec=codec))
        directory = segment_directory(tmp_path / f"limit-{int(codec)}", data)
        with open_partition(directory, limit=200_000) as partition:
            assert scanned(partition) == expected(partition)
            assert "SEG-COD-016" in scanned(partition)[1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[:4])
def test_messages_read_the_same(
    magic: int, codec: CompressionCodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallbacks = count_fallbacks(monkeypatch)
    made = [new_record(key=b"k%d" % number, value=b"v" * number, timestamp_ms=START_MS) for number in range(40)]
    data = b"".join(
        encode_batch(build_message_entry(made[: 40 if codec else 1], magic=magic, base_offset=at, codec=codec))
        for at in range(0, 400, 40)
    )
    assert_equal_reading(segment_directory(tmp_path / "messages-0", data), batch_rows=90)
    assert not fallbacks


def test_a_log_directory_is_scanned_partition_by_partition(tmp_path: Path) -> None:
    data = batches_log(CompressionCodec.LZ4)
    for name in ("orders-1", "orders-0", "users-0"):
        segment_directory(tmp_path / name, data)
    (directory,) = open_log_directory(tmp_path).directories
    table = directory.scan(["topic", "partition", "offset"]).read_all()
    partitions = [("orders", 0), ("orders", 1), ("users", 0)]
    wanted = [(topic, partition, offset) for topic, partition in partitions for offset in range(250)]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == wanted
    users = directory.scan(["value", "topic"], topics={"users"}, batch_rows=60).read_all()
    with open_partition(tmp_path / "users-0") as partition:
        assert users.column("value").equals(partition.scan(["value"]).read_all().column("value"))
    assert directory.scan(["partition"]).read_all().num_rows == 750


def test_nothing_of_the_engine_is_imported_before_a_scan() -> None:
    heavy = "{'numpy', 'numba', 'pyarrow'}"
    code = f"import sys, seglog_format.log.directory; print(sorted({heavy} & {{*sys.modules}}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


@pytest.mark.parametrize("seed", range(6))
def test_a_scan_starts_where_the_reference_starts(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    with open_partition(segment_directory(tmp_path / "start-0", log.data, log.base_offset)) as partition:
        rows, _ = expected(partition)
        span = range(partition.log_start_offset, partition.log_end_offset + 1)
        for offset in random.Random(seed).sample(span, min(len(span), 6)):  # noqa: S311
            found, _ = scanned(partition, from_offset=offset, to_offset=offset + 9, batch_rows=100)
            assert found == [row for row in rows if offset <= row[0] < offset + 9]


def test_a_scan_of_many_messages_walks_over_none_in_python(tmp_path: Path) -> None:
    data = b"".join(
        encode_batch(build_message_entry([new_record(value=b"v")], magic=1, base_offset=offset)) for offset in range(50)
    )
    with open_partition(segment_directory(tmp_path / "many-0", data)) as partition:
        assert partition.scan(["offset"], from_offset=40).read_all().num_rows == 10
        assert not partition.segments[0]._table.positions
