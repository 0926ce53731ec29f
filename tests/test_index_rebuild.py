"""Indexes built anew from logs, and the command that does it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from helpers.batches import patched
from helpers.index_files import example
from helpers.made_partitions import ONE, content, entry, make, names
from helpers.support import authentic, authentic_expected, authentic_names
from helpers.walking import each_of

from seglog_format.checks import verify
from seglog_format.cli.main import run
from seglog_format.cli.options import GENERATIONS
from seglog_format.log.listing import list_partition
from seglog_format.recovery.index_rebuild import RebuiltSegment, rebuilt_indexes
from seglog_format.requirements import Severity
from seglog_format.state.config import BrokerGeneration

RECOVERED = [name for name in authentic_names() if "/crash-" in name]
INDEX = "00000000000000000000.index"


def rebuilt(directory: Path, **options: int) -> list[RebuiltSegment]:
    return list(rebuilt_indexes(list_partition(directory), **options))


@pytest.mark.req("SEG-RCV-025")
@each_of("name", RECOVERED)
def test_a_rebuild_gives_what_a_broker_s_recovery_gave(name: str) -> None:
    """The last segment was scanned by the broker; its indexes depend on the log alone."""
    (directory,) = (authentic(name) / "after").glob("crash-*-0")
    last = rebuilt(directory)[-1]
    expected = {Path(line["file"]).name: line for line in authentic_expected(name) if line["file"].startswith("after/")}
    for index in last.indexes:
        if index.name in expected and expected[index.name]["type"] in {"offsetIndex", "timeIndex"}:
            assert index.is_same, index.name


@pytest.mark.req("SEG-RCV-025")
def test_the_example_of_the_chapter(tmp_path: Path) -> None:
    """The batches of the example, with the bit put right and without the one that is cut short."""
    damaged = example("71-flush-and-recovery", "crashed").data
    whole = damaged[:219].replace(b"\x02w\x00", b"\x02v\x00")
    directory = make(tmp_path, {"0.log": whole})
    (segment,) = rebuilt(directory, interval_bytes=78)
    assert segment.end == segment.size == 219
    offsets, times = (index.data for index in segment.indexes)
    assert struct.unpack(">ii", offsets) == (2, 79)
    assert struct.unpack(">qiqi", times) == (1006, 2, 1007, 3)


def test_damage_that_only_a_checksum_shows_is_passed(tmp_path: Path) -> None:
    flipped = patched(entry(1), 70, "b", 77, seal=False)
    directory = make(tmp_path, {"0.log": entry(0) + flipped + entry(2) + entry(1) + entry(3)})
    (segment,) = rebuilt(directory, interval_bytes=0)
    assert segment.end == 3 * ONE
    assert segment.indexes[0].data == struct.pack(">iiii", 1, ONE, 2, 2 * ONE)


def test_states(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0), "0.index": bytes(80), "0.timeindex": b"junk"})
    (segment,) = rebuilt(directory)
    assert [index.state for index in segment.indexes] == ["same", "differs"]
    (directory / INDEX).unlink()
    assert rebuilt(directory)[0].indexes[0].state == "missing"


# The command


def seglog(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> str:
    assert run([str(argument) for argument in arguments]) == status
    return capsys.readouterr().out


def damaged_indexes(root: Path) -> Path:
    data = b"".join(entry(number, time=1000 + number) for number in range(100))
    return make(root, {"0.log": data, "0.index": b"junk" * 4, "100.log": entry(100), "100.index": b"", "7.index": b""})


def test_nothing_is_written_unasked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    before = content(directory)
    lines = [json.loads(line) for line in seglog(capsys, "index", "--json", directory).splitlines()]
    assert [[file["state"] for file in line["files"]] for line in lines] == [
        ["differs", "missing"],
        ["same", "missing"],
    ]
    assert "differs" in seglog(capsys, "index", directory)
    assert content(directory) == before


def test_indexes_in_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    logs = {name: data for name, data in content(directory).items() if name.endswith(".log")}
    seglog(capsys, "index", "--rebuild", "--write", directory)
    assert logs.items() <= content(directory).items()
    errors = [finding for finding in verify(directory) if finding.severity is Severity.ERROR]
    assert [finding.requirement for finding in errors] == ["SEG-PDR-008"]  # one log has been taken away
    assert all(index.is_same for segment in rebuilt(directory) for index in segment.indexes)


def test_indexes_elsewhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    before = content(directory)
    seglog(capsys, "index", "--rebuild", "-o", tmp_path / "out", directory)
    assert names(tmp_path / "out") == [".index", ".timeindex", "100.index", "100.timeindex"]
    seglog(capsys, "index", "--rebuild", "-o", tmp_path / "all", directory.parent)
    assert content(tmp_path / "all" / "orders-0") == content(tmp_path / "out")
    assert content(directory) == before


def test_one_segment(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    log = directory / "00000000000000000100.log"
    seglog(capsys, "index", "--rebuild", "-o", tmp_path / "out", log)
    assert names(tmp_path / "out") == ["100.index", "100.timeindex"]


def test_options_decide(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + entry(1, 3) + entry(4, 3), "0.timeindex": b""})
    options = ("--index-interval-bytes", "50", "--generation", "0.11")
    text = seglog(capsys, "index", "--rebuild", "--write", *options, directory)
    assert "every 50 bytes: as asked for" in text
    entries = struct.unpack(">iiii", (directory / INDEX).read_bytes())
    assert entries == (1, ONE, 4, ONE + len(entry(1, 3)))


def test_every_generation_can_be_asked_for() -> None:
    assert tuple(generation.value for generation in BrokerGeneration) == GENERATIONS


def test_damage_is_a_finding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + b"x" * 50})
    assert "cannot be indexed" in seglog(capsys, "index", directory, status=1)


@pytest.mark.parametrize("options", [["--rebuild"], ["--write"], ["-o", "x"], ["--rebuild", "--write", "-o", "x"]])
def test_what_does_not_go_together(options: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    seglog(capsys, "index", *options, directory, status=2)


def test_no_output_inside_the_source(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = damaged_indexes(tmp_path)
    for output in (directory / "new", directory):
        seglog(capsys, "index", "--rebuild", "-o", output, directory, status=2)
        seglog(capsys, "salvage", "-o", output, directory, status=2)
    seglog(capsys, "salvage", "-o", tmp_path / "new", directory / INDEX, status=2)
    seglog(capsys, "index", directory / INDEX, status=2)


def test_salvage_tells_and_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flipped = patched(entry(1), 70, "b", 77, seal=False)
    directory = make(tmp_path, {"0.log": entry(0) + flipped + entry(2)})
    (line,) = seglog(capsys, "salvage", "--json", "-o", tmp_path / "a", directory, status=1).splitlines()
    reported = json.loads(line)
    assert (reported["batches"], reported["keptBytes"], reported["damaged"][0]["position"]) == (2, 2 * ONE, ONE)
    text = seglog(capsys, "salvage", "-o", tmp_path / "b", directory.parent, status=1)
    assert f"not copied: bytes {ONE} to {2 * ONE}" in text
    assert content(tmp_path / "b" / "orders-0") == content(tmp_path / "a")
    assert "2 batches" in seglog(capsys, "salvage", "-o", tmp_path / "c", tmp_path / "a")


def test_recover_writes_when_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + b"x" * 50, "0.index": b"", "0.timeindex": b""})
    reported = json.loads(seglog(capsys, "recover", "--json", directory, status=1))
    assert not reported["isWritten"]
    assert reported["changes"][0] == {
        "file": "00000000000000000000.log",
        "change": f"cut to {ONE} bytes",
        "requirement": "SEG-RCV-033",
    }
    assert "changed:" in seglog(capsys, "recover", "--write", directory, status=1)
    assert "chang" not in seglog(capsys, "recover", "--write", directory)
    seglog(capsys, "recover", "--like-broker", "--full-scan", directory, status=2)
    seglog(capsys, "recover", "--write", directory / "00000000000000000000.log", status=2)


def test_a_broker_that_would_not_start(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + entry(2**40) + b"x", "0.index": b""})
    text = seglog(capsys, "recover", "--like-broker", "--write", directory, status=1)
    assert "nothing is done" in text
    assert json.loads(seglog(capsys, "recover", "--like-broker", "--json", directory, status=1))["failure"]
    assert "as a broker starts" in seglog(capsys, "recover", directory, status=1)
