"""Logs behind addresses: an S3 server on 127.0.0.1, what is fetched of it, and what happens when it does not answer."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.bucket import BUCKET, Bucket, bucket_server
from helpers.exported import make_log
from helpers.spark_partitions import START_MS, partition
from helpers.spark_plans import pieces, read
from helpers.support import bundled

from proofs.spark.readers import ALL, rows
from seglog_format.errors import UsageError
from seglog_format.spark.damage import ReadError
from seglog_format.spark.filters import Narrowed
from seglog_format.spark.options import TABLES
from seglog_format.storage import object_store
from seglog_format.storage.object_store import Store, StoredFile, is_address
from seglog_format.storage.remote_storage import BLOCK_SIZE, RemoteStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyarrow.fs import S3FileSystem
    from pyspark.sql import SparkSession

LARGE_COUNT = 4000


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    yield from bucket_server()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a segment of 8 MB in batches of 16 KB, as busy producers fill them."""
    directory = tmp_path_factory.mktemp("large") / "orders-0"
    return partition(directory, LARGE_COUNT, value_size=2000, in_batch=8, segment_bytes=2**30, interval_bytes=4096)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what was read from a store since the test began."""
    sizes: list[int] = []
    plain = Store.read

    def read_and_note(store: Store, path: str, start: int, size: int) -> bytes:
        sizes.append(size)
        return plain(store, path, start, size)

    monkeypatch.setattr(Store, "read", read_and_note)
    return sizes


# -- the same rows ---------------------------------------------------------------------------------------------------


def test_offsets_that_a_stored_log_lacks_are_told(bucket: Bucket, tmp_path: Path) -> None:
    for base in (0, 10, 20):
        make_log(tmp_path / "t-0", range(base, base + 10))
    (tmp_path / "t-0" / f"{10:020}.log").unlink()
    (found,) = read(bucket.put(tmp_path / "t-0", "lacking/t-0"), table="leftout", **bucket.options).to_pylist()
    assert (found["kind"], found["topic"], found["offset"], found["nextOffset"]) == ("missing", "t", 10, 20)


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_that_of_the_files(bucket: Bucket, table: str) -> None:
    local = bundled("4.3.0/compact-txn")
    there = bucket.put(local, f"same-{table}")
    columns = ALL if table == "records" else None
    common = {"table": table}
    found = read(there, columns, **common, **bucket.options)
    wanted = read(local, columns, **common)
    assert found.num_rows or table == "leftout"  # nothing of this log is
    assert [_placed(row, there) for row in found.to_pylist()] == [
        _placed(row, str(local)) for row in wanted.to_pylist()
    ]


def _placed(row: dict[str, Any], root: str) -> dict[str, Any]:
    """Return a row without what depends on where its file is, and when that was written."""
    row.pop("lastModified", None)
    assert row["file"].startswith(f"{root}/")
    return {**row, "file": row["file"].removeprefix(root)}


def test_committed_records(bucket: Bucket) -> None:
    local = bundled("4.3.0/txn")
    there = bucket.put(local, "committed")
    found = read(there, isolationLevel="read_committed", **bucket.options)
    assert rows(found) == rows(read(local, isolationLevel="read_committed"))
    assert 0 < found.num_rows < read(local).num_rows


def test_spark_reads_an_address(bucket: Bucket, spark: SparkSession, large: Path) -> None:
    there = bucket.put(large.parent, "spark")
    frame = spark.read.format("seglog").options(**bucket.options).load(there)
    assert frame.count() == LARGE_COUNT
    files = spark.read.format("seglog").schema("file string").options(**bucket.options).load(there).distinct()
    assert [row.file for row in files.collect()] == [f"{there}/orders-0/{0:020}.log"]


# -- what is fetched -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("narrowed", "options"),
    [
        (Narrowed(from_offset=3210, to_offset=3211), {}),
        (Narrowed(), {"startingOffsets": '{"orders":{"0":3210}}', "endingOffsets": '{"orders":{"0":3211}}'}),
    ],
)
def test_one_record_takes_the_index_and_a_few_blocks(
    bucket: Bucket, large: Path, fetched: list[int], narrowed: Narrowed, options: dict[str, str]
) -> None:
    there = bucket.put(large.parent, "one")
    indexes = sum(path.stat().st_size for path in large.glob("*.*index"))
    found = rows(read(there, narrowed=narrowed, **options, **bucket.options))
    assert [row["offset"] for row in found if 3210 <= row["offset"] < 3211] == [3210]
    log = (large / f"{0:020}.log").stat().st_size
    assert sum(fetched) < indexes + 8 * BLOCK_SIZE < log / 4


def test_times_take_the_indexes_and_what_follows(bucket: Bucket, large: Path, fetched: list[int]) -> None:
    """Later records may have earlier times: they are all looked at."""
    there = bucket.put(large.parent, "times")
    narrowed = Narrowed(from_timestamp_ms=START_MS + 3_210_000, to_timestamp_ms=START_MS + 3_211_000)
    assert 3210 in {row["offset"] for row in rows(read(there, narrowed=narrowed, **bucket.options))}
    log = (large / f"{0:020}.log").stat().st_size
    assert sum(fetched) < log * (LARGE_COUNT - 3210) / LARGE_COUNT + 4 * BLOCK_SIZE


def test_times_of_records_that_come_in_order_take_the_indexes_and_a_few_blocks(
    bucket: Bucket, large: Path, fetched: list[int]
) -> None:
    there = bucket.put(large.parent, "in-order")
    indexes = sum(path.stat().st_size for path in large.glob("*.*index"))
    narrowed = Narrowed(from_timestamp_ms=START_MS + 1_210_000, to_timestamp_ms=START_MS + 1_211_000)
    found = rows(read(there, narrowed=narrowed, maxLateness="0", **bucket.options))
    assert [row["offset"] for row in found] == [1210, 1211]
    log = (large / f"{0:020}.log").stat().st_size
    assert sum(fetched) < indexes + 8 * BLOCK_SIZE < log / 4


def test_planning_a_whole_read_fetches_no_log(bucket: Bucket, large: Path, fetched: list[int]) -> None:
    there = bucket.put(large.parent, "plan")
    assert [piece.log for piece in pieces(there, **bucket.options)] == [f"{there}/orders-0/{0:020}.log"]
    assert sum(fetched) < BLOCK_SIZE


def test_pieces_fetch_their_own_part(bucket: Bucket, large: Path, fetched: list[int]) -> None:
    there = bucket.put(large.parent, "split")
    assert read(there, splitBytes="1m", **bucket.options).num_rows == LARGE_COUNT
    log = (large / f"{0:020}.log").stat().st_size
    assert len(pieces(there, splitBytes="1m", **bucket.options)) > 4
    assert sum(fetched) < 2 * log


class Counting:
    """A file system that notes what it is asked for."""

    def __init__(self, files: S3FileSystem) -> None:
        self.files = files
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self.files, name)


def test_a_file_is_asked_for_once(bucket: Bucket) -> None:
    bucket.write("once/orders-0/x", b"seglog")
    store = Store(f"s3://{BUCKET}/once", bucket.settings)
    counting = store._files = Counting(store._files)
    assert store.file("orders-0/x") == StoredFile("orders-0/x", 6)
    assert store.read("orders-0/x", 1, 3) + store.read("orders-0/x", 4, 2) == b"eglog"
    assert counting.asked == ["open_input_file"]
    with pytest.raises(UsageError, match=f"s3://{BUCKET}/once/orders-0/y"):
        store.file("orders-0/y")


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_damage_names_the_address(bucket: Bucket, tmp_path: Path) -> None:
    log = partition(tmp_path / "orders-0", 20) / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    there = bucket.put(tmp_path, "damaged")
    with pytest.raises(ReadError, match=rf"{there}/orders-0/{0:020}\.log.*SEG-BAT-003"):
        read(there, **bucket.options)
    (row, *_) = [
        row["_corrupt"]
        for row in read(there, ("offset", "_corrupt"), mode="permissive", **bucket.options).to_pylist()
        if row["_corrupt"]
    ]
    assert row["file"] == f"{there}/orders-0/{0:020}.log"


def test_offsets_that_are_not_there_name_the_address(bucket: Bucket, large: Path) -> None:
    there = bucket.put(large.parent, "beyond")
    with pytest.raises(UsageError, match=f"{there}/orders-0: starting offset 9000 is not there"):
        pieces(there, startingOffsets='{"orders":{"0":9000}}', **bucket.options)


def test_nothing_there(bucket: Bucket) -> None:
    with pytest.raises(UsageError, match=rf"s3a://{BUCKET}/none"):
        pieces(f"s3a://{BUCKET}/none", **bucket.options)


def test_a_file_that_became_shorter(bucket: Bucket, tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 20)
    store = Store(bucket.put(tmp_path, "shorter"), bucket.settings)
    storage = RemoteStorage(store, store.listed())
    bucket.write(f"shorter/orders-0/{0:020}.log", b"x")
    with (
        storage.open(storage.root / "orders-0" / f"{0:020}.log") as source,
        pytest.raises(UsageError, match="became shorter"),
    ):
        source.view(0, source.size)


def test_a_store_that_does_not_answer() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings = {"endpoint_override": f"127.0.0.1:{closed.getsockname()[1]}", "scheme": "http", "region": "x"}
        options = {f"storage.{name}": value for name, value in settings.items()}
        with pytest.raises(UsageError, match="s3://cold/logs"):
            pieces("s3://cold/logs", **options, **{"storage.access_key": "a", "storage.secret_key": "b"})


def test_a_scheme_that_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(object_store, "import_module", nothing)
    with pytest.raises(UsageError, match="pip install fsspec"):
        pieces("sftp://somewhere/logs")


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_hadoop_without_its_libraries_says_so_in_one_line(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLASSPATH", raising=False)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", "/nowhere")
    with pytest.raises(UsageError) as raised:
        pieces(f"{scheme}://name:8020/logs")
    assert "\n" not in str(raised.value)
    assert "load lib" in str(raised.value)
    assert "hadoop classpath --glob" in str(raised.value)


def test_a_setting_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match="colour"):
        pieces("s3://cold/logs", **{"storage.colour": "red"})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3a://bucket/logs", True),
        ("https://host/logs", True),
        ("file:///var/logs", False),
        ("/var/logs", False),
        ("logs:2", False),
        ("topic-0", False),
    ],
)
def test_addresses(path: str, expected: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert is_address(path) is expected
