"""Kafka releases: a rule holds from one of them on, and before that brokers may have done otherwise.

A testee may say the release that it implements. It is not asked the cases that are younger. Where brokers of its age
did otherwise, it is judged by their recorded answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json


def release_key(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparing: 3.9 and 3.9.0 are equal, and no release is the oldest."""
    numbers = [int(part) for part in release.split("-", maxsplit=1)[0].split(".") if part.isdigit()]
    while numbers and not numbers[-1]:
        del numbers[-1]
    return tuple(numbers)


def as_of(case: Case, release: str) -> Case | None:
    """Return a case as an implementation of a Kafka release is judged by it; None if the case is younger.

    Brokers did something else up to the release `through` of an entry in `older`, and what they do today from its
    `before` on. Either answer is allowed between the two. The older answers hold what was compared when they were
    recorded: they say nothing about the rest.

    Args:
        case: the case.
        release: the Kafka release; empty for the newest.
    """
    if not release:
        return case
    if release_key(release) < release_key(case.since):
        return None
    allowed, is_of_today = _answers(case, release_key(release))
    if not allowed:
        return case
    if is_of_today:
        allowed.extend(case.stored_expect.get("allowed", [{"branch": "today", **case.stored_expect}]))
    if len(allowed) > 1:
        return replace(case, result="acceptable", stored_expect={"allowed": allowed}, also={}, untold=("*",))
    (only,) = allowed
    expect = {name: value for name, value in only.items() if name != "branch"}
    result = "invalid" if "reject" in expect else "valid"
    return replace(case, result=result, stored_expect=expect, also={}, untold=("*",))


def _answers(case: Case, wanted: tuple[int, ...]) -> tuple[list[Json], bool]:
    """Return the older answers that are right for a release, and whether the answer of today is right as well."""
    allowed: list[Json] = []
    for entry in case.older:
        is_known = wanted <= release_key(entry["through"])
        if is_known or wanted < release_key(entry["before"]):
            allowed.append({"branch": f"through {entry['through']}", **entry["expect"]})
        if is_known:
            return allowed, False
    return allowed, True
