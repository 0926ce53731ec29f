"""The one writer of reports: what was found, and the conditions under which it was found.

The key ``made`` of a report holds the conditions: the command, the commit and whether its files were changed, digests
of what was measured, the date, the versions, the seed, the machine and its load. ``tools.reports`` checks them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import platform
import shlex
import statistics
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ("seglog_format",)
"""What a report measures if it does not say otherwise: the package."""
SUITE: Final = ("seglog_format", "conformance/cases", "conformance/seglog_conformance")
"""What a report about the conformance suite measures."""
BENCHMARKED: Final = ("seglog_format", "benchmarks")
"""What a benchmark measures: the package, by its own programs."""
NOT_MEASURED: Final = (":!reports", ":!docs")
"""Changes of these files do not make a working tree another one than that of the commit."""

NOT_OF_THE_COMMAND: Final = frozenset({"report", "role"})
"""Options that change where a report goes, or which process of a proof this is."""


def run_conditions(
    command: str,
    *,
    seed: int | None = None,
    versions: Mapping[str, str | Sequence[str]] | None = None,
    measures: Sequence[str] = PACKAGE,
    machine: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the conditions of a run.

    Args:
        command: repeats the run from the root of the repository.
        seed: of everything that is random; None if nothing is.
        versions: of tested programs, besides Python and this package.
        measures: directories, relative to the root; a change of their files can change the result.
        machine: further facts about the machine.
    """
    return {
        "command": command,
        "commit": commit(),
        "dirty": is_changed(),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "seed": seed,
        "digests": {each: tree_digest(ROOT / each) for each in measures},
        "versions": {**installed("seglog-format"), **(versions or {})},
        "machine": {**machine_facts(), **(machine or {})},
    }


def proof_command(name: str, options: argparse.Namespace) -> str:
    """Return the command that repeats a proof: all options with their values, defaults included.

    Args:
        name: of the proof.
        options: of the run; those in `NOT_OF_THE_COMMAND` are left out.
    """
    words = ["python", "-m", "proofs", name]
    for option, value in sorted(vars(options).items()):
        flag = f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif option not in NOT_OF_THE_COMMAND and value is not None and value is not False:
            words += [flag, *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def write_report(path: Path | None, conditions: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Write a report, if a path is given, and return its text.

    Args:
        path: of the report; its directory is made if it is missing.
        conditions: result of `run_conditions`.
        found: facts of the run; anything that JSON can hold.
    """
    end = {"machine": {**conditions["machine"], "loadAverageAtEnd": load()}}
    text = json.dumps({"made": {**conditions, **end}, **found}, indent=1, ensure_ascii=False) + "\n"
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return text


def commit() -> str:
    """Return the commit of the working tree; an empty text outside of a repository."""
    return _git("rev-parse", "HEAD")


def is_changed() -> bool:
    """Return whether a file that git knows differs from the commit, reports and pages aside."""
    return bool(_git("status", "--porcelain", "--untracked-files=no", "--", ".", *NOT_MEASURED))


def commits_since(earlier: str) -> int | None:
    """Return the number of commits after another one; None if git does not know it."""
    counted = _git("rev-list", "--count", f"{earlier}..HEAD") if earlier else ""
    return int(counted) if counted else None


def _git(*arguments: str) -> str:
    try:
        done = child_processes.run(["git", *arguments], directory=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def tree_digest(directory: Path) -> str:
    """Return a digest of the names and bytes of all files of a directory, caches and built kernels aside."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.name.endswith((".pyc", ".nbi", ".nbc")) and "kernels" not in path.parts:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"{path.relative_to(directory).as_posix()} {digest}\n".encode())
    return found.hexdigest()


def machine_facts() -> dict[str, Any]:
    """Return the kind of machine and its load, without names and paths."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "loadAverage": load(),
    }


def load() -> float:
    """Return the number of processes that ran or waited, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def processor() -> str:
    """Return the name of the processor; an empty text where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of Python, and of installed packages that a result depends on."""
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median of the seconds of several rounds, with the least and the most."""
    return {"least": min(seconds), "median": statistics.median(seconds), "most": max(seconds)}
