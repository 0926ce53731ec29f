"""Find the text that a fault replaces by the symbol around it, so the same text may occur elsewhere.

When code moves, ``python -m tools.rehome_faults --write`` finds each fault's symbol and text in its new module.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MODULE = ""
"""The symbol of text that stands in no function, class or assignment."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a text occurs in a module.

    Attributes:
        symbol: dotted name of the innermost function, class or assignment around the whole text.
        position: position of its first character.
    """

    symbol: str
    position: int


def occurrences(source: str, find: str) -> list[Occurrence]:
    """Return every place of a text in a module, in order."""
    spans = list(_spans(source))
    return [
        Occurrence(_symbol(spans, position, position + len(find)), position) for position in _positions(source, find)
    ]


def occurrence_in(source: str, symbol: str, find: str) -> Occurrence:
    """Return the only place of a text in a symbol.

    Raises:
        ValueError: the symbol does not hold the text exactly once.
    """
    found = [occurrence for occurrence in occurrences(source, find) if occurrence.symbol == symbol]
    if len(found) != 1:
        msg = f"occurs {len(found)} times in {symbol or 'the module itself'}"
        raise ValueError(msg)
    return found[0]


def homes(sources: Mapping[str, str], symbol: str, find: str) -> list[tuple[str, str]]:
    """Return file and symbol of every place to which the text of a fault may have moved, of the likeliest kind only.

    Places in a symbol of the same dotted name come before places in one of the same last name, and those before all
    others.

    Args:
        sources: text of each module, by file name.
        symbol: symbol in which the text was.
        find: the text.
    """
    found = [(file, occurrence.symbol) for file, text in sources.items() for occurrence in occurrences(text, find)]
    last = symbol.rpartition(".")[2]
    same = [home for home in found if home[1] == symbol]
    alike = [home for home in found if home[1].rpartition(".")[2] == last]
    return same or alike or found


def _positions(source: str, find: str) -> Iterator[int]:
    position = source.find(find)
    while position >= 0:
        yield position
        position = source.find(find, position + 1)


def _symbol(spans: list[tuple[str, int, int]], start: int, end: int) -> str:
    around = [(last - first, name) for name, first, last in spans if first <= start and end <= last]
    return min(around)[1] if around else MODULE


def _spans(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield dotted name, first and last character of every function, class and assignment, in whole lines."""
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for name, first, last in _lines_under(ast.parse(source), ""):
        yield name, starts[first - 1], starts[last]


def _lines_under(node: ast.AST, scope: str) -> Iterator[tuple[str, int, int]]:
    for child in ast.iter_child_nodes(node):
        name = _name(child)
        inner = f"{scope}.{name}".lstrip(".") if name else scope
        if name:
            decorators = [each.lineno for each in getattr(child, "decorator_list", [])]
            yield inner, min([child.lineno, *decorators]), child.end_lineno
        if not isinstance(child, ast.expr | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _lines_under(child, inner)


def _name(node: ast.AST) -> str:
    """Return the name of a function, a class, a constant or a field; local names are no symbols."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""
