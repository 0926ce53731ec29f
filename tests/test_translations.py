"""Pages in Chinese name the English text that they were made from, and a check names those that are behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY

from tools.docs import translations

if TYPE_CHECKING:
    from pathlib import Path

TERM = re.compile(r"^\| (?:<a [^|]*</a>)?([^|]+?) \|", re.MULTILINE)
SOURCE = "# Ten minutes\n\nIt works.\n\n```console\n$ seglog --version\nseglog 1\n```\n"


def translated(root: Path, source: str, first_line: str) -> dict[str, str]:
    """Return what the check says of one page with this first line."""
    for name, text in (("docs/a.md", source), ("docs/zh/a.md", f"{first_line}\n\n# 十分钟\n")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return translations.behind(root)


@pytest.mark.parametrize(
    ("source", "is_behind"),
    [
        (SOURCE, False),
        (SOURCE.replace("seglog 1", "seglog 2"), False),
        (SOURCE.replace("It works.", "It\nworks."), False),
        (SOURCE.replace("It works.", "It never works."), True),
    ],
)
def test_a_page_whose_source_says_something_else_is_named(tmp_path: Path, source: str, *, is_behind: bool) -> None:
    mark = f"<!-- English: docs/a.md {translations.digest(SOURCE)} -->"
    assert list(translated(tmp_path, source, mark)) == ["a.md"] * is_behind


@pytest.mark.parametrize("mark", ["", "<!-- English: docs/gone.md 0123456789ab -->"])
def test_a_page_without_a_source_is_named(tmp_path: Path, mark: str) -> None:
    assert list(translated(tmp_path, SOURCE, mark)) == ["a.md"]


def test_every_page_names_a_source_that_exists() -> None:
    assert not [page for page, reason in translations.behind(REPOSITORY).items() if "names no" in reason]


def test_every_term_of_the_specification_has_a_chinese_one() -> None:
    english, chinese = (
        TERM.findall((REPOSITORY / page).read_text(encoding="utf-8"))
        for page in ("docs/specification/glossary.md", "docs/zh/glossary.md")
    )
    assert set(english) - set(chinese) - {"term", "---"} == set()
    assert len(english) > 50
