"""Reading files: through windows, mapped, and refused."""

from __future__ import annotations

import errno
import os
import pickle
import random
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np
import pytest

from seglog_format.checks import verify
from seglog_format.errors import RefusedError, UnreadableError, UsageError
from seglog_format.lines import lines_of
from seglog_format.log.index_file import ProducerSnapshot, TransactionIndex
from seglog_format.log.listing import read_offset_checkpoint
from seglog_format.storage import byte_source, file_reader
from seglog_format.storage.byte_source import (
    MAX_TEXT_SIZES,
    MAX_WHOLE_SIZE,
    WINDOW_SIZE,
    FileBytes,
    open_bytes,
    open_index,
    open_log,
    read_whole,
)
from seglog_format.storage.file_reader import (
    BLOCK_SIZE,
    BUFFER_SIZE,
    MIN_BUFFERED_SIZE,
    SPARE_BUFFERS,
    RefusedSearch,
    noted_refusals,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTORS = Path("/proc/self/fd")
MAX_SPARE: Final = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"0123456789")
    return file


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_is_a_read_only_view(path: Path, mapped: bool) -> None:  # noqa: FBT001
    with open_bytes(path, mapped=mapped) as source:
        assert bytes(source.view(0, source.size)) == b"0123456789"
        assert source.view(0, source.size).readonly
        assert (source.size, source.path, source.is_mapped) == (10, str(path), mapped)


def test_an_empty_file_is_no_bytes(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with open_bytes(str(empty), mapped=True) as source:
        assert (bytes(source.view(0, source.size)), source.is_mapped) == (b"", False)


@pytest.mark.parametrize("mapped", [False, True])
def test_data_cannot_be_used_after_closing(path: Path, mapped: bool) -> None:  # noqa: FBT001
    source = open_bytes(path, mapped=mapped)
    source.close()
    source.close()
    with pytest.raises(UsageError, match="closed while it is read"):
        bytes(source.view(0, source.size))


@pytest.mark.parametrize("mapped", [False, True])
def test_views_outlive_closing(path: Path, mapped: bool) -> None:  # noqa: FBT001
    source = open_bytes(path, mapped=mapped)
    part, rest = source.view(2, 5), source.window(5).data
    source.close()
    assert bytes(part) == b"234"
    assert bytes(rest).endswith(b"56789")
    with pytest.raises(UsageError, match="closed while it is read"):
        source.view(2, 5)


@pytest.mark.parametrize("mapped", [False, True])
def test_what_was_forgotten_is_still_there(path: Path, mapped: bool) -> None:  # noqa: FBT001
    with open_bytes(path, mapped=mapped) as source:
        source.forget()
        assert bytes(source.view(0, source.size)) == b"0123456789"
    source.forget()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells the memory of a process")
def test_what_was_forgotten_is_no_memory_of_ours(tmp_path: Path) -> None:
    path, size = tmp_path / "large", 32 * 2**20
    path.write_bytes(b"x" * size)
    with open_bytes(path, mapped=True) as source:
        before = memory("RssFile")
        assert source.view(0, source.size).tobytes().count(b"x") == size
        assert memory("RssFile") - before > size // 2
        source.forget()
        assert memory("RssFile") - before < size // 2


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells the memory of a process")
def test_windows_that_are_dropped_leave_little_memory_behind(tmp_path: Path) -> None:
    path, count = tmp_path / "large", 16
    path.write_bytes(bytes(count * WINDOW_SIZE))  # no hole
    SPARE_BUFFERS.clear()
    del [bytes(30 * 2**20)][0]  # glibc keeps smaller blocks for the process after it has freed one of this size
    with open_bytes(path) as source:
        before = memory("RssAnon")
        views, between = [], []
        for position in range(0, count * WINDOW_SIZE, WINDOW_SIZE):
            views.append(source.view(position, position + WINDOW_SIZE))
            between.append(bytes(256 * 1024))
        assert memory("RssAnon") - before > count * WINDOW_SIZE // 2
        views.clear()
        assert memory("RssAnon") - before < (MAX_SPARE + 3) * WINDOW_SIZE
    assert len(between) == count
    assert len(SPARE_BUFFERS) == MAX_SPARE


@pytest.mark.parametrize("size", [MIN_BUFFERED_SIZE, BUFFER_SIZE - 1, BUFFER_SIZE, BUFFER_SIZE + 1])
@pytest.mark.parametrize("holding", [lambda view: view[7:], lambda view: np.frombuffer(view, np.uint8)[7:], bytearray])
def test_a_buffer_is_not_used_again_while_a_view_of_it_is_held(
    tmp_path: Path, size: int, holding: Callable[[memoryview], memoryview]
) -> None:
    path, count = tmp_path / "large", 2 * MAX_SPARE
    parts = [random.Random(number).randbytes(size) for number in range(count)]  # noqa: S311 - chance that repeats
    path.write_bytes(b"".join(parts))
    with open_bytes(path) as source:
        for _ in range(2):
            held = [holding(source.view(at, at + size)) for at in range(0, count * size, size)]
            for at in range(0, count * size, size):  # uses what is free, and fills it with another part
                source.view(count * size - at - size, count * size - at)
            assert [bytes(view)[-9:] for view in held] == [part[-9:] for part in parts]
            assert [crc32(view) for view in held] == [
                crc32(part[-len(view) :]) for part, view in zip(parts, held, strict=True)
            ]


def test_threads_that_read_share_no_buffer(tmp_path: Path) -> None:
    path, size, count = tmp_path / "large", MIN_BUFFERED_SIZE, 16
    parts = [bytes([number]) * size for number in range(count)]
    path.write_bytes(b"".join(parts))

    def read(seed: int) -> list[int]:
        order = random.Random(seed).choices(range(count), k=40)  # noqa: S311 - chance that repeats
        with open_bytes(path) as source:
            views = [(number, source.view(number * size, (number + 1) * size)) for number in order[:8]]
            for number in order[8:]:
                views[number % 8] = number, source.view(number * size, (number + 1) * size)
            return [number for number, view in views if bytes(view) != parts[number]]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(8))) == [[]] * 8


@pytest.mark.parametrize("fault", [OSError(errno.ENOMEM, "no memory"), IndexError()])
def test_without_a_buffer_the_bytes_are_read_all_the_same(
    tmp_path: Path, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_buffer(*_: object, **__: object) -> None:
        raise fault

    path = tmp_path / "large"
    path.write_bytes(b"x" * MIN_BUFFERED_SIZE)
    SPARE_BUFFERS.clear()
    monkeypatch.setattr("mmap.mmap", no_buffer)
    with open_bytes(path) as source:
        assert bytes(source.view(0, MIN_BUFFERED_SIZE)) == b"x" * MIN_BUFFERED_SIZE
    assert not SPARE_BUFFERS


def memory(kind: str) -> int:
    """Bytes of a kind in this process's memory: `RssFile` of files, `RssAnon` of its own."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))


def test_an_exported_view_outlives_closing(path: Path) -> None:
    source = open_bytes(path, mapped=True)
    exported = pickle.PickleBuffer(
        source.view(0, source.size)
    )  # as numpy would hold it: the view itself cannot be released
    source.close()
    assert bytes(exported.raw()) == b"0123456789"


@pytest.mark.req("SEG-PDR-022")
def test_a_file_that_becomes_shorter_is_unreadable_from_there_on(path: Path) -> None:
    with open_bytes(path) as source:
        path.write_bytes(b"01234")
        assert bytes(source.view(0, 4)) == b"0123"
        assert bytes(source.window(2).data) == b"234"
        with pytest.raises(UnreadableError, match="become shorter") as caught:
            source.view(3, 8)
        assert (caught.value.location.position, caught.value.location.size) == (5, 5)
        with pytest.raises(UnreadableError, match="become shorter"):
            source.window(4, 2)


@pytest.mark.parametrize("error", [OSError(errno.ENODEV, "cannot map"), ValueError("shrank")])
def test_a_file_that_cannot_be_mapped_is_read_through_windows(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(byte_source, "_map", refuse)
    with open_bytes(path, mapped=True) as source:
        assert (bytes(source.view(0, source.size)), source.is_mapped) == (b"0123456789", False)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.log: No such file"):
        open_bytes(tmp_path / "missing.log")


def test_a_directory_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a regular file"):
        open_bytes(tmp_path)


def test_a_name_with_a_nul_character_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="null"):
        open_bytes("a\0b")


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    fifo = tmp_path / "00000000000000000000.log"
    os.mkfifo(fifo)
    with pytest.raises(UsageError, match="not a regular file"):
        open_bytes(fifo)


@pytest.mark.skipif(sys.platform == "win32", reason="no devices")
def test_a_device_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not a regular file"):
        open_bytes("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="no UNIX sockets")
def test_a_socket_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # socket names are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.log")
        with pytest.raises(UsageError, match=r"s\.log"):
            open_bytes("s.log")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors under /proc")
def test_no_descriptor_is_left_open(path: Path, tmp_path: Path) -> None:
    before = len(list(DESCRIPTORS.iterdir()))
    with open_bytes(path), open_bytes(path, mapped=True):
        pass
    with pytest.raises(UsageError):
        open_bytes(tmp_path)
    assert len(list(DESCRIPTORS.iterdir())) == before


# Windows


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large"
    file.write_bytes(random.Random(1).randbytes(3 * WINDOW_SIZE + 17))  # noqa: S311 - no secret
    return file


def test_a_mapped_file_is_one_window(large: Path) -> None:
    with open_bytes(large, mapped=True) as source:
        assert source.window(WINDOW_SIZE, 5) == (0, source.view(0, source.size))


def test_windows_follow_each_other_and_grow(large: Path) -> None:
    content = large.read_bytes()
    with open_bytes(large) as source:
        windows, position = [], 0
        while position < source.size:
            windows.append(source.window(position))
            position = windows[-1].start + len(windows[-1].data)
        assert source.window(position - 1) is windows[-1]
    assert b"".join(window.data for window in windows) == content  # all of them are still valid
    sizes = [len(window.data) for window in windows]
    assert sizes[0] < sizes[1] < max(sizes) == WINDOW_SIZE


def test_a_window_holds_as_many_bytes_as_are_asked_for(large: Path) -> None:
    content = large.read_bytes()
    with open_bytes(large) as source:
        start, data = source.window(1000, 2 * WINDOW_SIZE)
        assert bytes(data[1000 - start :]) == content[1000 : 1000 + 2 * WINDOW_SIZE]
        start, data = source.window(source.size - 5, 50)
        assert bytes(data[source.size - 5 - start :]) == content[-5:]
        assert bytes(source.view(source.size - 5, source.size + 50)) == content[-5:]


def test_holes_are_zeros(tmp_path: Path) -> None:
    with open_bytes(sparse(tmp_path / "hole", 3 * WINDOW_SIZE)) as source:
        start, data = source.window(100, WINDOW_SIZE)
        assert not any(data[100 - start :])
        assert len(source.view(0, source.size)) == source.size


@pytest.mark.req("SEG-LOG-010")
def test_a_log_that_no_broker_opens_is_refused_by_its_size(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="SEG-LOG-010"):
        open_log(sparse(tmp_path / "00000000000000000000.log", 2**31))
    with pytest.raises(RefusedError, match="SEG-PDR-020"):
        open_index(sparse(tmp_path / "00000000000000000000.index", 2**31))


# What the disk refuses


class Disk:
    """A file of which some bytes cannot be read, as a system without a page cache would show it."""

    def __init__(self, path: Path, refused: list[tuple[int, int]], *, whole_blocks: bool = False) -> None:
        self.content = path.read_bytes()
        self.refused = refused
        self.failures = 0
        self.whole_blocks = whole_blocks

    def read(self, _: int, size: int, position: int) -> bytes:
        start, end = position, position + size
        if self.whole_blocks:
            start, end = start // BLOCK_SIZE * BLOCK_SIZE, -(-end // BLOCK_SIZE) * BLOCK_SIZE
        if any(low < end and start < high for low, high in self.refused):
            self.failures += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return self.content[position : position + size]


def readable_parts(source: FileBytes) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Return what can be read of a file, and positions and sizes of what cannot; both in order, and all of it."""
    parts, lost, position = [], {}, 0
    while position < source.size:
        try:
            start, data = source.window(position)
        except UnreadableError as error:
            lost[error.location.position] = error.location.size
            position += error.location.size
        else:
            parts.append((position, start + len(data)))
            position = start + len(data)
    return parts, lost


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize(
    "refused",
    [
        [(0, 1)],
        [(5000, 5100)],
        [(5000, 5100), (5300, 5400), (70_000, 70_001)],
        [(0, 4096), (8192, 12288), (3 * WINDOW_SIZE + 16, 3 * WINDOW_SIZE + 17)],
        [(WINDOW_SIZE - 100, 2 * WINDOW_SIZE + 100)],
    ],
)
def test_everything_around_refused_bytes_is_read(
    large: Path, monkeypatch: pytest.MonkeyPatch, refused: list[tuple[int, int]]
) -> None:
    disk = Disk(large, refused)
    monkeypatch.setattr(file_reader, "_read_at", disk.read)
    with open_bytes(large) as source:
        parts, lost = readable_parts(source)
        assert list(lost.items()) == [(start, end - start) for start, end in refused]
        assert sum(end - start for start, end in (*parts, *refused)) == source.size
        before = disk.failures
        readable_parts(source)
        assert disk.failures == before  # what was refused is not asked for again


@pytest.mark.req("SEG-PDR-022")
def test_all_refused_ranges_of_one_failed_read_are_found() -> None:
    refused = [(5000, 5100), (5300, 5400), (70_000, 70_001)]
    search = RefusedSearch(lambda start, end: not any(low < end and start < high for low, high in refused))
    assert list(search.ranges_in(0, 100_000)) == refused


@pytest.mark.req("SEG-PDR-022")
def test_a_refused_gigabyte_takes_a_bounded_number_of_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sparse(tmp_path / "large", 2**30 + 2 * WINDOW_SIZE)
    failures = 0

    def read(_: int, size: int, position: int) -> bytes:
        nonlocal failures
        if position < 2**30 + WINDOW_SIZE and position + size > WINDOW_SIZE:
            failures += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return bytes(size)

    monkeypatch.setattr(file_reader, "_read_at", read)
    monkeypatch.setattr(file_reader.FileReader, "is_hole", lambda *_: False)
    with open_bytes(path) as source:
        _, lost = readable_parts(source)
        assert (min(lost), sum(lost.values())) == (WINDOW_SIZE, 2**30)
    assert failures < 20_000


@pytest.mark.req("SEG-PDR-022")
def test_a_slow_disk_is_asked_for_whole_blocks(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(large, [(5000, 5100)], whole_blocks=True)
    monkeypatch.setattr(file_reader, "_read_at", disk.read)
    monkeypatch.setattr(file_reader, "SLOW_SECONDS", -1.0)
    with open_bytes(large) as source:
        assert readable_parts(source)[1] == {4096: 4096}
    assert disk.failures < 20


@pytest.mark.req("SEG-PDR-022")
def test_time_that_is_used_up_ends_the_search(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(large, [(5000, 5100), (2 * WINDOW_SIZE, 2 * WINDOW_SIZE + 1)])
    monkeypatch.setattr(file_reader, "_read_at", disk.read)
    monkeypatch.setattr(file_reader, "MAX_SECONDS", 0.0)
    with open_bytes(large) as source:
        _, lost = readable_parts(source)
        assert len(lost) == disk.failures == 2


@pytest.mark.req("SEG-PDR-022")
def test_what_is_refused_is_noted_even_if_nobody_hands_the_error_on(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "_read_at", Disk(large, [(7, 8)]).read)
    with noted_refusals() as noted, open_bytes(large) as source:
        with suppress(UnreadableError):
            source.view(0, 10)
        assert [(error.location.position, error.location.size) for error in noted] == [(7, 1)]
        assert isinstance(noted[0].__cause__, OSError)


# Files that are decoded whole


WHOLE = ("leader-epoch-checkpoint", "00000000000000000000.txnindex", "00000000000000000007.snapshot")


def sparse(path: Path, size: int = MAX_WHOLE_SIZE + 1) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, size)
    return path


@pytest.mark.req("SEG-PDR-020")
@pytest.mark.parametrize("name", WHOLE)
def test_a_file_past_the_limit_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "00000000000000000000.log").touch()
    sparse(tmp_path / name)
    found = [finding for finding in verify(tmp_path) if finding.requirement == "SEG-PDR-020"]
    assert [(finding.location.path.rpartition("/")[2], finding.found) for finding in found] == [
        (name, f"{MAX_WHOLE_SIZE + 1:,}")
    ]


@pytest.mark.req("SEG-PDR-020")
def test_what_a_reader_does_with_a_refused_file(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="expected at most 16,777,216 bytes"):
        read_whole(sparse(tmp_path / "recovery-point-offset-checkpoint"))
    assert read_offset_checkpoint(tmp_path / "recovery-point-offset-checkpoint") == {}
    data = memoryview(bytes(MAX_WHOLE_SIZE + 1))
    for decode in (ProducerSnapshot.from_bytes, lambda data: TransactionIndex.from_bytes(data, 0)):
        with pytest.raises(RefusedError):
            decode(data)


@pytest.mark.req("SEG-PDR-020")
@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_entries_past_the_limit_are_not_listed(tmp_path: Path, ending: str) -> None:
    index = sparse(tmp_path / f"00000000000000000000.{ending}", (MAX_WHOLE_SIZE // 24 + 1) * 24)
    with index.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    _, line = lines_of(index)
    assert "SEG-PDR-020" in line["error"]
    assert line["entries"] == []


def test_a_limit_is_not_passed_by_what_is_as_large(tmp_path: Path) -> None:
    assert len(read_whole(sparse(tmp_path / WHOLE[-1], MAX_WHOLE_SIZE))) == MAX_WHOLE_SIZE
    for name, most in MAX_TEXT_SIZES.items():
        assert len(read_whole(sparse(tmp_path / name, most))) == most
        (tmp_path / name).write_text("\n" * most)
        assert [len(line["text"]) for line in lines_of(tmp_path / name) if line["type"] == "text"] == [most]
