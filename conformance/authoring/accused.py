"""Cases that a release fails, and whether Kafka's newest classes pass them in the same run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.registry import DIRECT
from seglog_conformance.releases import release_key
from seglog_conformance.verdicts import FAILURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_conformance.cases import Case

KAFKA: Final = ("kafka-clients", "kafka-clients-wire", "kafka-storage")
"""Kafka's own classes: its readers and writers, its whole consumer and producer, and the log of its brokers."""

Json = dict[str, Any]


def newest(results: Iterable[Json]) -> dict[str, str]:
    """Return the newest release of each testee with Kafka's classes that a run has results of."""
    found: dict[str, str] = {}
    for result in results:
        name, version = result["testee"], result["version"]
        if name in KAFKA and release_key(version) > release_key(found.get(name, "")):
            found[name] = version
    return found


def accused(results: list[Json], cases: Mapping[str, Case]) -> set[str]:
    """Return the cases whose MUST verdict says that a release does it wrong."""
    return {
        result["case"]
        for result in results
        if result["testee"] not in DIRECT and result["raw"] in FAILURES and cases[result["case"]].level == "must"
    }


def accusations(results: list[Json], cases: Mapping[str, Case]) -> Json:
    """Return how far Kafka's newest classes agree with the cases that accuse releases.

    Args:
        results: lines of one run.
        cases: by id.

    Returns:
        ``cases`` that accuse; of these those that the classes ``agree`` with or ``depart`` from (at least one of them),
        those that ``cannotBeAsked`` of any (by reason), and those ``notAsked``: of which the run has no answer at all.
    """
    releases = newest(results)
    said: dict[str, list[Json]] = {}
    for result in results:
        if releases.get(result["testee"]) == result["version"]:
            said.setdefault(result["case"], []).append(result)
    wanted = sorted(accused(results, cases))
    verdicts = {case: {one["raw"] for one in said.get(case, [])} for case in wanted}
    skipped = [case for case in wanted if verdicts[case] == {"SKIP"}]
    return {
        "askedOf": [f"{name} {version}" for name, version in sorted(releases.items())],
        "cases": len(wanted),
        "agree": sum(bool(verdicts[case] - {"SKIP"}) and not verdicts[case] & FAILURES for case in wanted),
        "depart": [case for case in wanted if verdicts[case] & FAILURES],
        "cannotBeAsked": dict(Counter(_reason(said[case]) for case in skipped).most_common()),
        "notAsked": [case for case in wanted if not verdicts[case]],
    }


def _reason(results: list[Json]) -> str:
    """Return why the last of Kafka's testees skipped the case; that is the broker's log if the run has it."""
    return str(results[-1].get("detail", ""))
