"""What a server does only once, what it releases, and what it waits for without spinning."""

from __future__ import annotations

import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

import pytest
from helpers.serving import serving
from helpers.support import bundled
from helpers.walking import each_of
from kio.schema.errors import ErrorCode

from proofs.serve.client import API_VERSIONS, FETCH, Client
from seglog_format.codec.build import build_batch, new_record, with_offset
from seglog_format.codec.encode import encode_batch
from seglog_format.log.partition import open_partition
from seglog_format.serve import api_fetch, served_partition, server
from seglog_format.serve.api_fetch import Answer, PartitionAnswer, TopicAnswer
from seglog_format.serve.lanes import RequestQueue
from seglog_format.serve.server import APIS
from seglog_format.serve.slices import DROP_SIZE, LogRange
from seglog_format.serve.wire import UnreadableRequestError, read_counted, request_type, write_entity
from seglog_format.state.config import LogConfig
from seglog_format.storage.byte_source import Window
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 10
MEBI = 1 << 20
SEGMENT_SIZE, SEGMENTS = 16 * MEBI, 3


def segs() -> Path:
    return next(bundled("4.3.0/segs").glob("*-0"))


def made(path: Path, segments: int, record_size: int) -> int:
    """Return a log of so many segments; its end."""
    one, offset = encode_batch(build_batch([new_record(value=bytes(record_size), timestamp_ms=1)])), 0
    with PartitionWriter(path, LogConfig(segment_bytes=SEGMENT_SIZE, retention_ms=-1)) as writer:
        for _ in range(segments * SEGMENT_SIZE // len(one) - 1):
            writer.append_as_follower(with_offset(one, offset, 0))
            offset += 1
    return offset


def memory_size() -> int:
    """Bytes of this process's memory, those of mapped files included."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssFile:", "RssAnon:")))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("record_size", "max_bytes"), [(60_000, MEBI), (8_000, 1)])
def test_a_log_that_was_served_does_not_stay_in_memory(tmp_path: Path, record_size: int, max_bytes: int) -> None:
    end = made(tmp_path / "data" / "t-0", SEGMENTS, record_size)
    with serving(tmp_path / "data" / "t-0") as served, served.client() as client:
        assert client.fetch("t", end - 1).records  # what is loaded once is there
        before, offset, most = memory_size(), 0, 0
        step = 1 if max_bytes == 1 else max_bytes // record_size
        while offset < end:
            answer = client.fetch("t", offset, partition={"partition_max_bytes": max_bytes})
            assert answer.records
            offset += step
            most = max(most, memory_size() - before)
    assert most < 2 * SEGMENT_SIZE < SEGMENTS * SEGMENT_SIZE
    assert DROP_SIZE < MEBI


def test_an_entry_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[int] = []
    real = served_partition.crc32c
    monkeypatch.setattr(served_partition, "crc32c", lambda data: verified.append(len(data)) or real(data))
    with serving(segs()) as served, served.client() as client:
        first = client.fetch("segs", 0).records
        assert verified
        verified.clear()
        assert client.fetch("segs", 0).records == first
        assert client.fetch("segs", 0, partition={"partition_max_bytes": 1}).records
    assert verified == []


@pytest.mark.parametrize("name", ["0.10.2.2/compact", "4.3.0/segs"])
def test_the_quick_look_finds_no_more_right_than_the_slow_one(name: str) -> None:
    found = bundled(name)
    with open_partition(next(found.glob("*-0"))) as partition:
        for segment in partition.segments:
            bounds = [*segment.entries.positions, segment.entries.position]
            for start, end in pairwise(bounds):
                whole = bytearray(segment.source.view(start, end))
                mark = served_partition._mark_of_batch(Window(0, memoryview(whole)), 0, len(whole))
                assert bool(mark) == (whole[16] == 2)
                assert not served_partition._mark_of_batch(Window(0, memoryview(whole)[:-1]), 0, len(whole))
                for cut in (8, 16, 17, 21, len(whole) - 1):
                    whole[cut] ^= 1
                    assert not served_partition._mark_of_batch(Window(0, memoryview(whole)), 0, len(whole))
                    whole[cut] ^= 1


def test_a_damaged_entry_is_only_in_the_way_of_what_it_hides(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with PartitionWriter(path, LogConfig(retention_ms=-1)) as writer:
        for _ in range(4):
            writer.append([new_record(value=b"v" * 100, timestamp_ms=1)])
    log = path / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    size = len(data) // 4
    data[size + size // 2] ^= 1  # in the second
    log.write_bytes(data)
    with serving(path) as served, served.client() as client:
        assert len(client.fetch("t", 0).records) == size
        assert client.fetch("t", 1).error_code is ErrorCode.corrupt_message
        for _ in range(2):
            assert len(client.fetch("t", 2).records) == 2 * size
            assert client.fetch("t", 1).error_code is ErrorCode.corrupt_message


def answered(end: int, count: int = 1, **changed: object) -> Answer:
    row = PartitionAnswer(0, ErrorCode.none, LogRange(0, end, end), None)._replace(**changed)
    return Answer(ErrorCode.none, (TopicAnswer("t", None, (row,) * count),), [b"log"] * count)


def test_what_an_answer_says_of_a_log_that_stays_is_encoded_once() -> None:
    api_fetch._remembered.cache_clear()
    first = answered(5).envelope(11)
    assert answered(5).envelope(11) is first
    others = [answered(6).envelope(11), answered(5).envelope(12), answered(5, number=1).envelope(11)]
    assert all(other != first for other in others)
    assert first.filled(7, [b"log"]) != first.filled(8, [b"log"]) != first.filled(8, [b"other"])


def test_long_answers_are_not_kept() -> None:
    api_fetch._remembered.cache_clear()
    answered(5, count=api_fetch.MAX_REMEMBERED_PARTITIONS + 1).envelope(11)
    assert api_fetch._remembered.cache_info().currsize == 0


def test_a_full_queue_takes_nothing() -> None:
    queue, job = RequestQueue(2), partial(int, 0)
    assert [queue.offer(job) for _ in range(3)] == [True, True, False]
    assert len(queue) == 2
    assert queue.take() is job
    assert queue.offer(job)
    queue.end(1)
    assert [queue.take() for _ in range(3)] == [job, job, None]


def test_clients_that_pipeline_come_last_but_for_every_eighth_job() -> None:
    queue = RequestQueue(100)
    patient, pipelined = ([partial(int, number) for _ in range(20)] for number in range(2))
    for job in pipelined:
        assert queue.offer(job, is_pipelined=True)
    for job in patient:
        assert queue.offer(job)
    taken = [queue.take() for _ in range(40)]
    assert taken[:9] == [pipelined[0], *patient[:7], pipelined[1]]
    assert [job for job in taken if job in patient] == patient
    assert [job for job in taken if job in pipelined] == pipelined


def started(queue: RequestQueue, threads: int, took: Callable[[RequestQueue], None]) -> list[Thread]:
    running = [Thread(target=took, args=(queue,), daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    return running


def test_every_job_is_taken_once_whoever_offers_and_whoever_takes() -> None:
    queue, taken, count, threads = RequestQueue(10_000, 4), [], 2_000, 4

    def take(queue: RequestQueue) -> None:
        while (job := queue.take()) is not None:
            taken.append(job)

    def offer(queue: RequestQueue) -> None:
        for _ in range(count):
            queue.offer(partial(int, 0))
            if not len(queue) % 7:
                time.sleep(0)

    takers = started(queue, threads, take)
    for thread in started(queue, 3, offer):
        thread.join()
    queue.end(threads)
    for thread in takers:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert len(taken) == len({id(job) for job in taken}) == 3 * count


def test_one_thread_takes_all_as_long_as_it_gets_on() -> None:
    queue, by = RequestQueue(10, 3), []

    def take(queue: RequestQueue) -> None:
        while (job := queue.take()) is not None:
            by.append(current_thread())
            job()

    takers = started(queue, 3, take)
    time.sleep(0.05)
    for number in range(50):
        queue.offer(partial(int, 0))
        while len(by) <= number:
            time.sleep(0.001)
    assert len(set(by)) == 1
    queue.end(3)
    for thread in takers:
        thread.join(SECONDS)


def test_a_request_that_takes_long_is_in_nobody_elses_way(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end, real = Event(), server._loaded("server", "api_versions")
    with serving(segs()) as served, served.client() as slow, served.client() as other:
        monkeypatch.setattr(server, "_loaded", lambda *_: lambda *call: may_end.wait(SECONDS) and real(*call))
        slow.send(API_VERSIONS, 0)
        time.sleep(0.05)
        monkeypatch.undo()
        before = time.monotonic()
        assert other.ask(API_VERSIONS, 0).api_keys
        assert time.monotonic() - before < SECONDS / 2
        may_end.set()
        assert slow.receive(API_VERSIONS, 0).api_keys


def waiting(client: Client, seconds: float) -> None:
    """Ask for what comes behind the end."""
    wanted = {"partition": 0, "fetch_offset": client.list_offset("segs", -1).offset, "partition_max_bytes": 1}
    fields = {"replica_id": -1, "max_wait": round(seconds * 1000), "min_bytes": 1, "max_bytes": 1}
    client.send(FETCH, 4, **fields, isolation_level=0, topics=[{"topic": "segs", "partitions": [wanted]}])


def test_a_client_that_asks_on_while_it_waits_costs_no_time() -> None:
    with serving(segs()) as served, served.client() as client:
        for _ in range(2):
            waiting(client, 0.6)
            time.sleep(0.05)
            client.send(API_VERSIONS, 0)
            before = time.process_time()
            client.receive(FETCH, 4, before_last=1)
            assert time.process_time() - before < 0.3
            assert client.receive(API_VERSIONS, 0).api_keys


@each_of("version", range(APIS[FETCH].lowest, APIS[FETCH].highest + 1))
def test_a_request_that_ends_early_is_refused(version: int) -> None:
    kind = request_type(FETCH, version)
    rows = [{"partition": number, "fetch_offset": 5, "partition_max_bytes": 9} for number in range(3)]
    topics = [{"topic": "t", "topic_id": None, "partitions": rows}] * 2
    fields = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0}
    data = write_entity(kind, fields | {"topics": topics, "forgotten_topics_data": ()})
    body, size, _ = read_counted(kind, data, 0)
    assert size == len(data)
    assert [each.partition for each in body.topics[1].partitions] == [0, 1, 2]
    for end in range(len(data)):
        with pytest.raises(UnreadableRequestError):
            read_counted(kind, data[:end], 0)
