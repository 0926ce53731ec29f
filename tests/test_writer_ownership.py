"""Whoever opens a log goes on under its newest leader epoch, and no process that it forks writes to it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.appends import example, open_writer, produced
from helpers.batches import patched
from helpers.hostile_names import below

from seglog_format import LogWriter, PartitionWriter, new_record, open_partition, verify
from seglog_format.errors import UsageError
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.types import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKPOINT = "leader-epoch-checkpoint"
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
IN_TIME_SECONDS = 20
DESCRIPTORS = Path("/proc/self/fd")


def epochs_of(path: Path) -> list[tuple[int, int]]:
    with open_partition(path) as partition:
        return [(batch.base_offset, batch.header.partition_leader_epoch) for batch in partition.batches()]


def of_epoch(epoch: int, base_offset: int) -> bytes:
    """Return a batch as a leader wrote it."""
    return patched(patched(produced(), 0, "q", base_offset, seal=False), 12, "i", epoch, seal=False)


@pytest.mark.req("SEG-APP-017")
def test_a_writer_goes_on_under_the_newest_leader_epoch(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    for epoch in (0, 5):
        with PartitionWriter(path, leader_epoch=epoch) as writer:
            writer.append([new_record(value=b"v")])
    with PartitionWriter(path) as writer:
        assert writer.leader_epoch == 5
        writer.append([new_record(value=b"v")])
    assert epochs_of(path) == [(0, 0), (1, 5), (2, 5)]
    assert (path / CHECKPOINT).read_text().split() == ["0", "2", "0", "0", "5", "1"]
    assert not list(verify(path))


@pytest.mark.req("SEG-APP-017")
@pytest.mark.parametrize("left", ["", "0\n1\n0 0\n", None], ids=["empty", "stale", "none"])
@pytest.mark.parametrize("rolls", [False, True])
def test_the_log_knows_epochs_that_the_checkpoint_lacks(left: str | None, rolls: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / "topic-0"
    with open_writer(tmp_path, leader_epoch=0) as writer:
        writer.append(produced())
        writer.become_leader(7)
        writer.append(produced())
        writer.append(produced())
        if rolls:
            writer.roll()
    (path / CHECKPOINT).unlink()
    if left is not None:
        (path / CHECKPOINT).write_text(left)
    with open_writer(tmp_path) as writer:
        assert writer.leader_epoch == 7
        writer.append(produced())
    assert epochs_of(path) == [(0, 0), (1, 7), (2, 7), (3, 7)]
    assert (path / CHECKPOINT).read_text().endswith("7 1\n")


@pytest.mark.req("SEG-APP-017")
def test_the_checkpoint_knows_epochs_that_the_log_lacks(tmp_path: Path) -> None:
    """A leader was elected, and wrote nothing."""
    with open_writer(tmp_path) as writer:
        writer.append(produced())
        writer.become_leader(9)
    with open_writer(tmp_path) as writer:
        assert writer.leader_epoch == 9


@pytest.mark.req("SEG-APP-017")
@pytest.mark.parametrize("epoch", [4, 0, -1, 2**31])
def test_an_older_leader_epoch_is_refused(epoch: int, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with PartitionWriter(path, leader_epoch=5) as writer:
        writer.append([new_record(value=b"v")])
        before = (path / CHECKPOINT).read_bytes()
        with pytest.raises(UsageError, match="SEG-APP-017"):
            writer.become_leader(epoch)
        assert (path / CHECKPOINT).read_bytes() == before
        assert writer.leader_epoch == 5
    before_all = below(tmp_path)
    with pytest.raises(UsageError, match="SEG-APP-017"):
        PartitionWriter(path, leader_epoch=epoch)
    assert below(tmp_path) == before_all, "and the directory is as clean as before"
    with LogWriter(tmp_path) as root, pytest.raises(UsageError, match="SEG-APP-017"):
        root.open("orders", 0, leader_epoch=epoch)
    assert epochs_of(path) == [(0, 5)]


@pytest.mark.req("SEG-APP-017")
def test_a_leader_does_not_go_on_below_what_it_took_over_as_a_follower(tmp_path: Path) -> None:
    with open_writer(tmp_path, leader_epoch=3) as writer:
        writer.append_as_follower(of_epoch(9, 0))
        with pytest.raises(UsageError, match="SEG-APP-017"):
            writer.append(produced())
        writer.become_leader(10)
        writer.append(produced())
    assert epochs_of(tmp_path / "topic-0") == [(0, 9), (1, 10)]


def in_child(act: Callable[[], object]) -> str:
    """Return what a forked process comes to: its error, or what it returned; it must not hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # nothing of pytest may run in here
        try:
            said = repr(act())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + IN_TIME_SECONDS
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hung"
        time.sleep(0.005)
    with os.fdopen(reading) as said_by_child:
        return said_by_child.read()


@FORKS
@pytest.mark.req("SEG-FLS-011")
def test_a_forked_process_does_not_write(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with PartitionWriter(path) as writer:
        writer.append([new_record(value=b"a")], acks="flushed")
        writer.append([new_record(value=b"b")])
        before = below(tmp_path)
        entries: dict[str, Callable[[], object]] = {
            "append": lambda: writer.append([new_record(value=b"child")]),
            "append and flush": lambda: writer.append([new_record(value=b"child")], acks="flushed"),
            "follower": lambda: writer.append_as_follower(example("produced")),
            "lead": lambda: writer.become_leader(7),
            "roll": writer.roll,
            "flush": writer.flush,
            "retention": writer.apply_retention,
            "deleted": writer.remove_deleted,
        }
        for name, act in entries.items():
            assert in_child(act).startswith("UsageError"), name
            assert below(tmp_path) == before, name
        assert in_child(writer.close) == "None"
        assert below(tmp_path) == before
        writer.append([new_record(value=b"parent")])
        with pytest.raises(UsageError, match="in use"):
            DirectoryLock(tmp_path)
    with open_partition(path) as partition:
        assert [record.value for record in partition.records()] == [b"a", b"b", b"parent"]
    assert (tmp_path / ".kafka_cleanshutdown").is_file()
    assert not list(verify(tmp_path))


@FORKS
@pytest.mark.req("SEG-FLS-011")
def test_a_fork_in_the_middle_of_an_append_does_not_hang(tmp_path: Path) -> None:
    """A lock that another thread holds at the fork is never released in the child."""
    with PartitionWriter(tmp_path / "orders-0") as writer, writer._lock:
        assert in_child(lambda: writer.append([new_record(value=b"child")])).startswith("UsageError")
        assert in_child(writer.close) == "None"


@FORKS
@pytest.mark.req("SEG-FLS-011")
def test_a_forked_process_closes_no_log_directory(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as root:
        root.open("orders", 0).append([new_record(value=b"a")])
        root.start_scheduler()
        before = below(tmp_path)
        acts: list[Callable[[], object]] = [lambda: root.open("new", 0), root.checkpoint, root.close]
        for act, said in zip(acts, ["UsageError", "UsageError", "None"], strict=True):
            assert in_child(act).startswith(said)
            assert below(tmp_path) == before
        root.open("orders", 1).append([new_record(value=b"b")])
    assert not list(verify(tmp_path))


@FORKS
@pytest.mark.req("SEG-FLS-011")
def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "orders-0")
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    try:
        writer.close()
        with PartitionWriter(tmp_path / "orders-0") as again:
            again.append([new_record(value=b"a")])
    finally:
        process.kill()
        process.join()


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="finds the descriptor where Linux lists them")
@pytest.mark.req("SEG-FLS-011")
@pytest.mark.req("SEG-LDR-007")
def test_the_lock_is_exclusive_and_on_the_whole_file(tmp_path: Path) -> None:
    """Another process asks for the last byte that a lock can cover, and for a shared lock."""
    ask = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 2**62)"
    command = [sys.executable, "-c", ask, str(tmp_path / ".lock")]
    lock = DirectoryLock(tmp_path)
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
    lock.close()
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_copy_of_the_lock_file_does_not_keep_the_lock(tmp_path: Path) -> None:
    """As a process has it between the fork and its first step."""
    lock = DirectoryLock(tmp_path)
    open_now = [int(path.name) for path in DESCRIPTORS.iterdir()]
    copies = [os.dup(each) for each in open_now if is_lock_file(each, tmp_path)]
    assert copies
    try:
        lock.close()
        DirectoryLock(tmp_path).close()
    finally:
        for each in copies:
            os.close(each)


def is_lock_file(descriptor: int, directory: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), (directory / ".lock").stat())
    return False


@FORKS
@pytest.mark.req("SEG-FLS-011")
def test_a_forked_process_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    process = multiprocessing.get_context("fork").Process(target=gc.collect)
    process.start()
    process.join()
    with pytest.raises(UsageError, match="is in use"):
        DirectoryLock(tmp_path)
    lock.close()


def test_headers_are_pairs_or_record_headers(tmp_path: Path) -> None:
    headers = [RecordHeader(b"h", b"x"), (b"n", None)]
    with PartitionWriter(tmp_path / "orders-0") as writer:
        writer.append([new_record(value=b"v", headers=headers)])
        writer.append([new_record(value=b"w", headers=next(iter(open_partition(writer.path).records())).headers)])
    with open_partition(tmp_path / "orders-0") as partition:
        for record in partition.records():
            assert record.headers == (RecordHeader(b"h", b"x"), RecordHeader(b"n", None))
