"""Appendix C is made from the marks of the rules, and every case that Kafka's own code fails is behind one of them.

Each departure that the suite holds against the newest release is fair: the rule can be kept. Readers here keep it, and
refuse nothing that a stock broker has written.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from helpers.support import FIXTURES, REPOSITORY, bundled
from seglog_conformance.cases import load_cases
from seglog_conformance.columnar import Columnar
from seglog_conformance.direct import DirectTestee
from seglog_conformance.judging import Examiner
from seglog_conformance.known import Known, read_known
from seglog_conformance.reference import Reference
from seglog_conformance.verdicts import Verdict

from seglog_format.requirements import requirements
from tools.docs.departures_page import KAFKA, PAGE, departures, pages
from tools.docs.gen_docs import NOTICE

NEWEST = (("kafka-clients", "4.4.0"), ("kafka-storage", "4.4.0"), ("kafka-clients-wire", "4.4.0"))
"""The Java client and broker of the newest release: classes, and the consumer and producer as a whole."""
MAX_DEPARTURES = 15
NUMBERED = re.compile(r"(DEP-\d\d): ")
LONGEST_LOG = 20_000
"""Bytes of a broker's log that is read here; longer ones are more of the same."""


@cache
def departing() -> frozenset[str]:
    return frozenset(rule.id for rule in requirements().values() if rule.brokers.departs)


def test_every_departing_rule_is_told_of() -> None:
    assert {one.rule.id for one in departures()} == departing()
    assert all(len(one.account) > 10 for one in departures())


def test_the_page_has_nothing_that_is_not_made() -> None:
    (text,) = pages(NOTICE).values()
    rows = re.findall(r"^\| \[(SEG-[A-Z]{3}-\d{3})\]", text, re.MULTILINE)
    assert sorted(rows) == sorted(departing())
    assert sorted(re.findall(r"^## (SEG-\S+)$", text, re.MULTILINE)) == sorted(departing())
    assert (REPOSITORY / PAGE).read_text(encoding="utf-8") == text


def test_numbers_are_kept() -> None:
    numbers = {one.number for one in departures() if one.number}
    assert numbers == {f"DEP-{number:02}" for number in range(1, 15)}


@pytest.mark.parametrize("testee", KAFKA)
def test_every_failure_of_kafkas_own_code_is_behind_a_mark(testee: str) -> None:
    rules = {case.id: frozenset(case.requirements) for case in load_cases()}
    entries = read_known(testee).entries
    broken = [case for case, entry in entries.items() if entry.verdict is not Verdict.ACCIDENT]  # those were refused
    assert broken
    assert [case for case in broken if not rules[case] & departing()] == []


@pytest.mark.parametrize("testee", [*KAFKA, "kafka-clients-wire"])
def test_reasons_name_a_number_of_the_list(testee: str) -> None:
    numbers = {one.number for one in departures()}
    named = {number for one in read_known(testee).entries.values() for number in re.findall(r"DEP-\d\d", one.reason)}
    assert named <= numbers


def failures(testee: str, version: str) -> dict[str, Known]:
    found = read_known(testee, version)
    assert found.version == version
    return {case: entry for case, entry in found.entries.items() if entry.verdict is not Verdict.ACCIDENT}


def number_of(entry: Known) -> str:
    match = NUMBERED.match(entry.reason)
    return match[1] if match else ""


@pytest.mark.parametrize(("testee", "version"), NEWEST)
def test_the_newest_release_fails_nothing_but_listed_departures(testee: str, version: str) -> None:
    rules = {case.id: set(case.requirements) for case in load_cases()}
    behind: dict[str, set[str]] = {}
    for one in departures():
        behind.setdefault(one.number, set()).add(one.rule.id)
    found = failures(testee, version)
    assert found
    assert [case for case, entry in found.items() if not rules[case] & behind.get(number_of(entry), set())] == []


def test_the_newest_release_is_held_to_fifteen_departures_at_most() -> None:
    numbers = {number_of(entry) for testee in NEWEST for entry in failures(*testee).values()}
    assert 0 < len(numbers) <= MAX_DEPARTURES


@pytest.mark.parametrize("answering", [Reference(), Columnar()], ids=["plain", "columnar"])
def test_rules_that_kafka_departs_from_can_be_kept(answering: Reference | Columnar) -> None:
    held = {case for testee in NEWEST for case in failures(*testee)}
    examiner = Examiner(DirectTestee("keeping", answering))
    results = [examiner.examine(case) for case in load_cases() if case.id in held]
    assert {result.case for result in results} == held
    assert {result.raw for result in results} <= {Verdict.PASS, Verdict.SKIP}
    assert sum(result.raw is Verdict.PASS for result in results) > len(held) / 2


def test_a_reader_that_keeps_them_refuses_nothing_that_brokers_wrote() -> None:
    reference, refused, read = Reference(), [], 0
    for archive in sorted(FIXTURES.glob("kafka-*/*/files.tar.gz")):
        name = str(archive.parent.relative_to(FIXTURES)).removeprefix("kafka-")
        if "/crash-" in name:
            continue
        for path in sorted(bundled(name).rglob("*.*")):
            if path.suffix == ".log" and path.stat().st_size <= LONGEST_LOG:
                request = {"op": "decode", "data": path.read_bytes().hex()}
            elif path.suffix == ".snapshot":
                request = {"op": "parse", "kind": "snapshot", "name": path.name, "data": path.read_bytes().hex()}
            else:
                continue
            read += 1
            refused += [] if reference.answer(request)["ok"] else [path]
    assert read > 100
    assert refused == []
