"""Files with several hard links: a repair replaces them under one name, and the other names keep their bytes."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import EPOCHS, checkpoint, content, entry, make
from helpers.walking import each_of

from seglog_format import LogConfig, PartitionWriter, compact, new_record, rebuild_indexes, recover, retain, truncate
from seglog_format.cli.main import run
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILES = {
    "0.log": entry(0, 5) + entry(5, 5),
    "10.log": entry(10, 5) + entry(15, 5)[:-9],
    "10.index": bytes(8),
    "10.timeindex": bytes(12),
    EPOCHS: b"0\n1\n0 0\n",
}
LOCAL = {"remote_storage_enable": False}


def appended(path: Path) -> None:
    recover(path).apply()
    with PartitionWriter(path) as writer:
        writer.append([new_record(value=b"v")])


def by_command(*words: str) -> Callable[[Path], object]:
    return lambda path: run([*words, str(path)])


CHANGES: Mapping[str, Callable[[Path], object]] = {
    "recover": by_command("recover", "--write"),
    "recover like a broker": by_command("recover", "--write", "--like-broker"),
    "index": by_command("index", "--rebuild", "--write"),
    "retain": by_command("retain", "--write", "--config", "retention.ms=1"),
    "truncate": lambda path: truncate(path, 12).apply(),
    "truncate to a border": lambda path: truncate(path, 7).apply(),
    "rebuild_indexes": lambda path: rebuild_indexes(path).apply(),
    "retain by size": lambda path: retain(path, LogConfig(retention_ms=-1, retention_bytes=1, **LOCAL)).apply(),
    "compact": lambda path: (recover(path).apply(), compact(path, LogConfig(**LOCAL)).apply()),
    "append": appended,
}


def linked(source: Path, target: Path) -> None:
    """Give each file of a directory, and below it, a second name in another one, as ``cp -al`` does."""
    target.mkdir()
    for path in source.iterdir():
        (linked if path.is_dir() else os.link)(path, target / path.name)


@pytest.mark.req("SEG-PDR-031")
@each_of("name", CHANGES)
def test_a_change_of_a_file_leaves_its_other_names_alone(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, FILES)
    checkpoint(directory, "replication-offset-checkpoint", 15)
    before, above = content(directory), content(directory.parent)
    linked(directory.parent, tmp_path / "backup")
    CHANGES[name](directory)
    capsys.readouterr()
    assert content(directory) != before
    assert content(tmp_path / "backup" / directory.name) == before
    assert content(tmp_path / "backup") == above
    assert not list(directory.glob(f"*{TEMPORARY_SUFFIX}"))


def test_a_copy_that_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make(tmp_path, FILES)
    before = content(directory)
    linked(directory, tmp_path / "backup")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        closing(LOCAL_FILES.open_append(directory / "00000000000000000010.log")) as handle,
        pytest.raises(OSError, match="No space"),
    ):
        handle.truncate(0)
    assert content(directory) == content(tmp_path / "backup") == before


def test_a_copy_keeps_what_the_file_was(tmp_path: Path) -> None:
    path, other = tmp_path / "0.log", tmp_path / "other"
    path.write_bytes(b"abc")
    path.chmod(0o640)
    os.link(path, other)
    with closing(LOCAL_FILES.open_append(path)) as handle:
        handle.fsync()
        assert path.samefile(other), "a sync changes nothing"
        handle.write(b"def")
        handle.truncate(5)
    assert (path.stat().st_mode & 0o777, path.stat().st_nlink) == (0o640, 1)
    assert (path.read_bytes(), other.read_bytes()) == (b"abcde", b"abc")
    os.link(path, tmp_path / "third")
    LOCAL_FILES.create(path).close()
    assert (path.read_bytes(), (tmp_path / "third").read_bytes()) == (b"", b"abcde")
