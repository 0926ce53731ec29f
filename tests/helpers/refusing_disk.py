"""Commands in a process of their own, on a disk that refuses some bytes, or with rights that refuse some files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).with_suffix(".c")
REPOSITORY = SOURCE.parents[2]
RIGHTS = "-dac_override,-dac_read_search"


class Answer(NamedTuple):
    """What a command said and how it ended."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return what it said in JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@cache
def preload() -> Path:
    """Return the library that refuses reads; the test is skipped where there is nothing to make it with."""
    if sys.platform != "linux":
        pytest.skip("needs LD_PRELOAD and /proc of Linux")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on the PATH")
    library = Path(gettempdir()) / f"seglog-refusing-disk-{os.getpid()}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def seglog(*arguments: object, refused: tuple[tuple[str, int, int], ...] = ()) -> Answer:
    """Run a command on a disk that refuses ranges of files.

    Args:
        arguments: of the command line.
        refused: end of a path, and the range that cannot be read.
    """
    ranges = ";".join(f"{name}:{start}:{end}" for name, start, end in refused)
    more = {"LD_PRELOAD": str(preload()), "REFUSED": ranges} if refused else {}
    return _run([], arguments, more)


def seglog_without_rights(*arguments: object) -> Answer:
    """Run a command that may not read what its user may not read, also where that user is root."""
    if os.getuid():
        return _run([], arguments, {})
    if shutil.which("setpriv") is None:
        pytest.skip("root reads everything, and there is no setpriv to give that up")
    return _run(["setpriv", f"--inh-caps={RIGHTS}", f"--bounding-set={RIGHTS}"], arguments, {})


def _run(before: list[str], arguments: tuple[object, ...], more: dict[str, str]) -> Answer:
    command = [*before, sys.executable, "-m", "seglog_format.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)
