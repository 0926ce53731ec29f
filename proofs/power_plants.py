"""Plant each fault that loses data when the power fails, and cut the power until it is noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import chain
from itertools import count as numbers_from
from typing import TYPE_CHECKING

from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from proofs.power.plants import NOT_NOTICED, POWER_CUTS, Plant, planted, plants
from proofs.power_cuts import CUTS, run_all

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True)
class Notice:
    """How a fault was noticed, or not.

    Attributes:
        plant: the fault.
        history: number of the history that noticed it; None if none did.
        cuts: number of power cuts until then.
        problem: description of the noticed problem.
    """

    plant: Plant
    history: int | None
    cuts: int
    problem: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--count", type=int, default=20_000, help="how many power cuts at most for each fault")
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--only", help="faults whose names hold this text")
    parser.add_argument("--workers", type=int, default=2, help="processes")


def prove(options: argparse.Namespace) -> Outcome:
    """Run histories with each fault until one notices it."""
    chosen = [
        plant
        for plant in plants()
        if plant.noticed_by in {POWER_CUTS, NOT_NOTICED} and (options.only or "") in plant.name
    ]
    run = partial(noticed, first=options.first, most=options.count, seed=options.seed)
    with child_processes.process_pool(options.workers) as pool:
        found = list(pool.map(run, chosen))
    reported = {each.plant.name: {"history": each.history, CUTS: each.cuts, "problem": each.problem} for each in found}
    return Outcome({"plants": reported}, [wrong for each in found if (wrong := complaint(each))])


def noticed(plant: Plant, *, first: int = 0, most: int, seed: int = 1) -> Notice:
    """Cut the power with a fault in the package until it is noticed, or `most` times.

    Histories that noticed it before are run first.
    """
    counts: Counter[str] = Counter()
    with planted(plant):
        for number in chain(plant.histories, numbers_from(first)):
            (ending,) = run_all(seed, [number])
            counts += ending.counts
            if ending.problem:
                return Notice(plant, number, counts[CUTS], ending.problem)
            if counts[CUTS] >= most:
                return Notice(plant, None, counts[CUTS])
    raise AssertionError


def complaint(notice: Notice) -> str:
    """Return the difference between a notice and the list of faults; empty if there is none."""
    if notice.plant.noticed_by == NOT_NOTICED and notice.history is not None:
        return f"{notice.plant.name}: counts as harmless, and yet: {notice.problem}"
    if notice.plant.noticed_by == POWER_CUTS and notice.history is None:
        return f"{notice.plant.name}: not noticed in {notice.cuts} power cuts"
    return ""
