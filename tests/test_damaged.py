"""Each damaged case breaks the one requirement that it names, and what it was made of breaks none.

The cases are in `fixtures/damaged/`; `damage` builds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.damage import Case, damaged_cases

from seglog_format.checks import verify
from seglog_format.errors import FormatError
from seglog_format.names import parse_partition_directory
from seglog_format.requirements import Severity, requirement, requirements

if TYPE_CHECKING:
    from pathlib import Path

NOT_ALONE = {
    "SEG-CTL-014": "a snapshot that begins with another entry: put together anew by test_metadata_snapshot",
    "SEG-CTL-015": "a snapshot without its last entry, likewise",
    "SEG-LDR-008": "a missing file in a partition directory of a KRaft cluster: test_start_problems",
    "SEG-LOG-010": "a file above 2 GiB",
    "SEG-LOG-013": "an offset near 2^63, which no segment that a broker has written can hold",
    "SEG-PDR-020": "a file above 64 MiB",
    "SEG-PDR-029": "a missing snapshot of a metadata log: test_start_problems",
    "SEG-PSN-010": "a missing file after a clean shutdown: test_forgotten_producers breaks it",
}
"""Requirements that a small damaged file cannot break, or not alone."""

OTHER_FILES = {"46-remote-log-metadata", "47-tier-layouts"}
"""Chapters about more than a log directory: the tests named after them break their rules."""


def found_in(case: Case, path: Path) -> set[tuple[str, Severity]]:
    if case.content.get("reader") != "directory-name":
        return {(finding.requirement, finding.severity) for finding in verify(path)}
    try:
        parse_partition_directory(path.name)
    except FormatError as error:
        return {(identifier, requirement(identifier).severity) for identifier in error.requirements}
    return set()


CASES = [pytest.param(case, id=case.name, marks=pytest.mark.req(*case.violates)) for case in damaged_cases()]


@pytest.mark.parametrize("case", CASES)
def test_the_edits_break_the_one_requirement(case: Case, tmp_path: Path) -> None:
    (broken,) = case.violates
    expected = {(identifier, requirement(identifier).severity) for identifier in [broken, *case.also]}
    found = found_in(case, case.build(tmp_path))
    assert {pair for pair in found if pair in expected or pair[1] is not Severity.NOTE} == expected


def bases() -> list[list[Case]]:
    """Return the cases, grouped by what they are before their edits."""
    groups: dict[str, list[Case]] = {}
    for case in damaged_cases():
        parts = [case.content.get(key) for key in ("base", "below", "file", "verify", "verify_base", "reader")]
        groups.setdefault(repr(parts), []).append(case)
    return list(groups.values())


@pytest.mark.parametrize("cases", bases(), ids=lambda cases: cases[0].name)
def test_without_its_edits_a_case_breaks_nothing(cases: list[Case], tmp_path: Path) -> None:
    broken = {identifier for case in cases for identifier in case.violates}
    found = found_in(cases[0], cases[0].build(tmp_path, damaged=False))
    assert {pair for pair in found if pair[1] is not Severity.NOTE or pair[0] in broken} == set()


def test_cases_are_named_after_what_they_break() -> None:
    for case in damaged_cases():
        (broken,) = case.violates
        assert case.name.startswith(broken.removeprefix("SEG-").lower() + "-")
        assert case.content["about"]


def test_every_rule_that_is_checked_has_a_damaged_case() -> None:
    checked = {rule.id for rule in requirements().values() if rule.check == "auto" and rule.chapter not in OTHER_FILES}
    covered = {identifier for case in damaged_cases() for identifier in case.violates}
    assert checked - covered == NOT_ALONE.keys()
