"""``seglog serve`` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
END_SECONDS: Final = 60


@contextmanager
def serve_process(*arguments: str) -> Iterator[int]:
    """Run a server on a free port of this machine, and end it as an operator does.

    Args:
        arguments: options and paths.

    Yields:
        Port of the server.

    Raises:
        ChildProcessError: the server ends without listening, or does not end on request.
    """
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--state", "none", "--port", "0", *arguments]
    with child_processes.start(command, stderr=subprocess.PIPE, text=True, directory=ROOT) as process:
        try:
            yield _port(process)
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Send the signal each second: a thread held by a tracer may have taken it instead of the main thread."""
    for _ in range(END_SECONDS):
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
            return
    process.kill()
    msg = f"the server does not end in {END_SECONDS} s"
    raise ChildProcessError(msg)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "listening on" in line:
            return int(line.rsplit(":", 1)[1])
    msg = f"the server does not listen: {''.join(lines)}"
    raise ChildProcessError(msg)
