"""What a path is: every command and function refuses what is none of Kafka's, and leaves it as it is."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from helpers.support import FIXTURES, bundled
from test_cli import Seglog

from seglog_format import LogWriter, open_log_directory, open_partition, recover, verify
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.log.path_kind import PathKind, path_kind
from seglog_format.recovery.plan import plan_for_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = f"{0:020}.log"
USAGE = 2
COMMANDS = [
    ["ls", "{}"],
    ["ls", "--long", "{}"],
    ["dump", "{}"],
    ["dump", "--from", "0", "{}"],
    ["inspect", "{}"],
    ["find", "text", "{}"],
    ["doctor", "{}"],
    ["verify", "{}"],
    ["lookup", "{}", "0"],
    ["recover", "{}"],
    ["recover", "--write", "{}"],
    ["recover", "--write", "--like-broker", "{}"],
    ["retain", "--write", "{}"],
    ["salvage", "{}", "-o", "out"],
    ["index", "{}"],
    ["index", "--rebuild", "--write", "{}"],
    ["diff", "{}", "{}"],
    ["serve", "--port", "0", "--end-after", "0", "{}"],
]
WRITABLE = ["serve", "--writable", "--port", "0", "--end-after", "0", "{}"]
"""A command that may begin with an empty directory."""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    return Seglog(capsys)


def a_notes_directory(root: Path) -> None:
    (root / "README.md").write_text("# Notes\n", encoding="utf-8")
    (root / "server.log").write_text("started\n", encoding="utf-8")
    (root / ".lock").write_bytes(b"")
    (root / "inner" / "deeper").mkdir(parents=True)


def an_empty_directory(root: Path) -> None:
    del root


def a_directory_of_directories(root: Path) -> None:
    for name in ("broker-1", "broker-2", "kafka-4.3.0"):
        shutil.copytree(bundled("4.3.0/segs"), root / "all" / name)
        (root / "all" / name / "meta.properties").write_bytes(b"")


FOREIGN = [a_notes_directory, an_empty_directory, a_directory_of_directories]
ASKED = [
    *((command, fill) for command in COMMANDS for fill in FOREIGN),
    (WRITABLE, a_notes_directory),
    (WRITABLE, a_directory_of_directories),
]


def content(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


@pytest.mark.parametrize(
    ("command", "fill"), ASKED, ids=lambda asked: " ".join(asked) if isinstance(asked, list) else asked.__name__
)
def test_commands_refuse_what_is_none_of_kafkas(
    command: list[str], fill: Callable[[Path], None], cli: Seglog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notlog"
    root.mkdir()
    fill(root)
    before = content(tmp_path)
    monkeypatch.chdir(tmp_path)
    out, err = cli.both(*(part.format(root) for part in command), status=USAGE)
    assert (out, err.count("\n")) == ("", 1)
    assert content(tmp_path) == before


@pytest.mark.parametrize("fill", FOREIGN, ids=lambda fill: fill.__name__)
def test_functions_refuse_what_is_none_of_kafkas(fill: Callable[[Path], None], tmp_path: Path) -> None:
    root = tmp_path / "notlog"
    root.mkdir()
    fill(root)
    before = content(root)
    for function in (open_partition, open_log_directory, recover, plan_for_partition):
        with pytest.raises(UsageError):
            function(root)
    with pytest.raises(UsageError):
        list(verify(root))
    assert content(root) == before


def test_a_hint_leads_to_what_is_below(cli: Seglog, tmp_path: Path) -> None:
    a_directory_of_directories(tmp_path)
    _, err = cli.both("verify", tmp_path, status=USAGE)
    assert f"did you mean {tmp_path}/all/broker-1 or {tmp_path}/all/broker-2, or another below it?" in err
    _, err = cli.both("verify", tmp_path / "all" / "broker-1" / "segs-0" / "missing", status=USAGE)
    assert "no such file" in err
    (tmp_path / "mount").mkdir()
    _, err = cli.both("verify", tmp_path / "mount", status=USAGE)
    assert "is a disk not mounted?" in err


def test_dump_also_reads_the_log_directories_in_a_directory(cli: Seglog, tmp_path: Path) -> None:
    a_directory_of_directories(tmp_path)
    lines = [json.loads(line) for line in cli("dump", "--json", tmp_path / "all").splitlines()]
    heads = {tuple(line["file"].split("/")[:2]) for line in lines if line["type"] == "batch"}
    assert heads == {(name, "segs-0") for name in ("broker-1", "broker-2", "kafka-4.3.0")}
    cli.both("verify", tmp_path / "all", status=USAGE)


def test_every_path_is_looked_at_before_any_is_read(cli: Seglog, tmp_path: Path) -> None:
    segments = bundled("4.3.0/segs") / "segs-0"
    out, _ = cli.both("verify", segments, tmp_path / "missing", status=USAGE)
    assert out == ""


@pytest.mark.parametrize("name", ["README.md", "00000000000000000000.index"])
@pytest.mark.parametrize("command", [["ls", "{}"], ["recover", "{}"], ["lookup", "{}", "0"]], ids=" ".join)
def test_files_that_are_no_logs(command: list[str], name: str, cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x" * 100)
    _, err = cli.both(*(part.format(tmp_path / name) for part in command), status=USAGE)
    assert ("no known kind" if name == "README.md" else "a file of this format, but no log") in err


# What is Kafka's


def test_a_directory_with_a_segment_is_a_partition_whatever_its_name(tmp_path: Path) -> None:
    for name in (
        LOG,
        f"{0:020}.index",
        f"{0:020}.log.deleted",
        "leader-epoch-checkpoint",
        f"{0:020}-{0:010}.checkpoint",
    ):
        directory = tmp_path / f"some{len(name)}"
        directory.mkdir()
        (directory / name).write_bytes(b"")
        assert path_kind(directory) is PathKind.PARTITION
    link = tmp_path / "linked"
    link.mkdir()
    (link / LOG).symlink_to(tmp_path / "elsewhere")
    assert path_kind(link) is PathKind.PARTITION


@pytest.mark.parametrize("name", ["orders-0", "__cluster_metadata-0", "orders-0.abc-stray"])
def test_an_empty_directory_with_the_name_of_a_partition_is_one(name: str, cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert path_kind(tmp_path / name) is PathKind.PARTITION
    assert path_kind(tmp_path) is PathKind.LOG_DIRECTORY
    assert cli("ls", tmp_path / name).endswith("no segments\n")


def test_other_files_do_not_make_a_partition(tmp_path: Path) -> None:
    (tmp_path / "backup-2024").mkdir()
    (tmp_path / "backup-2024" / "README.md").write_bytes(b"")
    for path in (tmp_path, tmp_path / "backup-2024"):
        with pytest.raises(UsageError, match="neither a log directory nor a partition directory"):
            path_kind(path)


def test_who_names_a_log_directory_is_told_a_partition_in_it(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"")
    with pytest.raises(UsageError, match=r"a log directory, not a partition directory$"):
        open_partition(tmp_path)
    for name in ("orders-1", "orders-0", "notes"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match=r"; name a partition in it, such as \S+orders-0$"):
        open_partition(tmp_path)


@pytest.mark.parametrize("name", ["meta.properties", "recovery-point-offset-checkpoint", "bootstrap.checkpoint"])
def test_a_file_of_the_root_makes_a_log_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    assert path_kind(tmp_path) is PathKind.LOG_DIRECTORY
    (tmp_path / LOG).write_bytes(b"")
    assert path_kind(tmp_path) is PathKind.PARTITION


def test_a_node_that_was_just_formatted_is_kafkas(cli: Seglog, tmp_path: Path) -> None:
    metadata = tmp_path / "__cluster_metadata-0"
    shutil.copytree(FIXTURES / "formatted" / "files" / "standalone" / metadata.name, metadata)
    assert path_kind(metadata) is PathKind.PARTITION
    assert path_kind(tmp_path) is PathKind.LOG_DIRECTORY
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n", encoding="utf-8")
    cli("verify", tmp_path)
    cli("ls", tmp_path)


def test_what_a_writer_has_begun_is_a_log_directory(tmp_path: Path) -> None:
    with closing(LogWriter(tmp_path)) as writer:
        writer.open("orders", 0)
        assert path_kind(tmp_path) is PathKind.LOG_DIRECTORY


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir(mode=0)
    assert run(["verify", str(tmp_path / "orders-0")]) == 3
