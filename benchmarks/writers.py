"""The speed of a scan by the writer of the log: writer x codec x magic, with the same records in every log.

Real producers of many libraries write logs once, which are stored below `build/bench/writers`. Then each log is opened,
scanned to its end and closed by the public call `open_partition(directory).scan()`. The logs of a codec take turns, so
the load of the machine affects all of them. Time is processor time: a scan by one thread of a file in the page cache
waits for nothing, so on an idle machine both are equal. The result is the ratio to the best writer of the same codec.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from proofs.report_facts import BENCHMARKED, run_conditions, spread, write_report
from proofs.writers.cells import CODECS, WRITERS, Kind
from proofs.writers.making import make_logs
from proofs.writers.rows import BATCH_RECORDS, rows_of
from seglog_format import open_partition
from seglog_format.errors import FormatError
from seglog_format.types import ScanStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proofs.writers.cells import Cell
    from proofs.writers.making import Made
    from proofs.writers.rows import Row

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / "build" / "bench" / "writers"
CALL: Final = "open_partition(directory).scan()"
MIN_RATIO: Final = 0.4
"""Minimum ratio of the speed of a log to that of the best log of its codec."""
LZ4_RATIO: Final = 0.6
"""Required ratio of the speed of aiokafka's lz4 to librdkafka's."""


@dataclass(slots=True)
class Measured:
    """A log and the times to read it.

    Attributes:
        made: the log.
        statistics: numbers of entries that a scan leaves to slower code.
        seconds: processor seconds of each pass.
    """

    made: Made
    statistics: ScanStatistics = field(default_factory=ScanStatistics)
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the seconds of the median pass."""
        return statistics.median(self.seconds)


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def scan(path: Path, statistics: ScanStatistics | None = None) -> int:
    """Open a partition, read it to its end and close it; return the number of records."""
    with open_partition(path) as partition:
        return sum(batch.num_rows for batch in partition.scan(statistics=statistics))


def table_of(batches: Sequence[Sequence[Row]]) -> pa.Table:
    """Return the columns that every log should hold."""
    rows = [row for batch in batches for row in batch]
    keys, values = (pa.array(list(column), pa.large_binary()) for column in list(zip(*rows, strict=True))[:2])
    return pa.table(
        {"key": keys, "value": values, "timestamp": pa.array([row.timestamp_ms for row in rows], pa.int64())}
    )


def complaint(made: Made, wanted: pa.Table) -> str:
    """Return the differences of a log from the intended records; empty if there are none."""
    try:
        with open_partition(made.path) as partition:
            read = partition.scan(("timestamp", "key", "value"), layout="large_binary").read_all()
    except FormatError as error:
        return str(error).rpartition("/")[2]
    has_times = made.cell.kind is not Kind.LOG_APPEND_TIME and made.cell.magic > 0
    wrong = [name for name in ("key", "value") if not read.column(name).equals(wanted.column(name))]
    if has_times and not read.column("timestamp").cast(pa.int64()).equals(wanted.column("timestamp")):
        wrong.append("timestamp")
    return f"other than the written records: {', '.join(wrong)}" if wrong else ""


def measure(logs: Sequence[Measured], rounds: int) -> None:
    """Let the logs of one codec take turns."""
    for each in logs:
        scan(each.made.path, each.statistics)
    for _ in range(rounds):
        gc.collect()
        for each in logs:
            started = time.process_time()
            scan(each.made.path)
            each.seconds.append(time.process_time() - started)


def cell_fields(cell: Cell) -> dict[str, Any]:
    """Return the fields of a cell for the report, measured or not."""
    return {"writer": cell.writer.title, "kind": cell.kind.value, "codec": cell.codec, "magic": cell.magic}


def rows_of_report(logs: Sequence[Measured], record_count: int) -> list[dict[str, Any]]:
    """Return a row for each log of a codec, with its ratio to the best of them."""
    best = min(each.median for each in logs)
    return [
        {
            **cell_fields(each.made.cell),
            "version": each.made.version,
            "language": each.made.language,
            "through": each.made.cell.writer.way.value,
            "served": each.made.cell.is_served,
            "bytes": sum(path.stat().st_size for path in each.made.path.glob("*.log")),
            "recordsPerSecond": round(record_count / each.median),
            "seconds": spread(each.seconds),
            "ratio": round(best / each.median, 3),
            "fallbacks": {cause.value: count for cause, count in each.statistics.fallbacks.items()},
            "libraryDecompressed": each.statistics.library_decompressed,
        }
        for each in logs
    ]


def ratio_of_lz4(rows: Iterable[dict[str, Any]]) -> float | None:
    """Return the speed of aiokafka's lz4 relative to librdkafka's; None if one of them is missing."""
    speeds = {
        row["writer"]: row["recordsPerSecond"]
        for row in rows
        if row["codec"] == "lz4" and row["kind"] == Kind.PLAIN.value and row["through"] == "client"
    }
    if not {"aiokafka", "librdkafka"} <= speeds.keys():
        return None
    return float(round(speeds["aiokafka"] / speeds["librdkafka"], 3))


def logs_of(options: argparse.Namespace) -> tuple[list[Made], list[dict[str, Any]]]:
    """Make the logs; return those with the intended records, and the reasons why others are missing."""
    batches = rows_of(options.seed, options.batches)
    wanted = table_of(batches)
    root = HOME / f"seed-{options.seed}-batches-{options.batches}"
    writers = [each for each in WRITERS if not options.writers or each.title in options.writers]
    sound, missing = [], []
    for made in make_logs(root, batches, say, writers):
        reason = made.reason or complaint(made, wanted)
        if reason:
            say(f"  {made.cell.topic}: {reason}")
            missing.append({**cell_fields(made.cell), "reason": reason})
        else:
            sound.append(made)
    return sound, missing


def command(options: argparse.Namespace) -> str:
    """Return the command that repeats the run."""
    words = [f"--seed {options.seed} --batches {options.batches} --rounds {options.rounds}"]
    words += ["--writers", *options.writers] if options.writers else []
    return f"make bench NAME=writers ARGS='{' '.join(words)}'"


def main() -> int:
    """Make the logs, measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the records")
    parser.add_argument("--batches", type=int, default=200, help=f"of {BATCH_RECORDS} records in each log")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--writers", nargs="+", metavar="NAME", help="names of the writers; all by default")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    sound, missing = logs_of(options)
    conditions = run_conditions(command(options), seed=options.seed, measures=BENCHMARKED)
    cells: list[dict[str, Any]] = []
    for codec in CODECS:
        logs = [Measured(made) for made in sound if made.cell.codec == codec]
        if logs:
            measure(logs, options.rounds)
            cells += rows_of_report(logs, options.batches * BATCH_RECORDS)
    report = {
        "records": options.batches * BATCH_RECORDS,
        "recordsOfBatch": BATCH_RECORDS,
        "rounds": options.rounds,
        "call": CALL,
        "clock": "time of the process on a processor",
        "leastRatio": MIN_RATIO,
        "below": [row for row in cells if row["ratio"] < MIN_RATIO],
        "aiokafkaLz4": {"ratio": ratio_of_lz4(cells), "against": "librdkafka", "atLeast": LZ4_RATIO},
        "cells": cells,
        "missing": missing,
    }
    print_report(report)
    write_report(options.report, conditions, report)
    return 0


def print_report(report: dict[str, Any]) -> None:
    """Print a table of the results."""
    for row in report["cells"]:
        name = f"{row['writer']}, {row['kind']}, magic {row['magic']}"
        say(f"{row['codec']:7} {name:45} {row['recordsPerSecond']:>12,}/s {row['ratio']:6.2f}")
    say(f"below {MIN_RATIO}: {len(report['below'])}; aiokafka's lz4: {report['aiokafkaLz4']['ratio']} of librdkafka's")


if __name__ == "__main__":
    raise SystemExit(main())
