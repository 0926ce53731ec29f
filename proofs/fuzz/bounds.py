"""Run every kernel on hostile bytes with each load and store checked, and once without.

With checks, a position out of range is an `IndexError`, and a failure of this proof. Verdicts must be the same both
times, and equal those of the reference (`proofs.fuzz.targets`). Inputs: the corpus of the fuzzer and its seeds; small
logs of every magic and codec, cut everywhere and changed at every byte, with corrected checksums; and generated blocks.
Each mode runs in a process of its own, because numba decides once whether it checks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

from proofs.fuzz.fuzz import CHECKED, memory, packed
from proofs.report_facts import installed, proof_command, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
WAYS: Final[dict[str, dict[str, str]]] = {
    "checked": CHECKED,
    "checked, portable checksums": {**CHECKED, "SEGLOG_CHECKSUM_PATH": "portable"},
    "usual": {},
}
"""Environments to run in; the last has the kernels that everybody uses."""
BLOCKS: Final = 4000
EXTREMES: Final = (0x00, 0x7F, 0x80, 0xFF)
TESTS: Final = (
    "decompressing",
    "columnar_checksum",
    "encode_columns",
    "hostile_scan",
    "objects",
    "prefilter",
    "recovery_kernels",
    "scan",
)
"""Tests that a full run also runs with checks."""
MAX_FAILURES: Final = 20
FAILED: Final = "FAILED "


def inputs() -> Iterator[bytes]:
    """Yield all inputs, in a fixed order."""
    seeds = import_module("proofs.fuzz.seeds")
    yield from packed()
    yield from seeds.seeds()
    for number, log in enumerate(seeds.made_logs()):
        dice = random.Random(number)
        for content in (*cuts(log), *changes(log, dice)):
            yield from (bytes([target | 8 | dice.randrange(16) << 4]) + content for target in seeds.LOG_TARGETS)
    made, number_of = import_module("proofs.fuzz.made_blocks"), import_module("proofs.fuzz.targets").TARGETS.index
    dice = random.Random(7)
    for number in range(BLOCKS):
        yield bytes([number_of("lz4") | (number & 3) << 4]) + made.random_lz4(dice)
        yield bytes([number_of("snappy") | (number & 3) << 4]) + made.random_snappy(dice)


def cuts(log: bytes) -> Iterator[bytes]:
    """Yield the log cut at every byte, unchanged and with the size of its first entry corrected."""
    for size in range(len(log)):
        yield log[:size]
        if size > 26:  # noqa: PLR2004 - less is no entry
            yield log[:8] + (size - 12).to_bytes(4) + log[12:size]


def changes(log: bytes, dice: random.Random) -> Iterator[bytes]:
    """Yield the log with one byte changed: a flipped bit, and an extreme."""
    for position, byte in enumerate(log):
        for value in (byte ^ 1 << dice.randrange(8), dice.choice(EXTREMES)):
            yield log[:position] + bytes([value]) + log[position + 1 :]


def chosen(share: float, seed: int) -> list[bytes]:
    """Return a seeded share of the inputs; all of them for 1."""
    dice = random.Random(seed)
    return [data for data in inputs() if share >= 1 or dice.random() < share]


# In a process of its own


def work(directory: Path, share: float, seed: int) -> dict[str, Any]:
    """Return the result of each input, the called kernels, and whether positions are checked."""
    targets = import_module("proofs.fuzz.targets")
    targets.ignore_gaps()
    run = targets.Targets(directory).run
    verdicts = []
    for data in chosen(share, seed):
        try:
            verdicts.append(run(data))
        except Exception as problem:  # noqa: BLE001 - finding these is what this program is for
            verdicts.append(f"{FAILED}{type(problem).__name__}: {problem} ({data.hex()})")
    kernels = {kernel.py_func.__name__: bool(kernel.signatures) for kernel in compiled_kernels()}
    return {"verdicts": verdicts, "kernels": kernels, "checksBounds": checks_bounds()}


def compiled_kernels() -> list[Any]:
    """Load every module with kernels, and return the kernels that this process compiles: none with a library."""
    from seglog_format.columnar.compiled import LIBRARY  # noqa: PLC0415 - only workers need it
    from seglog_format.columnar.kernel_build import kernel_modules  # noqa: PLC0415

    package = "seglog_format.columnar"
    for module in kernel_modules():
        import_module(f"{package}.{module}")
    return [] if LIBRARY else list(import_module(f"{package}.jit").KERNELS)


def checks_bounds() -> bool:
    """Return whether a load after the end of a region is noticed, also in a helper of a kernel."""
    if not CHECKED.items() <= os.environ.items():  # the library checks nothing
        return False
    from numba import njit  # noqa: PLC0415 - only workers need it

    from seglog_format.columnar.compiled import helper  # noqa: PLC0415
    from seglog_format.columnar.memory import load_64, region  # noqa: PLC0415

    inner = helper(lambda where, position: load_64(where, position))  # noqa: PLW0108 - compiled
    kernel = njit(lambda array, position: inner(region(array), position))
    numbers = import_module("numpy").zeros(4, "int64")
    try:
        kernel(numbers[:2], 9)
    except IndexError:
        return True
    return False


# The process around


def worker(name: str, scratch: Path, share: float, seed: int) -> dict[str, Any]:
    """Run a worker in one of the modes; its death also is a failure."""
    answer = scratch / "answer.json"
    command = [
        sys.executable,
        "-m",
        "proofs.fuzz.bounds",
        "--worker",
        str(scratch),
        "--sample",
        str(share),
        "--seed",
        str(seed),
    ]
    done = child_processes.run(command, changes=WAYS[name], check=False, directory=ROOT)
    if done.returncode:
        return {"verdicts": [], "kernels": {}, "checksBounds": False, "died": done.returncode}
    result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return result


def failures(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the failures in the answers of all modes."""
    *_, usual = found.values()
    for name, result in found.items():
        if "died" in result:
            yield f"{name}: the process ended with {result['died']}"
            continue
        if result["checksBounds"] != (WAYS[name] != {}):
            yield f"{name}: positions are {'' if result['checksBounds'] else 'not '}checked"
        yield from (f"{name}: {kernel} was never called" for kernel, called in result["kernels"].items() if not called)
        for own, other in zip(result["verdicts"], usual["verdicts"], strict=False):
            if own != other or own.startswith(FAILED):
                yield f"{name}: {own}, usually {other}"


def run_tests() -> int:
    """Run the tests that compare kernels with the reference, with checks."""
    names = [f"tests/columnar/test_{name}.py" for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *names]
    return child_processes.run(command, changes=CHECKED, check=False, directory=ROOT).returncode


def _conditions(options: argparse.Namespace) -> dict[str, Any]:
    versions = installed("numba", "llvmlite", "numpy", "pyarrow")
    return run_conditions(proof_command("bounds", options), seed=options.seed, versions=versions)


def report(found: dict[str, dict[str, Any]], wrong: list[str]) -> dict[str, Any]:
    """Return what the run found."""
    return {
        "inputs": {name: len(result["verdicts"]) for name, result in found.items()},
        "kernels": sorted(next(iter(found.values()))["kernels"]),
        "failures": wrong,
    }


def main() -> int:
    """Run all modes, compare their answers, and report."""
    parser = argparse.ArgumentParser(description="run every kernel on hostile bytes with each load and store checked")
    parser.add_argument("--sample", type=float, default=1.0, help="a share of all inputs; tests are left out then")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--worker", type=Path, metavar="DIRECTORY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        result = work(options.worker, options.sample, options.seed)
        (options.worker / "answer.json").write_text(json.dumps(result), encoding="utf-8")
        return 0
    conditions, started = _conditions(options), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bounds-", dir=memory()) as scratch:
        found = {name: worker(name, Path(scratch), options.sample, options.seed) for name in WAYS}
    wrong = list(dict.fromkeys(failures(found)))[:MAX_FAILURES]
    if options.sample >= 1 and run_tests():
        wrong.append("a test fails with checks")
    write_report(options.report, conditions, report(found, wrong))
    counts = ", ".join(f"{len(result['verdicts'])} {name}" for name, result in found.items())
    print(f"{counts}; {len(wrong)} failures, {time.monotonic() - started:.0f} s", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
