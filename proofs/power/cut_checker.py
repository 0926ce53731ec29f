"""Checks of the state after a power cut: opened as the next process opens it, and, on a copy, recovered first."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from proofs.power.life import TOPIC, path_of
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.next_process import HistoryError, Opened, check_verified, open_as_user
from proofs.power.promise import BrokenPromiseError
from proofs.power.simulated_files import SimulatedFiles
from seglog_format import Environment, RecoveryOptions, recover

if TYPE_CHECKING:
    import random
    from collections import Counter

    from proofs.power.disk import Contents
    from proofs.power.promise import Promise

IN_RECOVERY: Final = (0.12, 0.03)
"""So many recoveries are cut after each of their operations; fewer of those that follow such a cut."""
FULL_SCAN, APPENDS = 0.3, 0.1
"""Shares of recoveries that scan everything; of recovered logs that are opened and written to."""

Frozen: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """The state after a power cut.

    Attributes:
        when: description of the interrupted work.
        depth: number of earlier cuts that were made in a recovery.
        contents: contents of the log directory.
        promises: required contents of the logs, by partition.
    """

    when: str
    depth: int
    contents: Contents
    promises: dict[int, Promise]

    @property
    def is_clean(self) -> bool:
        """Return whether the next process finds a clean-shutdown file."""
        return ".kafka_cleanshutdown" in self.contents


class CutChecker:
    """Opens and recovers states after power cuts, and compares them with the promises; equal states only once.

    Args:
        root: path of the log directory, which is created and removed for each state.
        dice: random number generator for the options of recovery.
        counts: numbers of events.
    """

    def __init__(self, root: Path, dice: random.Random, counts: Counter[str]) -> None:
        self._root = root
        self._dice = dice
        self._counts = counts
        self._opened: dict[Frozen, dict[int, Opened]] = {}
        self._recovered: dict[tuple[bool, Frozen], Contents] = {}
        self._settled: set[Frozen] = set()
        self._held: Contents = {}
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    def check(self, cut: Cut) -> None:
        """Open the state, recover a copy of it, and compare both with the promises.

        Raises:
            BrokenPromiseError: a promise is broken.
            HistoryError: another check fails.
        """
        self._counts["power cuts"] += 1
        self._counts[f"cut while {cut.when}"] += 1
        self._counts["cuts that leave a clean-shutdown file"] += cut.is_clean
        self._check_opened(cut)
        self._check_recovered(cut)

    def _check_opened(self, cut: Cut) -> None:
        key = _frozen(cut.contents)
        if key not in self._opened:
            self._restore(cut.contents)
            try:
                self._opened[key] = open_as_user(self._root, cut.promises)
            finally:
                self._look()
            self._counts["different disks"] += 1
        for partition, promise in cut.promises.items():
            try:
                check_opened(self._opened[key][partition], promise)
            except (BrokenPromiseError, HistoryError) as error:
                msg = f"{TOPIC}-{partition}, opened: {error}"
                raise type(error)(msg) from error

    def _check_recovered(self, cut: Cut) -> None:
        is_full_scan = self._dice.random() < FULL_SCAN
        key = is_full_scan, _frozen(cut.contents)
        if key not in self._recovered:
            self._recovered[key] = self._recover(cut, RecoveryOptions(is_full_scan=is_full_scan))
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
        """Make the directory hold exactly these files; equal files are kept."""
        for name in sorted(self._held.keys() - contents.keys(), reverse=True):
            path = self._root / name
            path.rmdir() if self._held[name] is None else path.unlink()
        for name, data in contents.items():
            if name not in self._held or self._held[name] != data:
                (self._root / name).mkdir() if data is None else (self._root / name).write_bytes(data)
        self._held = contents

    def _look(self) -> Contents:
        """Return the present contents."""
        self._held = _contents(self._root)
        return self._held

    def _recover(self, cut: Cut, options: RecoveryOptions) -> Contents:
        """Recover; if cuts inside a recovery are tested, check the states after them as well."""
        self._restore(cut.contents)
        share = IN_RECOVERY[cut.depth] if cut.depth < len(IN_RECOVERY) else 0
        if self._dice.random() >= share:
            for path in self._partitions(cut.contents):
                found = recover(path, options=options).apply()
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
            recover(path, options=options, environment=Environment(files=MirroredFiles(files))).apply()
        return cuts

    def _settle(self, contents: Contents, options: RecoveryOptions) -> None:
        """Check that `verify` finds no error, and that another recovery changes nothing."""
        self._restore(contents)
        check_verified(self._root)
        for path in self._partitions(contents):
            for step in recover(path, options=options).apply().steps:
                msg = f"a second recovery: {step.text} {step.path.name}"
                raise HistoryError(msg)
        if self._look() != contents:
            msg = "a second recovery changes something"
            raise HistoryError(msg)
        if self._dice.random() < APPENDS:
            numbers = [int(path.name.removeprefix(f"{TOPIC}-")) for path in self._partitions(contents)]
            open_as_user(self._root, numbers)
            self._look()
            self._counts["recovered logs written to"] += len(numbers)


def check_opened(found: Opened, promise: Promise) -> None:
    """Compare the contents of an opened log with the promise.

    Raises:
        BrokenPromiseError: acknowledged records are missing, or others are there.
        HistoryError: readers begin too late, or an offset is assigned twice.
    """
    kept = promise.kept(found.log)
    if found.next_offset < promise.given_out:
        msg = f"the next record gets offset {found.next_offset}, and everything below {promise.given_out} was given out"
        raise HistoryError(msg)
    if found.log_start_offset > max(promise.start, kept[0].start if kept else 0):
        msg = f"readers begin at {found.log_start_offset}, and nothing above {promise.start} may go"
        raise HistoryError(msg)


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
    prefix = f"{path_of(Path(), partition).name}/"
    return b"".join(
        data or b"" for name, data in sorted(contents.items()) if name.startswith(prefix) and name.endswith(".log")
    )
