"""Runs: cases on testees in parallel, and their outcomes."""

from __future__ import annotations

import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from seglog_conformance.causes import causes
from seglog_conformance.honesty import Twins, ask_twins, proven
from seglog_conformance.judging import SINCE, Examiner
from seglog_conformance.known import KnownFailures, read_known
from seglog_conformance.neighbours import neighbours
from seglog_conformance.registry import AdapterError, UnavailableError
from seglog_conformance.releases import as_of
from seglog_conformance.smoke import Smoke, smoke
from seglog_conformance.testee import StartError
from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.protocol import Hello
    from seglog_conformance.registry import Builder, Listed
    from seglog_conformance.verdicts import Result

COMPLETE: Final = "complete"
BROKEN: Final = "broken"
UNAVAILABLE: Final = "unavailable"
LARGEST_SEED: Final = 10**9


class InterruptedRunError(KeyboardInterrupt):
    """A run was interrupted.

    Attributes:
        outcomes: of the testees that were asked until then, with the results so far.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run.

    Attributes:
        jobs: number of testees that are asked at the same time.
        seed: seed for a random order of the cases; None keeps the order of the families.
        seconds: time limit for each case, instead of the adapter's.
        smoke: whether to start with the smoke test.
        case_ids: whether the requests have the ids of their cases.
        fresh_seed: seed of the twins of passed cases; None for a random one.
        known: directory of the lists of known failures; None for the suite's.
        implements: Kafka release that the testees implement, instead of the one that they say.
        earlier: results of an earlier run, which are not asked again, by testee, version, case and digest.
    """

    jobs: int = 1
    seed: int | None = None
    seconds: float | None = None
    smoke: bool = True
    case_ids: bool = False
    fresh_seed: int | None = None
    known: Path | None = None
    implements: str = ""
    earlier: Mapping[tuple[str, str, str, str], Result] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The outcome of a run for one testee.

    Attributes:
        listed: the testee.
        state: ``complete``, ``broken`` (the adapter), or ``unavailable`` (a tool chain is missing).
        reason: reason why the run is not complete.
        hello: greeting of the adapter.
        results: in the order of the cases.
        smoke: outcome of the smoke test.
        unused: ids in its list of known failures that no longer apply.
        known: its list of known failures.
        twins: results of the twins of passed cases, which are in no list and no count.
        left_out: number of cases of the family scale that a run of all others did not ask; they count nowhere.
    """

    listed: Listed
    state: str = COMPLETE
    reason: str = ""
    hello: Hello | None = None
    results: list[Result] = field(default_factory=list)
    smoke: Smoke | None = None
    unused: list[str] = field(default_factory=list)
    known: KnownFailures = field(default_factory=lambda: KnownFailures(""))
    twins: Twins = field(default_factory=Twins)
    left_out: int = 0

    @property
    def name(self) -> str:
        """Name of the testee."""
        return self.listed.name

    @property
    def version(self) -> str:
        """Version of the implementation, from the greeting."""
        return self.hello.implementation.version if self.hello else self.listed.version

    @property
    def scale_note(self) -> str:
        """Note on the cases of the family scale that were not asked; empty if there are none."""
        return f"family scale not asked: {self.left_out} cases" if self.left_out else ""

    @property
    def failures(self) -> list[Result]:
        """Return the results that fail the run."""
        return [result for result in self.results if result.verdict not in FINE]

    def causes(self, cases: Mapping[str, Case]) -> list[Cause]:
        """Return the causes of the failures, the gravest first.

        Args:
            cases: cases of the run, by id.
        """
        said = self.hello.implementation.homepage if self.hello else ""
        described = self.listed.adapter.homepage if self.listed.adapter else ""
        return causes(self.results, cases, homepage=described or said)

    @property
    def is_fine(self) -> bool:
        """Whether there is nothing unexpected; a testee that cannot run on this machine counts as fine."""
        is_as_expected = not self.failures and not self.unused and not self.twins.recognized
        return self.state == UNAVAILABLE or (self.state == COMPLETE and is_as_expected)


def ordered(cases: Sequence[Case], seed: int | None) -> list[Case]:
    """Return the cases in the order in which they are asked: that of the families, or a random one from a seed."""
    result = sorted(cases, key=lambda case: case.family)
    if seed is not None:
        random.Random(seed).shuffle(result)  # noqa: S311 - no secret
    return result


class Runner:
    """Runs cases on testees.

    Args:
        builder: builder of adapters.
        cases: cases to ask.
        all_cases: all cases, for lists of known failures and the smoke test; by default the same.
        options: options of the run.
        on_result: called with each result, from one thread at a time.
    """

    def __init__(
        self,
        builder: Builder,
        cases: Sequence[Case],
        *,
        all_cases: Sequence[Case] | None = None,
        options: Options | None = None,
        on_result: Callable[[Outcome, Result], None] | None = None,
    ) -> None:
        self.builder = builder
        self.options = options or Options()
        self.cases = ordered(cases, self.options.seed)
        fresh = self.options.fresh_seed
        self.fresh_seed = secrets.randbelow(LARGEST_SEED) if fresh is None else fresh
        self.all_cases = list(cases if all_cases is None else all_cases)
        self.neighbours = neighbours(self.all_cases)
        self._on_result = on_result
        self._lock = Lock()
        self._is_interrupted = False
        self._begun: list[Outcome] = []

    def run(self, wanted: Sequence[Listed]) -> list[Outcome]:
        """Ask all testees; return the outcomes in their order. An interrupt ends the run after the present cases.

        Raises:
            InterruptedRunError: it has the results so far.
        """
        with ThreadPoolExecutor(max_workers=max(self.options.jobs, 1)) as pool:
            try:
                return list(pool.map(self.run_one, wanted))
            except KeyboardInterrupt:
                self._is_interrupted = True
                pool.shutdown(cancel_futures=True)
                raise InterruptedRunError(self._begun) from None

    def run_one(self, listed: Listed) -> Outcome:
        """Ask one testee."""
        outcome = Outcome(listed, left_out=self._left_out())
        self._begun.append(outcome)
        try:
            testee = self.builder.testee(listed)
        except UnavailableError as error:
            outcome.state, outcome.reason = UNAVAILABLE, str(error)
            return outcome
        except AdapterError as error:
            outcome.state, outcome.reason = BROKEN, str(error)
            return outcome
        adapter = listed.adapter
        usual = adapter.seconds if adapter is not None else 10.0
        examiner = Examiner(
            testee,
            seconds=self.options.seconds or usual,
            extra_growth=adapter.extra_memory if adapter is not None else 0,
            case_ids=self.options.case_ids,
            implements=self.options.implements,
        )
        try:
            self._examine(examiner, outcome)
        finally:
            examiner.close()
        return outcome

    def _examine(self, examiner: Examiner, outcome: Outcome) -> None:
        try:
            outcome.hello = examiner.start()
        except StartError as error:
            outcome.state, outcome.reason = BROKEN, str(error)
            return
        outcome.known = read_known(outcome.name, outcome.version, self.options.known)
        if self.options.smoke:
            outcome.smoke = smoke(examiner, self.all_cases, outcome.known)
            if outcome.smoke.is_broken:
                outcome.state, outcome.reason = BROKEN, outcome.smoke.hint
                return
        found = {} if outcome.smoke is None else {result.case: result for result in outcome.smoke.results}

        def asked(case: Case) -> Result:
            """Return the result of a case, which is asked once."""
            if case.id not in found:
                listed = (outcome.known.expected(case.id), outcome.known.difference(case.id))
                earlier = self._earlier(outcome, as_of(case, examiner.release))
                found[case.id] = earlier or examiner.examine(case, *listed)
            return found[case.id]

        for case in self.cases:
            if self._is_interrupted:
                return
            result = outcome.known.applied(proven(asked(case), self.neighbours.get(case.id, ()), asked))
            outcome.results.append(result)
            self._report(outcome, result)
        outcome.unused = self._unused(outcome)
        outcome.twins = ask_twins(self.fresh_seed, self.cases, outcome.results, examiner.examine)

    def _earlier(self, outcome: Outcome, case: Case | None) -> Result | None:
        """Return the result that an earlier run has of a case as it is asked now, for the same release."""
        if case is None:
            return None
        found = self.options.earlier.get((outcome.name, outcome.version, case.id, case.digest))
        return None if found is None or found.detail.startswith(SINCE) else found

    def _unused(self, outcome: Outcome) -> list[str]:
        """Return the ids of unused lines; after a run of only some cases, those of cases that do not exist."""
        every = {case.id for case in self.all_cases}
        if self._is_whole():
            return outcome.known.unused(outcome.results, every)
        return sorted(case for case in outcome.known.entries if case not in every)

    def _is_whole(self) -> bool:
        """Return whether the run asks all cases, or all but those of the family scale."""
        return {case.id for case in self.cases} >= {case.id for case in self.all_cases if not case.is_at_scale}

    def _left_out(self) -> int:
        """Return the number of cases of the family scale that a whole run does not ask."""
        at_scale = {case.id for case in self.all_cases if case.is_at_scale} - {case.id for case in self.cases}
        return len(at_scale) if self._is_whole() else 0

    def _report(self, outcome: Outcome, result: Result) -> None:
        if self._on_result is not None:
            with self._lock:
                self._on_result(outcome, result)


def family_counts(outcome: Outcome, cases: Sequence[Case]) -> dict[int, dict[Verdict, int]]:
    """Return the number of results by verdict, for each family."""
    families = {case.id: case.family for case in cases}
    counts: dict[int, dict[Verdict, int]] = {}
    for result in outcome.results:
        row = counts.setdefault(families[result.case], {})
        row[result.verdict] = row.get(result.verdict, 0) + 1
    return counts
