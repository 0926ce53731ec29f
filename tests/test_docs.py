"""What the documents show is what happens: commands, Python, pictures and links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of

from tools import demo_data
from tools.docs import chapter_tables, pictures, transcripts

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted(["README.md", *(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("docs/**/*.md"))])
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
IGNORED_BY_GIT = {"demo", "try"}
"""What the pages may write into, beside temporary directories."""
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MADE_BY_THE_SITE = ("spec/", "contributing.md")


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("documents")
    demo_data.unpack(parent / "demo")
    return parent


@pytest.mark.parametrize("page", PAGES)
def test_transcripts_are_what_happens(page: str, directory: Path) -> None:
    shown = (REPOSITORY / page).read_text(encoding="utf-8")
    assert transcripts.refreshed(shown, directory) == shown, "make docs writes transcripts anew"
    assert {path.name for path in directory.iterdir()} <= IGNORED_BY_GIT


@each_of("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = REPOSITORY / page
    targets = LINK.findall(FENCED.sub("", path.read_text(encoding="utf-8")))
    for target in targets:
        made = any(part in target for part in MADE_BY_THE_SITE) and page.startswith("docs/")
        assert made or (path.parent / target).exists(), target


def test_picture_shows_the_fixture() -> None:
    committed = (REPOSITORY / "docs" / "assets" / "partition.svg").read_text(encoding="utf-8")
    assert committed == pictures.partition_picture(), "make docs draws it anew"


@pytest.mark.parametrize("path", chapter_tables.CHAPTERS)
def test_tables_of_a_chapter_are_those_of_the_declarations(path: str) -> None:
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    assert chapter_tables.with_tables(text) == text, "make docs writes them anew"
    emptied = chapter_tables.BLOCK.sub(lambda match: match["mark"], text)
    assert emptied.count("| `") == 0
    assert chapter_tables.with_tables(emptied) == text


def test_a_command_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ echo one; echo two\none\nthree\n```"
    assert transcripts.refreshed(page, tmp_path) == "```console\n$ echo one; echo two\none\ntwo\n```"


def test_an_elision_stands_for_any_number_of_lines(tmp_path: Path) -> None:
    page = "```console\n$ seq 9\n1\n2\n...\n```"
    assert transcripts.refreshed(page, tmp_path) == page


def test_a_long_line_is_cut_and_still_compared(tmp_path: Path) -> None:
    page = transcripts.refreshed("```console\n$ echo {1..200}\n```", tmp_path)
    assert page.splitlines()[2].endswith("...")
    assert transcripts.refreshed(page, tmp_path) == page
    assert transcripts.refreshed(page.replace("1 2 3", "1 2 4"), tmp_path) == page


def test_python_that_answers_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```pycon\n>>> one = 1\n>>> one + 1\n3\n>>> int('x')\n```"
    assert transcripts.refreshed(page, tmp_path).splitlines()[2:6] == [
        ">>> one + 1",
        "2",
        ">>> int('x')",
        "Traceback (most recent call last):",
    ]
