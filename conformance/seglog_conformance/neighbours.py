"""The valid case beside each case that may be refused: a reader that refuses both shows nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

READ: Final = frozenset({Verdict.PASS, Verdict.DIFFER})
"""Verdicts on a valid case that was not refused."""
QUESTIONS: Final = ("kind", "policy", "what")
"""Fields of a request that say what it asks for, besides the operation."""


def may_be_refused(case: Case) -> bool:
    """Return whether a refusal is a right answer to a case."""
    branches: list[Json] = case.stored_expect.get("allowed", [case.stored_expect])
    return case.result == "undefined" or any("reject" in branch for branch in branches)


def neighbours(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return the valid cases beside each case that may be refused, by the id of that case, the nearest one first.

    They ask the same question and need no other feature. The nearest is the first one that has bytes and the same
    fields in its request, with the most features, of level MUST: a plain case, not one that is itself at a limit. The
    others are for implementations that are not asked the nearest one.

    Args:
        cases: all cases.
    """
    valid: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        if case.result == "valid" and not case.is_summed_up:
            valid.setdefault(_question(case), []).append(case)
    found: dict[str, list[Case]] = {}
    chosen: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        if may_be_refused(case):
            alike = (_question(case), frozenset(case.needs), frozenset(case.stored_request))
            if alike not in chosen:
                chosen[alike] = _by_likeness(case, valid.get(_question(case), ()))
            found[case.id] = chosen[alike]
    return found


def _question(case: Case) -> tuple[str, ...]:
    return (case.op, *(str(case.stored_request.get(name)) for name in QUESTIONS))


def _by_likeness(case: Case, valid: Iterable[Case]) -> list[Case]:
    able = [one for one in valid if set(one.needs) <= set(case.needs)]
    return sorted(able, key=lambda one: _likeness(case, one), reverse=True)


def _likeness(case: Case, one: Case) -> tuple[bool, bool, int, bool]:
    has_fields = one.stored_request.keys() == case.stored_request.keys()
    return one.stored_request.get("data") != "", has_fields, len(one.needs), one.level == "must"
