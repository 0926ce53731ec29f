"""Staging and committing, without Spark: rows come out once, and segments are as brokers write them."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.spark_partitions import partition
from helpers.support import authentic
from helpers.walking import each_of

from proofs.spark.readers import read, rows, struct_type
from seglog_format import verify
from seglog_format.errors import UsageError
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.log.partition import open_partition
from seglog_format.model import GREATEST_OFFSET, CompressionCodec
from seglog_format.spark import finish_commits, staging
from seglog_format.spark.source_parts import WriteOptions, check_written_schema, parse_write_options
from seglog_format.spark.staging import MANIFEST, STAGING, Stager, abort, commit
from seglog_format.storage.files import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.spark.staging import Staged

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(topic: str, number: int, values: range, **more: Any) -> pa.RecordBatch:
    columns = {
        "key": pa.array([f"k{value}".encode() if value % 3 else None for value in values], pa.binary()),
        "value": pa.array([str(value).encode() if value % 7 else None for value in values], pa.binary()),
        "topic": pa.array([topic] * len(values)),
        "partition": pa.array([number] * len(values), pa.int32()),
        "timestamp": pa.array([START + timedelta(seconds=value) for value in values], pa.timestamp("us", "UTC")),
        "headers": pa.array(
            [[{"key": "h", "value": b"x"}, {"key": "n", "value": None}] if value % 2 else None for value in values],
            HEADERS,
        ),
    }
    return pa.RecordBatch.from_pydict({**columns, **more})


def staged(root: Path, job: str, task: str, *batches: pa.RecordBatch, **options: Any) -> tuple[Staged, ...]:
    stager = Stager(root / STAGING / job / f"task_{task}", WriteOptions(root, **options))
    for each in batches:
        stager.add(each)
    return stager.finish()


def committed(root: Path, job: str, *files: tuple[Staged, ...], keeps_offsets: bool = False) -> None:
    flat = [each for task in files for each in task]
    commit(root, job, flat, keeps_offsets=keeps_offsets, interval_bytes=200)


def problems(root: Path) -> list[str]:
    return [str(finding.message) for finding in verify(root) if finding.severity.value != "note"]


def values(root: Path, **options: str) -> list[tuple[int, int, bytes | None]]:
    return [(row["partition"], row["offset"], row["value"]) for row in rows(read(root, **options))]


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_rows_come_back_and_nothing_is_found_wrong(codec: CompressionCodec, tmp_path: Path) -> None:
    files = staged(
        tmp_path, "j", "0", batch("orders", 0, range(200)), batch("orders", 1, range(5)), codec=codec, batch_size=300
    )
    committed(tmp_path, "j", files)
    found = rows(read(tmp_path, includeHeaders="true"))
    assert len(found) == 205
    assert found[1]["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert (found[3]["key"], found[7]["value"], found[2]["headers"]) == (None, None, None)
    assert found[9]["timestamp"] == round((START + timedelta(seconds=9)).timestamp() * 1000)
    assert problems(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("_")] == []


def test_writes_are_appended_and_rolled(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 30)
    for job in ("a", "b"):
        first = staged(tmp_path, job, "0", batch("orders", 0, range(100)), segment_size=1000, batch_size=300)
        second = staged(tmp_path, job, "1", batch("orders", 0, range(100, 120)), batch("new", 3, range(2)))
        committed(tmp_path, job, first, second)
    found = values(tmp_path, subscribe="orders")
    assert [offset for _, offset, _ in found] == list(range(270))
    assert [value for _, _, value in found[30:40]] == [str(n).encode() if n % 7 else None for n in range(10)]
    with open_partition(tmp_path / "orders-0") as opened:
        assert len(opened.segments) > 6
        assert opened.segments[-1].offset_index is not None
    assert len(values(tmp_path, subscribe="new")) == 4
    assert problems(tmp_path) == []


@each_of("seed", range(24))
def test_rows_of_many_partitions_in_any_order_come_back(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of up to 50 partitions are interleaved; sizes lie on both sides of the limits of a batch and a segment."""
    dice = random.Random(seed)  # noqa: S311
    monkeypatch.setattr(staging, "BUFFER_SIZE", dice.choice([1, 5000, staging.BUFFER_SIZE]))
    has_offsets = seed % 3 == 0
    topics = ["a", "b", "c"][: dice.randrange(1, 4)]
    names = [(dice.choice(topics), dice.randrange(50)) for _ in range(dice.choice([1, 2, 7, 50]))]
    batch_size, segment_size = dice.choice([(400, 1500), (400, 2**20), (3000, 3000), (2**16, 2**17), (2**16, 2**30)])
    wanted: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
    tasks: list[list[tuple[str, int, int, bytes]]] = [[] for _ in range(dice.randrange(1, 5))]
    for number in range(dice.randrange(50, 600)):
        topic, partition_number = names[min(int(dice.expovariate(0.2)), len(names) - 1)]
        task = tasks[hash_of(topic, partition_number) % len(tasks) if has_offsets else dice.randrange(len(tasks))]
        value = b"%d " % number + bytes(dice.choice([0, 0, batch_size // 9, batch_size - 30, batch_size + 1]))
        task.append((topic, partition_number, 3 * number, value))
    for topic, partition_number, offset, value in itertools.chain(*tasks):
        rows_ = wanted.setdefault((topic, partition_number), [])
        rows_.append((offset if has_offsets else len(rows_), value))
    sizes = {"batch_size": batch_size, "segment_size": segment_size}
    files = [
        staged(tmp_path, "j", str(n), *arrow_rows(each, dice, has_offsets), **sizes) for n, each in enumerate(tasks)
    ]
    committed(tmp_path, "j", *files, keeps_offsets=has_offsets)
    found: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
    for row in rows(read(tmp_path)):
        found.setdefault((row["topic"], row["partition"]), []).append((row["offset"], row["value"]))
    assert found == wanted
    assert has_offsets or problems(tmp_path) == []
    assert not (tmp_path / STAGING).exists()


def hash_of(topic: str, number: int) -> int:
    return ord(topic) + number


def arrow_rows(
    task: list[tuple[str, int, int, bytes]], dice: random.Random, has_offsets: bool  # noqa: FBT001
) -> list[pa.RecordBatch]:  # fmt: skip
    """Return the rows of a task, in Arrow batches of any size."""
    made, start = [], 0
    while start < len(task):
        part = task[start : start + dice.randrange(1, 200)]
        topic, number, offset, value = zip(*part, strict=True)
        columns = {"topic": topic, "partition": pa.array(number, pa.int32()), "value": pa.array(value, pa.binary())}
        made.append(pa.RecordBatch.from_pydict({**columns, **({"offset": offset} if has_offsets else {})}))
        start += len(part)
    return made


def test_one_task_writes_more_partitions_than_a_process_may_have_open_files(tmp_path: Path) -> None:
    """And each of them has more than one batch."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    each = [(number, b"x" * 300) for _ in range(3) for number in range(400)]
    made = pa.RecordBatch.from_pydict(
        {"partition": pa.array([number for number, _ in each], pa.int32()), "value": [value for _, value in each]}
    )
    already_open = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - by the tests that this process ran before
    resource.setrlimit(resource.RLIMIT_NOFILE, (already_open + 100, limits[1]))
    try:
        files = staged(tmp_path, "j", "0", made, topic="orders", batch_size=200)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(files) == 400


def test_only_the_attempts_that_spark_names_appear(tmp_path: Path) -> None:
    kept = staged(tmp_path, "j", "0_1", batch("orders", 0, range(10)))
    staged(tmp_path, "j", "0_2", batch("orders", 0, range(10)))  # a second attempt of the same task
    staged(tmp_path, "other", "0_1", batch("orders", 0, range(5)))  # a job that is still running
    committed(tmp_path, "j", kept)
    assert len(values(tmp_path)) == 10
    assert (tmp_path / STAGING / "other").is_dir()
    assert not (tmp_path / STAGING / "j").exists()
    abort(tmp_path, "other")
    assert not (tmp_path / STAGING).exists()


@each_of("micros", [-5_000_000, -1_000, -1])
def test_a_time_before_1970_is_refused(micros: int, tmp_path: Path) -> None:
    """Milliseconds round down, so a microsecond before 1970 would be -1, which means that there is no time."""
    old = batch("orders", 0, range(2), timestamp=pa.array([None, micros], pa.timestamp("us", "UTC")))
    shown = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    with pytest.raises(UsageError) as found:
        staged(tmp_path, "old", "0", old)
    assert str(found.value).startswith(f"seglog: a row has the time {shown}: the writer takes times from 1970 on")
    assert not list(tmp_path.rglob("*.log"))


def test_times_are_rounded_down_and_a_missing_one_is_none_or_now(tmp_path: Path) -> None:
    micro = pa.array([1_999, None, 2_000], pa.timestamp("us", "UTC"))
    kept = batch("orders", 0, range(3), timestamp=micro, offset=pa.array([0, 1, 2], pa.int64()))
    committed(tmp_path, "j", staged(tmp_path, "j", "0", kept), keeps_offsets=True)
    committed(tmp_path, "k", staged(tmp_path, "k", "0", batch("new", 0, range(3), timestamp=micro)))
    found = [row["timestamp"] for row in rows(read(tmp_path, subscribe="orders"))]
    assert (found[0], found[2]) == (1, 2)
    with open_partition(tmp_path / "orders-0") as opened:
        assert [record.timestamp_ms for record in opened.records()] == [1, -1, 2]
    with open_partition(tmp_path / "new-0") as opened:
        assert [record.timestamp_ms > 1_700_000_000_000 for record in opened.records()] == [False, True, False]


def test_offsets_that_rows_bring_are_kept(tmp_path: Path) -> None:
    def with_offsets(offsets: list[int]) -> pa.RecordBatch:
        return batch("orders", 0, range(len(offsets)), offset=pa.array(offsets, pa.int64()))

    later = staged(tmp_path, "j", "1", with_offsets([700, 5_000_000_000, 5_000_000_001]))
    earlier = staged(tmp_path, "j", "0", with_offsets([7, 8, 12]))
    committed(tmp_path, "j", later, earlier, keeps_offsets=True)
    assert [offset for _, offset, _ in values(tmp_path)] == [7, 8, 12, 700, 5_000_000_000, 5_000_000_001]
    assert problems(tmp_path) == []
    again = staged(tmp_path, "k", "0", with_offsets([9]))
    with pytest.raises(UsageError, match="has offsets up to 5000000001, and rows bring 9 again"):
        committed(tmp_path, "k", again, keeps_offsets=True)
    with pytest.raises(UsageError, match="offset 5 comes after 6"):
        staged(tmp_path, "k", "1", with_offsets([6, 5]))


@pytest.mark.req("SEG-LOG-013")
def test_rows_do_not_get_the_last_offset_of_all(tmp_path: Path) -> None:
    def kept(job: str, *offsets: int) -> None:
        rows = batch("orders", 0, range(len(offsets)), offset=pa.array(offsets, pa.int64()))
        committed(tmp_path, job, staged(tmp_path, job, "0", rows), keeps_offsets=True)

    with pytest.raises(UsageError, match="SEG-LOG-013"):
        kept("a", GREATEST_OFFSET, GREATEST_OFFSET + 1)
    kept("b", GREATEST_OFFSET - 1)
    with pytest.raises(UsageError, match="SEG-LOG-013"):
        committed(tmp_path, "c", staged(tmp_path, "c", "0", batch("orders", 0, range(2))))
    with open_partition(tmp_path / "orders-0") as partition:
        assert [record.offset for record in partition.records()] == [GREATEST_OFFSET - 1]


def test_a_driver_that_dies_anywhere_leaves_what_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-th change of the directory fails; the next write finishes what was begun, or finds nothing begun."""
    outcomes = set()
    for n in range(1, 60):
        root = tmp_path / str(n)
        partition(root / "orders-0", 10)
        files = [staged(root, "j", str(task), batch("orders", task % 2, range(20))) for task in range(3)]
        steps = itertools.count(1)

        class Dying(LocalFiles):
            def fsync_directory(self, path: Path, steps: Any = steps, n: int = n) -> None:
                if next(steps) == n:
                    raise OSError(path)

        with monkeypatch.context() as patch:
            patch.setattr(staging, "LOCAL_FILES", Dying())
            try:
                committed(root, "j", *files)
                died = False
            except OSError:
                died = True
        has_manifest = any(root.glob(f"{MANIFEST}*.json"))
        finished = finish_commits(root)
        assert finished == has_manifest
        count = len(values(root))
        outcomes.add((died, count))
        assert count in {10, 70}
        assert count == 70 or not has_manifest
        assert finish_commits(root) == 0
        assert problems(root) == []
        if not died:
            break
    assert {(True, 70), (False, 70)} <= outcomes


def test_the_next_write_finishes_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = staged(tmp_path, "j", "0", batch("orders", 0, range(20)))
    with monkeypatch.context() as patch:
        patch.setattr(staging, "_apply", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            committed(tmp_path, "j", files)
    committed(tmp_path, "k", staged(tmp_path, "k", "0", batch("orders", 0, range(5))))
    assert [offset for _, offset, _ in values(tmp_path)] == list(range(25))


def test_files_of_a_driver_that_died_before_its_commit_are_told_and_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka takes no other directories beside its partitions."""
    lost = staged(tmp_path, "lost", "0", batch("orders", 0, range(5)))
    assert not caplog.messages
    committed(tmp_path, "j", staged(tmp_path, "j", "0", batch("orders", 0, range(20))))
    assert "finish_commits removes them" in caplog.text
    assert any("SEG-LDR-001" in each.requirement for each in verify(tmp_path))
    assert finish_commits(tmp_path) == 0
    assert not list(tmp_path.glob("_*"))
    with pytest.raises(UsageError, match=r"batches is gone: finish_commits"):
        committed(tmp_path, "lost", lost)
    assert (len(values(tmp_path)), problems(tmp_path)) == (20, [])


def test_an_attempt_that_outlives_the_commit_leaves_nothing(tmp_path: Path) -> None:
    slow = Stager(tmp_path / STAGING / "j" / "task_0_1", WriteOptions(tmp_path))
    slow.add(batch("orders", 0, range(20)))
    committed(tmp_path, "j", staged(tmp_path, "j", "0_2", batch("orders", 0, range(20))))
    with pytest.raises(FileNotFoundError):
        slow.finish()
    assert not list(tmp_path.glob("_*"))


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    files = staged(tmp_path, "j", "0", batch("orders", 0, range(20)))
    lock = DirectoryLock(tmp_path)
    with pytest.raises(UsageError, match="is in use"):
        committed(tmp_path, "j", files)
    lock.close()
    assert not (tmp_path / "orders-0").exists()


def test_batches_continue_in_the_leader_epoch_that_the_partition_has(tmp_path: Path) -> None:
    shutil.copytree(next(path for path in authentic("4.3.0/segs").rglob("segs-0")), tmp_path / "segs-0")
    (tmp_path / "segs-0" / "leader-epoch-checkpoint").write_text("0\n1\n6 0\n", encoding="utf-8")
    committed(tmp_path, "j", staged(tmp_path, "j", "0", batch("segs", 0, range(3))))
    assert read(tmp_path, ("leaderEpoch",)).column(0).to_pylist()[-3:] == [6, 6, 6]
    assert read(tmp_path).num_rows > 3, "the checksums are still right"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "x", "compression": "zstd"}, "unknown option"),
        ({"path": "x", "codec": "zstandard"}, "did you mean zstd"),
        ({"path": "x", "topic": "no/topic"}, "no name of a topic"),
        ({"path": "x", "segmentBytes": "big"}, "a number of bytes"),
        ({}, "no path"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_write_options(options)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("`value` binary", "the option topic"),
        ("`topic` string", "column value"),
        ("`value` int, `topic` string", "binary or string, not int: cast it"),
        ("`values` binary", "did you mean value"),
    ],
)
def test_columns_that_cannot_be_written(schema: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        check_written_schema(struct_type(schema), WriteOptions(tmp_path))


def test_text_is_written_and_a_topic_by_option(tmp_path: Path) -> None:
    made = pa.RecordBatch.from_pydict({"value": ["é", None], "key": ["k", None]})
    committed(tmp_path, "j", staged(tmp_path, "j", "0", made, topic="words", partitions=1))
    assert [(row["topic"], row["partition"], row["value"]) for row in rows(read(tmp_path))] == [
        ("words", 0, "é".encode()),
        ("words", 0, None),
    ]
