"""Whether answers show anything: fresh twins of passed cases, and refusals beside valid cases that are read."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Final

from seglog_conformance.neighbours import READ
from seglog_conformance.protocol import OPS
from seglog_conformance.twins import twin
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result

LEAST: Final = 8
"""Number of twins of an operation below which nothing is said about it."""
MOST: Final = 12
SHARE: Final = 10
"""A run asks at most one twin for so many cases."""
LONGEST: Final = 1 << 16
"""Size of request and answer above which a case has no twin, so that a run stays short."""
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Twins:
    """The twins of a run.

    Attributes:
        seed: seed of their values.
        results: the results by operation, each with the id of the case that was passed.
    """

    seed: int = 0
    results: Mapping[str, Sequence[tuple[str, Result]]] = field(default_factory=dict)

    def failed(self, op: str) -> list[tuple[str, Result]]:
        """Return the failed twins of an operation, with the ids of their cases."""
        return [(case, result) for case, result in self.results[op] if result.raw is not Verdict.PASS]

    @property
    def recognized(self) -> list[str]:
        """Operations that the implementation answers by recognition: it fails most twins of cases that it passes."""
        return [op for op, asked in self.results.items() if 2 * len(self.failed(op)) > len(asked)]


def proven(result: Result, beside: Sequence[Case], asked: Callable[[Case], Result]) -> Result:
    """Return a result; a refusal passes only if the valid case beside it is read, the nearest that is not skipped.

    Args:
        result: result of a case that may be refused.
        beside: the valid cases beside it, the nearest one first.
        asked: function that returns the result of a case.
    """
    is_refusal = result.raw is Verdict.PASS and result.answer is not None and result.answer.get("ok") is False
    if not is_refusal:
        return result
    nearest = next((found for one in beside if (found := asked(one)).raw is not Verdict.SKIP), None)
    if nearest is not None and nearest.raw in READ:
        return result
    detail = f"the valid case beside it is not read: {'none is asked' if nearest is None else nearest.case}"
    return replace(result, verdict=Verdict.UNPROVEN, raw=Verdict.UNPROVEN, detail=detail)


def refused_everything(results: Sequence[Result], cases: Sequence[Case]) -> dict[str, int]:
    """Return the operations of which every valid case was refused, each with the number of those cases.

    Args:
        results: results of the run.
        cases: cases of the run.
    """
    valid = {case.id: case.op for case in cases if case.result == "valid"}
    asked: dict[str, list[bool]] = {}
    for result in results:
        if result.case in valid and result.raw is not Verdict.SKIP:
            asked.setdefault(valid[result.case], []).append(result.raw is Verdict.REJECTS_VALID)
    return {op: len(of_op) for op, of_op in asked.items() if len(of_op) >= LEAST and all(of_op)}


def ask_twins(
    seed: int, cases: Sequence[Case], results: Sequence[Result], examine: Callable[[Case, Verdict], Result]
) -> Twins:
    """Ask twins of passed cases, of each operation with enough of them.

    Args:
        seed: seed of their values.
        cases: cases of the run.
        results: results of the run.
        examine: function that asks one case, again in a new process if it does not pass.
    """
    passed = {result.case for result in results if result.raw is Verdict.PASS}
    left = sum(result.raw is not Verdict.SKIP for result in results) // SHARE
    found: dict[str, list[tuple[str, Result]]] = {}
    for op in OPS:
        if left < LEAST:
            break
        candidates = [case for case in cases if case.op == op and case.id in passed]
        asked = []
        for case, one in _twins(candidates, seed, min(MOST, left)):
            result = examine(one, Verdict.PASS)
            if result.raw is not Verdict.SKIP:
                asked.append((case.id, result))
        if len(asked) >= LEAST:
            found[op] = asked
        left -= len(asked)
    return Twins(seed, found)


def _twins(cases: Sequence[Case], seed: int, most: int) -> Iterator[tuple[Case, Case]]:
    """Yield cases in a random order, each with a twin; a second twin of each only where there are few."""
    mixed = sorted(cases, key=lambda case: case.id)
    random.Random(seed).shuffle(mixed)  # noqa: S311 - no secret
    for number, case in product(range(2), mixed):
        if most and case.result == "valid" and case.input_size + case.answer_size <= LONGEST:
            one = twin(case, seed, number)
            if one is not None:
                most -= 1
                yield case, one


def refusal_lines(results: Sequence[Result], cases: Sequence[Case]) -> Iterator[str]:
    """Yield a line for each operation of which everything was refused."""
    for op, count in refused_everything(results, cases).items():
        yield f"  refuses everything: {op} refuses all {count} valid cases; what else it refuses does not count"


def twin_lines(twins: Twins) -> Iterator[str]:
    """Yield lines about the twins of a run; none if none were asked."""
    if not twins.results:
        return
    counts = [f"{op} {len(asked) - len(twins.failed(op))} of {len(asked)}" for op, asked in twins.results.items()]
    yield f"  passed twins of passed cases (--fresh-seed {twins.seed} asks them again): {', '.join(counts)}"
    for op in twins.results:
        failed = twins.failed(op)
        if op in twins.recognized:
            yield f"  answers by recognition: {op} fails {len(failed)} of {len(twins.results[op])} twins"
        for case, result in failed[:SHOWN]:
            yield f"      twin of {case}: {result.label}: {result.detail}"
