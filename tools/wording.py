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

PUBLISHED = ("spec/", "fixtures/", "reports/", "conformance/cases/", "conformance/authoring/", GLOSSARY)
"""Text that keeps the old phrases: the specification, published data, the cases and what writes them, the glossary."""

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
USUAL_NAMES = frozenset({"clear", "in_place", "records_section", "section"})
"""Names with a usual meaning: what Python's collections do, a change in place, and the records section of a batch."""
TEST = "test_"
"""Begins the names of tests, which are sentences: prose is read by people."""


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
    if name.strip("_") in USUAL_NAMES or name.startswith(TEST):
        return []
    parts = {found.lower() for found in PART.findall(name)}
    return sorted((parts | {name.strip("_")}) & words)


def of_tree(root: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the phrases and words of a tree's glossary; none if it has no glossary."""
    glossary = root / GLOSSARY
    return replaced(glossary.read_text(encoding="utf-8")) if glossary.is_file() else ((), frozenset())


def names_follow_glossary(root: Path, files: Iterable[Path]) -> Iterator[str]:
    """Yield the modules and identifiers of Python files with a word that the glossary replaces."""
    words = of_tree(root)[1]
    for path in (path for path in files if path.suffix == ".py"):
        name = path.relative_to(root).as_posix()
        for line, identifier in ((1, path.stem), *identifiers(path.read_text(encoding="utf-8"))):
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
        if pattern is not None and not name.startswith(PUBLISHED) and (found := pattern.search(line)):
            yield f"{name}:{number}: the glossary has another word for {found[0]!r}"
