"""Judge our writer, in a process of its own on a recording file system, on the states that power cuts may leave.

The faults of `proofs/power/plants.toml` come first: each is planted into the process until it is noticed. Then the
writer itself must keep every promise on so many distinct states, a third of them under each way of losing: under POSIX
by sectors and by pages, and on ext4 as it is mounted by default.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from functools import partial
from itertools import count as numbers_from
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.crash.history import PAGE, SECTOR
from seglog_conformance.crash.recording import missing
from seglog_conformance.crash.run import Options, examine
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from proofs.power.plants import NOT_NOTICED, Plant, plants
from proofs.report_facts import ROOT, tree_digest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from seglog_conformance.crash.run import Failure

WAYS: Final = (("posix", SECTOR), ("posix", PAGE), ("ext4-ordered", PAGE))
STATES_OF_A_PLANT: Final = 400
"""So many states of one history at most: more histories find a fault sooner than more states do."""
MEASURES: Final = ("seglog_format", "conformance/seglog_conformance/crash", "conformance/seglog_conformance/reference")
DIGITS: Final = 16
"""So many hex digits tell states apart."""
REFERENCE: Final = "seglog_conformance.reference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--count", type=int, default=100_000, help="how many distinct states")
    parser.add_argument("--histories", type=int, default=60, help="how many histories at most for each fault")
    parser.add_argument("--only", help="faults whose names hold this text; empty for none")
    parser.add_argument("--seconds", type=float, default=1e9, help="no history begins after so many")
    parser.add_argument("--journal", default="build/crash-states.jsonl", help="file to which each history goes at once")
    parser.add_argument("--workers", type=int, default=2, help="processes that judge")


def prove(options: argparse.Namespace) -> Outcome:
    """Judge the writer with each fault until it is noticed, and without one on states: both go on where they ended.

    The journal has a line for each fault and for each history. Lines of other code than today's do not count.
    """
    if reason := missing():
        return Outcome({}, [reason])
    end, journal = time.monotonic() + options.seconds, Journal(Path(options.journal))
    expected = [plant for plant in plants() if plant.noticed_by != NOT_NOTICED]
    chosen = [plant for plant in expected if options.only is None or (options.only and options.only in plant.name)]
    with child_processes.process_pool(options.workers) as pool:
        pending = [plant for plant in chosen if plant.name not in journal.plants]
        for plant, found in zip(
            pending, pool.map(partial(noticed, first=options.seed, most=options.histories), pending), strict=True
        ):
            journal.add({"plant": plant.name, "found": found})
        seeds = (seed for seed in numbers_from(options.seed) if seed not in journal.histories)
        while len(journal.states) < options.count and time.monotonic() < end:
            for line in pool.map(line_of, islice(seeds, options.workers)):
                journal.add(line)
    counts: Counter[str] = Counter()
    by_way: Counter[str] = Counter()
    for seed, line in journal.histories.items():
        counts.update({"histories": 1, **line["counts"]})
        way = way_of(seed)
        by_way[f"{way.profile} {way.piece}"] += line["counts"]["states"]
    facts: dict[str, Any] = {
        "plants": {plant.name: journal.plants.get(plant.name) for plant in chosen},
        "distinctStates": len(journal.states),
        **{name: counts[name] for name in sorted(counts)},
        "statesByProfileAndPiece": dict(by_way),
    }
    failures = [f"{name}: not noticed" for name, found in facts["plants"].items() if found is None]
    return Outcome(facts, failures + [text for line in journal.histories.values() for text in line["failures"]])


class Journal:
    """What runs of this code have found, in a file of lines.

    Attributes:
        plants: what noticed a fault, by its name.
        histories: counts and failures, by the number of the history.
        states: digests of all states.
    """

    def __init__(self, path: Path) -> None:
        self.plants: dict[str, dict[str, object] | None] = {}
        self.histories: dict[int, dict[str, Any]] = {}
        self.states: set[str] = set()
        self._path = path
        self._code = " ".join(tree_digest(ROOT / each)[:16] for each in MEASURES)
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                line = json.loads(text)
                if line["code"] == self._code:
                    self._take(line)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add what was found, and write it."""
        self._take(line)
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"code": self._code, **line}) + "\n")

    def _take(self, line: Mapping[str, Any]) -> None:
        if "plant" in line:
            self.plants[line["plant"]] = line["found"]
        else:
            self.states.update(line["states"])
            self.histories[line["seed"]] = {"counts": line["counts"], "failures": line["failures"]}


def line_of(seed: int) -> dict[str, Any]:
    """Judge one history of the writer, and return a line of the journal; its number says which states."""
    result = examine(process(), seed, way_of(seed))
    for failure in result.failures:
        print(_line(failure, seed), file=sys.stderr, flush=True)
    return {
        "seed": seed,
        "counts": dict(result.counts),
        "failures": [_line(failure, seed) for failure in result.failures],
        "states": sorted(each[:DIGITS] for each in result.digests),
    }


def way_of(seed: int, **options: bool) -> Options:
    """Return how a history is judged."""
    profile, piece = WAYS[(seed - 1) % len(WAYS)]
    return Options(profile=profile, piece=piece, **options)


def process(plant: Plant | None = None) -> ProcessTestee:
    """Return the writer in a process, with a fault or without."""
    module = (REFERENCE,) if plant is None else ("proofs.power.planted_reference", plant.name)
    return ProcessTestee("reference", Command(arguments=(sys.executable, "-m", *module)))


def noticed(plant: Plant, *, first: int, most: int) -> dict[str, object] | None:
    """Judge histories with a fault, under POSIX, until one notices it; None if none does."""
    states = 0
    for seed in range(first, first + most):
        result = examine(process(plant), seed, Options(stops=True, states=STATES_OF_A_PLANT, most=20))
        states += result.counts["states"]
        if result.failures:
            failure = result.failures[0]
            return {"history": seed, "states": states, "noticed": _line(failure, seed), "lost": list(failure.lost)}
    return None


def _line(failure: Failure, seed: int) -> str:
    return f"{failure.profile}, history {seed}, cut {failure.cut}: {failure.kind}: {failure.text}"
