"""The words that ``docs/glossary.md`` replaces: phrases in any text, single words in the names of the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GLOSSARY = "docs/glossary.md"
ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| (?P<replaced>[^|]*)\|$", re.MULTILINE)

UNCHECKED_TEXT = (
    *("spec/", "fixtures/", "reports/", "conformance/cases/", "conformance/authoring/", GLOSSARY),
    "seglog_format/log/reading.py",
)
"""Text that keeps the old phrases: published data, the glossary, and packages still to be done."""

CHECKED_NAMES = tuple(
    f"seglog_format/{package}"
    for package in (
        *("checks", "cleaning", "cli", "codec", "generation", "inspection", "lines", "plans"),
        *("recovery", "schema", "serve", "spark", "state", "storage", "writing"),
    )
)
"""Packages whose identifiers have none of the replaced words."""

UNCHECKED_NAMES = tuple(f"seglog_format/{name}.py" for name in ("codec/message_set",))
"""Modules of these that are still to be done."""

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
USUAL_NAMES = frozenset({"clear", "section", "records_section"})
"""Names with a usual meaning: what Python's own collections do, and the records section of a batch."""


@cache
def replaced(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the phrases and the single words that the last column of a glossary lists.

    Args:
        text: of the glossary.
    """
    listed = [word.strip() for row in ROW.finditer(text) for word in row["replaced"].split(",")]
    words = frozenset(word for word in listed if word and " " not in word and word not in {"not", "-"})
    return tuple(word for word in listed if " " in word), words


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that a module defines or assigns to."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def old_words_in(name: str, words: frozenset[str]) -> list[str]:
    """Return the replaced words that are parts of an identifier."""
    if name.strip("_") in USUAL_NAMES:
        return []
    return [part for part in (found.lower() for found in PART.findall(name)) if part in words]


def of_tree(root: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the phrases and words of a tree's glossary; none if it has no glossary."""
    glossary = root / GLOSSARY
    return replaced(glossary.read_text(encoding="utf-8")) if glossary.is_file() else ((), frozenset())


def names_follow_glossary(root: Path) -> Iterator[str]:
    """Yield the identifiers of `CHECKED_NAMES` with a word that the glossary replaces."""
    words = of_tree(root)[1]
    for path in sorted(path for package in CHECKED_NAMES for path in (root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name not in UNCHECKED_NAMES:
            for line, identifier in identifiers(path.read_text(encoding="utf-8")):
                for word in old_words_in(identifier, words):
                    yield f"{name}:{line}: {identifier}: the glossary has another word for {word!r}"


def phrases_in(lines: Iterable[tuple[str, int, str]], phrases: Iterable[str]) -> Iterator[str]:
    """Yield the lines with a phrase that the glossary replaces.

    Args:
        lines: file, number and text of each.
        phrases: to look for.
    """
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, phrases))})\b") if phrases else None
    for name, number, line in lines:
        if pattern is not None and not name.startswith(UNCHECKED_TEXT) and (found := pattern.search(line)):
            yield f"{name}:{number}: the glossary has another word for {found[0]!r}"
