"""The suite itself with faults: an implementation whose answers change is noticed, whatever its list excuses."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pytest
from authoring.record_answers import KEPT, listed_names
from helpers.changed_answers import CHANGES, Recorded
from helpers.walking import each_of
from seglog_conformance.cases import load_cases
from seglog_conformance.direct import DirectTestee
from seglog_conformance.registry import Builder, Listed
from seglog_conformance.runner import Options, Runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json
    from seglog_conformance.runner import Outcome

MIN_OF_EACH = 2
"""Recorded answers, right and wrong ones, of an implementation whose cases have not changed since."""


every_case = cache(load_cases)


@cache
def recorded() -> Json:
    answers: Json = json.loads(KEPT.read_text(encoding="utf-8"))
    return answers


class Replay(Builder):
    """Builds what answers as it was recorded."""

    def __init__(self, answering: Recorded) -> None:
        super().__init__()
        self._answering = answering

    def testee(self, wanted: Listed) -> Any:  # noqa: ANN401 - a testee
        return DirectTestee(wanted.name, self._answering)


def run(name: str, said: Json, changed: Callable[[Json], Json] | None = None) -> Outcome:
    answering = Recorded(said) if changed is None else Recorded(said, changed)
    cases = [case for case in every_case() if case.id in said["answers"]]
    runner = Runner(Replay(answering), cases, all_cases=every_case(), options=Options(smoke=False, case_ids=True))
    return runner.run_one(Listed(name.partition("@")[0]))


def as_the_cases_are(name: str) -> Json:
    """Return what was recorded of an implementation, but for cases that have changed since."""
    digests = {case.id: case.digest for case in every_case()}
    said = recorded()[name]
    answers = {case: one for case, one in said["answers"].items() if one["digest"] == digests.get(case)}
    return {**said, "answers": answers}


def test_every_implementation_with_a_list_has_recorded_answers() -> None:
    assert sorted(recorded()) == listed_names(), "python -m authoring.record_answers"


@each_of("name", listed_names())
def test_recorded_answers_are_as_the_list_says(name: str) -> None:
    outcome = run(name, as_the_cases_are(name))
    assert outcome.known.entries, "a list of another version"
    assert [(result.case, result.label, result.notes) for result in outcome.failures] == []
    wrong = [result for result in outcome.results if result.case in outcome.known.entries]
    assert len(wrong) >= MIN_OF_EACH
    assert len(outcome.results) - len(wrong) >= MIN_OF_EACH, f"python -m authoring.record_answers {name}"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@each_of("name", listed_names())
def test_a_changed_answer_is_noticed(name: str, change: Callable[[Json, Json], Json | None]) -> None:
    said = as_the_cases_are(name)
    applies = {
        case: one for case, one in said["answers"].items() if change(one["answer"], said["features"]) is not None
    }
    assert applies
    outcome = run(name, {**said, "answers": applies}, partial(change, _features=said["features"]))
    noticed = {result.case for result in outcome.failures}
    assert sorted(set(applies) - noticed) == []
    assert len(outcome.results) == len(applies)
