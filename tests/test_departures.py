"""Appendix C: every case that Kafka's own code fails stands in the list of its departures, and nothing else does."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

import pytest
from helpers.support import REPOSITORY
from seglog_conformance.cases import load_cases

KAFKA = ("kafka-clients", "kafka-storage")
ROW = re.compile(
    r"^\| \[(?P<id>DEP-\d\d)\]\(#\S+\) \| (?P<rules>[^|]+) \| \w+ \| (?P<who>[^|]+) \| (?P<cases>[^|]+) \|$",
    re.MULTILINE,
)
MOST = 15


class Departure(NamedTuple):
    """A row of the list."""

    id: str
    rules: frozenset[str]
    testees: frozenset[str]
    cases: tuple[str, ...]

    def covers(self, testee: str, case: str) -> bool:
        return testee in self.testees and any(fnmatchcase(case, pattern) for pattern in self.cases)


@cache
def departures() -> tuple[Departure, ...]:
    text = (REPOSITORY / "spec" / "C-departures.md").read_text(encoding="utf-8")
    return tuple(
        Departure(
            row["id"],
            frozenset(row["rules"].split(", ")),
            frozenset(row["who"].split(", ")),
            tuple(re.findall("`([^`]+)`", row["cases"])),
        )
        for row in ROW.finditer(text)
    )


def failures(testee: str) -> list[str]:
    path = REPOSITORY / "conformance" / "known_failures" / f"{testee}.toml"
    return [each["case"] for each in tomllib.loads(path.read_text(encoding="utf-8"))["failure"]]


@cache
def requirements() -> dict[str, frozenset[str]]:
    return {case.id: frozenset(case.requirements) for case in load_cases()}


def test_numbers_follow_each_other() -> None:
    assert [each.id for each in departures()] == [f"DEP-{number + 1:02}" for number in range(len(departures()))]
    assert len(departures()) <= MOST


@pytest.mark.parametrize("testee", KAFKA)
def test_every_failure_of_kafkas_own_code_is_listed(testee: str) -> None:
    unlisted = [
        case
        for case in failures(testee)
        if not any(each.covers(testee, case) and each.rules & requirements()[case] for each in departures())
    ]
    assert unlisted == []


@pytest.mark.parametrize("departure", departures(), ids=lambda each: each.id)
def test_every_pattern_stands_for_a_case(departure: Departure) -> None:
    assert all(any(fnmatchcase(case, pattern) for case in requirements()) for pattern in departure.cases)
