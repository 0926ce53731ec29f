"""Exports killed at random moments while their log grows: the table has each record once, at any time."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from proofs.harness import Outcome
from seglog_format import LogConfig, PartitionWriter, encode_columns, open_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

DESCRIPTION = "Kill exports at random moments while their log grows: the table has each record once, at any time."

BATCH_RECORDS: Final = 500
SEGMENT_BYTES: Final = 8 * 2**20
FILE_SIZE: Final = "64k"
AT_ONCE: Final = 0.8
"""Share of the records that are there before the first export."""
COLUMNS: Final = ("offset", "timestamp", "timestamp_type", "key", "value", "leader_epoch", "position")
MOST_EXPORTS: Final = 1000
LONGEST_SECONDS: Final = 3.0
"""Maximum time that an export gets before it is killed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how many kills, of an export of how many records."""
    parser.add_argument("--kills", type=int, default=100, help="how many")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the log at its end")


def prove(options: argparse.Namespace) -> Outcome:
    """Run the proof; each table that is complete before the last kill is compared, removed, and begun anew."""
    with tempfile.TemporaryDirectory(prefix="export-kills-") as name:
        return _run(Path(name), random.Random(options.seed), options.kills, options.records)


def _run(root: Path, dice: random.Random, kills: int, records: int) -> Outcome:
    log, table = root / "logs" / "orders-0", root / "table"
    killed, complete, failures = 0, 0, []
    reached: list[int] = []
    with _growing(log, records, kills):
        for _ in range(MOST_EXPORTS):
            if killed >= kills:
                break
            is_killed = _export(log, table, dice.uniform(0.3, LONGEST_SECONDS))
            killed += is_killed
            count, problem = _visible(table)
            failures += [f"after {killed} kills: {problem}"] if problem else []
            reached.append(count)
            if count >= records * AT_ONCE and not is_killed:
                complete += 1
                shutil.rmtree(table)
    _export(log, table, None)
    failures += _differences(log, table, records)
    facts: dict[str, Any] = {"kills": killed, "records": records, "tables completed on the way": complete}
    return Outcome({**facts, "kills after which rows were there": sum(count > 0 for count in reached)}, tuple(failures))


def _export(log: Path, table: Path, seconds: float | None) -> bool:
    """Export, and kill the process after some time; return whether it was killed."""
    command = [sys.executable, "-m", "seglog_format.cli", "export", str(log), "--to", str(table)]
    with subprocess.Popen([*command, "--file-size", FILE_SIZE], stdout=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.returncode not in {0, -signal.SIGKILL}:
        msg = f"an export ended with {process.returncode}"
        raise RuntimeError(msg)
    return process.returncode != 0


@contextmanager
def _growing(log: Path, records: int, kills: int) -> Iterator[None]:
    """Write most of a log, and the rest while the block runs, at its end at the latest."""
    stopped = Event()
    first = int(records * AT_ONCE)
    with PartitionWriter(log, LogConfig(segment_bytes=SEGMENT_BYTES)) as writer:
        writer.become_leader(1)
        for offset in range(0, first, BATCH_RECORDS):
            _append(writer, offset, min(first, offset + BATCH_RECORDS))
        pause = kills * LONGEST_SECONDS / 2 / max(1, (records - first) // BATCH_RECORDS)

        def grow() -> None:
            for offset in range(first, records, BATCH_RECORDS):
                stopped.wait(pause)
                _append(writer, offset, min(records, offset + BATCH_RECORDS))

        thread = Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


def _append(writer: PartitionWriter, first: int, end: int) -> None:
    """Append records whose content tells their offset."""
    rows = pa.table(
        {
            "timestamp": pa.array(
                [1_700_000_000_000 + offset for offset in range(first, end)], pa.timestamp("ms", "UTC")
            ),
            "key": pa.array([b"key %d" % (offset % 1000) for offset in range(first, end)]),
            "value": pa.array([b"value of offset %d" % offset * 4 for offset in range(first, end)]),
        }
    )
    writer.append(b"".join(encode_columns(rows, counts=[end - first])))


def _visible(table: Path) -> tuple[int, str]:
    """Return how many rows readers see, and what is wrong with them: ranges of offsets that overlap or have gaps."""
    reached = 0
    for path in sorted(table.rglob("*.parquet")):
        metadata = pq.ParquetFile(path).metadata
        for number in range(metadata.num_row_groups):
            statistics = metadata.row_group(number).column(0).statistics
            if statistics.min != reached or statistics.max - statistics.min + 1 != metadata.row_group(number).num_rows:
                return reached, f"{path.name}: offsets {statistics.min} to {statistics.max} after {reached}"
            reached = statistics.max + 1
    return reached, ""


def _differences(log: Path, table: Path, records: int) -> list[str]:
    """Yield how a table differs from its log, row by row."""
    with open_partition(log) as partition:
        expected = partition.scan(COLUMNS, layout="binary").read_all()
    files = sorted(table.rglob("*.parquet"))
    found = pa.concat_tables([pq.ParquetFile(path).read(columns=list(COLUMNS)) for path in files])
    if expected.num_rows != records:
        return [f"the log has {expected.num_rows} records"]
    differing = [name for name in COLUMNS if found.column(name) != expected.column(name)]
    left = [path.name for path in table.rglob("*.tmp")]
    return [f"{name} differs" for name in differing] + [f"{name} was left" for name in left]
