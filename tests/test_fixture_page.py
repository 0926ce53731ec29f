"""The case that the page on fixtures shows is one: it breaks the requirement that it names, and nothing else."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from helpers.damage import Case, damaged_cases
from helpers.support import REPOSITORY

from seglog_format.checks import verify
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from pathlib import Path

PAGE = REPOSITORY / "docs" / "how-to" / "add-a-fixture.md"
SHOWN = re.compile(r'```toml title="fixtures/damaged/([a-z0-9-]+)/case\.toml"\n(.*?)^```', re.MULTILINE | re.DOTALL)


def test_the_case_on_the_page_breaks_what_it_names(tmp_path: Path) -> None:
    ((name, text),) = SHOWN.findall(PAGE.read_text(encoding="utf-8"))
    case = Case(name, tomllib.loads(text))
    for damaged in (False, True):
        path = case.build(tmp_path / str(damaged), damaged=damaged)
        found = {each.requirement for each in verify(path) if each.severity is not Severity.NOTE}
        assert found == (set(case.violates) if damaged else set())
    assert name not in {existing.name for existing in damaged_cases()}, "take it off the page, or show another"


def test_the_page_tells_every_key_of_a_case() -> None:
    table = PAGE.read_text(encoding="utf-8")
    used = {key for case in damaged_cases() for key in case.content}
    assert {key for key in used if f"`{key}`" not in table} <= {"verify_base", "reader"}
