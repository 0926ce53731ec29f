"""``make demo``: a short tour on directories that real brokers wrote.

Every command is printed before its output, and a reader can type it; the output is cut to what fits a screen. The tour
without arguments needs the base dependencies only. Further stages need more packages, and are offered at the end.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from seglog_conformance.toolchains import child_processes

from tools import demo_data

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = Path("demo")


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the tour: its comment, the number of lines to show of its output, and its stage."""

    why: str
    command: str
    lines: int = 12
    stage: str = "look"


TOUR = (
    Step("A log directory that Kafka 4.3.0 wrote: one partition a line.", "seglog ls demo/kafka-4.3.0"),
    Step("One partition of it: segments named by the offset they start with.", "seglog ls demo/kafka-4.3.0/segs-0"),
    Step(
        "The oldest format in the collection: messages written by Kafka 0.8.2 have no timestamps.",
        "seglog dump demo/kafka-0.8.2.2/codec-snappy-0 --to 4",
    ),
    Step(
        "The newest: records of a transaction, and the marker that aborts another one.",
        "seglog dump demo/kafka-4.3.0/txn-0 --from 14 --to 18",
    ),
    Step(
        "Where is offset 140? The file list, one index entry, a short scan.",
        "seglog lookup --explain demo/kafka-4.3.0/segs-0 140",
        stage="find",
    ),
    Step(
        "And by time: the first record that is not older than this.",
        "seglog lookup demo/kafka-4.3.0/segs-0 --timestamp 2026-11-21T01:41:23.500Z",
        stage="find",
    ),
    Step(
        "All in order? A log directory with three message formats, against every rule. Notes are unusual, but legal.",
        "seglog verify demo/kafka-1.1.1",
        lines=6,
        stage="check",
    ),
    Step(
        "A broken one: its broker was killed while it wrote, and one bit was flipped afterwards.",
        "seglog verify demo/broken",
        lines=30,
        stage="check",
    ),
    Step(
        "What would a broker keep when it starts on this directory?",
        "seglog recover demo/broken",
        lines=30,
        stage="check",
    ),
    Step("What does such a rule say?", "seglog explain SEG-RCV-003", stage="check"),
    Step(
        "Every rule again, by compiled code, which `make` has made once (a minute).",
        "seglog verify --engine columnar --stats demo/kafka-4.3.0/segs-0",
        lines=20,
        stage="engine",
    ),
    Step(
        "A table of a topic, for DuckDB, Polars, pandas or Spark. The same command adds what is new later.",
        "seglog export demo/kafka-4.3.0/segs-0 --to demo/table",
        stage="engine",
    ),
    Step(
        "Are others right? The same bytes to two libraries (their first time takes a minute: pip installs them).\n"
        "# Where a topic was upgraded, one file holds several formats; aiokafka reads on in the one that came first,\n"
        "# and neither library notices a format that does not exist.",
        "seglog conform run --testee reference --testee kafka-python --testee aiokafka --family 16 --family 28",
        lines=20,
        stage="peers",
    ),
    Step(
        "Too much for one machine? The same directories in Spark: on two cores here, unchanged on a cluster.",
        "python -m tools.spark_demo",
        lines=60,
        stage="spark",
    ),
)

STAGES = tuple(dict.fromkeys(step.stage for step in TOUR))
FIRST = ("look", "find", "check")
"""The stages that the base dependencies are enough for."""
PROGRAMS = {"python": sys.executable, "seglog": str(Path(sys.executable).with_name("seglog"))}

FAREWELL = """
That was all real data: the directories are in demo/. Try next:

  source .venv/bin/activate
  seglog inspect demo/kafka-4.3.0/headers-0/00000000000000000000.log    each field in a row, with its bytes
  seglog dump --decode demo/kafka-4.3.0/__consumer_offsets-0            Kafka's own topics, decoded
  seglog dump --json demo/kafka-1.1.1/mixed-segs-0                      the same data for programs
  seglog verify /path/to/a/log/directory                                your own; nothing is changed
  seglog --help

Further stages, which install more into .venv:

  make demo STAGES=engine    the compiled engine, and a table of a topic        numba, Arrow: some 400 MB
  make demo STAGES=peers     two other libraries, judged by the same bytes      kafka-python, aiokafka
  make demo STAGES=spark     the same directories in Spark                      PySpark, Java if there is none: 1 GB

How it works: docs/index.md. The rules themselves: spec/.
"""


def main() -> int:
    """Run the tour.

    Returns:
        The exit status: 1 when a command of the tour failed.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", default=" ".join(FIRST), help=f"some of: {' '.join(STAGES)}")
    stages = parser.parse_args().stages.replace(",", " ").split()
    if unknown := sorted(set(stages) - set(STAGES)):
        parser.error(f"there is no stage {' '.join(unknown)}; there are {' '.join(STAGES)}")
    os.chdir(REPOSITORY)
    print("Unpacking directories that Kafka 0.8.2 to 4.4 wrote, into demo/", flush=True)
    demo_data.unpack(TARGET)
    failed = [step.command for step in TOUR if step.stage in stages and not show(step)]
    print(FAREWELL)
    for command in failed:
        print(f"This command failed: {command}", file=sys.stderr)
    return 1 if failed else 0


def show(step: Step) -> bool:
    """Print a command and the head of its output.

    Returns:
        Whether it succeeded; findings (exit status 1) count as success.
    """
    print(f"\n# {step.why}\n$ {step.command}", flush=True)
    program, *arguments = shlex.split(step.command)
    run = child_processes.run(
        [PROGRAMS[program], *arguments],
        directory=Path.cwd(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    width = shutil.get_terminal_size((120, 24)).columns
    printed = run.stdout.splitlines()
    for line in printed[: step.lines]:
        print(line if len(line) <= width else f"{line[: width - 3]}...")
    if len(printed) > step.lines:
        print(f"... {len(printed) - step.lines} more lines")
    return run.returncode in (0, 1)


if __name__ == "__main__":
    sys.exit(main())
