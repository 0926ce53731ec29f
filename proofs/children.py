"""Child processes whose memory is watched."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
LOOK_SECONDS: Final = 0.004
"""Interval of memory samples: peaks of a few milliseconds do not matter to other programs."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a child process.

    Attributes:
        status: its exit status; negative: the signal that ended it.
        output: its standard output.
        errors: its standard error.
        anonymous_bytes: peak of its memory that is not backed by files (`RssAnon`), in the samples.
    """

    status: int
    output: str
    errors: str
    anonymous_bytes: int


def anonymous_bytes(pid: int) -> int:
    """Return the memory of a process that is not backed by files; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far, in ticks of the system; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def watched(
    arguments: Sequence[str],
    *,
    seconds: float = 600,
    address_space: int | None = None,
    ends_when: Callable[[], bool] | None = None,
) -> Ended:
    """Run Python, and sample its memory until it ends.

    Args:
        arguments: arguments of the interpreter.
        seconds: time limit, after which it is killed.
        address_space: maximum bytes of the child's address space (`RLIMIT_AS`).
        ends_when: returns true when the child shall be asked to end.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command = [*_limited(address_space), sys.executable, *arguments]
        child = child_processes.start(
            command, directory=ROOT, stdout=output, stderr=errors, changes={"PYTHONPATH": str(ROOT)}
        )
        most, deadline = 0, time.monotonic() + seconds
        while child.poll() is None:
            most = max(most, anonymous_bytes(child.pid))
            if time.monotonic() > deadline:
                child.kill()
            elif ends_when is not None and ends_when():
                child.terminate()
            time.sleep(LOOK_SECONDS)
        return Ended(child.returncode, _read(output), _read(errors), most)


def _limited(address_space: int | None) -> list[str]:
    """Return the start of a command that runs another one with limited address space."""
    if address_space is None:
        return []
    return ["/bin/sh", "-c", f'ulimit -v {address_space // 1024}; exec "$@"', "sh"]


def _read(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    content: bytes = file.read()  # type: ignore[attr-defined]
    return content.decode("utf-8", "replace")
