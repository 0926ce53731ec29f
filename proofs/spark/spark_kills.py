"""Kill and restart a stream while its log grows, rolls and loses old segments.

One process appends and deletes, another runs the query, and this one kills the query with SIGKILL, including Java, and
starts it again. In the end every record must be in the sink exactly once. Old segments are deleted as soon as the query
has committed their records. With ``--unclean`` the log is then truncated as after an unclean recovery: the query must
report that, and continues only if an option allows it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
from seglog_conformance.toolchains import child_processes

from proofs.report_facts import proof_command, run_conditions, write_report
from proofs.spark.kills_roles import (
    CONFIG,
    DATA_LOSS,
    FINISH_SECONDS,
    PROGRESS_SECONDS,
    TOPIC,
    Directories,
    query,
    value,
    write,
)
from proofs.spark.maven import REPOSITORY
from seglog_format import LogWriter, new_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NEW: Final = 7
"""Records that are written after the log was cut back."""
TOO_BUSY: Final = "failed to connect back"
"""What Spark says where its Python worker took too long to start."""


class Query:
    """A process with the query, and all that belongs to it.

    Args:
        directories: the directories of the run.
        options: options of the command line.
    """

    def __init__(self, directories: Directories, *options: str) -> None:
        self.output = directories.root / "query.txt"
        command = [
            sys.executable,
            "-m",
            "proofs.spark.spark_kills",
            "query",
            "--directories",
            str(directories.root),
            *options,
        ]
        with self.output.open("w") as output:
            self.process = child_processes.start(
                command, directory=REPOSITORY, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def kill(self) -> None:
        """Kill Python and Java."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """Return its output."""
        return self.output.read_text(encoding="utf-8", errors="replace")


# -- killing --------------------------------------------------------------------------------------------------------


@dataclass
class Kills:
    """Runs the query, and kills it while the writer is at work.

    Attributes:
        directories: the directories of the run.
        dice: random number generator for the times of kills.
        kills: number of kills so far.
        steps_at_kill: number of committed steps at each kill.
        deaths: reasons why the query ended by itself.
    """

    directories: Directories
    dice: random.Random
    kills: int = 0
    steps_at_kill: list[int] = field(default_factory=list)
    deaths: Counter[str] = field(default_factory=Counter)

    @property
    def after_steps(self) -> int:
        """Return the number of kills after a committed step since the kill before: the others hit a starting query."""
        return sum(after > before for before, after in pairwise([0, *self.steps_at_kill]))

    def run(self, seconds: float, kills: int) -> None:
        """Run for a time, and until the number of kills after steps is reached, but at most three times as long."""
        started = time.monotonic()
        while (taken := time.monotonic() - started) < seconds or (self.after_steps < kills and taken < 3 * seconds):
            running = Query(self.directories)
            self._wait(running)
            if running.process.poll() is None:
                running.kill()
                self.kills += 1
                self.steps_at_kill.append(self.directories.steps())
            else:
                self.deaths[running.said()[-500:]] += 1

    def _wait(self, running: Query) -> None:
        """Wait for the next kill: mostly soon after a step, sometimes before the first one."""
        before, deadline = self.directories.steps(), time.monotonic() + PROGRESS_SECONDS
        if self.dice.random() < 0.2:  # noqa: PLR2004 - a share
            deadline = time.monotonic() + self.dice.uniform(1, 15)
        while time.monotonic() < deadline and running.process.poll() is None:
            if self.directories.steps() > before:
                time.sleep(self.dice.uniform(0, 6))
                return
            time.sleep(0.1)

    def finish(self, *options: str) -> tuple[int, str]:
        """Let the query read the rest, or kill it; repeat it if the machine is too busy for Spark's worker to start."""
        for _ in range(5):
            running = Query(self.directories, "--to-the-end", *options)
            try:
                status = running.process.wait(FINISH_SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
                status = running.process.returncode
            if TOO_BUSY not in running.said():
                break
        return status, running.said()


def in_sink(directories: Directories) -> Counter[tuple[int, int, str]]:
    """Return the count of each row in the sink, by the sink's own list of committed files."""
    paths: set[str] = set()
    for path in (directories.sink / "_spark_metadata").iterdir():
        if not path.name.startswith("."):
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
            paths.update(json.loads(line)["path"].removeprefix("file://") for line in lines)
    rows: Counter[tuple[int, int, str]] = Counter()
    for name in paths:
        table = pq.read_table(name)
        rows.update(
            zip(*(table.column(column).to_pylist() for column in ("partition", "offset", "value")), strict=True)
        )
    return rows


def counts_of(rows: Mapping[tuple[int, int, str], int], ends: Mapping[int, int]) -> dict[str, int]:
    """Compare the sink with the written records."""
    expected = {(number, offset, value(number, offset)) for number, end in ends.items() for offset in range(end)}
    return {
        "written": len(expected),
        "in_sink": sum(rows.values()),
        "missing": len(expected - rows.keys()),
        "twice": sum(count - 1 for count in rows.values()),
        "foreign": len(rows.keys() - expected),
    }


def cut_back(directories: Directories, ends: Mapping[int, int]) -> int:
    """Remove the end of the log of partition 0, as a crash before a flush does; return the number of lost records."""
    directory = directories.logs / f"{TOPIC}-0"
    log = max((path for path in directory.glob("*.log") if path.stat().st_size), key=lambda path: path.name)
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])
    (directories.logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    with LogWriter(directories.logs, CONFIG) as logs:
        writer = logs.open(TOPIC, 0)
        logs.open(TOPIC, 1)
        return ends[0] - writer.log_end_offset


def reports_of(said: str) -> str:
    """Return a query's reports of a truncated log, without the source lines that Python quotes."""
    lines = (line.strip() for line in said.splitlines() if "was cut back" in line and "{" not in line)
    return next(lines, "")[-300:]


def unclean(directories: Directories, kills: Kills, ends: dict[int, int]) -> dict[str, Any]:
    """Truncate the log; check that the query fails, and that it continues if an option allows it."""
    whole = sum(in_sink(directories).values())
    gone = cut_back(directories, ends)
    status, said = kills.finish()
    before = sum(in_sink(directories).values())
    again, _ = kills.finish("--goes-on")
    with LogWriter(directories.logs, CONFIG) as logs:
        writer = logs.open(TOPIC, 0)
        logs.open(TOPIC, 1)
        writer.append(
            [new_record(value=f"new {number}".encode(), timestamp_ms=int(time.time() * 1000)) for number in range(NEW)]
        )
    last, _ = kills.finish("--goes-on")
    return {
        "records_cut_off": gone,
        "query_failed_with_data_loss": status == DATA_LOSS,
        "said": reports_of(said).replace(str(directories.root), ""),
        "rows_that_it_added": before - whole,
        "goes_on_where_told": (again, last) == (0, 0),
        "new_records": NEW,
        "new_records_in_sink": sum(row[2].startswith("new ") for row in in_sink(directories).elements()),
    }


def run(
    directories: Directories, seconds: float, kills: int, seed: int
) -> tuple[dict[str, Any], Kills, dict[int, int]]:
    """Write, kill and finish; return the result, and the objects that are needed to continue."""
    directories.logs.mkdir(parents=True)
    child_processes.run(
        [sys.executable, "-m", "seglog_format.cli", "warm"], directory=REPOSITORY, check=True, stdout=subprocess.DEVNULL
    )
    command = [
        sys.executable,
        "-m",
        "proofs.spark.spark_kills",
        "write",
        "--directories",
        str(directories.root),
        "--seed",
        str(seed),
    ]
    with (directories.root / "written.json").open("w") as output:
        writer = child_processes.start(command, directory=REPOSITORY, stdout=output)
    killing = Kills(directories, random.Random(seed))
    try:
        killing.run(seconds, kills)
    finally:
        directories.stop.touch()
        writer.wait()
    written = json.loads((directories.root / "written.json").read_text(encoding="utf-8"))
    ends = {int(number): end for number, end in written["ends"].items()}
    status, said = killing.finish()
    found = {
        "seed": seed,
        "seconds": written["seconds"],
        "kills": killing.kills,
        "kills_wanted_after_steps": kills,
        "kills_after_steps": killing.after_steps,
        "steps_committed": directories.steps(),
        "steps_committed_at_each_kill": killing.steps_at_kill,
        "ended_by_itself": dict(killing.deaths),
        "segments_deleted_meanwhile": written["segments_deleted"],
        "log_start_in_the_end": written["starts"],
        "finished": status == 0 or said[-500:],
        **counts_of(in_sink(directories), ends),
    }
    return found, killing, ends


def is_fine(found: Mapping[str, Any]) -> bool:
    """Return whether every record is there once, and the query was killed and old segments were deleted.

    Kills of queries that had not begun, or with a log that only grew, prove nothing. A query that ended by itself must
    have a reason in the machine, because no unread record was deleted.
    """
    was_tried = (
        found["kills_after_steps"] >= found["kills_wanted_after_steps"] and found["segments_deleted_meanwhile"] > 0
    )
    if found["finished"] is not True or not was_tried or not all(TOO_BUSY in each for each in found["ended_by_itself"]):
        return False
    is_whole = found["missing"] == found["twice"] == found["foreign"] == 0
    cut = found.get("unclean_truncation")
    is_reported = cut is None or (cut["query_failed_with_data_loss"] and cut["goes_on_where_told"])
    return bool(is_whole and is_reported and (cut is None or cut["new_records_in_sink"] == NEW))


def main(arguments: Iterable[str] | None = None) -> int:
    """Run, judge and report; or run as one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", choices=("all", "write", "query"), default="all")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument(
        "--kills", type=int, default=8, help="after a committed step, at least; up to three times as long for it"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--unclean", action="store_true", help="cut the log back afterwards, too")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--directories", type=Path)
    parser.add_argument("--to-the-end", action="store_true")
    parser.add_argument("--goes-on", action="store_true")
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.role == "write":
        print(json.dumps(write(Directories(options.directories), options.seed)))
        return 0
    if options.role == "query":
        return query(Directories(options.directories), to_the_end=options.to_the_end, goes_on=options.goes_on)
    conditions = run_conditions(proof_command("spark-kills", options), seed=options.seed)
    with tempfile.TemporaryDirectory(prefix="spark-kills-") as root:
        directories = Directories(Path(root))
        found, killing, ends = run(directories, options.seconds, options.kills, options.seed)
        print(json.dumps(found), file=sys.stderr, flush=True)
        if options.unclean:
            found["unclean_truncation"] = unclean(directories, killing, ends)
    print(write_report(options.report, conditions, found), end="")
    return int(not is_fine(found))


if __name__ == "__main__":
    sys.exit(main())
