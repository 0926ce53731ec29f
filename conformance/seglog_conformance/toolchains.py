"""Tool chains: whether the programs that build or run an adapter are on this machine, and work.

A program on the PATH may not work: rustup's `cargo` without a default tool chain, Maven on a Java without a compiler, a
stub that only prints how to install the real program. Each is therefore run once, and must succeed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

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
_MAVENS_JAVA: Final = re.compile(r"runtime: (.+)")


def complaints(programs: Iterable[str]) -> list[str]:
    """Return the programs that cannot be used, each with the reason.

    Args:
        programs: names to look up on the PATH.

    Returns:
        Phrases such as ``cargo, which does not work (error: no default toolchain)``; empty if all of them work.
    """
    return [f"{program}, which {reason}" for program in programs if (reason := _reason(program))]


def works(program: str) -> bool:
    """Return whether a program is on the PATH and works."""
    return _reason(program) is None


def _reason(program: str) -> str | None:
    for name in (program, *_COMPANIONS.get(program, ())):
        path = shutil.which(name)
        if path is None:
            return "is not on the PATH" if name == program else f"does not work ({name} is not on the PATH)"
        if name in _PROOFS and (failure := _failure(name, path, os.environ.get("JAVA_HOME"))):
            return f"does not work ({failure})"
    return None


@cache
def _failure(name: str, path: str, java_home: str | None) -> str | None:  # noqa: ARG001 - Maven's answer depends on it
    """Return why a program does not work; run once for each program and Java."""
    status, text = _run(path, _PROOFS[name])
    if status != 0:
        return _first_line(text) or f"it ends with status {status}"
    return _compiler_failure(text) if name == "mvn" else None


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
        done = subprocess.run(
            [path, *arguments],
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
