"""The budgets of size, and the walks that count modules."""

from __future__ import annotations

import ast

import pytest

from tools import budget, walks

TEXT = '''"""What it is for."""

import sys

# A comment.
SWAP = ".swap"


def kind(name: str) -> str:
    """Return it."""
    if name.endswith(SWAP):
        return "swap"
    return sys.platform
'''


def test_a_line_of_code_is_none_of_the_others() -> None:
    assert budget.code_lines(TEXT, ast.parse(TEXT)) == 5


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        (TEXT, True),
        ('SWAP = ".swap"', False),
        ("def to_swap(name):\n    return name", False),
        ("kinds = [name for name in names if name != SWAP]", True),
        ("match kind:\n    case Kind.SWAP: pass", True),
        ("KINDS = {Kind.SWAP: 1}", True),
        ('"""In a docstring: if swap."""', False),
    ],
)
def test_a_condition_decides_and_a_mention_does_not(text: str, *, decides: bool) -> None:
    assert budget.decides_on(ast.parse(text), "swap") is decides


def test_a_number_above_its_limit_or_below_it_is_told() -> None:
    rows = {name: {"limit": 10, "goal": 1} for name in ("above", "same", "below", "gone")}
    assert sorted(budget.complaints({"above": 11, "same": 10, "below": 9, "new": 1}, rows)) == [
        "above: 11 is above the limit of 10",
        "below: the limit of 10 can fall to 9 (python -m tools.budget --write)",
        "gone: in the list of numbers or in tools/budget.toml, not in both",
        "new: in the list of numbers or in tools/budget.toml, not in both",
    ]


def test_limits_are_written_as_they_are_read() -> None:
    rows = budget.tomllib.loads(budget.LIMITS.read_text(encoding="utf-8"))
    assert budget.written(rows) == budget.LIMITS.read_text(encoding="utf-8")
    assert rows.keys() == budget.NUMBERS.keys()


def test_a_walk_holds_what_the_road_calls() -> None:
    read = walks.walk("first record")
    assert "seglog_format.log.partition" in read
    assert "seglog_format.recovery.apply" not in read
    assert "seglog_format.recovery.apply" in walks.walk("recover and apply")
