"""Put small faults into the package, one at a time, and expect the conformance suite to flag each.

The suite consists of the fixed cases, asked of the reference, without the unit tests. Generated mutants are a random
sample, by seed, of the changes of `operators` to schemas, codec, logs with their indexes, and recovery. Mutants made by
hand are the faults of tests/faults and, for every requirement, the package without the statements that enforce it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from proofs.mutants.candidates import LAYERS, OUT_OF_SIGHT, Candidates, Mutant, equivalents, levels
from proofs.mutants.worker import Flag, Task, loaded_files, reach, run, suite
from proofs.report_facts import SUITE, installed, proof_command, run_conditions, write_report

MIN_SHARE = 0.95
SLOW_FAMILIES = ("bombs",)
"""Families that are asked last."""

Outcome = tuple[Mutant, Flag]


def chosen(found: list[tuple[Any, Mutant]], count: int, seed: int) -> list[tuple[Any, Mutant]]:
    """Return a seeded choice in random order, so the beginning of a long run is also a sample.

    The random number of a mutant depends on the mutant alone, so a change to the package or to the suite does not
    affect the choice of others.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    lots = []
    for _, mutant in found:
        lots.append(_lot(str(seed), *mutant.key, str(seen[mutant.key])))
        seen[mutant.key] += 1
    return [found[number] for number in sorted(range(len(found)), key=lots.__getitem__)[:count]]


def _lot(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def killers(report: Path | None) -> dict[tuple[str, ...], str]:
    """Return, by place, name and change of a mutant, the case that flagged it in an earlier run: a likely killer."""
    rows = json.loads(report.read_text(encoding="utf-8"))["killed"] if report else []
    return {(one["place"], one["name"], one["before"], one["after"]): one["killedBy"] for one in rows}


def in_turn(mutant: Mutant, candidates: Candidates, seed: int, likely: str = "") -> list[Any]:
    """Return the cases that can flag the mutant: likely killers first, the others in random order."""
    mixed = random.Random(seed).sample(range(len(candidates.cases)), len(candidates.cases))
    own = candidates.by_requirement.get(mutant.name, set())

    def scope_path(number: int) -> int:
        if candidates.cases[number].id == likely:
            return -1
        is_slow = candidates.cases[number].family_name in SLOW_FAMILIES
        return 0 if number in own else (1 if number in mutant.near else 2) + 2 * is_slow

    wanted = [number for number in mixed if number in mutant.near or number in mutant.around]
    return [candidates.cases[number] for number in sorted(wanted, key=scope_path)]


def attempt(mutants: list[Mutant], candidates: Candidates, arguments: argparse.Namespace) -> list[Outcome]:
    """Return every attempted mutant and its flag, in the order of the mutants; the time may not suffice for all."""
    until = time.monotonic() + arguments.minutes * 60
    known = killers(arguments.first_ask)
    tasks = []
    for one in mutants:
        likely = known.get((one.scope_path, one.name, *one.change), "")
        tasks.append(Task(one.texts, in_turn(one, candidates, arguments.seed, likely), one.is_inside))
    flags: dict[int, Flag] = {}
    for number, flag in run(tasks, candidates.texts, arguments.jobs, until):
        flags[number] = flag
        one = mutants[number]
        if flag.case is None:
            print(f"SURVIVED {one.kind} {one.name}: {one.scope_path} line {one.line}: {one.source}", flush=True)
            print(f"    {one.change[0]!r} -> {one.change[1]!r} ({flag.asked} cases)", flush=True)
        elif arguments.verbose:
            print(f"{flag.verdict} {flag.case}: {one.kind} {one.name}: {one.scope_path}", flush=True)
    return [(one, flags[number]) for number, one in enumerate(mutants) if number in flags]


def row(outcome: Outcome, known: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """Return one mutant for the report."""
    mutant, flag = outcome
    found: dict[str, Any] = {
        "kind": mutant.kind,
        "name": mutant.name,
        "place": mutant.scope_path,
        "line": mutant.line,
        "before": mutant.change[0],
        "after": mutant.change[1],
        "killedBy": flag.case,
        "verdict": flag.verdict,
    }
    if flag.case is None:
        found |= {"source": mutant.source, "casesAsked": flag.asked, "equivalent": known.get(mutant.key)}
    return found


def rates(outcomes: list[Outcome], known: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """Return counts of one set of mutants; an equivalent one cannot be killed and is left out of the share."""
    survivors = [mutant for mutant, flag in outcomes if flag.case is None]
    equivalent = sum(mutant.key in known for mutant in survivors)
    killed, counted = len(outcomes) - len(survivors), len(outcomes) - equivalent
    return {
        "mutants": len(outcomes),
        "killed": killed,
        "killedWhileLoading": sum(flag.case == "(import)" for _, flag in outcomes),
        "equivalent": equivalent,
        "survived": counted - killed,
        "share": round(killed / counted, 4) if counted else None,
        "shareOfAll": round(killed / len(outcomes), 4) if outcomes else None,
    }


def _of_kind(outcomes: list[Outcome], *kinds: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome[0].kind in kinds]


def report(outcomes: list[Outcome], candidates: Candidates, hidden: list[Mutant], population: int) -> dict[str, Any]:
    """Return what the run found."""
    known = equivalents()
    by_hand = _of_kind(outcomes, "fault", "rule")
    musts = {name for name, level in levels().items() if level == "MUST"}
    return {
        "cases": len(candidates.cases),
        "population": population,
        "generated": rates(_of_kind(outcomes, "generated"), known),
        "generatedByLayer": {
            layer: rates([one for one in _of_kind(outcomes, "generated") if one[0].scope_path.startswith(layer)], known)
            for layer in LAYERS
        },
        "byHand": rates(by_hand, {}),
        "byHandOfMusts": rates([one for one in by_hand if one[0].name in musts], {}),
        "outOfSight": {
            "modules": OUT_OF_SIGHT,
            "byHand": [_hidden(one) for one in hidden],
            "functions": dict(sorted(candidates.unreached.items())),
        },
        "operators": dict(Counter(mutant.name for mutant, _ in _of_kind(outcomes, "generated")).most_common()),
        "survivors": [row(outcome, known) for outcome in outcomes if outcome[1].case is None],
        "killed": [row(outcome, known) for outcome in outcomes if outcome[1].case is not None],
    }


def _hidden(one: Mutant) -> dict[str, Any]:
    reason = one.unseen or "no case runs the changed lines"
    return {"requirement": one.name, "kind": one.kind, "place": one.scope_path, "reason": reason}


def _outcome(one: dict[str, Any]) -> Outcome:
    """Return the values in a row of a report on which the rates depend."""
    nothing, change = frozenset[int](), (one["before"], one["after"])
    texts = (one["kind"], one["name"], one["place"], one["line"], one.get("source", ""))
    mutant = Mutant(*texts, change, {}, nothing, nothing, is_inside=True)
    return mutant, Flag(one["killedBy"], one["verdict"], "", one.get("casesAsked", 0))


def counted_again(found: dict[str, Any]) -> dict[str, Any]:
    """Return a report with the present list of equivalents, without asking any case."""
    known = equivalents()
    outcomes = [_outcome(one) for one in (*found["survivors"], *found["killed"])]
    generated = _of_kind(outcomes, "generated")
    survivors = [{**one, "equivalent": known.get(_outcome(one)[0].key)} for one in found["survivors"]]
    by_layer = {
        layer: rates([one for one in generated if one[0].scope_path.startswith(layer)], known) for layer in LAYERS
    }
    return {**found, "generated": rates(generated, known), "generatedByLayer": by_layer, "survivors": survivors}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="put faults into the package and expect the suite to flag each")
    parser.add_argument("--count", type=int, default=400, help="of generated mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--kind", choices=("generated", "by-hand"), help="only these")
    parser.add_argument("--only", metavar="TEXT", default="", help="mutants whose place, name or change has it")
    parser.add_argument(
        "--again", type=Path, metavar="REPORT", help="only those that survived there and were not shown equivalent"
    )
    parser.add_argument(
        "--first-ask", type=Path, metavar="REPORT", help="begin with the case that flagged a mutant there"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="REPORT", help="take over what was flagged there, and attempt the rest"
    )
    parser.add_argument("--count-anew", type=Path, metavar="REPORT", help="only work out its rates, and write it again")
    parser.add_argument("--minutes", type=float, default=600, help="after which no further mutant is begun")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--report", type=Path, help="write the result there as JSON")
    parser.add_argument("--verbose", action="store_true", help="also print what flagged each")
    return parser.parse_args()


def kept(mutants: list[Mutant], report: Path) -> tuple[list[Mutant], list[Outcome]]:
    """Return the mutants of a sample to attempt, and the results to reuse from an earlier report.

    Results are reused if a case that still exists flagged the mutant, or if it survived and was shown equivalent.
    """
    found = json.loads(report.read_text(encoding="utf-8"))
    known, today = equivalents(), {case.id for case in suite()} | {"(import)"}
    flagged = [one for one in found["killed"] if one["killedBy"] in today]
    rows = {(one["place"], one["name"], one["before"], one["after"]): one for one in flagged}
    rows |= {
        (one["place"], one["name"], one["before"], one["after"]): one
        for one in found["survivors"]
        if (one["place"], one["source"], one["before"], one["after"]) in known
    }
    left, taken = [], []
    for one in mutants:
        earlier = rows.get((one.scope_path, one.name, *one.change))
        if earlier is None:
            left.append(one)
        else:
            taken.append((one, Flag(earlier["killedBy"], earlier["verdict"], "", earlier.get("casesAsked", 0))))
    return left, taken


def _wanted(mutants: list[Mutant], arguments: argparse.Namespace) -> list[Mutant]:
    if arguments.count_anew:
        rows = json.loads(arguments.count_anew.read_text(encoding="utf-8"))["survivors"]
        known = equivalents()
        keys = {(one["place"], one["source"], one["before"], one["after"]) for one in rows} - set(known)
        mutants = [one for one in mutants if one.key in keys]
    return [one for one in mutants if any(arguments.only in text for text in (one.scope_path, one.name, *one.change))]


def plan(candidates: Candidates, arguments: argparse.Namespace) -> tuple[list[Mutant], list[Mutant], int]:
    """Return the mutants to attempt, the hand-made ones that no case can flag, and the number of possible mutants."""
    generated = candidates.generated()
    sample = chosen(generated, arguments.count, arguments.seed)
    own = [candidates.changed(one, mutant) for one, mutant in sample]
    seen, hidden = candidates.by_hand()
    mutants = [*(own if arguments.kind != "by-hand" else []), *(seen if arguments.kind != "generated" else [])]
    return _wanted(mutants, arguments), hidden, len(generated)


def main() -> int:
    """Run, print survivors, and return whether the shares are reached."""
    arguments = _arguments()
    started = time.monotonic()
    if arguments.count_anew:
        known = json.loads(arguments.count_anew.read_text(encoding="utf-8"))
        found = counted_again(known)
        write_report(arguments.count_anew, found.pop("made"), found)
        return verdict(found, 0.0)
    command = proof_command("mutants", arguments)
    versions = installed("construct", "coverage")
    conditions = run_conditions(command, seed=arguments.seed, versions=versions, measures=SUITE)
    cases = suite()
    reached, failing = reach(cases)
    if failing:
        print(f"the package itself fails: {', '.join(failing)}")
        return 2
    candidates = Candidates(loaded_files(), cases, reached)
    mutants, hidden, population = plan(candidates, arguments)
    print(f"{len(cases)} cases, {population} mutants possible, {len(mutants)} to attempt", flush=True)
    mutants, taken = kept(mutants, arguments.keep) if arguments.keep else (mutants, [])
    print(f"{len(taken)} taken over, {len(mutants)} to attempt", flush=True)
    outcomes = [*attempt(mutants, candidates, arguments), *taken]
    found = report(outcomes, candidates, hidden, population)
    write_report(arguments.report, conditions, {"takenOver": _taken_over(arguments.keep, len(taken)), **found})
    return verdict(found, time.monotonic() - started)


def _taken_over(report: Path | None, count: int) -> dict[str, Any]:
    """Return the number of results that come from an earlier report, and its commit."""
    earlier = json.loads(report.read_text(encoding="utf-8"))["made"]["commit"] if report else ""
    return {"results": count, "commit": earlier}


def verdict(found: dict[str, Any], seconds: float) -> int:
    """Print both rates; return 1 if one is too low."""
    for name in ("generated", "byHand", "byHandOfMusts"):
        counts = found[name]
        print(f"{name}: {', '.join(f'{key} {value}' for key, value in counts.items())}")
    print(f"{seconds:.0f} s")
    is_enough = (found["generated"]["share"] or 1) >= MIN_SHARE and not found["byHand"]["survived"]
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
