"""Disable each rule in turn, in a copy of the package, and expect a test on bytes to fail.

For every requirement that code enforces, the enforcing statements are removed from the copy (see `enforcement`); for
every fault of tests/faults, one text is replaced. Then the tests marked with that requirement run against the copy. If
none fails, the rule is a survivor: either the tests do not test it, or the rule is not needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from seglog_conformance.toolchains import child_processes

from proofs.mutants.enforcement import ENFORCING, PACKAGE, REPOSITORY, Fault, disabled, faults, sites
from proofs.mutants.marked_tests import marked_tests
from proofs.report_facts import installed, proof_command, run_conditions, write_report
from tools.rules import requirements

RUN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Breakage:
    """One way to break one requirement.

    Attributes:
        requirement: id.
        kind: ``rule`` (its enforcing statements are removed) or ``fault`` (a text is replaced).
        files: changed source text by file below the repository.
        scope_paths: changed places, in a form that does not change when lines move.
    """

    requirement: str
    kind: str
    files: dict[str, str] = field(hash=False)
    scope_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one breakage: the test that failed, or the reason why none did."""

    breakage: Breakage
    killed_by: str | None
    detail: str


def breakages() -> list[Breakage]:
    """Return every rule and every fault, in the order of the specification."""
    order = {identifier: number for number, identifier in enumerate(requirements())}
    found = [*_rules(), *(_with_fault(fault) for fault in faults())]
    return sorted(
        found, key=lambda breakage: (order.get(breakage.requirement, -1), breakage.kind, breakage.scope_paths)
    )


def _rules() -> list[Breakage]:
    scope_paths = defaultdict(list)
    for site in sites():
        if site.form in ENFORCING:
            scope_paths[site.requirement].append(site)
    return [
        Breakage(
            identifier,
            "rule",
            {file: disabled(_source(file), identifier) for file in dict.fromkeys(site.file for site in found)},
            tuple(dict.fromkeys(site.scope_path for site in found)),
        )
        for identifier, found in scope_paths.items()
    ]


def _with_fault(fault: Fault) -> Breakage:
    changed = fault.apply(_source(fault.file))
    return Breakage(fault.requirement, "fault", {fault.file: changed}, (f"{fault.file}: {fault.find.strip()}",))


def _source(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


def attempt(breakage: Breakage, tests: list[str]) -> Outcome:
    """Break a copy of the package and run the marked tests against it, those of the chapter first."""
    outcome = Outcome(breakage, None, "no test is marked with it")
    with tempfile.TemporaryDirectory(prefix="seglog-kill-") as name:
        root = Path(name)
        _copy_package(root)
        for file, text in breakage.files.items():
            (root / file).write_text(text, encoding="utf-8")
        for files in _in_turn(breakage.requirement, tests):
            outcome = _outcome(breakage, root, _run_tests(breakage.requirement, files, root))
            if outcome.killed_by is not None:
                break
    return outcome


def _in_turn(requirement: str, tests: list[str]) -> list[list[str]]:
    """Return the files to run first, and the files to run after them."""
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    entry = requirements().get(requirement)
    stem = "" if entry is None else entry.chapter.partition("-")[2].replace("-", "_")
    own = [file for file in files if file == f"tests/test_{stem}.py"]
    return [part for part in (own, [file for file in files if file not in own]) if part]


def _copy_package(root: Path) -> None:
    shutil.copytree(PACKAGE, root / PACKAGE.name, ignore=shutil.ignore_patterns("_spec"))
    shutil.copytree(REPOSITORY / "spec", root / PACKAGE.name / "_spec")


def _run_tests(requirement: str, files: list[str], root: Path) -> str:
    (root / "result.json").unlink(missing_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "proofs.mutants.kill_guard",
        "--req",
        requirement,
        *files,
    ]
    path = os.pathsep.join([str(root), str(REPOSITORY)])
    try:
        run = child_processes.run(
            command,
            directory=REPOSITORY,
            changes={"PYTHONPATH": path, "SEGLOG_COPY": str(root)},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {RUN_SECONDS} seconds"
    return (run.stdout + run.stderr)[-1500:]


def _outcome(breakage: Breakage, root: Path, output: str) -> Outcome:
    path = root / "result.json"
    if not path.is_file():
        return Outcome(breakage, None, f"the tests did not run to their end: {output}")
    result = json.loads(path.read_text(encoding="utf-8"))
    if not result["copy_imported"]:
        return Outcome(breakage, None, "the tests did not import the broken copy")
    if not result["failed"]:
        return Outcome(breakage, None, f"{result['passed']} marked tests passed: {output[-300:].strip()}")
    return Outcome(breakage, result["failed"][0]["test"], result["failed"][0]["message"])


def sample(found: list[Breakage], share: float, seed: int) -> list[Breakage]:
    """Return a seeded choice of that share, at least one, in the original order."""
    count = max(1, round(len(found) * share))
    chosen = sorted(random.Random(seed).sample(range(len(found)), count))
    return [found[number] for number in chosen]


def digest(breakage: Breakage, killed_by: str) -> str:
    """Return a digest of the broken code and of the test module that noticed: the result holds until one changes."""
    found = hashlib.sha256()
    for file, text in sorted(breakage.files.items()):
        found.update(f"{file}\n{text}\n".encode())
    found.update(_source(killed_by.split("::", maxsplit=1)[0]).encode())
    return found.hexdigest()[:16]


def taken_over(path: Path, chosen: list[Breakage]) -> dict[Breakage, Outcome]:
    """Return the results of an earlier report for unchanged code and tests; survivors run again."""
    if not path.is_file():
        return {}
    rows = {
        (row["requirement"], row["kind"], tuple(row["places"])): row
        for row in json.loads(path.read_text(encoding="utf-8"))["results"]
        if row["killedBy"] is not None and (REPOSITORY / row["killedBy"].split("::")[0]).is_file()
    }
    known = {}
    for one in chosen:
        row = rows.get((one.requirement, one.kind, one.scope_paths))
        if row is not None and row["digest"] == digest(one, row["killedBy"]):
            known[one] = Outcome(one, row["killedBy"], "as reported before")
    return known


def _conditions(arguments: argparse.Namespace) -> dict[str, object]:
    return run_conditions(
        proof_command("trace-kill", arguments),
        seed=arguments.seed,
        versions=installed("construct", "hypothesis", "pytest"),
        measures=("seglog_format", "tests"),
    )


def report(outcomes: list[Outcome]) -> dict[str, object]:
    """Return what the run found."""
    rows = [
        {
            "requirement": outcome.breakage.requirement,
            "kind": outcome.breakage.kind,
            "places": list(outcome.breakage.scope_paths),
            "killedBy": outcome.killed_by,
            "digest": outcome.killed_by and digest(outcome.breakage, outcome.killed_by),
        }
        for outcome in outcomes
    ]
    return {
        "broken": len(outcomes),
        "survived": sum(outcome.killed_by is None for outcome in outcomes),
        "results": rows,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="disable each rule in turn and expect a test on bytes to fail")
    parser.add_argument("--only", metavar="ID", nargs="+", help="these requirements or areas (SEG-IDX)")
    parser.add_argument("--sample", metavar="SHARE", type=float, default=1.0, help="a share of all, such as 0.05")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at the same time")
    parser.add_argument("--report", type=Path, help="write the result there as JSON")
    parser.add_argument(
        "--resume", action="store_true", help="keep what --report says of code and tests that still stand"
    )
    parser.add_argument("--verbose", action="store_true", help="also print what killed each")
    return parser.parse_args()


def main() -> int:
    """Run, print survivors, and return whether there were none."""
    arguments = _arguments()
    conditions, started = _conditions(arguments), time.monotonic()
    wanted = tuple(arguments.only or [""])
    candidates = [one for one in breakages() if one.requirement.startswith(wanted)]
    if not candidates:
        sys.exit(f"trace_kill.py: nothing to break for {', '.join(wanted)}")
    chosen = sample(candidates, arguments.sample, arguments.seed)
    tests = marked_tests()
    known = taken_over(arguments.report, chosen) if arguments.resume and arguments.report else {}
    outcomes = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda one: known.get(one) or attempt(one, tests.get(one.requirement, [])), chosen):
            outcomes.append(outcome)
            _print_outcome(outcome, verbose=arguments.verbose)
    write_report(arguments.report, conditions, report(outcomes))
    survived = sum(outcome.killed_by is None for outcome in outcomes)
    seconds = time.monotonic() - started
    print(f"{len(outcomes)} breakages, {len(outcomes) - survived} killed, {survived} survived, {seconds:.0f} s")
    return 1 if survived else 0


def _print_outcome(outcome: Outcome, *, verbose: bool) -> None:
    one = outcome.breakage
    if outcome.killed_by is None:
        print(f"SURVIVED {one.requirement} ({one.kind}) {', '.join(one.scope_paths)}\n  {outcome.detail}", flush=True)
    elif verbose:
        print(f"killed {one.requirement} ({one.kind}) by {outcome.killed_by}: {outcome.detail}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
