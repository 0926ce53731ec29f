"""Covering arrays: few rows of a table in which every combination of a few values still stands."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Row = dict[str, Any]
Part = frozenset[tuple[str, Any]]
"""Some axes with one value each."""


@dataclass(frozen=True)
class Table:
    """Axes, and which of their rows can be.

    Attributes:
        axes: the values of each, by name.
        is_possible: tells it of a whole row.
        strength: so many values at a time stand together in some row.
    """

    axes: Mapping[str, Sequence[Any]]
    is_possible: Callable[[Row], bool]
    strength: int = 2

    def possible_rows(self) -> list[Row]:
        """Return every row that can be, in the order of the values."""
        rows = (dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))
        return [row for row in rows if self.is_possible(row)]

    def parts(self, row: Row) -> frozenset[Part]:
        """Return what a row covers."""
        return frozenset(frozenset(part) for part in combinations(row.items(), self.strength))


def covering_rows(table: Table, seed: int) -> list[Row]:
    """Return rows that cover whatever a possible row covers; greedily few, and the same ones for the same seed."""
    rows = table.possible_rows()
    random.Random(seed).shuffle(rows)  # noqa: S311 - no secret
    covered_by = [table.parts(row) for row in rows]
    left = frozenset[Part]().union(*covered_by)
    chosen = []
    while left:
        best = max(range(len(rows)), key=lambda number: len(covered_by[number] & left))
        chosen.append(rows[best])
        left -= covered_by[best]
    return chosen
