"""Judge our writer, in a process of its own on a recording file system, on the states that power cuts may leave.

The faults of `proofs/power/plants.toml` come first: each is planted into the process until it is noticed. Then the
writer itself must keep every promise on so many distinct states, a third of them under each way of losing: under POSIX
by sectors and by pages, and on ext4 as it is mounted by default.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from itertools import count as numbers_from
from typing import TYPE_CHECKING, Final

from seglog_conformance.crash.history import PAGE, SECTOR
from seglog_conformance.crash.recording import missing
from seglog_conformance.crash.run import Options, examine
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from proofs.power.plants import NOT_NOTICED, Plant, plants

if TYPE_CHECKING:
    import argparse

    from seglog_conformance.crash.run import Failure, Result

WAYS: Final = (("posix", SECTOR), ("posix", PAGE), ("ext4-ordered", PAGE))
STATES_OF_A_PLANT: Final = 400
"""So many states of one history at most: more histories find a fault sooner than more states do."""
REFERENCE: Final = "seglog_conformance.reference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--count", type=int, default=30_000, help="how many distinct states, at least")
    parser.add_argument("--histories", type=int, default=60, help="how many histories at most for each fault")
    parser.add_argument("--only", help="faults whose names hold this text; empty for none")
    parser.add_argument("--workers", type=int, default=2, help="processes that judge")


def prove(options: argparse.Namespace) -> Outcome:
    """Judge the writer with each fault until it is noticed, and then without one."""
    if reason := missing():
        return Outcome({}, [reason])
    expected = [plant for plant in plants() if plant.noticed_by != NOT_NOTICED]
    chosen = [plant for plant in expected if options.only is None or (options.only and options.only in plant.name)]
    with child_processes.process_pool(options.workers) as pool:
        found = list(pool.map(partial(noticed, first=options.seed, most=options.histories), chosen))
        failures = [f"{plant.name}: not noticed" for plant, each in zip(chosen, found, strict=True) if each is None]
        counts: Counter[str] = Counter()
        by_way: Counter[str] = Counter()
        for start in numbers_from(options.seed, options.workers * len(WAYS)):
            if counts["states"] >= options.count:
                break
            seeds = range(start, start + options.workers * len(WAYS))
            results = pool.map(result_of, seeds)
            for (seed, result), (profile, piece) in zip(results, WAYS * options.workers, strict=True):
                counts.update({"histories": 1, **result.counts})
                by_way[f"{profile} {piece}"] += result.counts["states"]
                for failure in result.failures:
                    failures.append(_line(failure, seed))
                    print(failures[-1], file=sys.stderr, flush=True)
    facts = {
        "plants": {plant.name: each for plant, each in zip(chosen, found, strict=True)},
        **{name: counts[name] for name in sorted(counts)},
        "statesByProfileAndPiece": dict(by_way),
    }
    return Outcome(facts, failures)


def result_of(seed: int) -> tuple[int, Result]:
    """Judge one history of the writer; its number says which states."""
    return seed, examine(process(), seed, way_of(seed))


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
