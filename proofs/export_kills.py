"""Kill exports at random moments while their log grows: the table has each record once, at any time."""

from __future__ import annotations

import math
import multiprocessing
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from seglog_conformance.toolchains import child_processes

from proofs import export_children
from proofs.children import processor_seconds
from proofs.export_tables import COLUMNS, TABLES
from proofs.harness import Outcome
from seglog_format import LogConfig, PartitionWriter, encode_columns, open_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from multiprocessing.context import ForkServerProcess

    from proofs.export_tables import Table


BATCH_RECORDS: Final = 500
SEGMENT_BYTES: Final = 8 * 2**20
FILE_SIZE: Final = "64k"
AT_ONCE: Final = 0.8
"""Share of the records that are there before the first export."""
MAX_EXPORTS_PER_KILL: Final = 20
LONGEST_SECONDS: Final = 3.0
"""Maximum processor time of an export before it is killed, beyond what its start takes."""
PATIENCE: Final = 2
"""An export that follows its log is killed after so many times its processor time at the latest: it may be waiting."""
LOOK_SECONDS: Final = 0.003
LONGEST_DELAY: Final = 0.03
"""Maximum seconds between the look that ends an export and its kill: it may be waiting for the disk by then."""
LONGEST_WAIT: Final = 1.0
"""Maximum seconds for which a kill waits for a change of the table."""
MAX_CHANGES: Final = 4
"""Changes of directories by which a part of a table comes to count."""
LONGEST_PAUSE: Final = 0.2
"""Maximum seconds between two batches that are added to the log."""
CHILDREN: Final = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["proofs.export_children"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how many kills, of an export of how many records."""
    parser.add_argument("--kills", type=int, default=100, help="how many")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the log at its end")
    parser.add_argument("--formats", nargs="+", choices=("parquet", "iceberg"), default=["parquet", "iceberg"])


def prove(options: argparse.Namespace) -> Outcome:
    """Run the proof; each table that is complete before the last kill is compared, removed, and begun anew."""
    facts: dict[str, Any] = {}
    failures: list[str] = []
    for name in options.formats:
        with tempfile.TemporaryDirectory(prefix="export-kills-") as directory:
            run = _Run(Path(directory), TABLES[name], random.Random(options.seed), options.kills, options.records)
            found = run.outcome()
        facts[name] = found.facts
        failures += [f"{name}: {failure}" for failure in found.failures]
    return Outcome(facts, tuple(failures))


class _Run:
    """Exports to a table of one kind, killed until there were enough kills."""

    def __init__(self, root: Path, kind: Table, dice: random.Random, kills: int, records: int) -> None:
        self._root, self._log, self._table = root, root / "logs" / "orders-0", root / "table"
        self._kind, self._dice, self._kills, self._records = kind, dice, kills, records
        self._ends: Counter[str] = Counter()
        self._rows: list[int] = []
        self._failures: list[str] = []

    def outcome(self) -> Outcome:
        """Run exports, and compare the last table with its log."""
        _seconds_to_start(self._root / "first", self._kind)  # the server that exports start from loads meanwhile
        start = _seconds_to_start(self._root / "second", self._kind)
        latest = start + LONGEST_SECONDS
        with _growing(self._log, self._records, self._dice) as grow_to:
            for _ in range(MAX_EXPORTS_PER_KILL * self._kills):
                grow_to((self._ends["killed"] + 1) / self._kills)
                latest = min(latest, self._export_once(self._dice.uniform(start / 2, latest)))
                if self._ends["killed"] == self._kills:
                    break
        _export(self._log, self._table, self._kind.name, None)
        self._failures += _differences(self._log, self._table, self._kind, self._records)
        return Outcome(self._facts(), tuple(self._failures))

    def _export_once(self, seconds: float) -> float:
        """Export, and kill the export after so much processor time; return after how much all kills hit work."""
        is_new = not self._table.exists()
        is_followed, is_aimed = (self._dice.random() < 0.5 for _ in range(2))  # noqa: PLR2004 - every second one
        ended = _export(self._log, self._table, self._kind.name, seconds, is_followed=is_followed, is_aimed=is_aimed)
        self._ends["killed" if ended.is_killed else "ended"] += 1
        self._ends["killed while following"] += ended.is_killed and is_followed
        self._ends["killed at a change"] += ended.is_killed and is_aimed
        count, problem = self._kind.visible(self._table)
        self._failures += [f"after {self._ends['killed']} kills: {problem}"] if problem else []
        self._rows += [count] if ended.is_killed else []
        if count >= self._records * AT_ONCE:
            self._ends["completed"] += 1
            shutil.rmtree(self._table)
        return ended.seconds if is_new and not ended.is_killed else math.inf

    def _facts(self) -> dict[str, Any]:
        return {
            "records": self._records,
            "kills": self._ends["killed"],
            "kills of exports that follow the log": self._ends["killed while following"],
            "kills at a change of the table": self._ends["killed at a change"],
            "kills after which rows were there": sum(count > 0 for count in self._rows),
            "exports that ended by themselves": self._ends["ended"],
            "tables that were begun anew": self._ends["completed"],
        }


class _Ended(NamedTuple):
    """How an export ended: by being killed or not, and after how many seconds of a processor."""

    is_killed: bool
    seconds: float


def _export(
    log: Path, table: Path, name: str, seconds: float | None, *, is_followed: bool = False, is_aimed: bool = False
) -> _Ended:
    """Export in a process of its own, and kill it after some processor time, which other work does not change.

    Args:
        log: to export.
        table: to export to.
        name: of the format.
        seconds: of processors; None to let it end.
        is_followed: the export follows the log.
        is_aimed: kill it with one of the next changes of the table's directories, when files get names and count.
    """
    arguments = ["export", str(log), "--to", str(table), "--format", name, "--file-size", FILE_SIZE]
    arguments += ["--follow", "1"] if is_followed else []
    process = CHILDREN.Process(target=export_children.run_quietly, args=(arguments,))
    with child_processes.isolated_interpreters():
        process.start()
    assert process.pid is not None
    used = 0.0
    end = time.monotonic() + PATIENCE * seconds if is_followed and seconds is not None else math.inf
    while process.is_alive():
        used = max(used, processor_seconds(process.pid))
        if seconds is not None and (used >= seconds or time.monotonic() >= end):
            if is_aimed:
                _wait_for_changes(process, table, random.randint(1, MAX_CHANGES))
            else:
                process.join(random.uniform(0, LONGEST_DELAY))
            process.kill()
        process.join(LOOK_SECONDS)
    status = process.exitcode
    process.close()
    if status not in {0, -signal.SIGKILL}:
        msg = f"an export ended with {status}"
        raise RuntimeError(msg)
    return _Ended(status != 0, used)


def _wait_for_changes(process: ForkServerProcess, table: Path, count: int) -> None:
    """Wait for some changes of a table's directories, but not long."""
    end = time.monotonic() + LONGEST_WAIT
    for _ in range(count):
        before = _changes(table)
        while process.is_alive() and time.monotonic() < end and _changes(table) == before:
            time.sleep(0)


def _changes(table: Path) -> list[int]:
    """Return when each directory of a table was changed."""
    return [path.stat().st_mtime_ns for path in (table, *table.rglob("*/")) if path.is_dir()]


def _seconds_to_start(root: Path, kind: Table) -> float:
    """Return how much processor time an export of next to nothing takes, so kills come while there is work to do."""
    log = root / "small" / "orders-0"
    with PartitionWriter(log, LogConfig()) as writer:
        writer.become_leader(1)
        _append(writer, 0, 1)
    return _export(log, root / "small-table", kind.name, None).seconds


@contextmanager
def _growing(log: Path, records: int, dice: random.Random) -> Iterator[Callable[[float], None]]:
    """Write most of a log, and the rest while the block runs.

    Yields:
        A function that lets the log grow by a share of the rest from now on; at the end of the block, it has all.
    """
    stopped, first, allowed = Event(), int(records * AT_ONCE), [0.0]
    with PartitionWriter(log, LogConfig(segment_bytes=SEGMENT_BYTES)) as writer:
        writer.become_leader(1)
        for offset in range(0, first, BATCH_RECORDS):
            _append(writer, offset, min(first, offset + BATCH_RECORDS))

        def grow() -> None:
            for offset in range(first, records, BATCH_RECORDS):
                stopped.wait(dice.uniform(0, LONGEST_PAUSE))
                while offset - first >= allowed[0] * (records - first) and not stopped.is_set():
                    stopped.wait(LONGEST_PAUSE)
                _append(writer, offset, min(records, offset + BATCH_RECORDS))

        def grow_to(share: float) -> None:
            allowed[0] = share

        thread = Thread(target=grow)
        thread.start()
        try:
            yield grow_to
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
            "value": pa.array([b"value of offset %d " % offset * 24 for offset in range(first, end)]),
        }
    )
    writer.append(b"".join(encode_columns(rows, counts=[end - first])))


def _differences(log: Path, table: Path, kind: Table, records: int) -> list[str]:
    """Yield how a table differs from its log, row by row."""
    with open_partition(log) as partition:
        expected = partition.scan(COLUMNS, layout="binary").read_all()
    if expected.num_rows != records:
        return [f"the log has {expected.num_rows} records"]
    found = kind.rows(table)
    differing = [name for name in COLUMNS if found.column(name) != expected.column(name)]
    return [f"{name} differs" for name in differing] + [f"{name} was left" for name in kind.left(table)]
