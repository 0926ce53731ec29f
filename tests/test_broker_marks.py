"""What the definition lines say of brokers, held against the directories they wrote and the run of their classes.

`since` and `brokers` claim that a rule is kept from some version on. Here the bytes of every bundled version are asked,
and what the last full run of the conformance suite heard from Kafka's own code.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.support import REPOSITORY, authentic, authentic_names, bundled_cases, bundled_expected, states

from seglog_format import verify
from seglog_format.requirements import Requirement, Severity, requirements
from tools.docs.verdicts import Verdict, by_requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES = ("kafka-clients", "kafka-storage")
"""Testees that are Kafka's own code, each in the versions `CLASSES_VERSIONS`."""
CLASSES_VERSIONS = ("4.1.1", "4.4.0")

RULES = list(requirements().values())
SHOWN_IN = {
    **dict.fromkeys(("PDR", "LDR", "LOG", "IDX", "CKP"), "0.8.0"),
    **dict.fromkeys(("MSG", "COD"), "0.8.0"),
    "TIX": "0.10.1",
    "RCV": "0.8.1",
    "ROL": "0.8.0",
    "RLM": "3.0.0",
    "TIR": "3.6.0",
    **dict.fromkeys(("BAT", "REC", "CTL", "TXN", "PSN"), "0.11.0"),
}
"""First version whose files have what an area is about; other areas are about what brokers do."""


TIERED = ("4.1.1", "4.4.0")
"""Versions of the brokers whose remote segments are in ``fixtures/tiered``."""
TIER_AREAS = ("RLM",)
"""Areas that histories of remote segments are about, in which Kafka's classes and ours are compared."""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_claimed(rule: Requirement, version: str) -> bool:
    """Tell whether the definition line says that brokers of a version keep a rule."""
    return rule.brokers.kept == "yes" and numbers(rule.since) <= numbers(version)


def versions() -> list[str]:
    return sorted({name.split("/")[0] for name in bundled_cases()}, key=numbers)


@cache
def broken(version: str) -> dict[str, list[str]]:
    """Return the rules that undamaged directories of a version break, with the findings."""
    found: dict[str, list[str]] = {}
    for name in authentic_names():
        of, _, case = name.partition("/")
        if of != version or (case.startswith("crash-") and case not in {"crash-kill", "crash-txn"}):
            continue
        for state in states(authentic(name)):
            for one in verify(state):
                if one.severity is not Severity.NOTE:
                    found.setdefault(one.requirement, []).append(f"{name}: {one}")
    return found


@pytest.mark.parametrize("version", versions())
def test_no_rule_is_claimed_for_a_version_whose_bytes_break_it(version: str) -> None:
    claimed = {rule.id for rule in RULES if is_claimed(rule, version)}
    assert {rule: found for rule, found in broken(version).items() if rule in claimed} == {}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.brokers.basis == "bytes"], ids=lambda rule: rule.id)
def test_a_mark_by_bytes_names_a_version_that_is_bundled(rule: Requirement) -> None:
    assert rule.brokers.version in (*versions(), *TIERED)
    assert numbers(SHOWN_IN[rule.id[4:7]]) <= numbers(rule.brokers.version)


# Rules about what brokers do that a directory shows, with the bytes that keep or break them.


def lines(name: str, kind: str) -> list[dict[str, Any]]:
    found = (line for line in bundled_expected(name) if line["type"] == kind)
    return [line for line in found if not line["file"].endswith(".deleted")]


def undamaged(version: str) -> list[str]:
    return [name for name in bundled_cases() if name.startswith(f"{version}/") and "/crash-" not in name]


def batches_of(name: str, index: str, suffix: str) -> list[dict[str, Any]]:
    log = index.removesuffix(suffix) + ".log"
    return [line for line in lines(name, "batch") if line["file"] == log]


def index_names_the_end_of_its_batch(version: str) -> Iterator[bool]:
    """SEG-ROL-011: the entry at a batch names the last offset of that one batch."""
    for name in undamaged(version):
        for index in lines(name, "offsetIndex"):
            ends = {batch["position"]: batch["lastOffset"] for batch in batches_of(name, index["file"], ".index")}
            yield from (ends.get(position) == offset for offset, position in index["entries"])


def time_index_names_the_end_of_a_batch(version: str) -> Iterator[bool]:
    """SEG-APP-015: beside the largest timestamp stands the last offset of a batch that has it."""
    for name in undamaged(version):
        for index in lines(name, "timeIndex"):
            batches = batches_of(name, index["file"], ".timeindex")
            ends = {(batch["maxTimestamp"], batch["lastOffset"]) for batch in batches}
            yield from ((timestamp, offset) in ends for timestamp, offset in index["entries"] if ends)


def tombstones_have_a_horizon(version: str) -> Iterator[bool]:
    """SEG-CMP-011: of a compacted log, some batch has a delete horizon."""
    for name in undamaged(version):
        if name.endswith("/compact"):
            yield any(batch["deleteHorizonMs"] is not None for batch in lines(name, "batch"))


def files_of(name: str) -> set[str]:
    return {line["file"].rpartition("/")[2] for line in lines(name, "file")}


def segments_begin_with_a_snapshot(version: str) -> Iterator[bool]:
    """SEG-ROL-015: the newest segment has a producer snapshot of its base offset."""
    present = files_of(f"{version}/segs-fine")
    newest = max(file for file in present if file.endswith(".log"))
    yield newest.replace(".log", ".snapshot") in present


def a_clean_end_leaves_a_snapshot(version: str) -> Iterator[bool]:
    """SEG-FLS-015: there is one at the log end offset."""
    end = max(batch["nextOffset"] for batch in lines(f"{version}/plain", "batch"))
    yield f"{end:020d}.snapshot" in files_of(f"{version}/plain")


def closed_segments_have_their_largest_timestamp(version: str) -> Iterator[bool]:
    """SEG-ROL-014: it is the last entry of the time index."""
    name = f"{version}/segs-fine"
    last = {line["file"]: line["entries"][-1][0] for line in lines(name, "timeIndex") if line["entries"]}
    for log in {batch["file"] for batch in lines(name, "batch")}:
        largest = max(batch["maxTimestamp"] for batch in lines(name, "batch") if batch["file"] == log)
        yield last.get(log.replace(".log", ".timeindex")) == largest


def indexes_are_cut(version: str) -> Iterator[bool]:
    """SEG-ROL-018: no index of a closed log ends in zeros."""
    for name in undamaged(version):
        yield from (line["trailingZeroEntries"] == 0 for line in lines(name, "offsetIndex"))


BEHAVIOURS: Final = {
    "SEG-ROL-011": index_names_the_end_of_its_batch,
    "SEG-APP-015": time_index_names_the_end_of_a_batch,
    "SEG-CMP-011": tombstones_have_a_horizon,
    "SEG-ROL-015": segments_begin_with_a_snapshot,
    "SEG-FLS-015": a_clean_end_leaves_a_snapshot,
    "SEG-ROL-014": closed_segments_have_their_largest_timestamp,
    "SEG-ROL-018": indexes_are_cut,
}


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("rule", BEHAVIOURS)
def test_no_behaviour_is_claimed_for_a_version_whose_bytes_show_another(rule: str, version: str) -> None:
    if is_claimed(requirements()[rule], version):
        seen = list(BEHAVIOURS[rule](version))
        assert seen
        assert all(seen)


@pytest.mark.parametrize("rule", [rule for rule in BEHAVIOURS if requirements()[rule].brokers.departs])
def test_a_departure_by_bytes_is_in_the_bytes(rule: str) -> None:
    assert not all(BEHAVIOURS[rule](requirements()[rule].brokers.version))


@pytest.mark.parametrize("rule", [rule for rule in BEHAVIOURS if not requirements()[rule].brokers.departs])
def test_an_older_version_shows_that_since_is_not_too_late(rule: str) -> None:
    """The newest bundled version before `since` breaks the rule; a claim for it would fail above."""
    since = numbers(requirements()[rule].since)
    before = [version for version in versions() if numbers(version) < since]
    assert not all(BEHAVIOURS[rule](before[-1]))


def kafkas_verdicts(rule: Requirement) -> list[Verdict]:
    labels = {f"{name} {rule.brokers.version}" for name in CLASSES}
    return [one for one in by_requirement().get(rule.id, []) if one.testee in labels]


def is_by_run(rule: Requirement) -> bool:
    return rule.brokers.basis == "run" and rule.brokers.version in CLASSES_VERSIONS


@pytest.mark.parametrize("rule", [rule for rule in RULES if is_by_run(rule)], ids=lambda rule: rule.id)
def test_a_rule_that_a_run_has_shown_fails_no_case(rule: Requirement) -> None:
    if rule.id[4:7] in TIER_AREAS:
        assert (
            json.loads((REPOSITORY / "reports" / "kafka-reads.json").read_bytes())["parts"]["tier"]["disagreements"]
            == 0
        )
        return
    verdicts = kafkas_verdicts(rule)
    assert verdicts or rule.brokers.departs
    assert rule.brokers.departs or all(one.is_kept for one in verdicts)
