"""The adapters of the suite: their descriptions, their lists of known failures, and those in Python at work."""

from __future__ import annotations

import os
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.registry import ADAPTERS, BUILDS, STAMP, Builder, adapters, listed
from seglog_conformance.smoke import smoke

if TYPE_CHECKING:
    from pathlib import Path

KNOWN_FAILURES = ADAPTERS.parent / "known_failures"
LOCK_FILES = {"go.sum", "package-lock.json", "Cargo.lock", "npm-shrinkwrap.json", "yarn.lock"}


def lists() -> list[Path]:
    return sorted(KNOWN_FAILURES.glob("*.toml"))


def test_there_are_adapters_in_six_languages_for_twelve_implementations() -> None:
    found = adapters()
    assert len(found) >= 12
    assert {adapter.language for adapter in found} >= {"Python", "Java", "Go", "Rust", "JavaScript", "C"}


@pytest.mark.parametrize("adapter", adapters(), ids=lambda adapter: adapter.name)
def test_versions_are_exact(adapter: object) -> None:
    versions = getattr(adapter, "versions")  # noqa: B009 - parametrized values have no type
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in versions)


def test_nothing_is_committed_that_a_tool_chain_locks() -> None:
    assert not [path for path in ADAPTERS.rglob("*") if path.name in LOCK_FILES]


@pytest.mark.parametrize("path", lists(), ids=lambda path: path.stem)
def test_every_known_failure_has_its_reason_and_its_case(path: Path) -> None:
    listed_failures = tomllib.loads(path.read_text(encoding="utf-8")).get("failure", [])
    ids = {case.id for case in load_cases()}
    assert [entry["case"] for entry in listed_failures if not entry.get("reason") or entry["case"] not in ids] == []


@pytest.mark.parametrize("name", ["kafka-python", "aiokafka"])
def test_python_adapters_pass_the_smoke_test(name: str) -> None:
    wanted = listed(name)
    builder = Builder(REPOSITORY / BUILDS, strict=True)
    assert wanted.adapter is not None
    if not os.environ.get("CI") and not (builder.place(wanted.adapter, wanted.version) / STAMP).is_file():
        pytest.skip(f"{name} is not built; seglog conform smoke --testee {name} builds it")
    examiner = Examiner(builder.testee(wanted), extra_growth=wanted.adapter.extra_memory)
    try:
        examiner.start()
        found = smoke(examiner, load_cases())
    finally:
        examiner.close()
    assert not found.is_broken, [(result.case, str(result.verdict), result.detail) for result in found.results]
