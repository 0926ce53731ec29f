"""Damage log directories at random: no traceback, no hang, no growth, no unreported loss.

A case (`proofs/damaging/worker.py`) is a log directory of one to three partitions that brokers wrote, with one to three
damages (`proofs/damaging/kinds.py`). `ls`, `verify`, `recover`, `dump`, `salvage` and others run over it in one process
as an ordinary user and with little memory. No command may end in a traceback, hang, grow, or change anything, in the
directory or outside. If the undamaged directory delivers a record and the damaged one does not, `verify` or the plan of
`recover` must report a loss by its exit status. `recover --write` loses nothing that its plan did not name.

A case repeats by ``python -m proofs damages --seed SEED --first NUMBER --cases 1``.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.damaging.worker import Result, confine, result_of
from proofs.harness import Outcome

if TYPE_CHECKING:
    import argparse
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

CASES_OF_A_PROCESS: Final = 100
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory, below which a directory of our own is made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--cases", type=int, default=10_000, help="damaged directories")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a case may take")


def prove(options: argparse.Namespace) -> Outcome:
    """Judge the cases."""
    with tempfile.TemporaryDirectory(prefix="damages-", dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        results = _Pool(Path(scratch), options).results()
    failures = [f"case {each.number}: {each.damages}: {what}" for each in results for what in each.failures]
    return Outcome(_facts(results), failures)


def _facts(results: list[Result]) -> dict[str, Any]:
    kinds = Counter(name for each in results for name, _ in each.damages)
    statuses = {
        command: dict(sorted(Counter(each.statuses.get(command, -1) for each in results).items()))
        for command in ("ls", "verify", "recover", "dump", "salvage")
    }
    return {
        "cases": len(results),
        "damages": dict(sorted(kinds.items())),
        "exit statuses": {command: {str(key): n for key, n in found.items()} for command, found in statuses.items()},
        "cases with lost records": sum(each.lost > 0 for each in results),
        "lost records, all of them named": sum(each.lost for each in results),
        "recovered": sum("recover --write" in each.statuses for each in results),
        "slowest command, seconds": round(max((each.seconds for each in results), default=0.0), 1),
    }


class _Pool:
    """Processes that judge cases; one that takes too long is ended, and its case is a failure."""

    def __init__(self, scratch: Path, options: argparse.Namespace) -> None:
        self._scratch, self._options = scratch, options
        self._numbers = list(range(options.first, options.first + options.cases))
        self._results: list[Result] = []

    def results(self) -> list[Result]:
        """Judge all cases."""
        context = multiprocessing.get_context("fork")
        running: list[_Worker] = []
        while self._numbers or running:
            while self._numbers and len(running) < self._options.jobs:
                numbers, self._numbers = self._numbers[:CASES_OF_A_PROCESS], self._numbers[CASES_OF_A_PROCESS:]
                running.append(_Worker(context, self._scratch, self._options.seed, numbers))
            for worker in list(running):
                self._results += worker.received()
                if worker.is_done or worker.hangs(self._options.limit):
                    running.remove(worker)
                    self._results += worker.ended()
                    self._numbers += worker.left
        return sorted(self._results, key=lambda each: each.number)


class _Worker:
    """A process that judges some cases, one after the other.

    Attributes:
        is_done: whether it has ended, and all its results were received.
    """

    def __init__(self, context: Any, scratch: Path, seed: int, numbers: list[int]) -> None:  # noqa: ANN401 - fork's
        self.left = list(numbers)
        self._connection, theirs = context.Pipe(duplex=False)
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, scratch, seed, numbers))
        self._process.start()
        theirs.close()
        self._since = time.monotonic()
        self.is_done = False

    def received(self) -> list[Result]:
        """Return the results that have arrived, after a short wait for one."""
        found = []
        try:
            while self._connection.poll(0.0 if found else 0.05):
                found.append(self._connection.recv())
                self.left.remove(found[-1].number)
                self._since = time.monotonic()
        except EOFError:  # poll() would report the end forever
            self._process.join()
            self.is_done = True
        return found

    def hangs(self, limit: float) -> bool:
        """Return whether it has worked on one case for too long."""
        return time.monotonic() - self._since > limit

    def ended(self) -> list[Result]:
        """Return the case at which it hung or died, if it did; that case is not tried again."""
        hung = self._process.is_alive()
        self._process.kill()
        self._process.join()
        if not self.left:
            return []
        reason = "it hangs" if hung else f"the process has died: {self._process.exitcode}"
        return [Result(self.left.pop(0), failures=[reason])]


def _work(connection: Connection, scratch: Path, seed: int, numbers: list[int]) -> None:
    confine()
    os.environ["NO_COLOR"] = "1"
    for number in numbers:
        connection.send(result_of(scratch, seed, number))
    connection.close()
