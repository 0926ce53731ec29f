"""Writing whole directories: the same files as brokers wrote, threads, flushes, failures."""

from __future__ import annotations

import errno
import gc
import json
import os
import sys
import threading
import time
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import accumulate, islice, permutations
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import TYPE_CHECKING, Any

import pytest
from helpers.appends import Clock, base_offsets, contents, open_writer, produced, snapshot
from helpers.support import bundled, bundled_cases, bundled_description
from helpers.walking import each_of

from seglog_format import LogConfig, LogWriter, PartitionWriter, open_partition, recover, verify
from seglog_format.codec.build import new_record, with_offset, with_timestamps
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import Location, RefusedError, UsageError, WriteError
from seglog_format.log.directory_lock import DirectoryLock, is_locked
from seglog_format.model import INT64_MAX, Frame, ProducerStateEntry, TimestampType
from seglog_format.state.producer_state import Origin
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LocalFiles, LocalHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


GENERATIONS = {
    "0.8.2.2": "0.8",
    "0.9.0.1": "0.8",
    "0.10.2.2": "0.10.1",
    "0.11.0.3": "0.11",
    "1.1.1": "0.11",
    "2.0.1": "2.0",
    "2.8.2": "2.0",
    "3.0.2": "2.0",
    "3.4.1": "2.0",
    "3.9.1": "4.1",
    "4.0.1": "4.1",
    "4.3.0": "4.1",
    "4.4.0": "4.1",
}
OTHER_SETTINGS = ("min.cleanable.dirty.ratio", "message.format.version")
REWRITTEN = ("compact", "crash", "root", "mixed", "cluster")
"""Cases whose files are not what was appended, or not by one leader with one setting."""

REQUESTS = {
    "plain": [(60, 7)],
    "segs-fine": [(300, 2)],
    "rolltime": [(60, 2)],
    "createtime": [(60, 8), (5, 5), (200, 4)],
    "logappend": [(30, 6)],
    "format": [(40, 8), (60, 60)],
    "one": [(1, 1)],
}
"""Messages without a codec: how many there are in a row, and how many of them came in one request."""

APART = {
    "0.10.2.2/format-0.8.2",  # its time index has timestamps that messages of magic 0 do not have
    "0.9.0.1/consumer-offsets",  # the requests of its coordinator are not known
    "0.11.0.3/txn",  # 0.11.0 counts a marker as the newest batch of a producer in a snapshot, later releases do not
}
CASES = [name for name in bundled_cases() if not name.partition("/")[2].startswith(REWRITTEN) and name not in APART]
MARKERS_IN_SNAPSHOTS = {"2.8.2", "3.0.2", "3.4.1", "3.9.1", "4.0.1", "4.3.0", "4.4.0"}
KEEPS_SNAPSHOTS = {"2.8.2", "3.0.2", "3.4.1", "3.9.1", "4.0.1", "4.3.0", "4.4.0"}


def config_of(name: str) -> LogConfig:
    settings = bundled_description(name).get("topic_config", {})
    shaping = {key: value for key, value in settings.items() if key not in OTHER_SETTINGS}
    return LogConfig.from_properties({**shaping, "generation": GENERATIONS[name.partition("/")[0]]})


def entries(directory: Path) -> list[Frame]:
    return [frame for path in sorted(directory.glob("*.log")) for frame in walk(path.read_bytes())]


def requests(frames: list[Frame], case: str) -> Iterator[list[Frame]]:
    """Yield what was sent at once: one batch or wrapper, or several messages without a codec."""
    sizes = iter(REQUESTS.get(case.partition("-")[0] if case.startswith("format") else case, ()))
    rest = iter(frames)
    for frame in rest:
        if frame.header.magic == 2 or frame.header.codec_id:
            yield [frame]
            continue
        count, size = next(sizes)
        row = [frame, *islice(rest, count - 1)]
        yield from (row[start : start + size] for start in range(0, count, size))


def as_sent(frame: Frame) -> bytes:
    """Without what the leader gave it."""
    data = with_offset(frame.data, 0, -1)
    if frame.header.timestamp_type is not TimestampType.LOG_APPEND_TIME:
        return data
    records = decode_frame(frame, at=Location()).records
    base = frame.header.base_timestamp_ms
    deltas = [getattr(record, "timestamp_delta", 0) for record in records]
    return with_timestamps(data, TimestampType.CREATE_TIME, 0 if base is None else base + max(deltas))


def send_again(writer: PartitionWriter, frames: list[Frame], case: str, clock: Clock) -> None:
    for request in requests(frames, case):
        clock.now_ms = max(clock.now_ms, *(frame.header.max_timestamp_ms for frame in request))
        header = request[0].header
        if header.magic == 2 and header.partition_leader_epoch != writer.leader_epoch:
            writer.become_leader(header.partition_leader_epoch)
        # Coordinators write markers, and offsets as parts of transactions; test data has both.
        origin = Origin.COORDINATOR if header.is_transactional else Origin.CLIENT
        writer.append(b"".join(map(as_sent, request)), origin=origin)


def partition_of(name: str) -> Path:
    (path,) = (path for path in bundled(name).iterdir() if path.is_dir())
    return path


def snapshots(directory: Path, *, with_times: bool) -> dict[str, set[ProducerStateEntry]]:
    return {
        name: {entry if with_times else replace(entry, timestamp_ms=0) for entry in snapshot(data)}
        for name, data in contents(directory, ".snapshot").items()
    }


@pytest.mark.req("SEG-APP-001", "SEG-APP-003", "SEG-APP-018", "SEG-APP-019", "SEG-APP-010")
@pytest.mark.req("SEG-APP-026", "SEG-ROL-010", "SEG-ROL-011", "SEG-APP-015")
@each_of("name", CASES)
def test_a_leader_writes_the_files_that_brokers_wrote(name: str, tmp_path: Path) -> None:
    version, _, case = name.partition("/")
    theirs = partition_of(name)
    frames = entries(theirs)
    clock = Clock(min((time for frame in frames if (time := frame.header.max_timestamp_ms) > 10**12), default=0))
    ours = tmp_path / theirs.name
    with PartitionWriter(ours, config_of(name), environment=Environment(clock=clock)) as writer:
        send_again(writer, frames, case, clock)
    for ending in (".log", ".index", ".timeindex", ".txnindex"):
        assert contents(ours, ending) == contents(theirs, ending)
    with_times = version in MARKERS_IN_SNAPSHOTS
    written, expected = (snapshots(path, with_times=with_times) for path in (ours, theirs))
    if version not in KEEPS_SNAPSHOTS:
        written = {key: value for key, value in written.items() if key in expected}
    assert written == expected


@pytest.mark.req("SEG-APP-002")
@each_of("name", [name for name in CASES if name.startswith("4.")])
def test_a_follower_writes_the_files_that_its_leader_wrote(name: str, tmp_path: Path) -> None:
    theirs = partition_of(name)
    ours = tmp_path / theirs.name
    with PartitionWriter(ours, config_of(name), environment=Environment(clock=Clock())) as writer:
        for frame in entries(theirs):
            writer.append_as_follower(frame.data)
    for ending in (".log", ".index", ".timeindex", ".txnindex"):
        assert contents(ours, ending) == contents(theirs, ending)


def test_several_threads_write_whole_batches_at_dense_offsets(tmp_path: Path) -> None:
    threads, appends = 4, 25
    appended: list[tuple[int, bytes]] = []

    def work(writer: PartitionWriter, name: int) -> None:
        for number in range(appends):
            value = f"{name}-{number}".encode()
            result = writer.append(produced(1000, 1001, 1002, value=value))
            assert result.last_offset == result.first_offset + 2
            appended.append((result.first_offset, value))

    with open_writer(tmp_path, segment_bytes=2000, index_interval_bytes=100) as writer:
        workers = [threading.Thread(target=work, args=(writer, name)) for name in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert writer.log_end_offset == 3 * threads * appends
    with open_partition(tmp_path / "topic-0") as partition:
        found = {record.offset: record.value for record in partition.records()}
    assert found == {first + delta: value for first, value in appended for delta in range(3)}
    assert not list(verify(tmp_path / "topic-0"))


@each_of("order", sorted(set(permutations("aaabbb"))))
def test_every_interleaving_of_two_appenders(order: tuple[str, ...], tmp_path: Path) -> None:
    sizes = {"a": iter((1, 2, 3)), "b": iter((3, 1, 2))}
    with open_writer(tmp_path, segment_bytes=250, index_interval_bytes=60) as writer:
        row = [(name, next(sizes[name])) for name in order]
        results = [writer.append(produced(*[1000] * size, value=name.encode())) for name, size in row]
    ends = list(accumulate(size for _, size in row))
    assert [result.last_offset + 1 for result in results] == ends
    batches = [decode_frame(frame, at=Location()) for frame in entries(tmp_path / "topic-0")]
    assert [[(record.offset, record.value) for record in batch.records] for batch in batches] == [
        [(offset, name.encode()) for offset in range(end - size, end)]
        for (name, size), end in zip(row, ends, strict=True)
    ]


class CountingHandle(LocalHandle):
    """A file that counts its syncs, and keeps the first of them waiting."""

    def __init__(self, descriptor: int, files: CountingFiles, name: str) -> None:
        super().__init__(descriptor, Path(name))
        self.files = files
        self.name = name

    def fsync(self) -> None:
        self.files.synced[self.name] += 1
        if self.name.endswith(".log"):
            self.files.started.set()
            assert self.files.may_go_on.wait(10)
        super().fsync()


class CountingFiles(LocalFiles):
    """The file system, with a count of syncs."""

    def __init__(self) -> None:
        self.synced: Counter[str] = Counter()
        self.started = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def create(self, path: Path, size: int = 0) -> LocalHandle:
        super().create(path, size).close()
        return self.open_append(path)

    def create_new(self, path: Path, size: int = 0) -> LocalHandle:
        super().create_new(path, size).close()
        return self.open_append(path)

    def open_append(self, path: Path) -> LocalHandle:
        return CountingHandle(os.open(path, os.O_RDWR), self, path.name)

    def fsync_directory(self, path: Path) -> None:
        self.synced[path.name] += 1
        super().fsync_directory(path)


LOG = "00000000000000000000.log"


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails after ten seconds."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen")


@pytest.mark.req("SEG-FLS-003")
def test_appends_that_come_during_a_flush_share_the_next(tmp_path: Path) -> None:
    files = CountingFiles()
    writer = open_writer(tmp_path, files=files)
    files.may_go_on.clear()
    acknowledged: list[int] = []

    def work() -> None:
        acknowledged.append(writer.append(produced(), acks="flushed").first_offset)

    first, *others = (threading.Thread(target=work) for _ in range(6))
    first.start()
    assert files.started.wait(10)
    for worker in others:
        worker.start()
    # The five are written while the first flush still waits for the disk.
    wait_until(lambda: writer.log_end_offset == 6)
    assert not acknowledged
    files.may_go_on.set()
    for worker in (first, *others):
        worker.join()
    assert sorted(acknowledged) == list(range(6))
    assert files.synced[LOG] == 2
    writer.close()


@pytest.mark.req("SEG-FLS-002", "SEG-FLS-012")
def test_a_flush_syncs_every_file_and_new_names_once(tmp_path: Path) -> None:
    files = CountingFiles()
    with open_writer(tmp_path, files=files, segment_bytes=200) as writer:
        writer.append(produced())
        assert writer.recovery_point == 0
        files.synced.clear()
        assert writer.flush() == writer.recovery_point == 1
        stem = LOG.removesuffix(".log")
        assert files.synced == {LOG: 1, f"{stem}.index": 1, f"{stem}.timeindex": 1, "topic-0": 1}
        files.synced.clear()
        writer.append(produced())
        writer.flush()
        assert files.synced["topic-0"] == 0
        writer.flush()
        assert files.synced[LOG] == 1  # there was nothing more to do


@pytest.mark.req("SEG-FLS-009")
def test_a_roll_flushes_what_is_below(tmp_path: Path) -> None:
    files = CountingFiles()
    with open_writer(tmp_path, files=files, segment_bytes=200) as writer:
        for _ in range(2):
            writer.append(produced())
        files.synced.clear()
        writer.append(produced())
        assert base_offsets(tmp_path) == [0, 2]
        assert writer.recovery_point == 2
        assert files.synced[LOG] == 1
        assert files.synced["00000000000000000002.log"] == 0


@pytest.mark.req("SEG-FLS-001")
def test_flush_policies(tmp_path: Path) -> None:
    clock = Clock()
    with open_writer(tmp_path / "messages", flush_messages=3) as writer:
        points = []
        for _ in range(7):
            writer.append(produced())
            points.append(writer.recovery_point)
    assert points == [0, 0, 3, 3, 3, 6, 6]
    with open_writer(tmp_path / "time", clock, flush_ms=100) as writer:
        writer.append(produced())
        clock.now_ms += 99
        writer.flush_if_due()
        assert writer.recovery_point == 0
        clock.now_ms += 1
        writer.flush_if_due()
        assert writer.recovery_point == 1


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.req("SEG-FLS-005", "SEG-FLS-013", "SEG-FLS-014")
def test_checkpoints(tmp_path: Path) -> None:
    clock = Clock()
    tmp_path.joinpath("recovery-point-offset-checkpoint").write_text("0\n1\nother 3 17\n", encoding="utf-8")
    tmp_path.joinpath("log-start-offset-checkpoint").write_text("0\n1\na 1 5\n", encoding="utf-8")
    with LogWriter(tmp_path, environment=Environment(clock=clock)) as writer:
        a, b = writer.open("a", 1), writer.open("b", 0)
        a.append(produced(1000, 1000))
        b.append(produced())
        a.flush()
        writer.checkpoint()
        assert lines(tmp_path / "recovery-point-offset-checkpoint") == ["0", "3", "a 1 7", "b 0 0", "other 3 17"]
        assert lines(tmp_path / "replication-offset-checkpoint") == ["0", "2", "a 1 7", "b 0 1"]
        assert lines(tmp_path / "log-start-offset-checkpoint") == ["0", "0"]
        b.flush()
        clock.now_ms += 59_999
        writer.run_due()
        assert "b 0 0" in lines(tmp_path / "recovery-point-offset-checkpoint")
        clock.now_ms += 1
        writer.run_due()
        assert "b 0 1" in lines(tmp_path / "recovery-point-offset-checkpoint")


@pytest.mark.req("SEG-FLS-013")
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_writer_is_opened_in_as_many_steps_whatever_else_is_in_the_log_directory(
    is_clean: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    """Count calls of functions, and of the system, instead of seconds."""
    counts = []
    for number in (1, 400):
        root = tmp_path / str(number)
        lines = [f"orders {each} {each}\n" for each in range(number)]
        for each in range(number):
            (root / f"orders-{each}").mkdir(parents=True)
        for name in ("recovery-point", "log-start", "replication"):
            (root / f"{name}-offset-checkpoint").write_text(f"0\n{number}\n{''.join(lines)}")
        if is_clean:
            (root / ".kafka_cleanshutdown").touch()
        with PartitionWriter(tmp_path / "warm" / "payments-0"):
            pass
        calls: Counter[str] = Counter()

        def counted(frame: FrameType, event: str, argument: object, calls: Counter[str] = calls) -> None:
            if event == "call":
                calls[frame.f_code.co_qualname] += 1
            elif event == "c_call" and isinstance(argument, BuiltinFunctionType):
                calls[argument.__name__] += argument.__module__ in {"posix", "_io", "fcntl"}

        gc.collect()
        gc.disable()  # or objects of other tests would be counted
        sys.setprofile(counted)
        try:
            writer = PartitionWriter(root / "payments-0")
        finally:
            sys.setprofile(None)
            gc.enable()
        writer.close()
        counts.append(calls)
    assert counts[0] == counts[1]
    assert counts[0]["open"] + counts[0]["open_code"] > 3


def test_a_log_start_offset_inside_a_segment_stays_checkpointed(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced(1000, 1000, 1000))
    tmp_path.joinpath("log-start-offset-checkpoint").write_text("0\n1\ntopic 0 2\n", encoding="utf-8")
    with open_writer(tmp_path) as writer:
        assert (writer.log_start_offset, writer.log_end_offset) == (2, 3)
    assert lines(tmp_path / "log-start-offset-checkpoint") == ["0", "1", "topic 0 2"]


@pytest.mark.req("SEG-FLS-004", "SEG-FLS-015", "SEG-ROL-014", "SEG-ROL-018")
def test_a_clean_end(tmp_path: Path) -> None:
    with open_writer(tmp_path, segment_bytes=200) as writer:
        for _ in range(2):
            writer.append(produced())
        writer.roll()
    directory = tmp_path / "topic-0"
    assert json.loads(tmp_path.joinpath(".kafka_cleanshutdown").read_bytes()) == {"version": 0, "brokerEpoch": -1}
    assert lines(tmp_path / "recovery-point-offset-checkpoint") == ["0", "1", "topic 0 2"]
    assert {name: len(data) for name, data in contents(directory, "").items()} == {
        "00000000000000000000.index": 0,
        "00000000000000000000.log": 140,
        "00000000000000000000.timeindex": 12,
        "00000000000000000002.index": 0,
        "00000000000000000002.log": 0,
        "00000000000000000002.snapshot": 10,
        "00000000000000000002.timeindex": 0,
        "leader-epoch-checkpoint": 8,
    }


@pytest.mark.req("SEG-FLS-015")
def test_the_end_of_a_log_has_a_snapshot(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced(1000, 1001))
    assert list(contents(tmp_path / "topic-0", ".snapshot")) == ["00000000000000000002.snapshot"]


@pytest.mark.req("SEG-FLS-006")
def test_the_sign_of_a_clean_end_goes_first(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced())
    with open_writer(tmp_path) as writer:
        assert not tmp_path.joinpath(".kafka_cleanshutdown").exists()
        writer.append(produced())
    assert tmp_path.joinpath(".kafka_cleanshutdown").exists()


@pytest.mark.req("SEG-FLS-007")
def test_no_sign_of_a_clean_end_while_another_log_is_in_doubt(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced())
    tmp_path.joinpath(".kafka_cleanshutdown").unlink()
    with LogWriter(tmp_path) as logs:
        logs.open("other", 0).append(produced())
    assert not tmp_path.joinpath(".kafka_cleanshutdown").exists()


def test_a_log_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"index_interval_bytes": 50, "segment_bytes": 500}
    for _ in range(4):
        with open_writer(tmp_path, **settings) as writer:
            for _ in range(3):
                writer.append(produced(1000, 1001))
    directory = tmp_path / "topic-0"
    assert not list(verify(directory))
    with open_partition(directory) as partition:
        assert [record.offset for record in partition.records()] == list(range(24))
    # Left are those of segments, of the last end, and of the one before, which only the next start removes.
    assert base_offsets(tmp_path) == [0, 12]
    assert [int(name[:20]) for name in contents(directory, ".snapshot")] == [12, 18, 24]


@pytest.mark.req("SEG-APP-013")
def test_a_log_that_was_not_closed_is_recovered_first(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, index_interval_bytes=50)
    for _ in range(3):
        writer.append(produced())
    writer._release()  # as if the process had ended here
    log = tmp_path / "topic-0" / LOG
    log.write_bytes(log.read_bytes()[:-1])
    with open_writer(tmp_path, index_interval_bytes=50) as writer:
        assert writer.log_end_offset == 2
        assert writer.append(produced()).first_offset == 2
    assert tmp_path.joinpath(".kafka_cleanshutdown").exists()
    assert log.stat().st_size == 3 * 70
    assert not list(verify(tmp_path / "topic-0"))


class FailingFiles(LocalFiles):
    """A file system on which the operation of one name and kind fails once it is told to."""

    def __init__(self, operation: str, ending: str, code: int, *, written: int = 0) -> None:
        self.operation, self.ending, self.code, self.written = operation, ending, code, written
        self.is_broken = False

    def check(self, operation: str, name: str) -> None:
        if self.is_broken and operation == self.operation and name.endswith(self.ending):
            raise OSError(self.code, os.strerror(self.code))

    def create(self, path: Path, size: int = 0) -> LocalHandle:
        self.check("create", path.name)
        super().create(path, size).close()
        return self.open_append(path)

    def create_new(self, path: Path, size: int = 0) -> LocalHandle:
        self.check("create", path.name)
        super().create_new(path, size).close()
        return self.open_append(path)

    def open_append(self, path: Path) -> LocalHandle:
        return FailingHandle(os.open(path, os.O_RDWR), self, path.name)

    def rename(self, path: Path, target: Path) -> None:
        self.check("rename", target.name)
        super().rename(path, target)

    def fsync_directory(self, path: Path) -> None:
        self.check("fsync_directory", path.name)
        super().fsync_directory(path)


class FailingHandle(LocalHandle):
    """A file of it."""

    def __init__(self, descriptor: int, files: FailingFiles, name: str) -> None:
        super().__init__(descriptor, Path(name))
        self.files, self.name = files, name

    def write_at(self, position: int, data: bytes | bytearray | memoryview) -> None:
        try:
            self.files.check("write", self.name)
        except OSError:
            super().write_at(position, data[: self.files.written])
            raise
        super().write_at(position, data)

    def truncate(self, size: int) -> None:
        self.files.check("truncate", self.name)
        super().truncate(size)

    def fsync(self) -> None:
        self.files.check("fsync", self.name)
        super().fsync()


FAILURES = [
    ("write", ".log", errno.ENOSPC, 0),
    ("write", ".log", errno.EIO, 30),
    ("write", ".index", errno.ENOSPC, 0),
    ("write", ".timeindex", errno.ENOSPC, 3),
    ("write", ".snapshot", errno.ENOSPC, 5),
    ("create", ".log", errno.ENOSPC, 0),
    ("create", ".snapshot", errno.EACCES, 0),
    ("fsync", ".log", errno.EIO, 0),
    ("fsync", ".index", errno.EIO, 0),
    ("fsync_directory", "topic-0", errno.EIO, 0),
    ("truncate", ".timeindex", errno.EIO, 0),
]


@pytest.mark.parametrize(("operation", "ending", "code", "written"), FAILURES)
@pytest.mark.req("SEG-FLS-008")
def test_a_disk_that_fails(operation: str, ending: str, code: int, written: int, tmp_path: Path) -> None:
    files = FailingFiles(operation, ending, code, written=written)
    writer = open_writer(tmp_path, files=files, segment_bytes=400, index_interval_bytes=50)
    acknowledged = [writer.append(produced(), acks="flushed").last_offset for _ in range(2)]
    files.is_broken = True
    with pytest.raises(WriteError, match=os.strerror(code)):
        acknowledged.extend(writer.append(produced(), acks="flushed").last_offset for _ in range(10))
    files.is_broken = False
    with pytest.raises(WriteError, match=os.strerror(code)):
        writer.append(produced())
    with pytest.raises(WriteError, match=os.strerror(code)):
        writer.flush()
    assert writer.has_failed
    assert writer.recovery_point == acknowledged[-1] + 1
    writer.close()
    assert not tmp_path.joinpath(".kafka_cleanshutdown").exists()
    whole = [frame.header.last_offset for frame in entries(tmp_path / "topic-0")]
    assert whole[: len(acknowledged)] == acknowledged


def test_a_failed_write_is_taken_back_where_that_is_possible(tmp_path: Path) -> None:
    files = FailingFiles("write", ".log", errno.ENOSPC, written=30)
    writer = open_writer(tmp_path, files=files)
    writer.append(produced())
    files.is_broken = True
    with pytest.raises(WriteError, match="No space left"):
        writer.append(produced())
    writer.close()
    assert tmp_path.joinpath("topic-0", LOG).stat().st_size == 70


def test_waiting_threads_hear_of_a_failed_flush(tmp_path: Path) -> None:
    class Slow(FailingFiles):
        may_fail = threading.Event()

        def check(self, operation: str, name: str) -> None:
            if self.is_broken and operation == "fsync":
                assert self.may_fail.wait(10)
            super().check(operation, name)

    files = Slow("fsync", ".log", errno.EIO)
    writer = open_writer(tmp_path, files=files)
    writer.append(produced(), acks="flushed")
    files.is_broken = True
    refused: list[str] = []

    def work() -> None:
        try:
            writer.append(produced(), acks="flushed")
        except WriteError as error:
            refused.append(str(error))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    wait_until(lambda: writer.log_end_offset == 5)
    files.may_fail.set()
    for worker in workers:
        worker.join()
    assert len(refused) == 4
    assert writer.recovery_point == 1
    writer.close()


def test_a_write_goes_on_where_the_system_takes_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: real(descriptor, data[:7], position))
    with open_writer(tmp_path) as writer:
        writer.append(produced(1000, 1001))
    monkeypatch.undo()
    assert not list(verify(tmp_path / "topic-0"))


def test_a_log_directory_has_one_writer(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as writer:
        assert is_locked(tmp_path)
        assert is_locked(tmp_path)  # looking does not give the lock away
        with pytest.raises(UsageError, match="holds its lock file"):
            LogWriter(tmp_path)
        with pytest.raises(UsageError, match="holds its lock file"):
            PartitionWriter(tmp_path / "topic-0")
        writer.open("topic", 0)
        with pytest.raises(UsageError, match="is open already"):
            writer.open("topic", 0)
    assert not is_locked(tmp_path)
    with pytest.raises(UsageError, match="is closed"):
        writer.open("topic", 1)
    DirectoryLock(tmp_path).close()


def test_what_is_closed_takes_nothing(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        pass
    writer.close()
    with pytest.raises(UsageError, match="is closed"):
        writer.append(produced())
    with pytest.raises(UsageError, match="is closed"):
        writer.roll()


def test_leftovers_of_an_interrupted_replacement_need_recovery(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced())
    directory = tmp_path / "topic-0"
    snapshot = directory / "00000000000000000001-0000000001.checkpoint.deleted"
    for path in (directory / f"{LOG}.deleted", snapshot):
        path.touch()
    with open_writer(tmp_path):
        assert not directory.joinpath(f"{LOG}.deleted").exists()
        assert snapshot.exists()
    directory.joinpath("00000000000000000007.log.swap").touch()
    with pytest.raises(UsageError, match="recover the directory first"):
        open_writer(tmp_path)


def test_a_log_whose_first_segment_is_being_replaced_is_not_taken_for_a_tiered_one(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced(1000, 1000, 1000))
        writer.roll()
    tmp_path.joinpath("log-start-offset-checkpoint").write_text("0\n1\ntopic 0 2\n", encoding="utf-8")
    log = tmp_path / "topic-0" / LOG
    data = log.read_bytes()
    log.rename(f"{log}.deleted")
    with pytest.raises(UsageError, match="a tiered log is not written"):
        open_writer(tmp_path)
    Path(f"{log}.swap").write_bytes(data)
    with pytest.raises(UsageError, match="recover the directory first"):
        open_writer(tmp_path)
    recover(log.parent).apply()
    with open_writer(tmp_path) as writer:
        assert (writer.log_start_offset, writer.log_end_offset) == (2, 3)


def test_the_scheduler_flushes(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, LogConfig(flush_ms=10), environment=Environment(clock=clock)) as logs:
        writer = logs.open("topic", 0)
        writer.append(produced())
        clock.now_ms += 10
        logs.start_scheduler(interval_ms=1)
        logs.start_scheduler()
        wait_until(lambda: writer.recovery_point == 1)


def test_topic_id_and_records(tmp_path: Path) -> None:
    from seglog_format import new_record

    with PartitionWriter(tmp_path / "t-3", topic_id="AAAAAAAAAAEAAAAAAAAAAg") as writer:
        assert writer.last_stable_offset == 0
        appended = writer.append([new_record(key=b"k", value=b"v"), new_record(value=None)])
    assert (appended.first_offset, appended.last_offset) == (0, 1)
    metadata = tmp_path / "t-3" / "partition.metadata"
    assert metadata.read_text(encoding="utf-8") == "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg"
    with open_partition(tmp_path / "t-3") as partition:
        assert [(record.key, record.value) for record in partition.records()] == [(b"k", b"v"), (None, None)]


def test_settings_are_checked() -> None:
    assert LogConfig.from_properties({"cleanup.policy": "compact,delete", "preallocate": "true"}).is_compacted
    assert LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=5).roll_ms == 5
    assert LogConfig(max_compaction_lag_ms=5).roll_ms == LogConfig().segment_ms
    assert LogConfig().flush_messages == INT64_MAX
    for wrong in (
        {"segment.bytes": "13"},
        {"segment.bytes": "many"},
        {"segment.size": "1"},
        {"generation": "9"},
        {"cleanup.policy": "keep"},
        {"message.timestamp.type": "NoTimestampType"},
    ):
        with pytest.raises(UsageError):
            LogConfig.from_properties(wrong)


def test_a_large_last_segment_is_read_through_windows(tmp_path: Path) -> None:
    with open_writer(tmp_path, max_message_bytes=2**21) as writer:
        for _ in range(48):
            writer.append([new_record(value=bytes(2**20))])
    assert sum(len(data) for data in contents(tmp_path / "topic-0", ".log").values()) > 48 * 2**20
    gc.collect()
    tracemalloc.start()
    try:
        with open_writer(tmp_path) as writer:
            assert writer.log_end_offset == 48
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "00000000000000000001.snapshot"])
def test_a_small_file_that_is_huge_is_not_taken_into_memory(tmp_path: Path, name: str) -> None:
    """A snapshot that cannot be read is passed over (SEG-PSN-005); without leader epochs a writer does not go on."""
    with open_writer(tmp_path) as writer:
        writer.append([new_record(value=b"")])
    with (tmp_path / "topic-0" / name).open("wb") as file:
        file.truncate(2**30)
    gc.collect()
    tracemalloc.start()
    try:
        if name.endswith(".snapshot"):
            open_writer(tmp_path).close()
        else:
            with pytest.raises(RefusedError, match="SEG-PDR-020"):
                open_writer(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20
