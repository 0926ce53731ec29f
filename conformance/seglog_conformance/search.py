"""Searches: generate a model, run its cases, and shrink a failure to the smallest one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis.configuration import set_hypothesis_home_dir

from seglog_conformance.verdicts import FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hypothesis.strategies import SearchStrategy

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result


@dataclass(frozen=True, slots=True)
class Found:
    """The smallest case of a finding.

    Attributes:
        case: case that can be kept.
        reported: its finding: a verdict, or groups that disagree.
        kind: name of the change of the bytes, or of the operation.
        detail: details of the finding.
    """

    case: Case
    reported: str
    kind: str
    detail: tuple[str, ...] = ()


@dataclass(slots=True)
class Search:
    """Searches for failing cases, and continues after each finding.

    Attributes:
        wrong: test of a case that returns the problem with details; None if there is none.
        models: strategy for models.
        asked: function that yields the cases of a model, each with its kind; the second argument is `name`.
        examples: number of models in each round.
        seed: seed of the first round.
        most: limit on findings.
        name: name of the testee, for the ids.
        tried: number of cases run, including those of shrinking.
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
        """Search until no new finding comes; each kind of finding is returned once."""
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

        with _nothing_left_behind():
            try:
                look()
            except Counterexample:
                return smallest[0]
        return None


@contextmanager
def _nothing_left_behind() -> Iterator[None]:
    """Keep Hypothesis from writing `.hypothesis` into the current directory, which may be an unpacked backup."""
    with TemporaryDirectory() as directory:
        set_hypothesis_home_dir(directory)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


class Counterexample(Exception):  # noqa: N818 - not an error of this program
    """Raised in a search at a finding."""


def wrong_verdict(examine: Callable[[Case], Result]) -> Callable[[Case], tuple[str, tuple[str, ...]] | None]:
    """Return a test of cases by the verdict on one testee."""

    def wrong(case: Case) -> tuple[str, tuple[str, ...]] | None:
        result = examine(case)
        if result.verdict in FINE:
            return None
        return str(result.verdict), (result.detail, *result.differences[1:])

    return wrong
