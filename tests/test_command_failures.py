"""Commands that cannot write: one line, exit status 4, nothing half-written left, and a second run that succeeds."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from helpers.made_partitions import EPOCHS, checkpoint, entry, make
from helpers.support import FIXTURES, bundled
from helpers.walking import each_of

from seglog_format import open_partition
from seglog_format.cli.main import run
from seglog_format.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

USAGE: Final = 2
UNREADABLE: Final = 3
NOT_WRITTEN: Final = 4
RECIPE: Final = "codecs.toml"
SECONDS_LATER: Final = ("--now", "100000000", "--write")


def crashed_partition(root: Path) -> Path:
    """Return a log directory of a killed broker, some of whose files recovery has to write."""
    shutil.copytree(bundled("2.8.2/crash-flip") / "before", root / "data")
    (root / "data" / "crash-flip-0" / f"{270:020}.index").write_bytes(b"\1" * 16)
    return root / "data"


def recover(root: Path) -> list[str]:
    return ["recover", "--write", str(crashed_partition(root))]


def salvage(root: Path) -> list[str]:
    return ["salvage", str(crashed_partition(root)), "-o", str(root / "out")]


def index_written(root: Path) -> list[str]:
    return ["index", "--rebuild", "--write", str(crashed_partition(root) / "crash-flip-0")]


def index_apart(root: Path) -> list[str]:
    return ["index", "--rebuild", "-o", str(root / "out"), str(crashed_partition(root) / "crash-flip-0")]


def generate(root: Path) -> list[str]:
    return ["generate", str(FIXTURES / "recipes" / RECIPE), "-o", str(root / "out" / "deeper")]


def generate_into_empty(root: Path) -> list[str]:
    (root / "out").mkdir()
    return ["generate", str(FIXTURES / "recipes" / RECIPE), "-o", str(root / "out")]


LINES: Final = """\
{"type":"file","file":"a-0/00000000000000000000.log","bytes":0}
{"type":"file","file":"b-0/00000000000000000000.log","bytes":0}
"""


def convert(root: Path) -> list[str]:
    (root / "lines").write_text(LINES, encoding="utf-8")
    return ["convert", str(root / "lines"), "-o", str(root / "out")]


def delete_old(root: Path) -> list[str]:
    files = {f"{base}.log": entry(base, 10, time=1000 + base) for base in (0, 10, 20)}
    directory = make(root, files | {EPOCHS: b"0\n1\n0 0\n"})
    checkpoint(directory, "recovery-point-offset-checkpoint", 30)
    checkpoint(directory, "replication-offset-checkpoint", 30)
    return ["retain", str(directory), "--config", "retention.ms=7500", *SECONDS_LATER]


def compact(root: Path) -> list[str]:
    shutil.copytree(bundled("4.3.0/compact"), root / "data")
    (root / "data" / "cleaner-offset-checkpoint").unlink(missing_ok=True)
    settings = ["--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0"]
    return ["retain", str(root / "data"), *settings, *SECONDS_LATER]


def export(root: Path) -> list[str]:
    return ["fixtures", "export", "--family", "26", "-o", str(root / "out" / "vectors.zip")]


def new_adapter(root: Path) -> list[str]:
    return ["conform", "new", "python", str(root / "out")]


def page(root: Path) -> list[str]:
    log = next((crashed_partition(root) / "crash-flip-0").glob("*.log"))
    return ["inspect", str(log), "--html", str(root / "page.html")]


def serve(root: Path) -> list[str]:
    pytest.importorskip("kio", reason="serving needs the extra serve")
    return ["serve", "--writable", "--port", "0", "--end-after", "0", str(crashed_partition(root))]


COMMANDS: Final = (
    recover,
    salvage,
    index_written,
    index_apart,
    generate,
    generate_into_empty,
    convert,
    delete_old,
    compact,
    export,
    new_adapter,
    page,
    serve,
)


@dataclass
class Failing:
    """A function of the system that fails once, after it has worked so often below a directory."""

    name: str
    number: int
    after: int
    root: Path
    was_met: bool = False

    def put_into(self, patch: pytest.MonkeyPatch) -> None:
        real = getattr(os, self.name)

        def failing(*args: object, **options: object) -> object:
            if self._concerns(args):
                self.after -= 1
                if self.after < 0 and not self.was_met:
                    self.was_met = True
                    raise OSError(self.number, os.strerror(self.number), *self._path(args))
            return real(*args, **options)

        patch.setattr(os, self.name, failing)

    def _concerns(self, args: tuple[object, ...]) -> bool:
        if self.name == "open" and not int(str(args[1])) & (os.O_RDWR | os.O_CREAT):
            return False
        return isinstance(args[0], int) or str(args[0]).startswith(str(self.root))

    def _path(self, args: tuple[object, ...]) -> list[str]:
        return [] if isinstance(args[0], int) else [str(args[0])]


FAULTS: Final = (
    ("open", errno.EACCES),
    ("open", errno.EMFILE),
    ("pwrite", errno.ENOSPC),
    ("pwrite", errno.EFBIG),
    ("fsync", errno.EIO),
    ("ftruncate", errno.ENOSPC),
    ("replace", errno.EIO),
    ("rename", errno.EACCES),
    ("mkdir", errno.ENOSPC),
    ("unlink", errno.EIO),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__.replace("_", "-"))
@pytest.mark.parametrize("after", [0, 4])
@each_of(("function", "number"), FAULTS, ids=lambda value: str(errno.errorcode.get(value, value)))
def test_an_operation_fails(
    command: Callable[[Path], list[str]],
    function: str,
    number: int,
    after: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = command(tmp_path)
    before = names_below(tmp_path)
    fault = Failing(function, number, after, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        fault.put_into(patch)
        status = run(arguments)
    out, err = capsys.readouterr()
    if not fault.was_met or status < NOT_WRITTEN:
        assert status in {0, 1}
        return
    assert status == NOT_WRITTEN, err
    assert [line for line in err.splitlines() if line.startswith("seglog: ")][-1:] == err.splitlines()[-1:]
    assert os.strerror(number) in err
    assert "Traceback" not in out + err
    assert [name for name in names_below(tmp_path) if ".tmp" in name or ".cleaned" in name] == []
    check_what_is_left(arguments, before, tmp_path, err)
    assert run(again(arguments, tmp_path)) in {0, 1}


def again(arguments: list[str], root: Path) -> list[str]:
    """Return the command once more; what salvage has copied stays, so that it needs another directory."""
    if arguments[0] == "salvage" and (root / "out").exists():
        return [*arguments[:-1], str(root / "again")]
    return arguments


def check_what_is_left(arguments: list[str], before: list[str], root: Path, err: str) -> None:
    """Expect no new directory; half-way through a swap, the message that recovery comes first."""
    if arguments[0] == "salvage" and (root / "out").exists():
        for directory in (root / "out").iterdir():
            with open_partition(directory) as partition:
                assert sum(1 for _ in partition.records()) > 0
    elif "-o" in arguments or arguments[0] == "conform":
        assert names_below(root) == before
    elif any(name.endswith(".swap") for name in names_below(root)):
        assert "recover" in err
        assert run(["recover", "--write", str(root / "data")]) in {0, 1}


def names_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


SCRIPT: Final = """\
import resource, signal, sys
from seglog_format.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", [generate, salvage, recover], ids=lambda command: command.__name__)
def test_files_may_not_become_large(command: Callable[[Path], list[str]], tmp_path: Path) -> None:
    """The system itself refuses, as it does on a full disk."""
    arguments = command(tmp_path)
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (NOT_WRITTEN, 1), done.stderr
    assert "File too large" in done.stderr
    assert [name for name in names_below(tmp_path) if ".tmp" in name or name.startswith("out/")] == []


def test_a_directory_where_a_file_belongs_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = crashed_partition(tmp_path)
    index = data / "crash-flip-0" / f"{270:020}.index"
    index.unlink()
    index.mkdir()
    before = names_below(tmp_path)
    assert run(["recover", "--write", str(data)]) == UNREADABLE
    (refusal,) = capsys.readouterr().err.splitlines()
    assert refusal.endswith("expected a regular file, or a link to one, found a directory [SEG-PDR-030]")
    assert names_below(tmp_path) == before
    index.rmdir()
    assert run(["recover", "--write", str(data)]) in {0, 1}


@pytest.mark.parametrize("setting", ['topic.0.faults=["flip@byte:99999999"]', 'topic.0.faults=["crc@batch:999"]'])
def test_a_recipe_that_cannot_be_made_leaves_nothing(setting: str, tmp_path: Path) -> None:
    recipe, output = FIXTURES / "recipes" / "faults.toml", tmp_path / "new" / "out"
    assert run(["generate", str(recipe), "-o", str(output), "--set", setting]) == USAGE
    assert names_below(tmp_path) == []
    assert run(["generate", str(recipe), "-o", str(output)]) == 0


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), WriteError("stopped"), OSError(errno.EIO, "sick")])
def test_errors_that_no_command_expects(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("seglog_format.cli.paths.path_kind", fail)
    assert run(["ls", str(tmp_path)]) == (NOT_WRITTEN if isinstance(error, WriteError) else UNREADABLE)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("seglog: ")
