"""Cut the power while logs are written, recovered and truncated, and hold what is left against what was promised.

Each history (`cut_history.py`) is a small log directory on a simulated disk (`tests/simulated_files.py`), written by
one to eight appenders that take turns as a seed says, also in the middle of each other's flushes. After a random
operation the power goes; what was not synced then survives by chance, in part or not at all. Recovery may lose the
power, too, and starts again. After that each log has to be a beginning of what was appended, with everything that a
flush had acknowledged; `verify` finds no error, another recovery finds nothing to do, and the log can be written to.
Then it is written to, cut and recovered again (chapter 71).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count as numbers_from
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from cut_history import History, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_FAILURES: Final = 20
CHUNK: Final = 10
"""Histories that a process does before it tells of them."""

CUTS: Final = "power cuts"
COMPACT: Final = " --compact"


def run_all(seed: int, numbers: Iterable[int], *, compacts: bool = False) -> list[Outcome]:
    """Do some of the histories of a seed."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="power-cuts-", dir=memory if memory.is_dir() else None) as name:
        return [History(seed, number, Path(name), compacts=compacts).run() for number in numbers]


def command(seed: int, number: int, *, compacts: bool = False) -> str:
    """What repeats one history."""
    return f"python tools/power_cuts.py --seed {seed} --only {number}{COMPACT * compacts}"


def _chunks(seed: int, first: int, workers: int, *, compacts: bool) -> Iterator[list[Outcome]]:
    """Outcomes of one history after the other, for as long as somebody asks."""
    run = partial(run_all, seed, compacts=compacts)
    if workers == 1:
        yield from (run(range(start, start + CHUNK)) for start in numbers_from(first, CHUNK))
        return
    with ProcessPoolExecutor(workers) as pool:
        for start in numbers_from(first, CHUNK * workers):
            yield from pool.map(run, (range(at, at + CHUNK) for at in range(start, start + CHUNK * workers, CHUNK)))


def reports(seed: int, first: int, count: int, workers: int, *, compacts: bool) -> Iterator[dict[str, Any]]:
    """Do histories until there were so many power cuts; sum up after every few of them."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    failed: list[dict[str, str]] = []
    histories = 0
    for outcomes in _chunks(seed, first, workers, compacts=compacts):
        histories += len(outcomes)
        for outcome in outcomes:
            counts += outcome.counts
            if outcome.problem:
                failed.append({"repeat": command(seed, outcome.number, compacts=compacts), "problem": outcome.problem})
                print(f"{failed[-1]['problem']}\n  {failed[-1]['repeat']}", file=sys.stderr, flush=True)
        yield {
            "command": f"python tools/power_cuts.py --seed {seed} --first {first} --count {count}{COMPACT * compacts}",
            CUTS: counts[CUTS],
            "histories": histories,
            "failures": len(failed),
            "failed": failed[:MOST_FAILURES],
            "seconds": round(time.perf_counter() - started, 1),
            "workers": workers,
            "counts": {name: counts[name] for name in sorted(counts) if name != CUTS},
            "python": platform.python_version(),
            "machine": platform.platform(),
        }
        if counts[CUTS] >= count:
            return


def _text(result: dict[str, Any]) -> str:
    return json.dumps(result, indent=2) + "\n"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="cut the power while logs are written, and recover them")
    parser.add_argument("--seed", type=int, default=1, help="of all histories")
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--count", type=int, default=1000, help="how many power cuts, at least")
    parser.add_argument("--only", type=int, help="one history by its number")
    parser.add_argument("--compact", action="store_true", help="logs are compacted, too")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--report", type=Path, help="where to write the result as JSON, and what is known so far")
    given = parser.parse_args()
    if given.only is not None:
        (outcome,) = run_all(given.seed, [given.only], compacts=given.compact)
        print(outcome.problem or "fine", dict(outcome.counts))
        return int(bool(outcome.problem))
    result: dict[str, Any] = {}
    for result in reports(given.seed, given.first, given.count, given.workers, compacts=given.compact):
        if given.report is not None:
            given.report.write_text(_text(result), encoding="utf-8")
    print(_text(result), end="")
    return int(result["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())
