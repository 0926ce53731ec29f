"""The system calls of a Python module, recorded by strace or by a preloaded library."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.calls.events import EMPTIES, Event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPOSITORY: Final = Path(__file__).resolve().parent.parent.parent
SHIM: Final = Path(__file__).with_name("watch.c")
CALLS: Final = {
    "open": "open",
    "openat": "open",
    "creat": "open",
    "write": "write",
    "pwrite64": "write",
    "writev": "write",
    "pwritev": "write",
    "pwritev2": "write",
    "sendfile": "write",
    "copy_file_range": "write",
    "fallocate": "write",
    "mmap": "map",
    "ftruncate": "truncate",
    "truncate": "truncate",
    "fsync": "sync",
    "fdatasync": "sync",
    "rename": "rename",
    "renameat": "rename",
    "renameat2": "rename",
    "link": "link",
    "linkat": "link",
    "unlink": "remove",
    "unlinkat": "remove",
    "rmdir": "remove",
    "mkdir": "make directory",
    "mkdirat": "make directory",
    "sendto": "send",
    "sendmsg": "send",
}
"""Watched system calls, each with its kind of event; an open may be several events or none."""

LINE: Final = re.compile(r"^(?P<thread>\d+) +(?P<call>\w+)\((?P<rest>.*)$")
RESUMED: Final = re.compile(r"^(?P<thread>\d+) +<\.\.\. (?P<call>\w+) resumed>(?P<rest>.*)$")
UNFINISHED: Final = " <unfinished ...>"
DESCRIPTOR: Final = re.compile(r"(?:AT_FDCWD|\d+)<([^<>]*)>")
TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
WRITTEN_MAP: Final = re.compile(r"PROT_WRITE.*MAP_SHARED")


class CannotWatchError(Exception):
    """This machine cannot watch a process in this way."""


def watched_by_strace(module: str, arguments: Sequence[str], log: Path) -> list[Event]:
    """Run a module under strace.

    Raises:
        CannotWatchError: strace is missing, or has no permission to watch.
    """
    strace = child_processes.find_program("strace")
    if strace is None:
        msg = "there is no strace on this machine"
        raise CannotWatchError(msg)
    tracing = [strace, "-f", "-y", "-qq", "-s", "300", "-e", "signal=none", "-o", str(log), "-e"]
    if child_processes.run(
        [*tracing, "trace=fsync", "true"], directory=REPOSITORY, capture_output=True, check=False
    ).returncode:
        msg = "strace may not watch processes on this machine"
        raise CannotWatchError(msg)
    known = ",".join(f"?{call}" for call in CALLS)
    _run([*tracing, f"trace={known}", sys.executable, "-m", module, *arguments], {})
    return list(events_of(log.read_text(encoding="utf-8", errors="replace").splitlines()))


def watched_by_preload(module: str, arguments: Sequence[str], log: Path) -> list[Event]:
    """Run a module with a preloaded library around the C library's functions: this needs a compiler, but no rights.

    Raises:
        CannotWatchError: there is no compiler, or this is not Linux.
    """
    compiler = child_processes.find_program("gcc") or child_processes.find_program("cc")
    if compiler is None or sys.platform != "linux":
        msg = "there is no C compiler on this machine, or it does not run Linux"
        raise CannotWatchError(msg)
    library = log.with_suffix(".so")
    child_processes.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], directory=REPOSITORY, check=True
    )
    _run([sys.executable, "-m", module, *arguments], {"LD_PRELOAD": str(library), "WATCH_LOG": str(log)})
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [Event(*line.split("\t", 2)) for line in lines]


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    known = {**environment, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    done = child_processes.run(
        command, directory=REPOSITORY, changes=known, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


def events_of(lines: Sequence[str]) -> Iterator[Event]:
    """Parse the output of strace for several threads; failed calls are left out, since they changed nothing."""
    begun: dict[str, str] = {}
    for line in lines:
        if (resumed := RESUMED.match(line)) is not None:
            yield from _events(resumed["call"], begun.pop(resumed["thread"], "") + resumed["rest"])
        elif (found := LINE.match(line)) is not None:
            call, rest = found["call"], found["rest"]
            if CALLS.get(call) == "sync":
                yield Event("sync begins", _path(rest))
            if rest.endswith(UNFINISHED):
                begun[found["thread"]] = rest.removesuffix(UNFINISHED)
            else:
                yield from _events(call, rest)


def _events(call: str, rest: str) -> Iterator[Event]:
    arguments, _, result = rest.rpartition(" = ")
    what = CALLS.get(call, "")
    if what == "send":
        yield Event(what, "")
    elif not what or result.startswith(("-1", "?")):
        return
    elif what == "open":
        empties = "O_TRUNC" in arguments or call == "creat"
        if "O_CREAT" in arguments or call == "creat":
            yield Event("create", _named(arguments)[0], EMPTIES * empties)
        elif empties:
            yield Event("truncate", _named(arguments)[0])
    elif what == "map":
        if WRITTEN_MAP.search(arguments) and DESCRIPTOR.search(arguments):
            yield Event("write", _path(arguments))
    elif what in {"rename", "link"}:
        yield Event(what, *_named(arguments))
    elif what in {"remove", "make directory"} or call == "truncate":
        yield Event(what, _named(arguments)[0])
    else:
        text = TEXT.search(arguments) if what == "write" else None
        yield Event(what, _path(arguments), text[1].replace("\\n", "") if text else "")


def _path(arguments: str) -> str:
    """Return the path of the first descriptor."""
    found = DESCRIPTOR.search(arguments)
    return found[1] if found else ""


def _named(arguments: str) -> list[str]:
    """Return all paths that are given by name, each below the directory that is given before it."""
    paths, above = [], ""
    for found in re.finditer(f"{DESCRIPTOR.pattern}|{TEXT.pattern}", arguments):
        if found[1] is not None:
            above = found[1]
        else:
            paths.append(found[2] if found[2].startswith("/") else f"{above}/{found[2]}")
    return paths
