"""Pages of the site that show what a requirement names: source files cut at their definitions, and the fixtures.

Only what the table of requirements names is shown. The pages are made while the site is built; nothing is committed.
"""

from __future__ import annotations

import ast
import posixpath
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TABLE: Final = "reference/requirements.md"
FIXTURES: Final = "source/fixtures.md"
PLACE: Final = re.compile(r"`((?:seglog_format|tests)/[\w/]+\.py)(?:::?([\w.]+))?`")
FIXTURE: Final = re.compile(r"`((?:kafka-[\d.]+|damaged)/[\w.-]+)`")
FENCE: Final = "`" * 6
FRONT_MATTER: Final = "---\nsearch:\n  exclude: true\n---\n\n"


def made_pages() -> Iterator[tuple[str, str]]:
    """Each page with its place in the site."""
    table = (REPOSITORY / "docs" / TABLE).read_text(encoding="utf-8")
    for path in sorted({match[1] for match in PLACE.finditer(table)}):
        yield _page_of(path), source_page(path)
    yield FIXTURES, fixtures_page()


def linked(markdown: str, page: str) -> str:
    """The text of a page, with a link wherever it names a place in the source, or a fixture.

    Args:
        markdown: the text.
        page: its place in the site.
    """
    markdown = PLACE.sub(lambda match: _place_link(match, page), markdown)
    return FIXTURE.sub(lambda match: _fixture_link(match, page), markdown)


def source_page(path: str) -> str:
    """A source file, a heading before each of its definitions."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    lines, starts = text.splitlines(), sorted(_definitions(path).items(), key=lambda item: item[1])
    parts = [f"{FRONT_MATTER}# {path}\n"]
    ends = [*(start for _, start in starts), len(lines) + 1]
    parts += _fence(lines, 1, ends[0])
    for (name, start), end in zip(starts, ends[1:], strict=True):
        parts += [f"## `{name}` {{ #{name} }}\n", *_fence(lines, start, end)]
    return "\n".join(parts)


def fixtures_page() -> str:
    """Every bundled case, and what it is about."""
    parts = [f"{FRONT_MATTER}# Fixtures\n", "What lies in each directory below `fixtures/`, as its `case.toml` says.\n"]
    for path in sorted((REPOSITORY / "fixtures").glob("*/*/case.toml")):
        name = path.parent.relative_to(REPOSITORY / "fixtures").as_posix()
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        parts += [f"## `{name}` {{ #{name} }}\n", *_told(facts)]
    return "\n".join(parts)


def _told(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['about']}\n"
    for label in ("producer", "base", "states", "violates", "requirements"):
        if label in facts:
            given = facts[label] if isinstance(facts[label], list) else [facts[label]]
            yield f"- {label.capitalize()}: {', '.join(map(str, given))}"
    yield ""


@cache
def _definitions(path: str) -> dict[str, int]:
    """Line of each function, class and named value at the top of a file, decorators included."""
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


def _place_link(match: re.Match[str], page: str) -> str:
    path, name = match[1], (match[2] or "").partition(".")[0]
    anchor = f"#{name}" if name in _definitions(path) else ""
    return f"[{match[0]}]({_relative(_page_of(path), page)}{anchor})"


def _fixture_link(match: re.Match[str], page: str) -> str:
    return f"[{match[0]}]({_relative(FIXTURES, page)}#{match[1]})"
