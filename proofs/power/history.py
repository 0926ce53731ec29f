"""One history: a log directory that is written, cut, opened or recovered, truncated and written again.

A history has up to three lives. While a process works, the proof repeatedly asks the disk what a power cut at that
moment would leave. Each answer is checked in a directory of its own (`cut_checker.py`), and one life covers many cuts.
The next life starts from one of them, or from a killed process whose writes were not synced.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofs.power.cut_checker import Cut, CutChecker
from proofs.power.disk import store
from proofs.power.life import Life
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from proofs.power.workload import Log
from proofs.power.world import HABITS, World

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

CLEAN: Final = ".kafka_cleanshutdown"
PROCESSES: Final = (1, 2, 2, 3)
MAX_OPERATIONS: Final = (40, 200, 200)
"""Limits on operations: one is chosen for each life."""

CLEAN_LOOKS: Final = 0.6
"""Share of operations after which a cut is tried while it may leave a clean-shutdown file, which openers trust."""
STAYS, DIES, FROM_LAST = 0.3, 0.3, 0.5
"""Shares of lives: those without a power cut; those whose process is killed while the power stays; of the others, those
after whose last cut the next life begins."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a history.

    Attributes:
        number: number of the history.
        problem: description of a problem; empty if there is none.
        counts: numbers of events, for the report.
    """

    number: int
    problem: str
    counts: Counter[str]


class History:
    """A log directory in its successive lives.

    Args:
        seed: seed of all histories.
        number: number of this history.
        scratch: local working directory.
        compacts: whether logs are compacted in most lives after the first.
    """

    def __init__(self, seed: int, number: int, scratch: Path, *, compacts: bool = False) -> None:
        self.dice = random.Random(f"{seed} {number}")
        self.number = number
        self.world = World(random.Random(f"{seed} {number} work"))
        self.world.compacts, self.world.habits = compacts, self.dice.choice(HABITS)
        self.counts = self.world.counts
        self.root = scratch / "logs"
        self.files = SimulatedFiles(self.root, self.dice)
        self.logs = {partition: Log() for partition in range(self.dice.choice((1, 1, 2)))}
        self.checker = CutChecker(scratch / "cut", self.dice, self.counts)

    def run(self) -> Ending:
        """Run the lives of this history, with power cuts, and return the outcome."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        try:
            for _ in range(self.dice.choice(PROCESSES)):
                cuts = self._live()
                for cut in cuts:
                    self.checker.check(cut)
                self._start_next_life(cuts)
        except Exception as error:  # noqa: BLE001 - whatever happens is the outcome of this run
            return Ending(self.number, f"{type(error).__name__}: {error}", self.counts)
        return Ending(self.number, "", self.counts)

    def _live(self) -> list[Cut]:
        """Run one life, and return the states after power cuts in it; the life ends at the last one."""
        files, cuts = self.files, list[Cut]()
        life = Life(MirroredFiles(files), self.logs, self.world)

        def look() -> None:
            is_last = files.step_count == files.cut_at
            share = CLEAN_LOOKS if files.may_survive(CLEAN) else self.world.habits.looks
            if is_last or life.when == "compacting" or self.dice.random() < share:
                cuts.append(Cut(life.when, 0, files.survivors(self.dice), life.promises))

        files.after_step = look
        most = max(MAX_OPERATIONS) if self.world.compacts else self.dice.choice(MAX_OPERATIONS)
        files.step_count = 0
        files.cut_at = None if self.dice.random() < STAYS else self.dice.randint(1, most)
        try:
            life.run()
        except PowerCut:
            self.counts["lives cut off"] += 1
        life.end()
        if not cuts or cuts[-1].promises != life.promises:
            cuts.append(Cut(life.when, 0, files.survivors(self.dice), life.promises))
        self.counts.update(lives=1, operations=files.step_count)
        return cuts

    def _start_next_life(self, cuts: list[Cut]) -> None:
        """Start the next life from a state that this one left."""
        shutil.rmtree(self.root)
        self.files.after_step, self.files.cut_at = None, None
        if self.dice.random() < DIES:
            self.counts["processes that died"] += 1
            self.files.store(self.root)
            return
        cut = cuts[-1] if self.dice.random() < FROM_LAST else self.dice.choice(cuts)
        store(cut.contents, self.root)
        self.files = SimulatedFiles(self.root, self.dice)
        self.files.load(self.root)
        for partition, promise in cut.promises.items():
            log = self.logs[partition]
            log.appended, log.acknowledged = list(promise.appended), promise.acknowledged
            log.start, log.groups = promise.start, promise.groups
