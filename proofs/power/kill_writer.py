"""Kill a process that writes a log, recover, and look for everything that it acknowledged.

Several threads of a child process append to one log; each prints its append when the call has returned, and the parent
kills the child with SIGKILL at a random moment. This tests the death of a process, and no power failure: the operating
system keeps written data without any sync. The proof `power-cuts` tests power failures.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from seglog_format import LogConfig, LogWriter, Severity, new_record, open_partition, recover, verify

if TYPE_CHECKING:
    import argparse

    from seglog_format import PartitionWriter

PARTITION: Final = "t-0"
THREADS: Final = 4
MAX_LINES: Final = 150
MAX_DELAY_S: Final = 0.02
MAX_APPENDS: Final = 100_000
FLUSHED_SHARE, ROLLED_SHARE = 0.3, 0.02
CLAIM: Final = "process death only: nothing here shows what survives a loss of power"


@dataclass(frozen=True, slots=True)
class Killed:
    """The outcome of one run.

    Attributes:
        acknowledged: number of appends that had returned and were printed.
        kept: number of records in the log after recovery.
        problem: description of a failure; empty for none.
    """

    acknowledged: int
    kept: int
    problem: str


# The child


def _append_forever(writer: PartitionWriter, number: int, seed: str) -> None:
    dice = random.Random(f"{seed} {number}")
    for count in range(MAX_APPENDS):
        value = f"{number}.{count}"
        padded = value.encode().ljust(dice.choice((8, 60, 200)))
        acks = dice.random() < FLUSHED_SHARE
        done = writer.append([new_record(value=padded)], acks="flushed" if acks else "written")
        os.write(sys.stdout.fileno(), f"{done.first_offset} {value}\n".encode())  # one call: a line is whole or absent
        if dice.random() < ROLLED_SHARE:
            writer.roll()


def child(root: Path, seed: str) -> None:
    """Append until killed."""
    config = LogConfig(segment_bytes=4000, index_interval_bytes=200, segment_index_bytes=240)
    logs = LogWriter(root, config)
    writer = logs.open("t", 0)
    logs.start_scheduler(interval_ms=1)
    threads = [threading.Thread(target=_append_forever, args=(writer, number, seed)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# The parent


def run_once(root: Path, seed: str) -> Killed:
    """Start a child, kill it, recover its log, and look for the appends that it had acknowledged.

    Args:
        root: path of the log directory, which is created.
        seed: seed of the appends, and of the approximate time of the kill.
    """
    recover_from = root / PARTITION
    acknowledged = _acknowledged(root, random.Random(seed), seed)
    recover(recover_from).apply()
    with open_partition(recover_from) as partition:
        found = {record.offset: (record.value or b"").decode().strip() for record in partition.records()}
    return Killed(len(acknowledged), len(found), _problem(root, acknowledged, found))


def _acknowledged(root: Path, dice: random.Random, seed: str) -> dict[int, str]:
    command = [sys.executable, "-m", "proofs.power.kill_writer", str(root), seed]
    with child_processes.start(
        command, directory=child_processes.NOWHERE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(dice.randint(1, MAX_LINES))]
        time.sleep(dice.random() * MAX_DELAY_S)
        process.kill()
        lines += process.stdout.readlines()
        process.wait()
    if process.returncode != -signal.SIGKILL:
        msg = f"the child ended by itself: {process.returncode}"
        raise RuntimeError(msg)
    pairs = (line.split() for line in lines if line.endswith("\n"))
    return {int(offset): value for offset, value in pairs}


def _problem(root: Path, acknowledged: dict[int, str], found: dict[int, str]) -> str:
    missing = [offset for offset, value in acknowledged.items() if found.get(offset) != value]
    if missing:
        return f"{len(missing)} acknowledged records are missing or others, first at offset {min(missing)}"
    if sorted(found) != list(range(len(found))):
        return "offsets have gaps"
    errors = [str(finding) for finding in verify(root) if finding.severity is Severity.ERROR]
    if errors:
        return f"verify: {errors[0]}"
    if recover(root / PARTITION).steps:
        return "a second recovery changes something"
    return ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--runs", type=int, default=200, help="moments differ from run to run, whatever the seed")


def prove(options: argparse.Namespace) -> Outcome:
    """Kill a writer in each run, recover, and count acknowledged and kept records."""
    counts: Counter[str] = Counter(acknowledged=0, kept=0)
    failures = []
    for number in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="kill-writer-") as name:
            done = run_once(Path(name) / "logs", f"{options.seed} {number}")
        counts.update(acknowledged=done.acknowledged, kept=done.kept)
        if done.problem:
            failures.append(f"run {number} of seed {options.seed}: {done.problem}")
    return Outcome({"shows": CLAIM, "runs": options.runs, "threads": THREADS, **counts}, failures)


if __name__ == "__main__":
    child(Path(sys.argv[1]), sys.argv[2])
