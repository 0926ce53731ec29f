"""Runs: cases on testees in parallel, and their outcomes."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from seglog_conformance.judging import Examiner
from seglog_conformance.known import KnownFailures, read_known
from seglog_conformance.registry import AdapterError, UnavailableError
from seglog_conformance.smoke import Smoke, smoke
from seglog_conformance.testee import StartError
from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Hello
    from seglog_conformance.registry import Builder, Listed
    from seglog_conformance.verdicts import Result

COMPLETE: Final = "complete"
BROKEN: Final = "broken"
UNAVAILABLE: Final = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run.

    Attributes:
        jobs: number of testees that are asked at the same time.
        seed: seed for a random order of the cases; None keeps the order of the families.
        seconds: time limit for each case, instead of the adapter's.
        smoke: whether to start with the smoke test.
        known: directory of the lists of known failures; None for the suite's.
        earlier: results of an earlier run, which are not asked again, by testee, version, case and digest.
    """

    jobs: int = 1
    seed: int | None = None
    seconds: float | None = None
    smoke: bool = True
    known: Path | None = None
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
    """

    listed: Listed
    state: str = COMPLETE
    reason: str = ""
    hello: Hello | None = None
    results: list[Result] = field(default_factory=list)
    smoke: Smoke | None = None
    unused: list[str] = field(default_factory=list)
    known: KnownFailures = field(default_factory=lambda: KnownFailures(""))

    @property
    def name(self) -> str:
        """Name of the testee."""
        return self.listed.name

    @property
    def version(self) -> str:
        """Version of the implementation, from the greeting."""
        return self.hello.implementation.version if self.hello else self.listed.version

    @property
    def failures(self) -> list[Result]:
        """Return the results that fail the run."""
        return [result for result in self.results if result.verdict not in FINE]

    @property
    def is_fine(self) -> bool:
        """Whether there is nothing unexpected; a testee that cannot run on this machine counts as fine."""
        return self.state == UNAVAILABLE or (self.state == COMPLETE and not self.failures and not self.unused)


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
        self.all_cases = list(cases if all_cases is None else all_cases)
        self._on_result = on_result
        self._lock = Lock()
        self._is_interrupted = False

    def run(self, wanted: Sequence[Listed]) -> list[Outcome]:
        """Ask all testees; return the outcomes in their order. An interrupt ends the run after the present cases."""
        with ThreadPoolExecutor(max_workers=max(self.options.jobs, 1)) as pool:
            try:
                return list(pool.map(self.run_one, wanted))
            except KeyboardInterrupt:
                self._is_interrupted = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def run_one(self, listed: Listed) -> Outcome:
        """Ask one testee."""
        outcome = Outcome(listed)
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
        smoked = {} if outcome.smoke is None else {result.case: result for result in outcome.smoke.results}
        for case in self.cases:
            if self._is_interrupted:
                return
            key = (outcome.name, outcome.version, case.id, case.digest)
            asked = self.options.earlier.get(key) or smoked.get(case.id)
            result = asked or examiner.examine(case, outcome.known.expected(case.id), outcome.known.difference(case.id))
            result = outcome.known.applied(result)
            outcome.results.append(result)
            self._report(outcome, result)
        outcome.unused = self._unused(outcome)

    def _unused(self, outcome: Outcome) -> list[str]:
        """Return the ids of unused lines; after a run of only some cases, those of cases that do not exist."""
        every = {case.id for case in self.all_cases}
        if {case.id for case in self.cases} >= {case.id for case in self.all_cases if not case.is_summed_up}:
            return outcome.known.unused(outcome.results, every)
        return sorted(case for case in outcome.known.entries if case not in every)

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
