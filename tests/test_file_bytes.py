"""Reading files: mapped, copied, and refused."""

from __future__ import annotations

import errno
import os
import pickle
import socket
import sys
from pathlib import Path

import pytest

from seglog_format.checks import verify
from seglog_format.errors import RefusedError, UsageError
from seglog_format.lines import lines_of
from seglog_format.log import file_bytes
from seglog_format.log.file_bytes import MAX_WHOLE_SIZE, open_bytes, read_whole
from seglog_format.log.offset_checkpoints import read_offset_checkpoint
from seglog_format.log.producer_snapshot import ProducerSnapshot
from seglog_format.log.transaction_index import TransactionIndex

DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"0123456789")
    return file


@pytest.mark.parametrize("copy", [False, True])
def test_a_file_is_a_read_only_view(path: Path, copy: bool) -> None:  # noqa: FBT001
    with open_bytes(path, copy=copy) as source:
        assert bytes(source.data) == b"0123456789"
        assert source.data.readonly
        assert (source.size, source.path, source.is_mapped) == (10, str(path), not copy)


def test_an_empty_file_is_no_bytes(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with open_bytes(str(empty)) as source:
        assert (bytes(source.data), source.is_mapped) == (b"", False)


def test_data_cannot_be_used_after_closing(path: Path) -> None:
    source = open_bytes(path)
    source.close()
    source.close()
    with pytest.raises(ValueError, match="released"):
        bytes(source.data)


def test_views_outlive_closing(path: Path) -> None:
    source = open_bytes(path)
    part = source.data[2:5]
    source.close()
    assert bytes(part) == b"234"


@pytest.mark.parametrize("copy", [False, True])
def test_what_was_forgotten_is_still_there(path: Path, copy: bool) -> None:  # noqa: FBT001
    with open_bytes(path, copy=copy) as source:
        source.forget()
        assert bytes(source.data) == b"0123456789"
    source.forget()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells the memory of a process")
def test_what_was_forgotten_is_no_memory_of_ours(tmp_path: Path) -> None:
    path, size = tmp_path / "large", 32 * 2**20
    path.write_bytes(b"x" * size)
    with open_bytes(path) as source:
        before = mapped_memory()
        assert source.data.tobytes().count(b"x") == size
        assert mapped_memory() - before > size // 2
        source.forget()
        assert mapped_memory() - before < size // 2


def mapped_memory() -> int:
    """Bytes of files that are in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))


def test_an_exported_view_outlives_closing(path: Path) -> None:
    source = open_bytes(path)
    exported = pickle.PickleBuffer(source.data)  # as numpy would hold it: the view itself cannot be released
    source.close()
    assert bytes(exported.raw()) == b"0123456789"


def test_a_copy_does_not_follow_the_file(path: Path) -> None:
    with open_bytes(path, copy=True) as source:
        path.write_bytes(b"")
        assert bytes(source.data) == b"0123456789"


@pytest.mark.parametrize("error", [OSError(errno.ENODEV, "cannot map"), ValueError("shrank")])
def test_a_file_that_cannot_be_mapped_is_copied(path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(file_bytes, "_map", refuse)
    with open_bytes(path) as source:
        assert (bytes(source.data), source.is_mapped) == (b"0123456789", False)


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
    with open_bytes(path), open_bytes(path, copy=True):
        pass
    with pytest.raises(UsageError):
        open_bytes(tmp_path)
    assert len(list(DESCRIPTORS.iterdir())) == before


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
    assert [(finding.location.path.rpartition("/")[2], finding.found) for finding in found] == [(name, "67,108,865")]


@pytest.mark.req("SEG-PDR-020")
def test_what_a_reader_does_with_a_refused_file(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="expected at most 67,108,864 bytes"):
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
    assert len(read_whole(sparse(tmp_path / "quorum-state", MAX_WHOLE_SIZE))) == MAX_WHOLE_SIZE
