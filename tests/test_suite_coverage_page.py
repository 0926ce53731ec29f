"""The page on what the suite sees says what the cases and the lists of known failures say."""

from __future__ import annotations

import re

import pytest
from authoring.make_cases import CASES
from helpers.support import REPOSITORY
from seglog_conformance.cases import load_cases
from seglog_conformance.known import read_known
from seglog_conformance.registry import read_adapter

from seglog_format.requirements import requirements

PAGE = REPOSITORY / "docs" / "explanation" / "what-the-suite-sees.md"
TABLES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| Cause", "| False alarm", "| Defect"))
]
ROWS = [row for row in TABLES if len(row) == 5]
DEFECTS = [row for row in TABLES if len(row) == 4]
SHOWN = [row for row in ROWS if row[2]]
EVERY = {case.id: case for case in [*load_cases(), *load_cases(CASES / "scale")]}
ADAPTERS = REPOSITORY / "conformance" / "adapters"


def test_there_is_a_row_for_each_cause_and_each_false_alarm() -> None:
    assert len(ROWS) == 5 + 7
    assert SHOWN == ROWS


def test_the_rules_are_rules() -> None:
    named = set(re.findall(r"SEG-[A-Z]{3}-\d{3}", PAGE.read_text(encoding="utf-8")))
    assert named <= set(requirements())


@pytest.mark.parametrize("row", SHOWN, ids=[row[2].strip("`") for row in SHOWN])
def test_verdicts_are_those_of_the_lists(row: list[str]) -> None:
    _, _, case, shows, passes = row
    case = case.strip("`")
    assert case in EVERY
    assert read_adapter(ADAPTERS / passes).versions
    assert case not in read_known(passes).entries
    if shows:
        name, _, verdict = shows.partition(": ")
        assert str(read_known(name).entries[case].verdict) == verdict


def test_there_are_at_least_twenty_defects_each_in_its_list() -> None:
    assert len({(row[1], row[2]) for row in DEFECTS}) == len(DEFECTS) >= 20
    for does, case, shows, _ in DEFECTS:
        name, _, verdict = shows.partition(": ")
        listed = read_known(name)
        assert str(listed.entries[case.strip("`")].verdict) == verdict
        assert does.startswith(f"{name} {listed.version} ")
