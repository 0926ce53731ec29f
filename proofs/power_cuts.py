"""Cut the power while logs are written; open and recover the remains: nothing acknowledged is lost.

Each history (`proofs/power/history.py`) is a small log directory on a simulated disk, written by one to eight appenders
that take turns in a random order, also during each other's flushes. After a random operation the power fails; of the
data that were not synced, a random part survives.

The remains are checked twice. The next process opens them as a user would, and so trusts a clean-shutdown file; and on
a copy of the same state, recovery runs first, during which the power may fail again. Both times each log must be a
beginning of the appended batches, with everything that a flush had acknowledged; every record must be readable, the
next record must get the right offset, and `verify` must find no error. Then the directory is written, cut and checked
again (chapter 71).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from functools import partial
from itertools import count as numbers_from
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from proofs.power.history import History

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from proofs.power.history import Ending

CHUNK: Final = 10
"""Histories that a process does before it tells of them."""
CUTS: Final = "power cuts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--count", type=int, default=100_000, help="how many power cuts, at least")
    parser.add_argument("--compact", action="store_true", help="logs are compacted, too")
    parser.add_argument("--workers", type=int, default=2, help="processes")


def prove(options: argparse.Namespace) -> Outcome:
    """Run histories until the number of power cuts is reached."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    histories = 0
    for endings in _chunks(options.seed, options.first, options.workers, compacts=options.compact):
        histories += len(endings)
        for ending in endings:
            counts += ending.counts
            if ending.problem:
                failures.append(f"{ending.problem}: {command(options.seed, ending.number, compacts=options.compact)}")
                print(failures[-1], file=sys.stderr, flush=True)
        if counts[CUTS] >= options.count:
            break
    reported = {name: counts[name] for name in sorted(counts) if name != CUTS}
    return Outcome({CUTS: counts[CUTS], "histories": histories, "counts": reported}, failures)


def run_all(seed: int, numbers: Iterable[int], *, compacts: bool = False) -> list[Ending]:
    """Run some of the histories of a seed."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="power-cuts-", dir=memory if memory.is_dir() else None) as name:
        return [History(seed, number, Path(name), compacts=compacts).run() for number in numbers]


def command(seed: int, number: int, *, compacts: bool = False) -> str:
    """Return the command that repeats one history."""
    return f"python -m proofs power-cuts --seed {seed} --first {number} --count 1 --workers 1{' --compact' * compacts}"


def _chunks(seed: int, first: int, workers: int, *, compacts: bool) -> Iterator[list[Ending]]:
    """Yield the outcomes of one history after the other, without end."""
    run = partial(run_all, seed, compacts=compacts)
    if workers == 1:
        yield from (run([number]) for number in numbers_from(first))
        return
    with child_processes.process_pool(workers) as pool:
        for start in numbers_from(first, CHUNK * workers):
            yield from pool.map(run, (range(at, at + CHUNK) for at in range(start, start + CHUNK * workers, CHUNK)))
