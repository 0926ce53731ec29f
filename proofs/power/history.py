"""One history: a log directory that is written, cut, opened or recovered, truncated and written again.

A history has up to three lives. While a process is at work, the disk is asked again and again what would be left if the
power went now. Each answer is checked in a directory of its own (`cut_checker.py`), so one life stands for many cuts.
The next life goes on from one of them, or from a dead process whose writes nobody synced.
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
"""One of these limits each life."""

CLEAN_LOOKS: Final = 0.6
"""It is asked more often what a power cut would leave while that may be a clean-shutdown file: it is believed."""
STAYS, DIES, FROM_LAST = 0.3, 0.3, 0.5
"""Shares of lives in which the power stays; that end with the process and not the power; of the others, those whose end
the next life finds."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a history ended.

    Attributes:
        number: of the history.
        problem: what was wrong, or nothing.
        counts: what happened, for the report.
    """

    number: int
    problem: str
    counts: Counter[str]


class History:
    """A log directory through its lives.

    Args:
        seed: of all histories.
        number: of this one.
        scratch: a directory of the local file system to work in.
        compacts: logs are compacted, too, in most lives but the first.
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
        """Live, be cut, and go on."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        try:
            for _ in range(self.dice.choice(PROCESSES)):
                cuts = self._live()
                for cut in cuts:
                    self.checker.check(cut)
                self._go_on(cuts)
        except Exception as error:  # noqa: BLE001 - whatever happens is the outcome of this run
            return Ending(self.number, f"{type(error).__name__}: {error}", self.counts)
        return Ending(self.number, "", self.counts)

    def _live(self) -> list[Cut]:
        """One life, and what power cuts in it would leave; the last of them is where it ends."""
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

    def _go_on(self, cuts: list[Cut]) -> None:
        """Let the next life find what this one left."""
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
