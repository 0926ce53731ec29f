"""Read random logs with the columnar engine and with the reference: both must deliver the same.

Each seed gives one log. It is read whole, from its middle, committed records only, by two threads, and once more with
one byte changed: records and errors must be equal each time.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_conformance.toolchains import child_processes

from proofs.fuzz.delivered_rows import COLUMNS, Row, row_of, rows_of
from proofs.fuzz.random_logs import random_log
from proofs.harness import Outcome
from proofs.report_facts import installed
from seglog_format import Engine, open_partition
from seglog_format.errors import FormatError, MissingOffsetsWarning

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable


MAX_DIFFERENCES = 20
PART = 100
"""Logs that a process reads before it tells what it found."""

Answer = tuple[list[Row], str]


def outcome(read: Callable[[], Iterable[Row]]) -> Answer:
    """Return the delivered rows, and the error that ends the read, or prevents it."""
    found: list[Row] = []
    try:
        found.extend(read())
    except FormatError as error:
        return found, str(error)
    return found, ""


def differences(directory: Path, seed: int) -> list[str]:
    """Return the ways of reading one log for which the engines differ."""
    log, dice = random_log(seed), random.Random(seed)
    path = directory / f"{log.base_offset:020d}.log"
    path.write_bytes(log.data)
    found = compared(directory, f"seed {seed}")
    changed = bytearray(log.data)
    if changed:
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        found += compared(directory, f"seed {seed} with a changed byte")
    path.unlink()
    return found


def compared(directory: Path, name: str) -> list[str]:
    """Return the differences in any way of reading."""
    with open_partition(directory) as partition:
        middle = (partition.log_start_offset + partition.log_end_offset) // 2
        ways: tuple[dict[str, Any], ...] = ({}, {"from_offset": middle}, {"isolation": "read_committed"})
        extras: tuple[dict[str, Any], ...] = ({"batch_rows": 50}, {"layout": "binary"}, {"threads": 2})
        return [
            f"{name}: {way | extra}"
            for way, extra in zip(ways, extras, strict=True)
            if outcome(lambda: rows_of(partition.scan(COLUMNS, **way, **extra)))  # noqa: B023 - called at once
            != outcome(lambda: map(row_of, partition.records(**way, engine=Engine.REFERENCE)))  # noqa: B023
        ]


def run_of(seeds: range) -> list[str]:
    """Return the differences in some logs; their first offsets are random, so a gap before them is ignored."""
    warnings.simplefilter("ignore", MissingOffsetsWarning)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "chance-0"
        directory.mkdir()
        return [text for seed in seeds for text in differences(directory, seed)]


def of_many(seeds: range, workers: int, minutes: float) -> tuple[int, list[str]]:
    """Return the number of logs that were compared in a time, and the first differences."""
    parts = [seeds[start : start + PART] for start in range(0, len(seeds), PART)]
    end, logs, found = time.monotonic() + 60 * minutes, 0, []
    with child_processes.process_pool(workers) as pool:
        for part, differences in zip(parts, pool.map(run_of, parts), strict=True):
            found += differences
            logs += len(part)
            print(f"{logs:,} logs, {len(found)} differences", file=sys.stderr, flush=True)
            if len(found) >= MAX_DIFFERENCES or time.monotonic() >= end:
                pool.shutdown(cancel_futures=True)
                break
    return logs, found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="compare no further logs after these")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.set_defaults(seed=0)


def prove(options: argparse.Namespace) -> Outcome:
    """Compare the records that both engines read from random logs; the seed is that of the first log."""
    logs, found = of_many(range(options.seed, options.seed + options.logs), options.workers, options.minutes)
    facts = {"logs": logs, "differences": len(found)}
    return Outcome(facts, list(map(str, found)), installed("numba", "numpy", "pyarrow"))
