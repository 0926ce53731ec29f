"""The goals in seconds, megabytes and shares that no turn of peers measures: whole processes, and calls in fresh ones.

Seconds are those of processors, and memory is a process's peak, with mapped files. Each goal is a row of the table of
ratios: its figure divided by the most that is allowed, or the share that was reached.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import export
from datasets import BUILD, SEGMENT
from harness import at_offset
from ratios import at_least, at_most_once
from seglog_conformance.toolchains import child_processes
from templates import BATCH_MS, FIRST_TIMESTAMP_MS
from wholes import repeated

from proofs import tier_rate
from seglog_format import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from datasets import DataSet

    Rows = list[dict[str, Any]]
    Parts = dict[str, Callable[[], Rows]]

GIB: Final = 1 << 30
SMALL: Final = 20_000
SEGMENTS, PARTITIONS, OPENED, EXPORTED = 10_000, 5_000, 400, 200
RANGE: Final = 5
WATCHED: Final = """
import runpy, sys, time
try:
    {program}
except SystemExit as end:
    status = end.code or 0
else:
    status = 0
lines = open("/proc/self/status").read().splitlines()
[peak] = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
spent = locals().get("spent", time.process_time())
sys.stdout.flush()
print(status, spent, peak, file=sys.stderr)
"""
"""A program that ends with a line about itself: status, processor seconds, and peak of its memory in bytes."""
COMMAND: Final = 'runpy.run_module("seglog_format.cli", run_name="__main__")'
FIRST_BATCH: Final = """import numpy, pyarrow
    start = time.process_time()
    from seglog_format import open_partition
    next(iter(open_partition(sys.argv[1]).scan()))
    spent = time.process_time() - start"""
LOG_END: Final = """from seglog_format import open_partition
    start = time.process_time()
    open_partition(sys.argv[1]).log_end_offset
    spent = time.process_time() - start"""
RECORDS: Final = """from seglog_format import open_partition
    list(open_partition(sys.argv[1]).records(int(sys.argv[2]), int(sys.argv[3])))"""
SCAN: Final = """from seglog_format import open_partition
    open_partition(sys.argv[1]).scan(from_offset=int(sys.argv[2]), to_offset=int(sys.argv[3])).read_all()"""
ARROW: Final = "import numpy, pyarrow, pyarrow.parquet"
MANY: Final = """from pathlib import Path
    from seglog_format import open_partition
    paths = sorted(Path(sys.argv[1]).iterdir())
    for number, path in enumerate(paths):
        if number == len(paths) // 2:
            start = time.process_time()
        with open_partition(path) as partition:
            for batch in partition.scan():
                pass
    spent = (time.process_time() - start) / (len(paths) - len(paths) // 2)"""


class Ran:
    """What a watched program took.

    Args:
        program: Python, or `COMMAND`.
        arguments: its words.
        cache: directory for caches; that of the user by default.
    """

    def __init__(self, program: str, *arguments: object, cache: Path | None = None) -> None:
        command = [sys.executable, "-c", WATCHED.format(program=program), *map(str, arguments)]
        changes = {"XDG_CACHE_HOME": str(cache)} if cache else {}
        done = child_processes.run(
            command, directory=BUILD, changes=changes, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        *words, last = done.stderr.splitlines() or [""]
        status, seconds, peak = last.split() if last.count(" ") == 2 else ("none", "0", "0")  # noqa: PLR2004 - words
        if status != "0":
            msg = f"status {status}: {' '.join(words)[-200:]}"
            raise RuntimeError(msg)
        self.seconds, self.peak = float(seconds), int(peak)


class Goals:
    """Measures the goals.

    Args:
        data: sets by name.
        rounds: how often each short program is run; the median counts.
        scale: factor for sizes.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"u100", "u100_8m", "u100_1g", "m1u100", "s100"})

    def __init__(self, data: dict[str, DataSet], rounds: int, scale: float) -> None:
        self.data, self.rounds, self.scale = data, rounds, scale
        self.home = BUILD / "goals"

    def parts(self) -> Parts:
        """Return what measures each part, by name."""
        return {
            "start": self._start,
            "first use": self._first_use,
            "log end": self._log_end,
            **{f"range {name}": partial(self._range, name) for name in self._ranges()},
            "list": self._list,
            "small partitions": self._small,
            "one day": self._one_day,
            "export": self._export,
            "tier": self._tier,
        }

    def measured(self, name: str) -> Rows:
        """Measure one part, in a directory that is empty before and gone afterwards."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        try:
            return self.parts()[name]()
        finally:
            shutil.rmtree(self.home)

    def _seconds(self, program: str, *arguments: object) -> float:
        return statistics.median(Ran(program, *arguments).seconds for _ in range(self.rounds))

    def _afresh(self, program: str, *arguments: object, cache: Path | None = None) -> Ran:
        """Run a program without the table that it wrote before: it would add nothing to that."""
        shutil.rmtree(self.home / "table", ignore_errors=True)
        return Ran(program, *arguments, cache=cache)

    def _start(self) -> Rows:
        whole, log = self.data["u100"], self.home / "orders-0" / f"{SEGMENT}.log"
        log.parent.mkdir()
        log.write_bytes(b"".join(self._batches(10**6)))
        first, verify = self._seconds(FIRST_BATCH, whole.directory), self._seconds(COMMAND, "verify", log.parent)
        return [
            at_most_once("first batch of a process, above imports", "u100", first / 0.1, "100 ms"),
            at_most_once("verify, whole process", "1 MB", verify / 0.18, "180 ms"),
        ]

    def _first_use(self) -> Rows:
        log, rows = self.home / "logs" / "orders-0", []
        shutil.copytree(self.data["u100_8m"].directory, log)
        commands: dict[str, tuple[str, tuple[object, ...]]] = {
            "verify": (COMMAND, ("verify", log)),
            "scan": (FIRST_BATCH, (log,)),
            "export": (COMMAND, ("export", log, "--to", self.home / "table")),
            "recover": (COMMAND, ("recover", log)),
            "index": (COMMAND, ("index", log)),
        }
        for name, (program, arguments) in commands.items():
            first, second = (self._afresh(program, *arguments, cache=self.home / name).seconds for _ in range(2))
            ratio = first / (1.2 * second + 0.2)
            rows.append(at_most_once(f"first {name} with an empty cache", "u100_8m", ratio, "1.2 x second + 0.2 s"))
        return rows

    def _log_end(self) -> Rows:
        rows = []
        for name in ("m1u100", "s100"):
            path = repeated(self.data[name], int(GIB * self.scale), self.home / f"{name}-0")
            seconds, size = self._seconds(LOG_END, path.parent), f"{path.stat().st_size / 1e6:,.0f} MB"
            rows.append(at_most_once("log end offset, proved, first call", f"{name} {size}", seconds / 0.4, "0.4 s"))
            shutil.rmtree(path.parent)
        return rows

    def _ranges(self) -> dict[str, tuple[str, tuple[object, ...]]]:
        log, end = self.data["u100_1g"].directory, self.data["u100_1g"].records
        last_ms = FIRST_TIMESTAMP_MS + (self.data["u100_1g"].batches - 1) * BATCH_MS
        span = (end // 2, end // 2 + RANGE)
        words = ("--from", span[0], "--to", span[1])
        to = ("--to", self.home / "table")
        return {
            "dump --to": (COMMAND, ("dump", log, "--to", RANGE)),
            "dump --from": (COMMAND, ("dump", log, "--from", end - RANGE)),
            "dump --since": (COMMAND, ("dump", log, "--since", last_ms)),
            "verify --from --to": (COMMAND, ("verify", log, *words)),
            "verify --since": (COMMAND, ("verify", log, "--since", last_ms)),
            "diff --from --to": (COMMAND, ("diff", log, log, *words)),
            "salvage --from --to": (COMMAND, ("salvage", log, "--output", self.home / "copy", *words)),
            "export --from-offset --to-offset": (
                COMMAND, ("export", log, *to, "--from-offset", span[0], "--to-offset", span[1])
            ),
            "export --since": (COMMAND, ("export", log, *to, "--since", last_ms)),
            "records(from, to)": (RECORDS, (log, *span)),
            "scan(from, to)": (SCAN, (log, *span)),
        }  # fmt: skip

    def _range(self, name: str) -> Rows:
        program, arguments = self._ranges()[name]
        takes_arrow = name.startswith(("export", "scan"))
        titles = f"{name}, time", f"{name}, memory" + " above imports" * takes_arrow
        try:
            ran = [self._afresh(program, *arguments) for _ in range(self.rounds)]
        except RuntimeError as error:
            return [
                {"title": each, "data": "u100_1g", "atMost": 1.0, "note": str(error), "met": False} for each in titles
            ]
        base = Ran(ARROW).peak if takes_arrow else 0
        seconds = statistics.median(each.seconds for each in ran)
        memory = max(each.peak for each in ran) - base
        return [
            at_most_once(titles[0], "u100_1g", seconds / 0.3, "300 ms"),
            at_most_once(titles[1], "u100_1g", memory / 50e6, "50 MB"),
        ]

    def _list(self) -> Rows:
        listed = Ran(COMMAND, "ls", self.data["u100_1g"].directory)
        [batch] = self._batches(1)
        many, next_offset = self.home / "orders-0", 0
        many.mkdir()
        records = next(iter(walk(batch))).header.records_count or 1
        for _ in range(SEGMENTS):
            stem = many / f"{next_offset:020d}"
            stem.with_suffix(".log").write_bytes(at_offset(batch, next_offset))
            for kind in (".index", ".timeindex"):
                stem.with_suffix(kind).touch()
            next_offset += records
        segments = self._seconds(COMMAND, "ls", many)
        partitions = self._seconds(COMMAND, "ls", self._linked(PARTITIONS, self._small_log()))
        return [
            at_most_once("ls, memory", "u100_1g", listed.peak / 150e6, "150 MB"),
            at_most_once("ls, time", f"{SEGMENTS:,} segments", segments / 2, "2 s"),
            at_most_once("ls, time", f"{PARTITIONS:,} partitions", partitions / 1.5, "1.5 s"),
        ]

    def _small(self) -> Rows:
        seconds = self._seconds(MANY, self._linked(OPENED, self._small_log()))
        return [at_most_once("open and scan a partition", "20 KB", seconds / 150e-6, "150 us")]

    def _one_day(self) -> Rows:
        data = self.data["u100_8m"]
        logs, tenth = self._linked(EXPORTED, *data.directory.iterdir()), data.batches // 10
        start = FIRST_TIMESTAMP_MS + 5 * tenth * BATCH_MS
        none, day, whole = (
            Ran(COMMAND, "export", logs, "--to", self.home / str(end), "--since", start, "--until", end).seconds
            for start, end in ((start, start + 1), (start, start + tenth * BATCH_MS), (0, 2 * FIRST_TIMESTAMP_MS))
        )
        share, name = (day - none) / (whole - none), f"{EXPORTED} partitions"
        return [at_most_once("export of a tenth of the time, share of all", name, share / 0.125, "0.125")]

    def _export(self) -> Rows:
        rows = []
        for megabytes, least in {500: 0.85, 2000: 0.9}.items():
            size = max(1, int(megabytes * self.scale))
            found = export.measured(self.home, size, min(self.rounds, 2))
            rows.append(
                at_least("export to Parquet", f"{size} MB", found["ratioOfProcessorSeconds"], least, "Arrow alone")
            )
        return rows

    def _tier(self) -> Rows:
        megabytes = max(8, int(1024 * self.scale))
        options = argparse.Namespace(megabytes=megabytes, rounds=min(self.rounds, 2), seed=1)
        share = float(tier_rate.prove(options).facts["share_of_parts"])
        return [at_least("tier reading", f"{megabytes} MiB", share, 0.9, "AES, zstd and CRC alone")]

    def _batches(self, size: int) -> Iterator[bytes]:
        """Yield the first batches of a log, one at least, up to a size."""
        with self.data["u100"].path.open("rb") as file:
            data = file.read(2 * size + (1 << 16))
        taken = 0
        for frame in walk(data):
            yield bytes(frame.data)
            taken += len(frame.data)
            if taken + len(frame.data) > size:
                return

    def _small_log(self) -> Path:
        path = self.home / f"{SEGMENT}.log"
        path.write_bytes(b"".join(self._batches(SMALL)))
        return path

    def _linked(self, count: int, *files: Path) -> Path:
        """Return a log directory with so many partitions of the same files."""
        for number in range(count):
            directory = self.home / "logs" / f"orders-{number}"
            directory.mkdir(parents=True)
            for file in files:
                os.link(file, directory / file.name)
        return self.home / "logs"
