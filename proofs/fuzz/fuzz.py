"""Fuzz the columnar engine against the reference, guided by the reference's coverage.

The fuzzer is atheris, with libFuzzer inside (the extra ``fuzz``). `proofs.fuzz.targets` defines the meaning of inputs
and the comparisons. Rounds with kernels that check each load and store alternate with rounds with the usual kernels.
Each round is a process of its own, so its death is a finding and does not end the run. At the end the corpus is reduced
to inputs that reach the same code as the whole corpus.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

from proofs.report_facts import installed, proof_command, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "seglog_format"
CORPUS: Final = ROOT / "tests" / "columnar" / "fuzz_corpus.zip"
SOURCES: Final = sha256(b"".join(path.read_bytes() for path in sorted((PACKAGE / "columnar").glob("*.py"))))
CHECKED: Final = {
    "SEGLOG_KERNELS": "jit",
    "NUMBA_BOUNDSCHECK": "1",
    "NUMBA_CACHE_DIR": str(ROOT / "build" / "bounds" / SOURCES.hexdigest()[:16]),
}
"""Kernels that check bounds are compiled by the process; numba would take those of other sources for the same."""
KINDS: Final[dict[str, dict[str, str]]] = {
    "checked": CHECKED,
    "usual": {},
    "checked, portable checksums": {**CHECKED, "SEGLOG_CHECKSUM_PATH": "portable"},
}
"""Environment by kind of kernels; these take turns."""
MAX_SIZE: Final = 1600
MAX_CORPUS: Final = 2**20
ROUND_SECONDS: Final = 300
INPUT_SECONDS: Final = 25
MEMORY_MB: Final = 3000
MAX_FINDINGS: Final = 50
GUIDING: Final = (
    "schema",
    "codec",
    "codec.compression",
    "log",
    "checks",
    "storage",
    "state",
    "recovery",
    "cleaning",
    "writing",
    "generation",
)
LIBRARIES: Final = ("atheris", "numba", "llvmlite", "numpy", "pyarrow", "lz4", "cramjam", "isal", "zstandard")
DATE: Final = (1980, 1, 1, 0, 0, 0)


# The worker: a fuzzer in a process of its own


def fuzz_in_this_process(directory: Path, given: list[str]) -> None:
    """Let libFuzzer call the targets; does not return.

    Args:
        directory: directory for findings, and for files of the targets.
        given: options and directories of libFuzzer.
    """
    import atheris  # noqa: PLC0415 - only the worker needs it

    compiled = [f"{PACKAGE.name}.columnar.{module.name}" for module in iter_modules([str(PACKAGE / "columnar")])]
    with atheris.instrument_imports(include=[PACKAGE.name], exclude=compiled):
        for part in GUIDING:
            for module in iter_modules([str(PACKAGE.joinpath(*part.split(".")))]):
                import_module(f"{PACKAGE.name}.{part}.{module.name}")
        module = import_module("proofs.fuzz.targets")
    module.ignore_gaps()
    targets = module.Targets(directory)
    seen: set[str] = set()

    def one(data: bytes) -> None:
        try:
            targets.run(data)
        except Exception as problem:  # noqa: BLE001 - finding these is what this program is for
            note(directory, data, problem, seen)

    atheris.Setup(given, one)
    atheris.Fuzz()


def note(directory: Path, data: bytes, problem: Exception, seen: set[str]) -> None:
    """Store a finding, once for each place in the code."""
    where = traceback.extract_tb(problem.__traceback__)[-1]
    reported = str(problem).partition(":")[0][:60]
    name = f"{data[0] & 7} {type(problem).__name__} {Path(where.filename).name}:{where.lineno} {reported}"
    if name in seen or len(seen) >= MAX_FINDINGS:
        return
    seen.add(name)
    finding = {"finding": name, "problem": str(problem)[:1000], "input": data.hex()}
    with (directory / "findings.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(finding) + "\n")


# The process around


@dataclass(slots=True)
class Total:
    """The sum of all rounds."""

    rounds: list[dict[str, Any]] = field(default_factory=list)
    findings: dict[str, dict[str, str]] = field(default_factory=dict)
    executions: int = 0
    seconds: float = 0.0


def run_worker(scratch: Path, options: Iterable[str], kind: dict[str, str]) -> tuple[int, str]:
    """Run one fuzzer to its end; return its exit status and output."""
    launcher = scratch / "worker"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m proofs.fuzz.fuzz --worker "{scratch}" "$0" "$@"\n')
    launcher.chmod(0o755)
    environment = {"PYTHONHASHSEED": "0", **kind}
    with (scratch / "output.txt").open("w+", encoding="utf-8", errors="replace") as output:
        status = child_processes.run(
            [str(launcher), *options], directory=ROOT, stdout=output, stderr=output, changes=environment, check=False
        )
        output.seek(0)
        return status.returncode, output.read()


def compile_ahead() -> None:
    """Compile kernels of all kinds before time is measured: where they check bounds, at their first call."""
    command = [sys.executable, "-m", "proofs.fuzz.bounds", "--sample", "0.002"]
    child_processes.run(command, check=True, directory=ROOT, stdout=subprocess.DEVNULL)


def one_round(scratch: Path, number: int, seconds: int, seed: int) -> dict[str, Any]:
    """Fuzz for some time, with the kind of kernels whose turn it is."""
    name, kind = list(KINDS.items())[number % len(KINDS)]
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed + number}",
        f"-max_len={MAX_SIZE}",
        f"-timeout={INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={scratch}/died-",
        "-print_final_stats=1",
        "-reload=0",
        str(scratch / "corpus"),
    ]
    started = time.monotonic()
    status, output = run_worker(scratch, options, kind)
    counted = re.search(r"number_of_executed_units:\s*(\d+)", output)
    reached = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output)
    (scratch / f"output-{number}.txt").write_text(output, encoding="utf-8")
    return {
        "kernels": name,
        "seconds": round(time.monotonic() - started, 1),
        "executions": int(counted[1]) if counted else int((re.findall(r"^#(\d+)", output, re.MULTILINE) or [0])[-1]),
        "edges": int(reached[-1][0]) if reached else 0,
        "features": int(reached[-1][1]) if reached else 0,
        "exit": status,
    }


def deaths(scratch: Path) -> Iterator[dict[str, str]]:
    """Yield inputs at which a process died, hung or took too much memory."""
    for path in sorted(scratch.glob("died-*")):
        yield {
            "finding": path.name.rpartition("-")[0],
            "problem": "the process ended",
            "input": path.read_bytes().hex(),
        }
        path.unlink()


def noted(scratch: Path) -> Iterator[dict[str, str]]:
    """Yield findings that workers have noted."""
    path = scratch / "findings.jsonl"
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def fuzz(scratch: Path, seconds: int, seed: int) -> Total:
    """Fuzz in rounds until the time is up."""
    total, started = Total(), time.monotonic()
    while (left := seconds - total.seconds) > 0:
        found = one_round(scratch, len(total.rounds), int(min(left, ROUND_SECONDS)) + 1, seed)
        total.rounds.append(found)
        total.executions += found["executions"]
        total.seconds = time.monotonic() - started
        for finding in (*noted(scratch), *deaths(scratch)):
            if total.findings.setdefault(finding["finding"], finding) is finding:
                print(f"FOUND {finding['finding']}: {finding['problem']}", flush=True)
        print(f"{total.seconds:.0f} s: {json.dumps(found)}, {len(total.findings)} findings", flush=True)
        if found["executions"] == 0:
            print(output_end(scratch), flush=True)
            break
    return total


def output_end(scratch: Path) -> str:
    """Return the end of the last worker's output."""
    return (scratch / "output.txt").read_text(encoding="utf-8", errors="replace")[-3000:]


# The corpus


def packed(path: Path = CORPUS) -> list[bytes]:
    """Return the stored inputs."""
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in sorted(archive.namelist())]


def unpack(inputs: Iterable[bytes], directory: Path) -> None:
    """Write inputs as files, named as libFuzzer does it."""
    directory.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (directory / sha256(data).hexdigest()[:40]).write_bytes(data)


def pack(directory: Path, path: Path) -> tuple[int, int]:
    """Pack inputs into one file, smallest first, up to a limit; return their number and the size of the file."""
    files = sorted(directory.iterdir(), key=lambda file: (file.stat().st_size, file.name))
    made, count = io.BytesIO(), 0
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as archive:
        for number, file in enumerate(files):
            data = file.read_bytes()
            if made.tell() + len(data) + 100 * (number + 1) > MAX_CORPUS:
                break
            archive.writestr(zipfile.ZipInfo(f"{number:05}", DATE), data, zipfile.ZIP_LZMA)
            count = number + 1
    path.write_bytes(made.getvalue())
    return count, len(made.getvalue())


def reduced(scratch: Path) -> Path:
    """Return a directory with the part of the corpus that reaches the same code as the whole corpus."""
    target = scratch / "reduced"
    target.mkdir()
    options = ["-merge=1", f"-max_len={MAX_SIZE}", f"-timeout={INPUT_SECONDS}", str(target), str(scratch / "corpus")]
    run_worker(scratch, options, {})
    if not any(target.iterdir()):
        print(output_end(scratch), flush=True)
        return scratch / "corpus"
    return target


# The report


def report(total: Total, whole: int, kept: tuple[int, int]) -> dict[str, Any]:
    """Return what the run found."""
    return {
        "seconds": round(total.seconds, 1),
        "executions": total.executions,
        "rounds": total.rounds,
        "corpus": {"inputs": whole, "keptInputs": kept[0], "keptBytes": kept[1]},
        "findings": list(total.findings.values()),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="fuzz the columnar engine and the reference against each other")
    parser.add_argument("--seconds", type=int, default=1800, help="of fuzzing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write the result there as JSON")
    parser.add_argument("--keep", action="store_true", help=f"write the reduced corpus to {CORPUS.name}")
    parser.add_argument("--logs", type=Path, help="keep what libFuzzer says there")
    return parser.parse_args()


def main() -> int:
    """Fuzz, report, and return whether nothing was found."""
    arguments = _arguments()
    command = proof_command("fuzz", arguments)
    conditions = run_conditions(command, seed=arguments.seed, versions=installed(*LIBRARIES))
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory()) as name:
        scratch = Path(name)
        seeds = import_module("proofs.fuzz.seeds").seeds()
        compile_ahead()
        unpack((*packed(), *seeds), scratch / "corpus")
        total = fuzz(scratch, arguments.seconds, arguments.seed)
        whole = len(list((scratch / "corpus").iterdir()))
        chosen = reduced(scratch)
        kept = pack(chosen, CORPUS if arguments.keep else scratch / "corpus.zip")
        if arguments.logs:
            for path in scratch.glob("output*.txt"):
                (arguments.logs / path.name).write_bytes(path.read_bytes())
    write_report(arguments.report, conditions, report(total, whole, kept))
    print(
        f"{total.executions:,} inputs in {total.seconds:.0f} s, {len(total.findings)} findings; "
        f"{kept[0]} of {whole} kept in {kept[1]:,} bytes"
    )
    return 1 if total.findings or not total.executions else 0


def memory() -> str | None:
    """Return a directory in memory if there is one, because every input is written to a file."""
    shared = "/dev/shm"  # noqa: S108 - a directory of its own is made in it
    return shared if os.access(shared, os.W_OK) else None


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        fuzz_in_this_process(Path(sys.argv[2]), sys.argv[3:])
    sys.exit(main())
