"""An unchanged process on the recording file system: what it does is recorded, and its log is judged."""

from __future__ import annotations

import json
import mmap
import os
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from helpers.walking import each_of
from seglog_conformance.crash import recording as recordings
from seglog_conformance.crash import run as runs
from seglog_conformance.crash.promises import Seen
from seglog_conformance.crash.recording import DEVICE, LIBRARY, RecordingError, missing, recording
from seglog_conformance.crash.run import Failure, Options, examine, write_failure
from seglog_conformance.crash.workload import Workload
from seglog_conformance.process import Command, ProcessTestee

from fixtures.make.sync_orders import orders_of
from proofs.crash_states import process
from proofs.power.plants import plants
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

FEW = Options(states=20)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where nothing can be recorded; where CI has the device, the library has to be there."""
    reason = missing()
    assert not (os.environ.get("CI") and DEVICE.exists() and LIBRARY in reason), reason
    if not reason:
        try:
            with recording(tmp_path_factory.mktemp("tried")):
                pass
        except RecordingError as error:  # a container may have the device and refuse to mount
            reason = str(error)
    if reason:
        pytest.skip(reason)


@pytest.mark.usefixtures("recorded")
def test_every_change_is_recorded_in_order_with_its_syncs_and_mapped_pages(tmp_path: Path) -> None:
    with recording(tmp_path) as found:
        directory = found.root / "d"
        directory.mkdir()
        file = directory / "x"
        with file.open("wb", buffering=0) as handle:
            handle.write(b"hello" * 1000)
            os.fsync(handle.fileno())
            handle.truncate(4096)
            os.fdatasync(handle.fileno())
        found.mark({"step": 1})
        with file.open("r+b") as handle, mmap.mmap(handle.fileno(), 4096) as mapped:
            mapped[5:7] = b"MM"
            found.mark({"step": 2})
        os.link(file, directory / "y")
        file.rename(directory / "z")
        with (directory / "y").open("rb"):
            (directory / "y").unlink()
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        (directory / "z").write_bytes(b"")
        with (directory / "z").open("wb") as handle:
            os.posix_fallocate(handle.fileno(), 0, 100)
        (directory / "z").unlink()
        directory.rmdir()
        history = found.history()
    assert [history.text(number).partition(" ")[2] for number in range(len(history))] == [
        "mkdir /d",
        "create /d/x",
        "length by write /d/x to 4096",
        "write /d/x at 0, 4096 bytes",
        "length by write /d/x to 5000",
        "write /d/x at 4096, 904 bytes",
        "fsync /d/x",
        "truncate /d/x to 4096",
        "fdatasync /d/x",
        '-- {"step": 1}',
        "write of a mapped page /d/x at 0, 4096 bytes",
        '-- {"step": 2}',
        "link /d/y",
        "rename /d/x to /d/z",
        "unlink /d/y",
        "fsync /d",
        "truncate /d/z to 0",
        "truncate /d/z to 0",
        "truncate /d/z to 100",
        "unlink /d/z",
        "rmdir /d",
    ]


@pytest.mark.usefixtures("recorded")
def test_the_writer_keeps_its_promises_on_a_sample_and_every_line_fits_the_protocol() -> None:
    command = Command(arguments=(sys.executable, "-m", "seglog_conformance.reference"))
    result = examine(ProcessTestee("reference", command, strict=True), 1, FEW)
    assert [failure.text for failure in result.failures] == []
    assert result.counts["states"] >= FEW.states
    assert result.counts["controls with complaints"] == 0


@pytest.mark.usefixtures("recorded")
@each_of("seed", range(1, 5))
def test_the_writer_keeps_the_orders_of_syncs_that_recovery_relies_on(tmp_path: Path, seed: int) -> None:
    testee = ProcessTestee("reference", Command(arguments=(sys.executable, "-m", "seglog_conformance.reference")))
    with recording(tmp_path) as found:
        try:
            Workload(testee, found, random.Random(f"{seed} work")).run()  # noqa: S311 - not a secret
        finally:
            testee.close()
        orders = Counter(orders_of(found.history()))
    assert [order for order, is_kept in orders if not is_kept] == []
    assert len(orders) > 1


@pytest.mark.usefixtures("recorded")
def test_a_planted_omission_is_found_and_shrunk_to_the_lost_operation(tmp_path: Path) -> None:
    plant = next(plant for plant in plants() if plant.name == "a truncation is not synced")
    failure, *_ = examine(process(plant), 1, Options(stops=True)).failures
    assert failure.lost[0].split()[1] == "truncate"
    write_failure(failure, tmp_path / "failure")
    assert (tmp_path / "failure" / "state" / "topic-0").is_dir()
    assert "LOST" in (tmp_path / "failure" / "operations.txt").read_text()


ADAPTER: Final = """
import json, os, pathlib, sys, tempfile
from seglog_format import open_partition
def sync(path):
    os.fsync(descriptor := os.open(path, os.O_RDONLY))
    os.close(descriptor)
def step(do, directory="", data="", isolation="read_uncommitted", **rest):
    global root, batches, end
    if do == "open":
        root, batches, end = pathlib.Path(directory), [], 0
        while (path := root / str(len(batches))).exists() and any(found := path.read_bytes()):
            batches.append(found)
            end += int.from_bytes(found[23:27], "big") + 1
    if do == "append":
        number, data, first = len(batches), bytes.fromhex(data), end
        batches.append(first.to_bytes(8, "big") + data[8:])
        (root / str(number)).write_bytes(batches[-1])
        sync(root / str(number) if number % 2 else root)  # each omits the other
        end += int.from_bytes(data[23:27], "big") + 1
        return {"firstOffset": str(first), "lastOffset": str(end - 1)}
    if do == "read":
        if "refuses" in sys.argv:
            return {"reject": {"message": "no"}}
        with tempfile.TemporaryDirectory() as name:
            log = pathlib.Path(name, "topic-0", "0" * 20 + ".log")
            log.parent.mkdir()
            log.write_bytes(b"".join(batches))
            with open_partition(log.parent) as found:
                read = [*found.records(isolation=isolation)]
        return {"records": [{"offset": str(each.offset), "value": each.value.hex()} for each in read]}
    return {"logStartOffset": "0", "nextOffset": str(end)}
for line in sys.stdin:
    asked = json.loads(line)
    said = {"seq": asked["seq"], "ok": True, "steps": []}
    if asked["op"] == "hello":
        said |= {"protocol": 1, "ops": ["live"], "features": {}, "implementation": {"name": "x", "version": "1"}}
    for each in asked.get("steps", ()):
        said["steps"].append(step(**each))
        if "reject" in said["steps"][-1]:
            break
    print(json.dumps(said), flush=True)
"""


def storage(tmp_path: Path, *arguments: str) -> ProcessTestee:
    (tmp_path / "x.py").write_text(ADAPTER)
    return ProcessTestee("x", Command(arguments=(sys.executable, str(tmp_path / "x.py"), *arguments)))


@pytest.mark.usefixtures("recorded")
def test_two_omissions_with_one_kind_of_failure_are_both_shown(tmp_path: Path) -> None:
    failures = examine(storage(tmp_path), 1, Options(states=60)).failures
    lost = [failure.losses for failure in failures if failure.kind == "loses what was flushed"]
    assert sorted(each.partition(" ")[0] for losses in lost for each in losses) == ["create", "write"]


@pytest.mark.usefixtures("recorded")
def test_what_is_wrong_without_any_loss_is_said_and_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "process_of", lambda *_: storage(tmp_path, "refuses"))
    assert run(["conform", "crash", "--testee", "reference", "--states", "2"]) == 1
    said = capsys.readouterr().out
    assert "without any loss: does not start: read: no\nwrong without any loss: " in said
    assert "0 failures" in said


@pytest.mark.usefixtures("recorded")
def test_the_command_tells_how_many_states_it_judged(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["conform", "crash", "--testee", "reference", "--profile", "ext4-ordered", "--states", "5", "--json"]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["states"] >= 5


def test_a_machine_that_cannot_record_is_told_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recordings, "DEVICE", tmp_path / "fuse")
    assert run(["conform", "crash", "--testee", "reference"]) == 2
    assert "fuse is missing" in capsys.readouterr().err


@each_of(
    ("arguments", "said"),
    [
        (["--broker", "9.9"], "no broker of Kafka 9.9: there are 4.4.0,"),
        (["--broker", "4.4.0", "--testee", "reference"], "--broker takes no --testee"),
        (["--broker", "4.4.0"], "missing: java, mvn"),
    ],
)
def test_a_broker_that_cannot_be_judged_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(["conform", "crash", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_one_implementation_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "crash"]) == 2
    assert "--testee or by --adapter" in capsys.readouterr().err


@each_of("files", [{}, {"d": None, "d/f": b"x"}])
def test_a_failure_is_a_directory_that_anybody_can_start_on(tmp_path: Path, files: dict[str, bytes | None]) -> None:
    failure = Failure(
        seed=1,
        profile="posix",
        kind="hole",
        text="a hole",
        cut=2,
        lost=("1 write",),
        early=(),
        operations=("0 mkdir", "1 write"),
        seen=Seen(),
        control=Seen(),
        files=files,
    )
    write_failure(failure, tmp_path)
    assert {path.name for path in (tmp_path / "state").rglob("*")} == {path.rpartition("/")[2] for path in files}
    assert (tmp_path / "operations.txt").read_text() == "     0 mkdir\nLOST 1 write\n"
    assert json.loads((tmp_path / "failure.json").read_text())["profile"] == "posix"
