"""Judge every implementation whose tool chain is on the machine by the whole suite, twice; once with ``--once``.

The second run has to come to the verdicts of the first, and Kafka's newest classes have to have been asked each case
that accuses a release. What both came to is written to ``reports/conform.json``, from which the conformance pages of
the site are made. ``--resume`` goes on where a run of the same suite ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import every_case
from seglog_conformance.toolchains import child_processes
from seglog_conformance.verdicts import Verdict, level_of

from authoring.accused import accusations
from proofs.report_facts import SUITE, run_conditions, write_report

if TYPE_CHECKING:
    from seglog_conformance.cases import Case

REPOSITORY: Final = Path(__file__).resolve().parents[2]
BUILD: Final = REPOSITORY / "build" / "conform"
LEVELS: Final = ("must", "should", "may")

Json = dict[str, Any]
Verdicts = dict[tuple[str, str], str]
"""By testee, with its version, and case."""


def run(number: int, arguments: list[str], digests: Json, *, resumes: bool) -> tuple[Path, float, int]:
    """One run of everyone, or the rest of one of the same digests: its lines, its seconds, and its exit status."""
    path, begun = BUILD / f"matrix-{number}.jsonl", BUILD / f"matrix-{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    earlier = json.loads(begun.read_text(encoding="utf-8")) if resumes and begun.exists() and path.exists() else {}
    is_resumed = earlier.get("digests") == digests
    seconds = earlier["seconds"] if is_resumed else 0.0
    begun.write_text(json.dumps({"digests": digests, "seconds": seconds}), encoding="utf-8")
    command = [sys.executable, "-m", "seglog_format.cli", "conform", "run", "--jsonl", str(path), *arguments]
    began = time.monotonic()
    try:
        resume = ["--resume"] if is_resumed else []
        status = child_processes.run([*command, *resume], check=False, directory=REPOSITORY).returncode
    finally:
        seconds += time.monotonic() - began
        begun.write_text(json.dumps({"digests": digests, "seconds": seconds}), encoding="utf-8")
    return path, seconds, status


def lines_of(path: Path) -> list[Json]:
    """Return the lines of a report of a run."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verdicts_of(lines: list[Json]) -> Verdicts:
    """Return what each testee's cases came to, before its list of known failures was looked at."""
    return {(label(line), line["case"]): line["raw"] for line in lines if line["type"] == "result"}


def label(line: Json) -> str:
    """Name and version of the testee that a line is about."""
    return f"{line['testee']} {line['version']}"


def testees(lines: list[Json], cases: dict[str, Case]) -> list[Json]:
    """Return who was asked, and what came of it, by level, by family and by requirement."""
    found = []
    for line in lines:
        if line["type"] == "testee":
            results = [one for one in lines if one["type"] == "result" and label(one) == label(line)]
            found.append(_testee(line, results, cases))
    return found


def _testee(line: Json, results: list[Json], cases: dict[str, Case]) -> Json:
    levels: dict[str, Counter[str]] = {level: Counter() for level in LEVELS}
    families: dict[str, Counter[str]] = {}
    requirements: dict[str, Counter[str]] = {}
    not_asked = Counter(
        result.get("detail", "")
        for result in results
        if result["raw"] == "SKIP" and cases[result["case"]].level == "must"
    )
    for result in results:
        case = cases[result["case"]]
        levels[level_of(case.level, Verdict(result["raw"]))][result["raw"]] += 1
        families.setdefault(f"{case.family} {case.family_name}", Counter())[result["raw"]] += 1
        for identifier in case.requirements if result["raw"] != "SKIP" else ():
            requirements.setdefault(identifier, Counter())[result["raw"]] += 1
    names = ("testee", "version", "state", "reason", "isFine", "implementation")
    return {
        **{name: line.get(name) for name in names},
        "levels": {level: dict(sorted(count.items())) for level, count in levels.items()},
        "mustNotAsked": dict(not_asked.most_common()),
        "families": {family: dict(sorted(count.items())) for family, count in families.items()},
        "requirements": {one: f"{_kept(count)}/{count.total()}" for one, count in sorted(requirements.items())},
    }


def _kept(count: Counter[str]) -> int:
    """Return how many cases show a rule kept: what is refused by an exception of another kind is refused."""
    return count[Verdict.PASS] + count[Verdict.ACCIDENT]


def report(paths: list[Path], seconds: list[float]) -> Json:
    """Return the report of a run, and of a second one if there was one: else nothing is said of its differences."""
    first, *again = (lines_of(path) for path in paths)
    cases = {case.id: case for case in every_case()}
    before = verdicts_of(first)
    left_out = max((line["leftOut"] for line in first if line["type"] == "testee"), default=0)
    return {
        "cases": len(cases) - left_out,
        "leftOut": left_out,
        "casesSha256": first[0]["casesSha256"],
        "minutes": [round(each / 60, 1) for each in seconds],
        "answers": len(before),
        "differencesOfTheSecondRun": differences(before, verdicts_of(again[0])) if again else None,
        "accusations": accusations([line for line in first if line["type"] == "result"], cases),
        "testees": testees(first, cases),
    }


def differences(before: Verdicts, after: Verdicts) -> list[str]:
    """Return a line for each case that came out otherwise in the second run."""
    return sorted(
        f"{testee}: {case}: {before.get((testee, case))}, then {after.get((testee, case))}"
        for testee, case in before.keys() | after.keys()
        if before.get((testee, case)) != after.get((testee, case))
    )


def main() -> int:
    """Run twice, compare, and write the report.

    Returns:
        The exit status: 0 when all runs are as the lists of known failures say, and come to the same.
    """
    parser = argparse.ArgumentParser(description="judge every implementation by the whole suite, twice")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the result there as JSON")
    parser.add_argument("--scale", action="store_true", help="also ask the family scale, which takes an hour more")
    parser.add_argument("--once", action="store_true", help="no second run")
    parser.add_argument("--resume", action="store_true", help="go on where a run of the same suite ended")
    given = parser.parse_args()
    conditions = run_conditions("make proof NAME=conform" + (" ARGS=--once" if given.once else ""), measures=SUITE)
    html = ["--html", str(BUILD / "matrix.html")]
    some = ["--scale"] if given.scale else []
    runs = [run(1, [*html, *some], conditions["digests"], resumes=given.resume)]
    runs += [] if given.once else [run(2, some, conditions["digests"], resumes=given.resume)]
    found = report([path for path, _, _ in runs], [seconds for _, seconds, _ in runs])
    write_report(given.report, conditions, found)
    unstable = found["differencesOfTheSecondRun"]
    print(*unstable or (), sep="\n")
    asked = sum(one["state"] == "complete" for one in found["testees"])
    took = " and ".join(f"{minutes} min" for minutes in found["minutes"])
    again = "no second run" if unstable is None else f"{len(unstable)} differ in the second run"
    print(f"{asked} testees, {found['answers']:,} answers, {took}; {again}")
    unasked = found["accusations"]["notAsked"]
    print(*(f"{case} accuses a release, and Kafka's newest classes were not asked" for case in unasked), sep="\n")
    return max(*(status for _, _, status in runs), int(bool(unstable)), int(bool(unasked)))


if __name__ == "__main__":
    sys.exit(main())
