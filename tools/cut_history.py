"""One history of `power_cuts.py`: a log directory that is written, cut, recovered, truncated and written again.

A history has up to three lives. While a process is at work, the disk is asked again and again what would be left if the
power went now. Each answer is recovered in a place of its own and held against what was promised, so that one life
stands for many power cuts. The next life goes on from one of them, or from a dead process whose writes nobody synced.

Recovery writes, too. Some recoveries are looked at in the same way, after each of their own operations.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from cut_life import TOPIC, Life, log_bytes, path_of
from cut_workload import Log, World
from simulated_files import Contents, MirroredFiles, PowerCut, SimulatedFiles, store

from seglog_format.checks.verify import verify
from seglog_format.codec.build import new_record
from seglog_format.lifecycle.log_writer import LogWriter
from seglog_format.lifecycle.recovery_apply import RecoveryOptions, recover_partition
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from collections import Counter

    from cut_promise import Promise

LIVES: Final = (1, 2, 2, 3)
MOST_OPERATIONS: Final = (40, 200, 200)
"""One of these limits each life."""

CUT_SHARE: Final = 0.12
"""After so many of the operations it is asked what a power cut would leave."""
IN_RECOVERY: Final = (0.12, 0.03)
"""So many recoveries are cut after each of their operations; fewer of those that follow such a cut."""
DIES, FULL_SCAN, APPENDS = 0.3, 0.3, 0.1
"""Shares of lives that end with the process and not the power; of recoveries that scan everything, that are used."""

Frozen: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """What a power cut leaves.

    Attributes:
        when: what was going on.
        depth: how many of the cuts before it were made in a recovery.
        contents: of the log directory.
        promises: what has to be in the logs, by partition.
    """

    when: str
    depth: int
    contents: Contents
    promises: dict[int, Promise]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a history came to.

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
        self.dice = random.Random(f"{seed} {number}")  # noqa: S311 - chance that repeats
        self.number = number
        self.world = World(random.Random(f"{seed} {number} work"))  # noqa: S311
        self.world.compacts = compacts
        self.counts = self.world.counts
        self.root = scratch / "logs"
        self.files = SimulatedFiles(self.root, self.dice)
        self.logs = {partition: Log() for partition in range(self.dice.choice((1, 1, 2)))}
        self.bench = Bench(scratch / "cut", self.dice, self.counts)

    def run(self) -> Outcome:
        """Live, be cut, and go on."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        try:
            for _ in range(self.dice.choice(LIVES)):
                cuts = self._live()
                for cut in cuts:
                    self.bench.check(cut)
                self._go_on(cuts)
        except Exception as error:  # noqa: BLE001 - whatever happens is the outcome of this run
            return Outcome(self.number, f"{type(error).__name__}: {error}", self.counts)
        return Outcome(self.number, "", self.counts)

    def _live(self) -> list[Cut]:
        """One life, and what power cuts in it would leave; the last of them is where it ends."""
        files, cuts = self.files, list[Cut]()
        life = Life(MirroredFiles(files), self.logs, self.world)

        def look() -> None:
            is_last = files.step_count == files.cut_at
            if is_last or life.when == "compacting" or self.dice.random() < CUT_SHARE:
                cuts.append(Cut(life.when, 0, files.survivors(self.dice), life.promises))

        files.after_step = look
        most = max(MOST_OPERATIONS) if self.world.compacts else self.dice.choice(MOST_OPERATIONS)
        files.step_count, files.cut_at = 0, self.dice.randint(1, most)
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
        cut = self.dice.choice(cuts)
        store(cut.contents, self.root)
        self.files = SimulatedFiles(self.root, self.dice)
        self.files.load(self.root)
        for partition, promise in cut.promises.items():
            log = self.logs[partition]
            log.appended, log.acknowledged = list(promise.appended), promise.acknowledged
            log.start, log.groups = promise.start, promise.groups


class Bench:
    """Where the remains of power cuts are recovered and looked at; equal ones once.

    Args:
        root: of the log directory, which is made and removed again and again.
        dice: decides how it is recovered.
        counts: of what happened.
    """

    def __init__(self, root: Path, dice: random.Random, counts: Counter[str]) -> None:
        self._root = root
        self._dice = dice
        self._counts = counts
        self._recovered: dict[tuple[bool, Frozen], Contents] = {}
        self._settled: set[Frozen] = set()
        self._held: Contents = {}
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    def check(self, cut: Cut) -> None:
        """Recover what is left, and compare it with what was promised.

        Raises:
            BrokenPromiseError: it is not what it has to be.
            HistoryError: something else is wrong.
        """
        self._counts["power cuts"] += 1
        self._counts[f"cut while {cut.when}"] += 1
        is_full_scan = self._dice.random() < FULL_SCAN
        key = is_full_scan, _frozen(cut.contents)
        if key not in self._recovered:
            self._recovered[key] = self._recover(cut, RecoveryOptions(is_full_scan=is_full_scan))
            self._counts["different disks"] += 1
        contents = self._recovered[key]
        for partition, promise in cut.promises.items():
            found = _log_of(contents, partition)
            self._counts["logs with something acknowledged"] += promise.acknowledged > 0
            self._counts["logs that keep more"] += promise.keeps_more(promise.kept(found))
        settled = _frozen(contents)
        if settled not in self._settled:
            self._settle(contents, RecoveryOptions(is_full_scan=is_full_scan))
            self._settled.add(settled)
            self._counts["different recovered disks"] += 1

    def _partitions(self, contents: Contents) -> list[Path]:
        return [self._root / name for name, data in contents.items() if data is None]

    def _restore(self, contents: Contents) -> None:
        """Let exactly these files be there; those that are there already stay."""
        for name in sorted(self._held.keys() - contents.keys(), reverse=True):
            path = self._root / name
            path.rmdir() if self._held[name] is None else path.unlink()
        for name, data in contents.items():
            if name not in self._held or self._held[name] != data:
                (self._root / name).mkdir() if data is None else (self._root / name).write_bytes(data)
        self._held = contents

    def _look(self) -> Contents:
        """What is there now."""
        self._held = _contents(self._root)
        return self._held

    def _recover(self, cut: Cut, options: RecoveryOptions) -> Contents:
        """Recover; where that is looked at, the remains of cuts in it are checked, too."""
        self._restore(cut.contents)
        share = IN_RECOVERY[cut.depth] if cut.depth < len(IN_RECOVERY) else 0
        if self._dice.random() >= share:
            for path in self._partitions(cut.contents):
                found = recover_partition(path, options=options)
                self._counts["log was cut"] += bool(found.plan.cuts)
            return self._look()
        inner = self._cut_recovery(cut, options)
        recovered = self._look()
        for each in inner:
            self.check(each)
        return recovered

    def _cut_recovery(self, cut: Cut, options: RecoveryOptions) -> list[Cut]:
        files = SimulatedFiles(self._root, self._dice)
        files.load(self._root)
        cuts = list[Cut]()
        when = "recovering" if cut.depth == 0 else "recovering again"

        def look() -> None:
            cuts.append(Cut(when, cut.depth + 1, files.survivors(self._dice), cut.promises))

        files.after_step = look
        for path in self._partitions(cut.contents):
            recover_partition(path, options=options, files=MirroredFiles(files))
        return cuts

    def _settle(self, contents: Contents, options: RecoveryOptions) -> None:
        """`verify` finds no error, recovering again changes nothing, and the log can be written to."""
        self._restore(contents)
        self._verify()
        for path in self._partitions(contents):
            for step in recover_partition(path, options=options).steps:
                msg = f"a second recovery: {step.text} {step.path.name}"
                raise HistoryError(msg)
        if self._look() != contents:
            msg = "a second recovery changes something"
            raise HistoryError(msg)
        if self._dice.random() < APPENDS:
            self._append(contents)

    def _verify(self) -> None:
        errors = (finding for finding in verify(self._root) if finding.severity is Severity.ERROR)
        for finding in errors:
            msg = f"verify: {finding}"
            raise HistoryError(msg)

    def _append(self, contents: Contents) -> None:
        partitions = [int(path.name.removeprefix(f"{TOPIC}-")) for path in self._partitions(contents)]
        with LogWriter(self._root) as writer:
            for partition in partitions:
                writer.open(TOPIC, partition).append([new_record(b"one more")])
        for partition in partitions:
            before, now = _log_of(contents, partition), log_bytes(path_of(self._root, partition))
            if not (now.startswith(before) and b"one more" in now[len(before) :]):
                msg = f"{TOPIC}-{partition}: an append to the recovered log is not there"
                raise HistoryError(msg)
        self._verify()
        self._look()
        self._counts["recovered logs written to"] += len(partitions)


class HistoryError(Exception):
    """Something that must not happen did."""


def _frozen(contents: Contents) -> Frozen:
    return tuple(sorted(contents.items()))


def _contents(root: Path) -> Contents:
    found: Contents = {}
    with os.scandir(root) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.is_dir():
                found[entry.name] = None
                found |= {f"{entry.name}/{name}": data for name, data in _contents(Path(entry.path)).items()}
            else:
                found[entry.name] = Path(entry.path).read_bytes()
    return found


def _log_of(contents: Contents, partition: int) -> bytes:
    prefix = f"{TOPIC}-{partition}/"
    return b"".join(
        data or b"" for name, data in sorted(contents.items()) if name.startswith(prefix) and name.endswith(".log")
    )
