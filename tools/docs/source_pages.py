"""Pages of the site for the places that requirements name: source files with their definitions, fixtures and cases.

Only places in the tables of requirements have a page. The pages are made while the site is built; none is committed.
"""

from __future__ import annotations

import ast
import posixpath
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.cases import every_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.cases import Case

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TABLES: Final = "reference/requirements/"
"""Pages of the requirements of a chapter, which name places."""
FIXTURES: Final = "source/fixtures.md"
SOURCE: Final = re.compile(r"`((?:seglog_format|tests)/[\w/]+\.py)(?:::?([\w.]+))?`")
FIXTURE: Final = re.compile(r"`((?:kafka-[\d.]+|damaged)/[\w.-]+)`")
CASE: Final = re.compile(r"`([a-z][a-z0-9-]*)/([\w.-]+)`")
"""Matches family and slug of a case; a match without such a family is no case."""
FENCE: Final = "`" * 6
FRONT_MATTER: Final = "---\nsearch:\n  exclude: true\n---\n\n"


def made_pages() -> Iterator[tuple[str, str]]:
    """Yield each page with its path in the site."""
    for path in sorted({match[1] for text in tables().values() for match in SOURCE.finditer(text)}):
        yield _page_of(path), source_page(path)
    yield FIXTURES, fixtures_page()
    for (number, name), cases in families().items():
        yield _family_page(name), family_page(number, name, cases)


def tables() -> dict[str, str]:
    """Return the pages that name places, by path in the site."""
    paths = sorted((REPOSITORY / "docs" / TABLES).glob("*.md"))
    return {TABLES + path.name: path.read_text(encoding="utf-8") for path in paths}


def linked(markdown: str, page: str) -> str:
    """Return the text of a page, with a link at each name of a place in the source, a fixture or a case.

    Args:
        markdown: the text.
        page: its path in the site.
    """
    markdown = SOURCE.sub(lambda match: _source_link(match, page), markdown)
    markdown = FIXTURE.sub(lambda match: _fixture_link(match, page), markdown)
    return CASE.sub(lambda match: _case_link(match, page), markdown)


def source_page(path: str) -> str:
    """Return a source file with a heading before each of its definitions."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    lines, starts = text.splitlines(), sorted(_definitions(path).items(), key=lambda item: item[1])
    parts = [f"{FRONT_MATTER}# {path}\n"]
    ends = [*(start for _, start in starts), len(lines) + 1]
    parts += _fence(lines, 1, ends[0])
    for (name, start), end in zip(starts, ends[1:], strict=True):
        parts += [f"## `{name}` {{ #{name} }}\n", *_fence(lines, start, end)]
    return "\n".join(parts)


def fixtures_page() -> str:
    """Return the page of all bundled cases."""
    parts = [f"{FRONT_MATTER}# Fixtures\n", "What lies in each directory below `fixtures/`, as its `case.toml` says.\n"]
    for path in sorted((REPOSITORY / "fixtures").glob("*/*/case.toml")):
        name = path.parent.relative_to(REPOSITORY / "fixtures").as_posix()
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        parts += [f"## `{name}` {{ #{name} }}\n", *_reported(facts)]
    return "\n".join(parts)


@cache
def families() -> dict[tuple[int, str], list[Case]]:
    """Return the cases of the conformance suite, by number and name of their family."""
    found: dict[tuple[int, str], list[Case]] = {}
    for case in every_case():
        found.setdefault((case.family, case.family_name), []).append(case)
    return found


def family_page(number: int, name: str, cases: list[Case]) -> str:
    """Return the page of a family: the operation of each case, and the reason for it.

    Args:
        number: number of the family.
        name: name of the family.
        cases: its cases.
    """
    lines = [f"{FRONT_MATTER}# Cases: {name}\n", f"Family {number} of the conformance suite.\n"]
    lines += ["| case | asks | level | result | why | rules |", "|---|---|---|---|---|---|"]
    for case in cases:
        slug, rules = case.id.partition("/")[2], ", ".join(case.requirements)
        anchored = f'<a id="{slug}"></a>`{slug}`'
        lines.append(f"| {anchored} | {case.op} | {case.level} | {case.result} | {_cell(case.why)} | {rules} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return a text as a cell of a table, with markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


def _reported(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['about']}\n"
    for label in ("producer", "base", "states", "violates", "requirements"):
        if label in facts:
            given = facts[label] if isinstance(facts[label], list) else [facts[label]]
            yield f"- {label.capitalize()}: {', '.join(map(str, given))}"
    yield ""


@cache
def _definitions(path: str) -> dict[str, int]:
    """Return the first line of each top-level function, class and named value, decorators included."""
    found = {}
    for node in ast.parse((REPOSITORY / path).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node.lineno for target in targets if isinstance(target, ast.Name)}
    return found


def _fence(lines: list[str], start: int, end: int) -> list[str]:
    code = "\n".join(lines[start - 1 : end - 1]).rstrip()
    return [f'{FENCE}python linenums="{start}"\n{code}\n{FENCE}\n'] if code else []


def _page_of(path: str) -> str:
    return f"source/{path.removesuffix('.py')}.md"


def _relative(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _source_link(match: re.Match[str], page: str) -> str:
    path, name = match[1], (match[2] or "").partition(".")[0]
    anchor = f"#{name}" if name in _definitions(path) else ""
    return f"[{match[0]}]({_relative(_page_of(path), page)}{anchor})"


def _fixture_link(match: re.Match[str], page: str) -> str:
    return f"[{match[0]}]({_relative(FIXTURES, page)}#{match[1]})"


def _family_page(name: str) -> str:
    return f"source/cases/{name}.md"


def _case_link(match: re.Match[str], page: str) -> str:
    family, slug = match.groups()
    if family not in {name for _, name in families()}:
        return match[0]
    return f"[{match[0]}]({_relative(_family_page(family), page)}#{slug})"
