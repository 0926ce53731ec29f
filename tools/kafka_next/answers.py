"""The answers of Kafka's own classes to all cases of the conformance suite, release against release."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.registry import AdapterError, Builder, listed
from seglog_conformance.testee import StartError

from tools.kafka_next.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.registry import Listed

ADAPTERS: Final = ("kafka-storage", "kafka-clients")
BUILDS: Final = REPOSITORY / "build" / "conform"
WORDS: Final = frozenset({"message", "class"})
"""Fields of an answer with text, which changes from release to release, and fields inferred from that text."""
Json = dict[str, Any]
Answers = dict[str, tuple[str, Json]]
"""By case: the verdict, and the answer without text."""
MOST: Final = 6
"""Maximum number of paths in an answer that a report names."""


def compare_answers(base: str, release: str, cases: Sequence[Case] | None = None) -> Json:
    """Return the differences between the answers of two releases, by adapter.

    Args:
        base: version of the older release.
        release: version of the newer release.
        cases: cases to ask; all of the suite by default.
    """
    asked = load_cases() if cases is None else cases
    return {name: _compared(name, base, release, asked) for name in ADAPTERS}


def _compared(name: str, base: str, release: str, cases: Sequence[Case]) -> Json:
    wanted = [listed(f"{name}@{version}") for version in (base, release)]
    try:
        testees = [_examiner(each) for each in wanted]
    except (AdapterError, StartError) as error:
        return {"notAsked": str(error).partition("; see ")[0]}
    with ThreadPoolExecutor(len(testees)) as pool:
        before, after = pool.map(lambda examiner: answers(examiner, cases), testees)
    return differences(before, after)


def _examiner(wanted: Listed) -> Examiner:
    assert wanted.adapter is not None
    adapter = wanted.adapter
    return Examiner(Builder(BUILDS).testee(wanted), seconds=adapter.seconds, extra_growth=adapter.extra_memory)


def answers(examiner: Examiner, cases: Sequence[Case]) -> Answers:
    """Return the answers of a testee by case; cases with operations that it lacks are left out."""
    found: Answers = {}
    try:
        for case in cases:
            result = examiner.examine(case)
            if result.raw.value != "SKIP":
                found[case.id] = (str(result.raw), plain(result.answer or {}))
    finally:
        examiner.close()
    return found


def plain(answer: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an answer without text."""
    if isinstance(answer, dict):
        return {name: plain(value) for name, value in answer.items() if name not in WORDS | {"seq"}}
    return [plain(each) for each in answer] if isinstance(answer, list) else answer


def differences(before: Mapping[str, tuple[str, Json]], after: Mapping[str, tuple[str, Json]]) -> Json:
    """Return the number of cases that both were asked, and the different answers: both verdicts, and the paths."""
    asked = sorted(before.keys() & after.keys())
    other = {case: _difference(before[case], after[case]) for case in asked if before[case] != after[case]}
    found: Json = {"asked": len(asked), "differ": other}
    alone = {"onlyBase": sorted(before.keys() - after.keys()), "onlyRelease": sorted(after.keys() - before.keys())}
    return found | {name: cases for name, cases in alone.items() if cases}


def _difference(before: tuple[str, Json], after: tuple[str, Json]) -> Json:
    return {"verdicts": [before[0], after[0]], "at": sorted(set(differing_paths(before[1], after[1])))[:MOST]}


def differing_paths(before: object, after: object, path: str = "") -> Iterator[str]:
    """Yield the paths at which two answers differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            yield from differing_paths(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differing_paths(one, other, f"{path}[{number}]")
    elif before != after:
        yield path
