"""Change small inputs at every byte: a result, a finding or a `FormatError`, nothing else.

Every input of `fixtures/hostile/inputs.json` is cut at every byte; every byte has each of its bits flipped and is set
to 00, 7f, 80 and ff. If a checksum protects the bytes, a second variant has the corrected checksum. Every reader of
such bytes must answer within two seconds and 64 MiB. Each input has a process of its own, which another process
watches, so a hang or a crash is reported with the change that caused it.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

from proofs.fuzz.hostile_readers import Depth, Input, Target, inputs, variants
from proofs.report_facts import installed, proof_command, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES: Final = (0x00, 0x7F, 0x80, 0xFF)
MEBIBYTE: Final = 2**20
MAX_SECONDS: Final = 2.0
MAX_GROWTH: Final = 64 * MEBIBYTE
ADDRESS_SPACE: Final = 256 * MEBIBYTE
"""More than what the worker has mapped when it starts to change bytes."""
HANG_SECONDS: Final = 20.0
DIRECTORY_EVERY: Final = 4
FIELDS_EVERY: Final = 20
COMMAND_LINE_EVERY: Final = 100
MAX_FAILURES: Final = 20
LIBRARIES: Final = ("construct", "cramjam", "google-crc32c", "isal", "lz4", "zstandard")


@dataclass(slots=True)
class Result:
    """The result of one input.

    Attributes:
        name: name of the input.
        size: bytes of the input.
        changes: number of changed inputs that were read.
        outcomes: numbers of results, findings and `FormatError`; each input is counted once, by its strongest outcome.
        slowest_seconds, slowest: the longest reading and its change.
        growth: maximum growth of the worker's memory in bytes, over all changes.
        failures: each change with its failure.
    """

    name: str
    size: int
    changes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0
    slowest: str = ""
    growth: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)


def changes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield all changes by name; repeated values, and values that a byte had already, are left out."""
    for size in range(len(data)):
        yield f"cut to {size}", data[:size]
    for position, byte in enumerate(data):
        new = dict.fromkeys((*(byte ^ 1 << bit for bit in range(8)), *(value for value in VALUES if value != byte)))
        for value in new:
            yield f"byte {position} set to {value:02x}", data[:position] + bytes([value]) + data[position + 1 :]


def chosen(given: Input, share: float, seed: int) -> Iterator[tuple[str, bytes]]:
    """Return a seeded share of the changes; all of them for 1."""
    dice = random.Random(f"{seed} {given.name}")
    return (change for change in changes(given.data) if share >= 1 or dice.random() < share)


# The worker


class Worker:
    """Reads the changes of one input in this process."""

    def __init__(self, given: Input, root: Path, beat: mmap.mmap) -> None:
        self.given = given
        self.beat = beat
        self.watcher = os.getppid()
        self.target = Target(given, root)
        self.result = Result(given.name, len(given.data))

    def run(self, share: float, seed: int) -> Result:
        """Read a share of the changes."""
        for _, data in variants(self.given, self.given.data):
            self.target.read(data, Depth.COMMAND_LINE)
        before = peak_memory()
        limit_address_space()
        for number, (name, changed) in enumerate(chosen(self.given, share, seed)):
            *others, last = variants(self.given, changed)
            for variant, data in others:
                self._one(f"{name} {variant}".strip(), data, Depth.BYTES)
            self._one(f"{name} {last[0]}".strip(), last[1], depth_of(number))
            if len(self.result.failures) >= MAX_FAILURES:
                break
        self.result.growth = peak_memory() - before
        if self.result.growth > MAX_GROWTH:
            self.result.failures.append({"change": "all", "problem": f"memory grew by {self.result.growth} bytes"})
        return self.result

    def _one(self, name: str, data: bytes, depth: Depth) -> None:
        if os.getppid() != self.watcher:
            sys.exit("nobody is watching any more")
        note(self.beat, self.result.changes, name)
        self.result.changes += 1
        try:
            seconds, outcome = self._timed(data, depth)
            if seconds > MAX_SECONDS:  # once more, in case the machine was busy
                seconds = min(seconds, self._timed(data, depth)[0])
        except Exception as problem:  # noqa: BLE001 - finding these is what this program is for
            self._fail(name, "".join(traceback.format_exception(problem)[-6:]))
            return
        self.result.outcomes[outcome] += 1
        if seconds > self.result.slowest_seconds:
            self.result.slowest_seconds, self.result.slowest = round(seconds, 3), name
        if seconds > MAX_SECONDS:
            self._fail(name, f"took {seconds:.1f} seconds")

    def _timed(self, data: bytes, depth: Depth) -> tuple[float, str]:
        start = time.perf_counter()
        reading = self.target.read(data, depth)
        return time.perf_counter() - start, reading.outcome

    def _fail(self, name: str, problem: str) -> None:
        self.result.failures.append({"change": name, "problem": problem})


def depth_of(number: int) -> Depth:
    """Return the depth of a change: the bytes; for some changes also the directory, or the commands."""
    if number % COMMAND_LINE_EVERY == 0:
        return Depth.COMMAND_LINE
    if number % FIELDS_EVERY == 0:
        return Depth.FIELDS
    return Depth.BYTES if number % DIRECTORY_EVERY else Depth.DIRECTORY


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit_address_space() -> None:
    """Make large allocations fail: else they would succeed unseen, since untouched pages do not count as memory."""
    if sys.platform != "linux":
        return
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    limit = mapped + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def note(beat: mmap.mmap, number: int, name: str) -> None:
    """Report the next change to the watching process."""
    beat[:] = f"{number} {name}".encode()[: len(beat)].ljust(len(beat))


def work(name: str, share: float, seed: int, beat_path: str) -> None:
    """Read the changes of one input and print the result, in a worker process."""
    with Path(beat_path).open("r+b") as file, mmap.mmap(file.fileno(), 0) as beat, scratch() as root:
        result = Worker(inputs()[name], Path(root) / "data", beat).run(share, seed)
    print(json.dumps({name: getattr(result, name) for name in Result.__slots__}))


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a directory in memory if there is one: a run writes some hundred thousand small files."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
    return tempfile.TemporaryDirectory(prefix="hostile-", dir=memory if os.access(memory, os.W_OK) else None)


# The process that watches


def watched(name: str, share: float, seed: int) -> Result:
    """Run a worker; if it hangs or dies, its present change fails."""
    given = inputs()[name]
    with tempfile.NamedTemporaryFile(prefix="hostile-") as beat:
        beat.write(b" " * 64)
        beat.flush()
        command = [sys.executable, "-m", "proofs.fuzz.hostile", "--worker", beat.name, "--only", name]
        command += ["--sample", str(share), "--seed", str(seed)]
        with child_processes.start(
            command, directory=child_processes.NOWHERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            answer, problem = supervise(run, Path(beat.name))
    if problem:
        return Result(name, len(given.data), failures=[problem])
    row = json.loads(answer)
    return Result(**(row | {"outcomes": Counter(row["outcomes"])}))


def supervise(run: subprocess.Popen[str], beat: Path) -> tuple[str, dict[str, str]]:
    """Wait for a worker as long as it proceeds from change to change."""
    seen, since = b"", time.monotonic()
    while True:
        try:
            answer, errors = run.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            now = beat.read_bytes()
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > HANG_SECONDS:
                run.kill()
                run.communicate()
                return "", {"change": where(now), "problem": f"no answer within {HANG_SECONDS:.0f} seconds"}
            continue
        if run.returncode == 0:
            return answer, {}
        return "", {"change": where(beat.read_bytes()), "problem": f"exit {run.returncode}: {errors[-800:]}"}


def where(beat: bytes) -> str:
    """Return the change that a worker reported last."""
    return beat.decode(errors="replace").strip().partition(" ")[2] or "before the first"


def _conditions(arguments: argparse.Namespace) -> dict[str, Any]:
    return run_conditions(proof_command("hostile", arguments), seed=arguments.seed, versions=installed(*LIBRARIES))


def report(results: list[Result], share: float) -> dict[str, Any]:
    """Return what the run found.

    Args:
        results: of all inputs.
        share: of all inputs that the run took.
    """
    outcomes = sum((result.outcomes for result in results), Counter())
    slowest = max(results, key=lambda result: result.slowest_seconds)
    largest = max(results, key=lambda result: result.growth)
    return {
        "share": share,
        "limits": {"seconds": MAX_SECONDS, "growthBytes": MAX_GROWTH},
        "inputs": len(results),
        "inputsOf300To1000Bytes": sum(300 <= result.size <= 1000 for result in results),  # noqa: PLR2004
        "changes": sum(result.changes for result in results),
        "outcomes": dict(sorted(outcomes.items())),
        "failures": sum(len(result.failures) for result in results),
        "slowest": {"input": slowest.name, "change": slowest.slowest, "seconds": slowest.slowest_seconds},
        "largestGrowth": {"input": largest.name, "bytes": largest.growth},
        "results": [
            {
                "input": result.name,
                "bytes": result.size,
                "changes": result.changes,
                "outcomes": dict(sorted(result.outcomes.items())),
                "slowestSeconds": result.slowest_seconds,
                "growthBytes": result.growth,
                "failures": result.failures,
            }
            for result in results
        ],
    }


def print_result(result: Result, seconds: float) -> None:
    """Print one line for an input, and one for each failure."""
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(result.outcomes.items()))
    growth = result.growth / MEBIBYTE
    print(
        f"{result.name}: {result.size} bytes, {result.changes} changes in {seconds:.0f} s: {outcomes}; "
        f"slowest {result.slowest_seconds:.3f} s, growth {growth:.1f} MiB",
        flush=True,
    )
    for failure in result.failures:
        print(f"  FAILED {failure['change']}: {failure['problem']}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="cut and change small inputs everywhere and read what comes of it")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these inputs")
    parser.add_argument("--sample", metavar="SHARE", type=float, default=1.0, help="a share of all, such as 0.05")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="inputs at the same time")
    parser.add_argument("--report", type=Path, help="write the result there as JSON")
    parser.add_argument("--worker", metavar="FILE", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run, print the result, and return whether nothing failed."""
    arguments = _arguments()
    names = arguments.only or list(inputs())
    if arguments.worker:
        work(names[0], arguments.sample, arguments.seed, arguments.worker)
        return 0
    conditions, started = _conditions(arguments), time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda name: _timed_run(name, arguments), names))
    write_report(arguments.report, conditions, report(results, arguments.sample))
    failures = sum(len(result.failures) for result in results)
    total = sum(result.changes for result in results)
    print(f"{len(results)} inputs, {total} changes, {failures} failures, {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


def _timed_run(name: str, arguments: argparse.Namespace) -> Result:
    started = time.monotonic()
    result = watched(name, arguments.sample, arguments.seed)
    print_result(result, time.monotonic() - started)
    return result


if __name__ == "__main__":
    sys.exit(main())
