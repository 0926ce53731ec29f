"""Measure whole processes: `seglog verify` against Kafka's dump tool, and memory as logs grow."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from datasets import BUILD, SEGMENT
from peers import JAVA, class_path, java_options
from seglog_conformance.toolchains import child_processes

from proofs.report_facts import spread

if TYPE_CHECKING:
    from datasets import DataSet
    from pipe import Process

VERIFY_SECONDS: Final = 120
"""Time limit for a process."""
SMALLEST: Final = 64 << 20
LARGEST: Final = (1 << 31) - 1
"""Size of the largest possible log."""


def verify_commands(data: DataSet, *, java: bool) -> dict[str, list[str]]:
    """Return the commands that read and check every record of a log, by name.

    Args:
        data: the log.
        java: whether Kafka's tool is available.
    """
    ours = [sys.executable, "-m", "seglog_format.cli", "verify", str(data.directory)]
    tool = [
        "java",
        *java_options(),
        "-cp",
        class_path(JAVA.home) if java else "",
        "org.apache.kafka.tools.DumpLogSegments",
    ]
    found = {"seglog verify": ours}
    if java:
        found["kafka-dump-log --deep-iteration"] = [*tool, "--deep-iteration", "--files", str(data.path)]
    return found


def has_engine() -> bool:
    """Return whether `seglog verify` can use the columnar engine."""
    command = [sys.executable, "-m", "seglog_format.cli", "verify", "--help"]
    return (
        "--engine"
        in child_processes.run(
            command, directory=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout
    )


def process_seconds(command: list[str]) -> float | None:
    """Return the seconds that a process took, its output discarded; None if it exceeded the time limit."""
    start = time.perf_counter()
    try:
        child_processes.run(
            command,
            directory=Path(__file__).parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=VERIFY_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    return time.perf_counter() - start


def verify_rows(data: DataSet, rounds: int, *, java: bool) -> list[dict[str, Any]]:
    """Measure every process in turns.

    Args:
        data: the log.
        rounds: number of rounds.
        java: whether Kafka's tool is available.
    """
    commands = verify_commands(data, java=java)
    notes = {} if has_engine() else {"seglog verify": "not built"}
    taken: dict[str, list[float | None]] = {name: [] for name in commands if name not in notes}
    for _ in range(rounds):
        for name, spent in taken.items():
            if None not in spent:  # a process that exceeded the limit is not started again
                spent.append(process_seconds(commands[name]))
    rows: list[dict[str, Any]] = [
        {"work": "verify", "data": data.name, "contender": name, "note": note} for name, note in notes.items()
    ]
    done = {name: [each for each in spent if each is not None] for name, spent in taken.items()}
    return rows + [_verify_row(data, name, spent) for name, spent in done.items()]


def _verify_row(data: DataSet, name: str, spent: list[float]) -> dict[str, Any]:
    row = {"work": "verify", "data": data.name, "contender": name}
    if not spent:
        return {**row, "note": "took too long"}
    figures = spread(spent)
    speed = data.size / 1e6 / figures["median"]
    return {**row, **{key: round(value, 4) for key, value in figures.items()}, "megabytesPerSecond": round(speed, 1)}


def memory_growth(ours: Process, data: DataSet, scale: float) -> list[dict[str, Any]]:
    """Return the anonymous memory of a scan of a log, repeated up to each size.

    Args:
        ours: process of this package that has done no other work.
        data: set to repeat.
        scale: factor for the sizes.
    """
    found = []
    home = BUILD / "growth"
    try:
        paths = [repeated(data, int(size * scale), home / f"{size}-0") for size in (SMALLEST, LARGEST)]
        for path in paths:
            reported = ours.run("memory", path=str(path), how="", warm_up=str(paths[0])).more
            found.append({"data": data.name, "bytes": path.stat().st_size, **reported})
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


def repeated(data: DataSet, size: int, directory: Path) -> Path:
    """Repeat the batches of a log, at other offsets, up to a size: the CRC does not cover offsets."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{SEGMENT}.log"
    log = np.frombuffer(data.path.read_bytes(), np.uint8).copy()
    ends, offsets = _batch_ends(log.tobytes())
    positions = np.concatenate([[0], ends[:-1]])[:, None] + np.arange(8)
    with path.open("wb") as file:
        while count := int(np.searchsorted(ends, size - file.tell(), side="right")):
            file.write(memoryview(log)[: ends[count - 1]])
            offsets += data.records
            log[positions] = offsets.astype(">i8").view(np.uint8).reshape(-1, 8)
    return path


def _batch_ends(log: bytes) -> tuple[Any, Any]:
    ends, offsets, at = [], [], 0
    while at < len(log):
        offsets.append(int.from_bytes(log[at : at + 8], "big"))
        at += 12 + int.from_bytes(log[at + 8 : at + 12], "big")
        ends.append(at)
    return np.array(ends), np.array(offsets, np.int64)
