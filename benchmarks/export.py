"""Compare the speed and memory of exports: Parquet by the command against Arrow's writer alone with the same columns.

The records are of 1 KB, and the files are compressed with zstd. Arrow's writer gets the columns from a mapped file; the
command reads a log and does all that it does for users: it starts, reads, writes, syncs.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from seglog_conformance.toolchains import child_processes

from proofs.children import anonymous_bytes
from proofs.report_facts import BENCHMARKED, installed, run_conditions, write_report
from seglog_format import LogConfig, PartitionWriter, encode_columns, open_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD_SIZE: Final = 1024
BATCH_RECORDS: Final = 500
WORDS: Final = 4096
AT_LEAST: Final = 0.8
AT_MOST: Final = 500 * 10**6
"""Limit on anonymous memory, in bytes."""
POLL_SECONDS: Final = 0.02
COLUMNS: Final = (
    *("offset", "timestamp", "timestamp_type", "key", "value", "headers"),
    *("leader_epoch", "file", "position"),
)
ALONE: Final = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
with pa.memory_map(sys.argv[1]) as source:
    reader = pa.ipc.open_file(source)
    repeating = [name for name in ("timestamp_type", "key", "leader_epoch", "file", "position")]
    counted = [*repeating, "offset", "timestamp"]
    counted.remove("key")
    with pq.ParquetWriter(
        sys.argv[2], reader.schema, compression="zstd", use_dictionary=repeating, write_statistics=counted,
        write_page_index=True, store_schema=False,
    ) as writer:
        held = []
        for number in range(reader.num_record_batches):
            held.append(reader.get_batch(number))
            if sum(map(len, held)) >= 2**15 or number + 1 == reader.num_record_batches:
                writer.write_table(pa.Table.from_batches(held))
                held = []
"""
"""Program that runs Arrow's writer alone, with groups of about the size that exports write."""


def main() -> None:
    """Measure, print and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[500, 2000], help="sizes of the log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    sizes = " ".join(map(str, options.megabytes))
    command = f"make bench NAME=export ARGS='--megabytes {sizes} --rounds {options.rounds}'"
    conditions = run_conditions(command, versions=installed("pyarrow"), measures=BENCHMARKED)
    with tempfile.TemporaryDirectory(prefix="bench-export-") as name:
        rows = [measured(Path(name), size, options.rounds) for size in options.megabytes]
    report = {"rows": rows, "atLeast": AT_LEAST, "atMostBytes": AT_MOST}
    print(write_report(options.report, conditions, report), end="")


def measured(root: Path, megabytes: int, rounds: int) -> dict[str, Any]:
    """Return a row of the report.

    Args:
        root: an empty directory.
        megabytes: size of the log.
        rounds: of both commands; the best counts.
    """
    log, columns = root / "logs" / "orders-0", root / "columns.arrow"
    shutil.rmtree(root / "logs", ignore_errors=True)
    count = megabytes * 10**6 // RECORD_SIZE
    _write_log(log, count)
    _write_columns(log, columns)
    table = root / "table"
    commands = {
        "command": [sys.executable, "-m", "seglog_format.cli", "export", str(log), "--to", str(table)],
        "alone": [sys.executable, "-c", ALONE, str(columns), str(root / "alone.parquet")],
    }
    runs: dict[str, list[Run]] = {"command": [], "alone": []}
    for _ in range(rounds):
        shutil.rmtree(table, ignore_errors=True)
        for name, command in commands.items():
            runs[name].append(_run(command))
    ratio, of_processors = (
        min(each[part] for each in runs["alone"]) / min(each[part] for each in runs["command"]) for part in range(2)
    )
    peak = max(each.peak for each in runs["command"])
    return {
        "megabytes": megabytes,
        "records": count,
        "seconds": {name: [round(each.seconds, 2) for each in found] for name, found in runs.items()},
        "processorSeconds": {
            name: [round(each.processor_seconds, 2) for each in found] for name, found in runs.items()
        },
        "ratio": round(ratio, 3),
        "ratioOfProcessorSeconds": round(of_processors, 3),
        "peakBytes": peak,
        "met": ratio >= AT_LEAST and peak <= AT_MOST,
    }


def _write_log(log: Path, count: int) -> None:
    dice = random.Random(1)  # noqa: S311 - chance that repeats
    words = [dice.randbytes(4).hex()[: dice.randint(2, 8)].encode() for _ in range(WORDS)]
    distinct = [b" ".join(dice.choices(words, k=400))[:RECORD_SIZE] for _ in range(BATCH_RECORDS * 4)]
    with PartitionWriter(log, LogConfig(segment_bytes=2**28)) as writer:
        writer.become_leader(1)
        for first in range(0, count, BATCH_RECORDS):
            writer.append(_batch(first, min(count, first + BATCH_RECORDS), distinct))


def _batch(first: int, end: int, distinct: list[bytes]) -> bytes:
    numbers = range(first, end)
    rows = pa.table(
        {
            "timestamp": pa.array([1_700_000_000_000 + number for number in numbers], pa.timestamp("ms", "UTC")),
            "key": pa.array([b"key %d" % (number % 1000) for number in numbers]),
            "value": pa.array([b"%d %s" % (number, distinct[number * 7 % len(distinct)]) for number in numbers]),
        }
    )
    return b"".join(encode_columns(rows, counts=[end - first]))


def _write_columns(log: Path, target: Path) -> None:
    """Write the columns of a log as Arrow has them in memory."""
    with open_partition(log) as partition:
        reader = partition.scan(COLUMNS, layout="binary", batch_rows=2**14)
        with pa.ipc.new_file(target, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)


class Run(NamedTuple):
    """The cost of a program: seconds, processor seconds, and peak anonymous memory in bytes."""

    seconds: float
    processor_seconds: float
    peak: int


def _run(command: list[str]) -> Run:
    start = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with child_processes.start(command, directory=Path(__file__).parent, stdout=subprocess.DEVNULL) as process:
        peak = max(_memory_of(process), default=0)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak)


def _memory_of(process: subprocess.Popen[bytes]) -> Iterator[int]:
    while process.poll() is None:
        yield anonymous_bytes(process.pid)
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
