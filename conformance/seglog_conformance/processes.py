"""Processes of a testee: their memory, and how to end all of them.

A child gets a session of its own: one signal then reaches it and its descendants. Processes that leave the session are
found by a marker in their environment, if the system shows environments in ``/proc``.
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
"""Index of the user time in a process's ``stat``, counted after its name; the system time follows."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The present memory of a process in bytes, and its peak since the last reset."""

    resident: int
    peak: int


def memory_of(pid: int) -> Memory | None:
    """Return the memory of a process; None if it is not known."""
    fields = {}
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name in {"VmRSS", "VmHWM"}:
                fields[name] = int(rest.split()[0]) * 1024
    return Memory(fields["VmRSS"], fields["VmHWM"]) if len(fields) == 2 else None  # noqa: PLR2004 - both of them


def reset_peak(pid: int) -> None:
    """Reset the peak of a process to its present memory, if the system supports that."""
    with contextlib.suppress(OSError):
        (PROC / str(pid) / "clear_refs").write_text("5", encoding="ascii")


def session_size(session: int) -> int:
    """Return the memory of all processes of a session in bytes."""
    return sum(_resident(pid) for pid in _pids() if _session(pid) == session)


def company_size(session: int) -> int:
    """Return the memory of all processes of a session but its first, in bytes."""
    return sum(_resident(pid) for pid in _pids() if pid != session and _session(pid) == session)


def _resident(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process in seconds; 0 if it is not known."""
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
    """Return the processes with a marker in their environment, except this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            environment = (PROC / str(pid) / "environ").read_bytes()
            if pid != os.getpid() and wanted in environment.split(b"\0"):
                found.append(pid)
    return found


def end_all(group: int, mark: str) -> None:
    """End a process group, and all processes with its marker that have left it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(8):  # a process may have forked just before its end
        left = [pid for pid in marked(mark) if not _is_dead(pid)]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _is_dead(pid: int) -> bool:
    """Return whether only the exit status of a process is left."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[
            0
        ] == "Z"
    except (OSError, IndexError):
        return True


def cap_address_space(pid: int, size: int) -> None:
    """Limit the address space of a process to its present size plus `size` bytes, if the system supports that."""
    if not HAS_PROC or not size:
        return
    import resource  # noqa: PLC0415 - not everywhere

    with contextlib.suppress(OSError, ValueError, IndexError):
        used = int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[0]) * PAGE
        resource.prlimit(pid, resource.RLIMIT_AS, (used + size, used + size))
