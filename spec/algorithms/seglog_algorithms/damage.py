"""Bytes that break a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Damage(Exception):  # noqa: N818 - what the chapters call it
    """Bytes break a rule that a reader or a recovery enforces.

    Attributes:
        rule: id of the rule.
        position: byte of the `.log` file at which the entry starts; -1 if there is none.
        text: what was found.
    """

    def __init__(self, rule: str, position: int = -1, text: str = "") -> None:
        super().__init__(f"{rule}: {text}" if position < 0 else f"{rule} at {position}: {text}")
        self.rule = rule
        self.position = position
        self.text = text


def or_none(read: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result | None:
    """Return what a function returns; None if it finds damage."""
    try:
        return read(*args, **kwargs)
    except Damage:
        return None
