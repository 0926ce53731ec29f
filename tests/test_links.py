"""Symbolic links: what leads to a file is read, what does not is reported, and nothing beside either is deleted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from helpers.hostile_names import below
from helpers.made_partitions import make, numbered
from helpers.serving import serving
from helpers.support import FIXTURES
from helpers.walking import each_of

from seglog_format import (
    LogConfig,
    PartitionWriter,
    new_record,
    open_log_directory,
    open_partition,
    recover,
    verify,
)
from seglog_format.cli.main import run
from seglog_format.errors import FormatError, WriteError
from seglog_format.recovery.apply import prepare_recovery
from seglog_format.requirements import Severity
from seglog_format.storage.files import LOCAL_FILES

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = list(range(30))
BLOCKS: dict[str, Callable[[Path], object]] = {
    "dangling": lambda path: path.symlink_to(path.parent.parent / "nowhere"),
    "circle": lambda path: path.symlink_to(path.name),
    "directory": lambda path: path.mkdir(),
    "link to a directory": lambda path: path.symlink_to(path.parent.parent),
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "orders-0"
    with PartitionWriter(path, LogConfig(segment_bytes=400, retention_ms=-1)) as writer:
        for number in NUMBERS:
            writer.append([new_record(value=b"%d" % number)])
    return path


def logs(path: Path) -> list[Path]:
    return sorted(path.glob("*.log"))


def moved(file: Path, to: Path) -> Path:
    """Put a file elsewhere and a link in its place, as git-annex does."""
    to.mkdir(exist_ok=True)
    target = file.rename(to / file.name)
    file.symlink_to(target)
    return target


def values(path: Path) -> list[int]:
    with open_partition(path) as partition:
        return [int(record.value or b"") for record in partition.records()]


@pytest.mark.req("SEG-PDR-026")
@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_linked_log_is_read_and_recovered_as_a_file(
    number: int, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved(logs(directory)[number], tmp_path / "annex")
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    before = below(tmp_path)
    assert values(directory) == NUMBERS
    assert not list(verify(directory))
    assert run(["recover", "--write", str(directory)]) == 0
    assert run(["recover", "--write", "--like-broker", str(directory)]) == 0
    assert below(tmp_path) == before
    assert logs(directory)[number].is_symlink()
    assert run(["dump", str(directory)]) == 0
    assert "29" in capsys.readouterr().out


@pytest.mark.req("SEG-PDR-026")
def test_a_linked_log_ends_where_it_ends_for_kafka(tmp_path: Path) -> None:
    started = json.loads((FIXTURES / "witnesses" / "started_logs.json").read_text(encoding="ascii"))
    (case,) = [case for case in started["cases"] if case["name"] == "a symbolic link"]
    path = make(tmp_path, {file: bytes.fromhex(data) for file, data in case["files"].items()})
    moved(path / numbered("0.log"), tmp_path / "annex")
    with open_partition(path) as partition:
        assert {answer["logEndOffset"] for answer in case["answers"].values()} == {partition.log_end_offset}


@pytest.mark.req("SEG-PDR-030", "SEG-PDR-031")
@pytest.mark.parametrize("like_broker", [[], ["--like-broker"]])
def test_a_linked_log_that_has_to_be_cut_is_left_alone(
    like_broker: list[str], directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = moved(logs(directory)[-1], tmp_path / "annex")
    target.write_bytes(target.read_bytes()[:-3])
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    before = below(tmp_path)
    assert run(["recover", "--write", *like_broker, str(directory)]) not in {0, 1}
    assert "symbolic link" in capsys.readouterr().err
    assert below(tmp_path) == before
    with pytest.raises(FormatError, match="SEG-PDR-031"):
        PartitionWriter(directory)
    after = below(tmp_path)
    assert {name: data for name, data in after.items() if not name.endswith(".lock")} == {
        name: data for name, data in before.items() if not name.endswith(".lock")
    }


@pytest.mark.req("SEG-PDR-030", "SEG-PDR-031")
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("ending", [".log", ".index"])
def test_what_is_no_file_is_reported_and_nothing_is_deleted(
    block: str, ending: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = logs(directory)[2].with_suffix(ending)
    file.unlink()
    BLOCKS[block](file)
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    before = sorted(os.listdir(directory))  # noqa: PTH208 - names are all that counts
    found = [finding for finding in verify(directory) if finding.requirement == "SEG-PDR-030"]
    assert [finding.location.path for finding in found] == [file.name]
    assert run(["verify", str(directory)]) == 3
    for options in ([], ["--write"], ["--write", "--like-broker"]):
        assert run(["recover", *options, str(directory)]) == 3
    assert sorted(os.listdir(directory)) == before  # noqa: PTH208
    capsys.readouterr()
    run(["ls", str(directory)])
    assert file.name in capsys.readouterr().err
    with pytest.raises(FormatError, match="SEG-PDR-030"):
        recover(directory)
    if ending == ".log":
        with pytest.raises(FormatError, match="SEG-PDR-030"):
            values(directory)


@pytest.mark.req("SEG-PDR-030")
def test_recovery_refuses_a_file_that_has_the_name_of_a_partition(directory: Path) -> None:
    path = directory.with_name("segs-0")
    path.touch()
    with pytest.raises(FormatError, match=r"a partition directory.*SEG-PDR-030"):
        prepare_recovery(path, open_log_directory(directory.parent))


@pytest.mark.req("SEG-PDR-030")
@pytest.mark.parametrize("block", BLOCKS)
def test_a_replacing_log_that_is_no_file_is_not_passed_over(block: str, directory: Path) -> None:
    BLOCKS[block](logs(directory)[2].with_suffix(".log.swap"))
    with pytest.raises(FormatError, match="SEG-PDR-030"):
        values(directory)


@pytest.mark.req("SEG-PDR-030", "SEG-PDR-031")
def test_a_writer_neither_appends_through_a_link_nor_removes_it(directory: Path, tmp_path: Path) -> None:
    moved(logs(directory)[-1], tmp_path / "annex")
    before = below(tmp_path / "annex")
    with pytest.raises(WriteError, match="symbolic link"):
        PartitionWriter(directory)
    assert below(tmp_path / "annex") == before
    link = logs(directory)[-1]
    for act in (
        lambda: LOCAL_FILES.remove(link),
        lambda: LOCAL_FILES.rename(link, link.with_suffix(".deleted")),
        lambda: LOCAL_FILES.rename(logs(directory)[0], link),
    ):
        with pytest.raises(OSError, match="symbolic link"):
            act()
    assert link.is_symlink()


def test_a_linked_partition_directory_is_listed(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "orders-0").symlink_to(directory)
    (tmp_path / "root" / "meta.properties").write_text("version=1\n")
    run(["ls", str(tmp_path / "root")])
    assert "orders-0" in capsys.readouterr().out


@pytest.mark.req("SEG-PDR-030", "SEG-PDR-031")
def test_recovery_changes_nothing_behind_a_linked_partition_directory(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / directory.name).symlink_to(directory)
    (root / "meta.properties").write_text("version=1\n")
    logs(directory)[-1].write_bytes(logs(directory)[-1].read_bytes()[:-3])
    before = below(directory)
    assert run(["recover", "--write", str(root)]) == 3
    assert "symbolic link" in capsys.readouterr().err
    assert below(directory) == before


def test_a_server_follows_no_link_out_of_its_root_and_says_so(directory: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with PartitionWriter(root / "own-0") as writer:
        writer.append([new_record(value=b"v")])
    (root / "orders-0").symlink_to(directory)
    moved(logs(directory)[0], tmp_path / "annex")
    with serving(root) as served, served.client() as client:
        assert any("orders-0" in line and "link" in line for line in served.findings)
        assert client.list_offset("own", -1).offset == 1
        assert client.list_offset("orders", -1).error_code != 0
    with serving(directory.parent) as served, served.client() as client:
        assert client.list_offset("orders", -1).error_code != 0
        assert any("link" in line for line in served.findings)


@pytest.mark.req("SEG-PDR-030")
@pytest.mark.parametrize("target", ["orders-1", "nowhere"])
def test_a_partition_directory_that_is_a_dead_link_is_an_error(tmp_path: Path, target: str) -> None:
    root = tmp_path / "data"
    (root / "orders-0").mkdir(parents=True)
    (root / "orders-1").symlink_to(root / target)
    assert [(one.location.path, one.requirement) for one in verify(root) if one.severity is Severity.ERROR] == [
        ("orders-1", "SEG-PDR-030")
    ]


NAMED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a partition is a file": ("segs-0", Path.touch),
    "a partition is a link to a file": (
        "segs-0",
        lambda path: path.symlink_to(path.parent / "orders-0" / f"{0:020}.log"),
    ),
    "a partition is a FIFO": ("segs-0", os.mkfifo),
    "a checkpoint is a directory": ("recovery-point-offset-checkpoint", Path.mkdir),
    "leader epochs are a dead link": ("orders-0/leader-epoch-checkpoint", BLOCKS["dangling"]),
    "meta.properties is far too large": ("meta.properties", lambda path: path.write_bytes(b"a=b\n" * 3 * 2**20)),
    "a partition is a circle of links": ("segs-0", BLOCKS["circle"]),
    "a log is a circle of links": (f"orders-0/{999:020}.log", BLOCKS["circle"]),
    "an index is a directory": ("orders-0/00000000000000000000.index", Path.mkdir),
}
"""Entries of a log directory that are not what their names say."""
OF_OWNERS = ("verify", "dump", "recover", "recover --like-broker", "cluster", "doctor", "transactions")
"""Commands that also read whose directory it is."""
OF_RECORDS, EXPORT = ("ls", "retain", "find 29", "lookup --offset 3"), "export --format jsonl --to"


@pytest.mark.req("SEG-PDR-030")
@each_of("name", NAMED)
def test_every_command_says_what_is_not_what_its_name_says(
    name: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry, block = NAMED[name]
    root = tmp_path / str(list(NAMED).index(name))
    copytree(directory.parent, root)
    (root / entry).unlink(missing_ok=True)
    block(root / entry)
    found = {}
    for command in OF_OWNERS if entry == "meta.properties" else [*OF_OWNERS, *OF_RECORDS, f"{EXPORT} {root}-table"]:
        status = run([*command.split(), str(root)])
        found[command] = status, entry in capsys.readouterr().err
    assert found == dict.fromkeys(found, (3, True))


@each_of("command", [*OF_OWNERS, *OF_RECORDS, EXPORT])
def test_a_circle_of_links_beside_the_logs_stops_no_command(command: str, directory: Path, tmp_path: Path) -> None:
    words = [*command.split(), *[f"{tmp_path}/table"] * (command is EXPORT), str(directory.parent)]
    before = run(words)
    BLOCKS["circle"](directory / "notes")
    BLOCKS["circle"](directory.parent / "notes")
    assert (before, run(words)) == (0, 0)
    (directory / "notes").unlink()
    (directory.parent / "notes").unlink()
