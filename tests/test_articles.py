"""What the widely copied articles say of the life of a log, as far as it holds: sizes, times, index, several writers.

What they say that does not hold is in `test_disagreements`.
"""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from helpers.appends import Clock, base_offsets, contents, open_writer, produced
from helpers.batches import batch, record
from helpers.support import FIXTURES

from seglog_format import Environment, LogConfig, PartitionWriter, open_log_directory, open_partition, verify, walk
from seglog_format.state.config import topic_settings
from seglog_format.writing.append import ActiveState, Incoming, RollReason, roll_reason

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("no_fsync")


MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
MEGABYTE: Final = 1 << 20
GIGABYTE: Final = 1 << 30


def sized(size: int) -> bytes:
    """Return a batch of so many bytes."""
    empty = len(batch(record(value=b"")))
    padding = b"v" * (size - empty - 2)  # both lengths in it take one byte more
    data = batch(record(value=padding), partition_leader_epoch=-1, base_timestamp_ms=1000, max_timestamp_ms=1000)
    return data if len(data) == size else sized_in_full(size, len(data) - size, padding)


def sized_in_full(size: int, excess: int, padding: bytes) -> bytes:
    shorter = padding[: len(padding) - excess]
    data = batch(record(value=shorter), partition_leader_epoch=-1, base_timestamp_ms=1000, max_timestamp_ms=1000)
    assert len(data) == size
    return data


# The sparse index


@pytest.mark.req("SEG-ROL-010")
@pytest.mark.parametrize(("size", "entries"), [(1024, [(5, 5120)]), (1025, [(4, 4100)])])
def test_the_sparse_index_has_an_entry_for_more_than_4096_bytes(
    size: int, entries: list[tuple[int, int]], tmp_path: Path
) -> None:
    """Four batches of 1,024 bytes are 4,096 bytes, which is not more; four of 1,025 are."""
    with open_writer(tmp_path) as writer:
        assert writer.config.index_interval_bytes == 4096
        for _ in range(6):
            writer.append(sized(size))
    with open_partition(tmp_path / "topic-0") as log:
        index = log.segments[0].offset_index
        assert index is not None
        assert [(entry.offset, entry.position) for entry in index.entries] == entries


# Segments of 500 MB and of 1 GB


@pytest.mark.req("SEG-ROL-002")
@pytest.mark.parametrize("limit", [500 * MEGABYTE, 500_000_000, GIGABYTE])
def test_a_segment_of_500_mb_or_1_gb_is_full_when_the_next_batch_does_not_fit(limit: int) -> None:
    config = LogConfig.from_properties(topic_settings({"log.segment.bytes": str(limit)}))
    for size, expected in ((999, None), (1000, None), (1001, RollReason.SIZE)):
        state = ActiveState(0, limit - 1000, first_timestamp_ms=0, created_ms=0)
        assert roll_reason(state, Incoming(size, 0, 7, 7), config, now_ms=0) is expected


def test_1_gb_is_the_default() -> None:
    assert LogConfig().segment_bytes == GIGABYTE


@pytest.mark.req("SEG-ROL-002", "SEG-ROL-013", "SEG-ROL-014")
@pytest.mark.parametrize("limit", [500 * MEGABYTE, GIGABYTE])
def test_a_preallocated_segment_of_500_mb_or_1_gb_is_cut_to_what_is_in_it(limit: int, tmp_path: Path) -> None:
    """The file is a hole: it has its size and takes no room."""
    log = tmp_path / "topic-0" / f"{0:020d}.log"
    with open_writer(tmp_path, segment_bytes=limit, preallocate=True) as writer:
        writer.append(sized(1000))
        assert log.stat().st_size == limit
        assert log.stat().st_blocks * 512 < MEGABYTE
        writer.roll()
        assert log.stat().st_size == 1000


@pytest.mark.req("SEG-ROL-002")
@pytest.mark.parametrize("limit", [500_000, 1 << 20])
def test_segments_are_as_large_as_they_may_be_and_no_larger(limit: int, tmp_path: Path) -> None:
    """The same a thousand times smaller, with real bytes."""
    sizes = [1000 + 7 * number % 5000 for number in range(900)]
    with open_writer(tmp_path, segment_bytes=limit) as writer:
        for size in sizes:
            writer.append(sized(size))
    found = list(contents(tmp_path / "topic-0", ".log").values())
    assert sum(map(len, found)) == sum(sizes)
    assert len(found) > 1
    for data, following in pairwise(found):
        first = next(iter(walk(following)))
        assert len(data) <= limit < len(data) + first.header.size_in_bytes


# Retention


def hourly(path: Path, clock: Clock, count: int, **settings: str) -> PartitionWriter:
    """Return a log with a segment for each hour, which is as old as it says; settings are a broker's."""
    size = str(len(produced()))
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = LogConfig.from_properties(topic_settings({"log.segment.bytes": size, **named}))
    writer = PartitionWriter(path / "topic-0", config, environment=Environment(clock=clock))
    for _ in range(count):
        clock.now_ms += HOUR_MS
        writer.append(produced(clock.now_ms))
    return writer


@pytest.mark.req("SEG-RET-003", "SEG-RET-013")
@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, 10),
        ({"log_retention_hours": "6"}, 6),
        ({"log_retention_hours": "6", "log_retention_minutes": "240"}, 4),
        ({"log_retention_hours": "6", "log_retention_minutes": "240", "log_retention_ms": "7200000"}, 2),
        ({"log_retention_ms": "-1"}, 10),
    ],
)
def test_retention_by_hours_minutes_and_milliseconds(settings: dict[str, str], kept: int, tmp_path: Path) -> None:
    clock = Clock(0)
    with hourly(tmp_path, clock, 10, **settings) as writer:
        clock.now_ms += HOUR_MS // 2
        writer.apply_retention()
        assert base_offsets(tmp_path) == list(range(10 - kept, 10))


@pytest.mark.req("SEG-RET-005")
@pytest.mark.parametrize("kept", [1, 3, 9])
def test_retention_by_bytes(kept: int, tmp_path: Path) -> None:
    with hourly(tmp_path, Clock(0), 10, log_retention_bytes=str(kept * len(produced()))) as writer:
        writer.apply_retention()
        assert base_offsets(tmp_path) == list(range(10 - kept, 10))


@pytest.mark.req("SEG-RET-001")
def test_the_oldest_segments_go_first_and_only_whole_ones(tmp_path: Path) -> None:
    clock = Clock(0)
    with hourly(tmp_path, clock, 6, log_retention_hours="3") as writer:
        for _ in range(3):
            before = base_offsets(tmp_path)
            gone = [segment.base_offset for segment in writer.apply_retention().removed]
            assert gone == before[: len(gone)]
            assert base_offsets(tmp_path) == before[len(gone) :]
            clock.now_ms += HOUR_MS


@pytest.mark.req("SEG-RET-001", "SEG-RET-003")
def test_a_young_record_in_an_old_segment_keeps_what_follows(tmp_path: Path) -> None:
    clock = Clock(10 * HOUR_MS)
    size = len(produced())
    with open_writer(tmp_path, clock, segment_bytes=size, retention_ms=HOUR_MS) as writer:
        for age in (5, 0, 5, 5):
            writer.append(produced(clock.now_ms - age * HOUR_MS))
        writer.apply_retention()
    assert base_offsets(tmp_path) == [1, 2, 3]


@pytest.mark.req("SEG-RET-006")
def test_the_active_segment_stays_unless_all_have_expired(tmp_path: Path) -> None:
    clock = Clock(0)
    with hourly(tmp_path, clock, 4, log_retention_hours="1") as writer:
        writer.apply_retention()
        assert base_offsets(tmp_path) == [2, 3]
        clock.now_ms += HOUR_MS
        writer.apply_retention()
        assert base_offsets(tmp_path) == [3]
        clock.now_ms += 1
        assert writer.apply_retention().rolls_first
        assert base_offsets(tmp_path) == [4]
        clock.now_ms += 1000 * HOUR_MS
        writer.apply_retention()
        assert base_offsets(tmp_path) == [4], "an empty one stays"
        assert writer.append(produced(clock.now_ms)).first_offset == 4


# Flushes and responses


@pytest.mark.req("SEG-FLS-001")
def test_nothing_is_flushed_after_three_seconds_or_ever_by_default(tmp_path: Path) -> None:
    clock = Clock(0)
    with open_writer(tmp_path, clock) as writer:
        for _ in range(20):
            writer.append(produced(clock.now_ms))
            clock.now_ms += 3000
            writer.flush_if_due()
        assert writer.recovery_point == 0


@pytest.mark.req("SEG-LKP-006")
def test_a_response_is_as_large_without_an_index(tmp_path: Path) -> None:
    with open_writer(tmp_path, index_interval_bytes=100) as writer:
        for _ in range(40):
            writer.append(produced())
    directory = tmp_path / "topic-0"

    def sizes() -> list[int]:
        with open_partition(directory) as log:
            return [len(log.read(offset, limit).batches) for offset in (0, 7, 30) for limit in (0, 100, 1000, 10_000)]

    with_index = sizes()
    (directory / f"{0:020d}.index").unlink()
    assert sizes() == with_index
    assert len(set(with_index)) > 3


@pytest.mark.parametrize("release", ["0.8.1.1", "0.9.0.1"])
def test_an_old_broker_ends_a_response_by_the_index(release: str) -> None:
    """Each response ends below an offset that the index names, at the position that the index gives for it."""
    witness = json.loads((FIXTURES / "witnesses" / "response_bounds.json").read_text(encoding="utf-8"))
    sizes = witness["answers"][release]
    assert sizes["an empty index"] == sizes["its index"]
    assert sizes["positions of the entries after"][:-1] == sizes["its index"][1:]


# Directories


@pytest.mark.req("SEG-LDR-002", "SEG-PDR-003")
def test_a_broker_has_directories_of_some_partitions_only(tmp_path: Path) -> None:
    """A topic of five partitions with two replicas: one of three brokers, with two log directories."""
    uuid = "0123456789abcdef0123456789abcdef"
    held = {"a": ["report-0", "report-3", f"report-1.{uuid}-delete"], "b": ["report-4", f"report-0.{uuid}-future"]}
    paths = [tmp_path / log_directory / name for log_directory, names in held.items() for name in names]
    for path in paths:
        path.mkdir(parents=True)
    found = open_log_directory([tmp_path / "a", tmp_path / "b"])
    assert sorted(found.partitions) == [("report", 0), ("report", 3), ("report", 4)]
    assert [len(found.renamed(state)) for state in ("delete", "future", "stray")] == [1, 1, 0]


# Several writers


@pytest.mark.req("SEG-APP-001")
def test_several_writers_on_one_log_keep_batches_whole_and_offsets_dense(tmp_path: Path) -> None:
    """Eight threads with batches of one to three records, and another that removes old segments meanwhile."""
    count, each = 8, 20
    started = threading.Barrier(count + 1)

    def append(writer: PartitionWriter, name: int) -> None:
        started.wait()
        for number in range(each):
            value = f"{name} {number}".encode()
            writer.append(
                produced(*[1000] * (1 + number % 3), value=value), acks="flushed" if number % 5 else "written"
            )

    def retain(writer: PartitionWriter) -> None:
        started.wait()
        for _ in range(each):
            writer.apply_retention()
            writer.remove_deleted()

    with open_writer(tmp_path, Clock(), segment_bytes=1000, retention_bytes=5000) as writer:
        work = [threading.Thread(target=append, args=(writer, name)) for name in range(count)]
        work.append(threading.Thread(target=retain, args=(writer,)))
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert writer.log_end_offset == count * sum(1 + number % 3 for number in range(each))
        writer.apply_retention()
        start = writer.log_start_offset
        assert start > 0
    entries = [frame for data in contents(tmp_path / "topic-0", ".log").values() for frame in walk(data)]
    assert [frame.header.base_offset for frame in entries[1:]] == [frame.header.next_offset for frame in entries[:-1]]
    with open_partition(tmp_path / "topic-0") as log:
        assert log.log_start_offset == start
        values = [(found.value or b"").split() for found in log.records()]
    for name in range(count):
        numbers = [int(number) for writer_name, number in values if int(writer_name) == name]
        written = [number for number in range(each) for _ in range(1 + number % 3)]
        assert numbers == written[len(written) - len(numbers) :], "each in its order"
    assert not list(verify(tmp_path / "topic-0"))
