"""Appendix A is complete: every difference has its row, real requirements, and tests that exist."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from helpers.support import REPOSITORY
from helpers.walking import each_of

from seglog_format.requirements import requirement

APPENDIX = (REPOSITORY / "spec" / "A-disagreements.md").read_text(encoding="utf-8")
NUMBERS = [f"F-DIS-{number:02d}" for number in range(1, 36)]
PARTS = ["Claim", "Bytes", "Reader", "Shown by"]


def sections() -> dict[str, str]:
    names = re.split(r"^## (F-DIS-\d\d)$", APPENDIX, flags=re.MULTILINE)[1:]
    return {name: text for name, text in pairwise(names) if name.startswith("F-DIS-")}


def rows() -> dict[str, list[str]]:
    found = re.findall(
        r"^\| \[(F-DIS-\d\d)\]\(#(f-dis-\d\d)\) \| (.+?) \| (.+?) \| (.+?) \| (yes|no) \|$", APPENDIX, re.MULTILINE
    )
    return {name: rest for name, *rest in found}


def executable() -> set[str]:
    names = ("test_handbook_dialect.py", "test_articles.py")
    modules = [ast.parse((REPOSITORY / "tests" / name).read_text(encoding="utf-8")) for name in names]
    found = {node.name for module in modules for node in module.body if isinstance(node, ast.FunctionDef)}
    return {name for name in found if name.startswith("test_")}


def test_every_difference_has_a_row_and_a_section() -> None:
    assert list(rows()) == list(sections()) == NUMBERS
    assert [row[0] for row in rows().values()] == [name.lower() for name in NUMBERS]


@each_of("name", NUMBERS)
def test_a_section_says_who_claims_what_and_what_follows(name: str) -> None:
    section = sections()[name]
    assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == PARTS
    _, subject, articles, since, _ = rows()[name]
    heading = section.strip().splitlines()[0]
    assert heading.lower() == f"{subject} · articles {articles} · since {since}".lower()
    assert set(articles.split(", ")) <= set("ABCDE")


@each_of("name", NUMBERS)
def test_links_lead_to_the_chapter_that_defines_the_requirement(name: str) -> None:
    section = sections()[name]
    linked = dict(re.findall(r"\[(SEG-[A-Z]{3}-\d{3})\]\(([\w-]+)\.md\)", section))
    assert set(re.findall(r"SEG-[A-Z]{3}-\d{3}", section)) == linked.keys()
    assert linked == {identifier: requirement(identifier).chapter for identifier in linked}
    assert linked or "See F-DIS" in section or rows()[name][4] == "no"


@each_of("name", NUMBERS)
def test_shown_by_names_tests_that_exist(name: str) -> None:
    shown = re.findall(r"`(test_\w+)`", sections()[name].split("**Shown by.**")[1])
    assert set(shown) <= executable()
    assert bool(shown) == (rows()[name][4] == "yes")
