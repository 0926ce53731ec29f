"""Processes of a testee: how large they are, and how to be rid of all of them.

A child gets a session of its own, so that one signal reaches it and what it forked. What leaves the session is found by
a mark in its environment, where the system shows environments in ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC: Final = Path("/proc")
HAS_PROC: Final = (PROC / "self" / "statm").exists()
MARK: Final = "SEGLOG_CONFORM_TESTEE"
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TICKS: Final = os.sysconf("SC_CLK_TCK")
USER_TIME: Final = 11
"""Place of the field in a process's ``stat``, counted from behind its name; that of the system follows."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a process has in memory now, and had at most since its peak was last set back."""

    resident: int
    peak: int


def memory_of(pid: int) -> Memory | None:
    """Return the memory of a process; None where it cannot be known."""
    fields = {}
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name in {"VmRSS", "VmHWM"}:
                fields[name] = int(rest.split()[0]) * 1024
    return Memory(fields["VmRSS"], fields["VmHWM"]) if len(fields) == 2 else None  # noqa: PLR2004 - both of them


def reset_peak(pid: int) -> None:
    """Let the peak of a process start again from what it has now, where the system can do that."""
    with contextlib.suppress(OSError):
        (PROC / str(pid) / "clear_refs").write_text("5", encoding="ascii")


def session_size(session: int) -> int:
    """Bytes in memory of all processes of a session."""
    return sum(_resident(pid) for pid in _pids() if _session(pid) == session)


def company_size(session: int) -> int:
    """Bytes in memory of all processes of a session but its first."""
    return sum(_resident(pid) for pid in _pids() if pid != session and _session(pid) == session)


def _resident(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def processor_seconds(pid: int) -> float:
    """Processor time that a process has had; 0 where that cannot be known."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return (int(fields[USER_TIME]) + int(fields[USER_TIME + 1])) / TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _pids() -> Iterator[int]:
    if HAS_PROC:
        yield from (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())


def marked(mark: str) -> list[int]:
    """Return the processes that carry a mark in their environment, this one aside."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            environment = (PROC / str(pid) / "environ").read_bytes()
            if pid != os.getpid() and wanted in environment.split(b"\0"):
                found.append(pid)
    return found


def end_all(group: int, mark: str) -> None:
    """End a process group, and whatever carries its mark and has left it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(8):  # one that is ended may just have forked
        left = [pid for pid in marked(mark) if not _is_dead(pid)]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _is_dead(pid: int) -> bool:
    """Tell whether nothing is left of a process but its exit status."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[
            0
        ] == "Z"
    except (OSError, IndexError):
        return True


def cap_address_space(pid: int, size: int) -> None:
    """Refuse a process more address space than it has now and so many bytes on top, where the system can do that."""
    if not HAS_PROC or not size:
        return
    import resource  # noqa: PLC0415 - not everywhere

    with contextlib.suppress(OSError, ValueError, IndexError):
        used = int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[0]) * PAGE
        resource.prlimit(pid, resource.RLIMIT_AS, (used + size, used + size))
