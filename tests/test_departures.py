"""Appendix C is made from the marks of the rules, and every case that Kafka's own code fails is behind one of them."""

from __future__ import annotations

import re
from functools import cache

import pytest
from helpers.support import REPOSITORY
from seglog_conformance.cases import load_cases
from seglog_conformance.known import read_known

from seglog_format.requirements import requirements
from tools.docs.departures_page import KAFKA, PAGE, departures, pages
from tools.docs.gen_docs import NOTICE


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
    assert numbers == {f"DEP-{number:02}" for number in range(1, 14)}


@pytest.mark.parametrize("testee", KAFKA)
def test_every_failure_of_kafkas_own_code_is_behind_a_mark(testee: str) -> None:
    rules = {case.id: frozenset(case.requirements) for case in load_cases()}
    failures = read_known(testee).entries
    assert failures
    assert [case for case in failures if not rules[case] & departing()] == []


@pytest.mark.parametrize("testee", [*KAFKA, "kafka-clients-wire"])
def test_reasons_name_a_number_of_the_list(testee: str) -> None:
    numbers = {one.number for one in departures()}
    named = {number for one in read_known(testee).entries.values() for number in re.findall(r"DEP-\d\d", one.reason)}
    assert named <= numbers
