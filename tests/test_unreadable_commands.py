"""Commands where one file or directory cannot be read: the others are looked at, and the exit status is 3."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.support import bundled
from test_cli import FINE, UNREADABLE, Seglog

from seglog_format.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("aaa-0", "mmm-0", "zzz-0")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    return Seglog(capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Provide a log directory with three partitions, in the first and the last of which a batch is damaged."""
    for name in NAMES:
        shutil.copytree(bundled("2.8.2/crash-flip") / "before" / "crash-flip-0", tmp_path / "data" / name)
    return tmp_path / "data"


@pytest.fixture(params=["log", "directory"])
def refused(request: pytest.FixtureRequest, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a log or a partition directory that no user may read."""
    path = data / "mmm-0"
    path = path / f"{128:020}.log" if request.param == "log" else path
    real_open, real_scan, real_access = os.open, os.scandir, os.access

    def is_refused(asked: object) -> bool:
        return not isinstance(asked, int) and str(asked) == str(path)

    def opening(asked: object, *args: int, **options: int) -> int:
        if is_refused(asked):
            raise PermissionError(13, "Permission denied", str(asked))
        return real_open(asked, *args, **options)

    def scanning(asked: object) -> object:
        if is_refused(asked):
            raise PermissionError(13, "Permission denied", str(asked))
        return real_scan(asked)

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "scandir", scanning)
    monkeypatch.setattr(os, "access", lambda asked, *args: not is_refused(asked) and real_access(asked, *args))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["ls", "--long", "{}"],
        ["dump", "{}"],
        ["dump", "--no-records", "{}"],
        ["verify", "{}"],
        ["recover", "{}"],
        ["recover", "--write", "{}"],
        ["index", "{}"],
        ["index", "--rebuild", "--write", "{}"],
        ["retain", "{}"],
        ["salvage", "{}", "-o", "out"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_read_is_passed_over(
    command: list[str], cli: Seglog, data: Path, refused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    before = {path: path.read_bytes() for path in (data / "mmm-0").iterdir()} if refused.suffix else {}
    out, err = cli.both(*(part.format(data) for part in command), status=UNREADABLE)
    reported = out + err
    assert "Permission denied" in reported
    assert refused.name in reported
    assert "Traceback" not in reported
    for name in ("aaa-0", "zzz-0") if command[0] != "index" else ():
        assert name in reported
    if refused.suffix and command[0] == "recover":
        assert {path: before[path] if path == refused else path.read_bytes() for path in before} == before


READING_ALL = {
    "cluster": (),
    "diff": ("clean",),
    "doctor": (),
    "export": ("--to", "table"),
    "index": (),
    "ls": (),
    "recover": (),
    "resurrect": (),
    "retain": (),
    "salvage": ("-o", "new"),
    "transactions": (),
    "verify": (),
}
"""Commands that read the partitions of a log directory, and what they need beside it."""
WALKING = {"dump": ("--no-records",), "find": ("--count", "key")}
"""Commands that read every file below a directory."""


@pytest.mark.parametrize("named", ["orders", "orders-0.bak", "orders-0 (copy)", "lost+found"])
def test_logs_in_a_directory_without_the_name_of_a_partition_are_never_passed_over_in_silence(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("logs/orders-0", f"logs/{named}", "clean/orders-0"):
        shutil.copytree(next(bundled("4.4.0/one").glob("*-0")), tmp_path / path)
    for command, arguments in READING_ALL.items():
        assert run([command, "logs", *arguments]) == UNREADABLE, command
        lines = [line for line in capsys.readouterr().err.splitlines() if "with logs, which are not read" in line]
        assert len(lines) == 1, command
        assert lines[0].startswith(f"seglog: logs/{named}:0: ")
    for command, arguments in WALKING.items():
        assert run([command, *arguments, "logs"]) != UNREADABLE
        assert "not read" not in capsys.readouterr().err
    assert run(["doctor", "logs/orders-0"]) != UNREADABLE
    for path in (tmp_path / "logs" / named).glob("*.log"):
        path.unlink()
    assert run(["ls", "logs"]) == FINE
    assert "not read" not in capsys.readouterr().err
