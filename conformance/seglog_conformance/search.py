"""Searches: draw a model, ask about it, and shrink what comes out wrong to the smallest that still does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded

from seglog_conformance.verdicts import FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import SearchStrategy

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result


@dataclass(frozen=True, slots=True)
class Found:
    """The smallest case that shows something.

    Attributes:
        case: ready to be kept.
        reported: what it shows: a verdict, or groups that disagree.
        kind: what was changed in the bytes, or what was asked.
        detail: more of it.
    """

    case: Case
    reported: str
    kind: str
    detail: tuple[str, ...] = ()


@dataclass(slots=True)
class Search:
    """Looks for cases that something is wrong with, and goes on behind each that it has found.

    Attributes:
        wrong: what is wrong with a case, with details; None if nothing.
        models: to draw from.
        asked: the cases of a model, each with its kind; the second argument is `name`.
        examples: to try in each round.
        seed: of the first round.
        most: counterexamples to look for.
        name: of the testee, for the ids.
        tried: how many cases were asked, those of shrinking included.
    """

    wrong: Callable[[Case], tuple[str, tuple[str, ...]] | None]
    models: SearchStrategy[Any]
    asked: Callable[[Any, str], Iterable[tuple[str, Case]]]
    examples: int = 200
    seed: int = 0
    most: int = 5
    name: str = "generated"
    tried: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def run(self) -> list[Found]:
        """Search until nothing new comes; each kind of finding is told once."""
        found: list[Found] = []
        for number in range(self.most):
            one = self._round(self.seed + number)
            if one is None:
                break
            self._seen.add((one.reported, one.kind))
            found.append(one)
        return found

    def _round(self, seed: int) -> Found | None:
        smallest: list[Found] = []

        @seeded(seed)
        @settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @given(self.models)
        def look(model: Any) -> None:  # noqa: ANN401 - whatever is drawn
            for kind, case in self.asked(model, self.name):
                self.tried += 1
                reported = self.wrong(case)
                if reported is not None and (reported[0], kind) not in self._seen:
                    smallest[:] = [Found(case, reported[0], kind, reported[1])]
                    raise Counterexample(reported[0])

        try:
            look()
        except Counterexample:
            return smallest[0]
        return None


class Counterexample(Exception):  # noqa: N818 - not an error of this program
    """A search has found something."""


def wrong_verdict(examine: Callable[[Case], Result]) -> Callable[[Case], tuple[str, tuple[str, ...]] | None]:
    """Return what is wrong by the verdict on one testee."""

    def wrong(case: Case) -> tuple[str, tuple[str, ...]] | None:
        result = examine(case)
        if result.verdict in FINE:
            return None
        return str(result.verdict), (result.detail, *result.differences[1:])

    return wrong
