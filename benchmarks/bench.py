"""``make bench``: the columnar engine against every available implementation, in one session.

Data are generated from seeds and stored; peers are built once. All take turns, and all must find the same contents. The
results are ratios: to the best of the others, and to the limits of this machine. Each piece is stored as soon as it is
measured: a failure does not affect the others, and `--resume` continues an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import articles
from datasets import BUILD, DataSet, data_set
from goals import Goals
from limits import Limit, codec_limit, memory_limits
from peers import JAVA, MAY_BE_MISSING, NOT_COMPARABLE, OURS, PROGRAMS
from pieces import Pieces
from ratios import other_processors, ratios
from recipes import RECIPES
from session import Session
from tables import say_articles, say_limits, say_memory, say_ratios, say_rows
from two_cores import second_core
from wholes import memory_growth, verify_rows
from works import TEXT, TWO_CORES, WORKS

from proofs.report_facts import BENCHMARKED, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from works import Work

PARTS: Final = ("works", "limits", "verify", "memory", "articles", "goals")
MEMORY_DATA: Final = ("u100", "jlz4")
ARTICLES_DATA: Final = "s100"
VERIFIED: Final = ("u100", "u100_1g")
LIMITED: Final = ("u100", "u1k", "h100", "s100", "p100", "m1u100", "m1lz4")


def say(text: str) -> None:
    """Print a line about the progress."""
    print(text, flush=True)


class Bench:
    """One run of the benchmarks.

    Args:
        given: options of the command line.
    """

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.failed = False
        self.goals: list[dict[str, Any]] = []
        self.report: dict[str, Any] = {
            "scale": given.scale,
            "rounds": given.rounds,
        }
        command = f"make bench ARGS='--seed {given.seed} --scale {given.scale:g} --rounds {given.rounds}'"
        self.conditions = run_conditions(command, seed=given.seed, measures=BENCHMARKED)
        conditions = {**self.report, "seed": given.seed, "digests": self.conditions["digests"]}
        self.pieces = Pieces(given.json.with_suffix(".partial"), conditions, say, resume=given.resume)
        recipes = [recipe for recipe in RECIPES if not given.data or recipe.name in given.data]
        self.data: dict[str, DataSet] = {}
        for recipe in recipes:
            say(f"data: {recipe.name}")
            self.data[recipe.name] = data_set(recipe, given.scale, given.seed)
        self.report["data"] = [
            {
                "name": each.name,
                "about": each.about,
                "bytes": each.size,
                "uncompressed": each.uncompressed,
                "records": each.records,
                "batches": each.batches,
                "crc32c": f"{each.crc32c:08x}",
            }
            for each in self.data.values()
        ]

    def run(self) -> dict[str, Any]:
        """Run all selected parts."""
        parts: dict[str, Callable[[], None]] = {
            "limits": self._limits,
            "works": self._works,
            "verify": self._verify,
            "memory": self._memory,
            "articles": self._articles,
            "goals": self._goals,
        }
        self.report["results"], self.report["limits"] = [], {}
        for name, part in parts.items():
            if name in self.given.parts:
                part()
        self.report["ratios"] = ratios(self.report["results"], self.report["limits"]) + self.goals
        self.report["failed"] = self.pieces.failed
        say_ratios(self.report["ratios"], say)
        return self.report

    def _limits(self) -> None:
        """Measure and print the limits of memory and checksums on one log, and of the codec for each compressed set."""
        found = self.pieces.measured("limits", self._limits_found)
        if found is not None:
            self.report["limits"] = found
            say_limits(found, say)

    def _limits_found(self) -> dict[str, Any]:
        speeds: dict[str, Limit] = {}
        if "u100" in self.data:
            speeds = memory_limits(self.data["u100"], self.given.rounds)
        logs: dict[str, dict[str, float]] = {
            kind: {name: limit.best * 1e6 / self.data[name].size for name in LIMITED if name in self.data}
            for kind, limit in speeds.items()
        }
        compressed = [self.data[name] for name in (*TEXT, "m1lz4") if name in self.data]
        codecs = {each.name: codec_limit(each, self.given.rounds) for each in compressed}
        logs["codec"] = {name: limit.best * 1e6 / self.data[name].size for name, limit in codecs.items()}
        shared = [self.data[name] for name in TWO_CORES if name in self.data]
        gains = {each.name: second_core(each, codecs.get(each.name), self.given.rounds) for each in shared}
        return {
            "twoCores": {name: asdict(gain) for name, gain in gains.items()},
            "megabytesPerSecond": {kind: {"best": limit.best, **limit.ways} for kind, limit in speeds.items()},
            "codecs": {name: {"best": limit.best, **limit.ways} for name, limit in codecs.items()},
            "logsPerSecond": logs,
        }

    def _works(self) -> None:
        with Session(self.given.programs, say) as session:
            self.conditions["versions"] |= {name: each.version for name, each in session.processes.items()}
            self.report["missing"] = {**NOT_COMPARABLE, **session.missing}
            for name, reason in self.report["missing"].items():
                say(f"skipped: {name}: {reason}")
            wanted = [work for work in WORKS if not self.given.works or work.name in self.given.works]
            for turns in dict.fromkeys(work.turns for work in wanted):
                self._in_turns(session, [work for work in wanted if work.turns == turns])

    def _in_turns(self, session: Session, works: Sequence[Work]) -> None:
        reported: list[dict[str, Any]] = []
        for data in self.data.values():
            chosen = [work for work in works if data.name in work.data]
            if chosen:
                name = f"{' '.join(work.key for work in chosen)} {data.name}"
                reported += self.pieces.measured(name, partial(self._rows, session, chosen, data)) or []
        self.failed |= any(row.get("agrees") is False for row in reported)
        for work in works:
            rows = [row for row in reported if row["work"] == work.key]
            self.report["results"] += rows
            say_rows(work.title, rows, say)

    def _rows(self, session: Session, works: Sequence[Work], data: DataSet) -> list[dict[str, Any]]:
        return [row.reported() for row in session.measured(works, data, self.given.rounds)]

    def _verify(self) -> None:
        wanted = JAVA.name in (self.given.programs or [JAVA.name])
        has_java = wanted and not JAVA.missing() and (JAVA.home / "built").exists()
        for name in VERIFIED:
            if name in self.data:
                rows = partial(verify_rows, self.data[name], min(self.given.rounds, 3), java=has_java)
                reported = self.pieces.measured(f"verify {name}", rows) or []
                self.report["results"] += reported
                say_rows("whole process, verify", reported, say)

    def _memory(self) -> None:
        found: list[dict[str, Any]] = []
        for name in MEMORY_DATA:
            if name in self.data:
                found += self.pieces.measured(f"memory {name}", partial(self._growth, name)) or []
        self.report["memory"] = found
        say_memory(found, say)

    def _growth(self, name: str) -> list[dict[str, Any]]:
        with OURS.start() as fresh:
            return memory_growth(fresh, self.data[name], self.given.scale)

    def _articles(self) -> None:
        if ARTICLES_DATA in self.data:
            claims = partial(articles.measured, self.data[ARTICLES_DATA], self.given.rounds)
            self.report["articles"] = self.pieces.measured("articles", claims) or []
            say_articles(self.report["articles"], say)

    def _goals(self) -> None:
        goals = Goals(self.data, self.given.rounds, self.given.scale)
        if goals.needs <= self.data.keys():
            for name in goals.parts():
                self.goals += self.pieces.measured(f"goals: {name}", partial(goals.measured, name)) or []


def is_whole(given: argparse.Namespace, report: dict[str, Any]) -> bool:
    """Return whether a run had full size, all sets and all contenders.

    It may be a run of some works only: the report shows which.
    """
    chosen = given.data or given.programs
    absent = set(report.get("missing", ())) - MAY_BE_MISSING
    return given.scale == 1 and not chosen and not absent and not report["failed"]


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description="the columnar engine against every available implementation")
    parser.add_argument("--scale", type=float, default=1.0, help="of the size of the data; 0.1 for a quick run")
    parser.add_argument("--seed", type=int, default=1, help="of the data")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each work")
    parser.add_argument("--data", nargs="*", default=[], choices=[recipe.name for recipe in RECIPES], metavar="SET")
    parser.add_argument("--works", nargs="*", default=[], choices=sorted({work.name for work in WORKS}), metavar="WORK")
    parser.add_argument("--programs", nargs="*", default=[], choices=[program.name for program in PROGRAMS])
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--json", type=Path, default=BUILD / "bench.json", help="path for the report of any run")
    parser.add_argument("--resume", action="store_true", help="continue the last run with the same options")
    parser.add_argument(
        "--report", type=Path, help="path for the report of a run at full size, on all sets and with all contenders"
    )
    return parser.parse_args(arguments)


def main() -> int:
    """Measure, print, and store the figures."""
    given = options(sys.argv[1:])
    # an installed package has its bytecode, and so has a checkout after its first start
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bench = Bench(given)
    found = bench.run()
    write_report(given.json, bench.conditions, found)
    if given.report is not None and is_whole(given, found):
        earlier = json.loads(given.report.read_text(encoding="utf-8")) if given.report.exists() else None
        others = other_processors(earlier, bench.conditions["machine"]["processor"])
        write_report(given.report, bench.conditions, {**found, "otherProcessors": others})
    elif given.report is not None:
        say(f"\nnot at full size, on all sets or with all contenders: {given.report} is not changed")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
