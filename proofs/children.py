"""Child processes whose memory is watched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOOK_SECONDS: Final = 0.004
"""How often a process is looked at: a peak of a few milliseconds is not memory that anybody would miss."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a child process.

    Attributes:
        status: its exit status; negative: the signal that ended it.
        output: what it printed.
        errors: what it printed on standard error.
        anonymous_bytes: the most memory it had that no file stands behind (`RssAnon`), as far as it was seen.
    """

    status: int
    output: str
    errors: str
    anonymous_bytes: int


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file stands behind; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def processor_seconds(pid: int) -> float:
    """Processor time of a process so far, in ticks of the system; 0 where it has ended."""
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
    """Run Python, and look at its memory until it ends.

    Args:
        arguments: of the interpreter.
        seconds: after which it is killed.
        address_space: bytes of it that the child may have (`RLIMIT_AS`).
        ends_when: where it is true, the child is told to end.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command = [*_limited(address_space), sys.executable, *arguments]
        child = subprocess.Popen(command, stdout=output, stderr=errors, env=_environment())
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
    """Return what a command begins with that has only so much address space."""
    if address_space is None:
        return []
    return ["/bin/sh", "-c", f'ulimit -v {address_space // 1024}; exec "$@"', "sh"]


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    return os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def _read(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    content: bytes = file.read()  # type: ignore[attr-defined]
    return content.decode("utf-8", "replace")
