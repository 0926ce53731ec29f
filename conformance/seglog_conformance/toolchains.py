"""Tool chains: whether the programs that build or run an adapter are on this machine, and work.

A program on the PATH may not work: rustup's `cargo` without a default tool chain, Maven on a Java without a compiler, a
stub that only prints how to install the real program. Each is therefore run once, and must succeed.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.storage import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterable

PROOF_SECONDS: Final = 60
"""Time limit for a program to print its version."""
SHOWN_CHARACTERS: Final = 200

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PLAIN: Final = ("--version",)
_PROOFS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (*BROWSERS, "cargo", "g++", "gcc", "mvn", "node", "npm", "python3", "rustc", "text2pcap", "tshark"), _PLAIN
    ),
    "go": ("version",),
    "java": ("-version",),
    "javac": ("-version",),
}
"""Arguments with which a program proves that it works. A program without an entry only has to be on the PATH."""
_COMPANIONS: Final = {"cargo": ("rustc",)}
"""Programs that another one needs for any build."""
_ENTRY: Final = re.compile(r"(\S+)(?: ((?:>=|<) [^f]+?))?(?: for (.+))?")
"""An entry of `toolchain`: ``node``, ``node >= 20.19``, ``python3 >= 3.7, < 3.8 for < 1.3``."""
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_NUMBER: Final = re.compile(r"\d+")
_NO_VERSION: Final = "Picked up "
"""Start of a line in which Java repeats options from the environment."""
_MAVENS_JAVA: Final = re.compile(r"runtime: (.+)")


def complaints(entries: Iterable[str], release: str = "") -> list[str]:
    """Return the programs that cannot be used, each with the reason.

    Args:
        entries: programs that must be on the PATH, each with the versions that do (``node >= 20.19``), and with the
            releases of the library that need them (``python3 >= 3.7, < 3.8 for < 1.3``).
        release: release of the library; without one, entries for certain releases do not count.

    Returns:
        Phrases such as ``cargo, which does not work (error: no default toolchain)`` or ``node >= 20.19, and the PATH
        has 18.1.0``; empty if all of them work.
    """
    return [complaint for entry in entries if (complaint := _complaint(entry, release))]


def _complaint(entry: str, release: str) -> str:
    """Return the entry and why it is not met; empty if it is."""
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return f"{entry!r}, which is no program with its versions"
    program, versions, releases = found.groups()
    if releases is not None and not (release and _meets(release, releases)):
        return ""
    wanted = " ".join(filter(None, (program, versions, releases and f"for releases {releases}")))
    if reason := _reason(program):
        return f"{wanted}, which {reason}"
    if versions is None:
        return ""
    has = _version(program)
    return "" if _meets(has, versions) else f"{wanted}, and the PATH has {has or 'one that prints no version'}"


def _meets(version: str, conditions: str) -> bool:
    """Return whether a version is as ``>= 3.7, < 3.8`` wants it."""
    has = _numbers(version)
    for condition in conditions.split(", "):
        comparison, _, limit = condition.partition(" ")
        if not has or (has >= _numbers(limit)) is not (comparison == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(version)))


def works(program: str) -> bool:
    """Return whether a program is on the PATH and works."""
    return _reason(program) is None


def _reason(program: str) -> str | None:
    for name in (program, *_COMPANIONS.get(program, ())):
        path = child_processes.find_program(name)
        if path is None:
            return "is not on the PATH" if name == program else f"does not work ({name} is not on the PATH)"
        if name in _PROOFS and (failure := _failure(name, path, os.environ.get("JAVA_HOME"))):
            return f"does not work ({failure})"
    return None


@cache
def _failure(name: str, path: str, java_home: str | None) -> str | None:
    """Return why a program does not work; run once for each program and Java."""
    status, text = _said(name, path, java_home)
    if status != 0:
        return _first_line(text) or f"it ends with status {status}"
    return _compiler_failure(text) if name == "mvn" else None


@cache
def _said(name: str, path: str, java_home: str | None) -> tuple[int, str]:  # noqa: ARG001 - Maven's answer depends on it
    """Return what a program says of its version."""
    return _run(path, _PROOFS.get(name, _PLAIN))


def _version(program: str) -> str:
    """Return the version that a program on the PATH prints; empty if it prints none."""
    path = child_processes.find_program(program)
    _, text = _said(program, path or "", os.environ.get("JAVA_HOME"))
    printed = "\n".join(line for line in text.splitlines() if not line.startswith(_NO_VERSION))
    found = _VERSION.search(printed) or _NUMBER.search(printed)
    return found[0] if found else ""


def _compiler_failure(text: str) -> str | None:
    """Return why the Java that Maven uses cannot compile."""
    found = _MAVENS_JAVA.search(text)
    if found is None:
        return None
    compiler = Path(found[1].strip()) / "bin" / "javac"
    status, said = _run(str(compiler), _PROOFS["javac"])
    return None if status == 0 else f"{compiler}: {_first_line(said) or f'it ends with status {status}'}"


def _run(path: str, arguments: tuple[str, ...]) -> tuple[int, str]:
    try:
        done = child_processes.run(
            [path, *arguments],
            directory=child_processes.NOWHERE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROOF_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end after {PROOF_SECONDS} s"
    except OSError as error:
        return -1, error.strerror or str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _first_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "".join(filter(str.isprintable, next(filter(None, lines), "")))[:SHOWN_CHARACTERS]
