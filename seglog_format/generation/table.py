"""Read a table of a recipe; every error names the table and the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard

from seglog_format.errors import UsageError
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

Range = tuple[int, int]
"""Smallest and largest value."""

Sizes = tuple[int, ...]
"""Bounds in order, between which a number is drawn."""

MAX_COUNT: Final = 1_000_000
"""Maximum of every count in a recipe: more would not fit in memory."""

PAIR: Final = 2


class Table:
    """A table of a recipe; each method removes a value and returns it.

    Args:
        location: name of the table in errors.
        values: parsed TOML.

    All methods raise `UsageError` for invalid values.
    """

    def __init__(self, location: str, values: object) -> None:
        self.location = location
        if not isinstance(values, dict):
            self._refuse("", "a table", values)
        self._values: dict[str, Any] = dict(values)

    def _refuse(self, name: str, expected: str, found: object) -> NoReturn:
        msg = f"{' '.join(part for part in (self.location, name) if part)} is {expected}, not {found!r}"
        raise UsageError(msg)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str, default: int, least: int = 0, most: int = INT64_MAX) -> int:
        """Take a whole number."""
        value = self._values.pop(name, default)
        if not _is_number(value) or not least <= value <= most:
            self._refuse(name, f"a number from {least} to {most}", value)
        return int(value)

    def range(self, name: str, default: Range, least: int = 0, most: int = MAX_COUNT) -> Range:
        """Take a number, or a pair of smallest and largest."""
        value = self._values.pop(name, default)
        pair = (value, value) if _is_number(value) else value
        if not _is_pair(pair) or not least <= pair[0] <= pair[1] <= most:
            self._refuse(name, f"a number from {least} to {most}, or two in order", value)
        return int(pair[0]), int(pair[1])

    def sizes(self, name: str, default: Sizes, most: int) -> Sizes:
        """Take a number, or two or more in order."""
        value = self._values.pop(name, default)
        bounds = (value, value) if _is_number(value) else value
        if (
            not _is_list_of_numbers(bounds)
            or not 0 <= bounds[0] <= bounds[-1] <= most
            or list(bounds) != sorted(bounds)
        ):
            self._refuse(name, f"a number from 0 to {most}, or two or more in order", value)
        return tuple(map(int, bounds))

    def probability(self, name: str) -> float:
        """Take a number from 0 to 1; 0 if the key is missing."""
        value = self._values.pop(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self._refuse(name, "from 0 to 1", value)
        return float(value)

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """Take one of some words."""
        value = self._values.pop(name, default)
        if value not in choices:
            self._refuse(name, f"one of {', '.join(choices)}", value)
        return str(value)

    def text(self, name: str, default: str) -> str:
        """Take any text."""
        value = self._values.pop(name, default)
        if not isinstance(value, str):
            self._refuse(name, "text", value)
        return value

    def flag(self, name: str) -> bool:
        """Take a boolean; False if the key is missing."""
        value = self._values.pop(name, False)
        if not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts."""
        value = self._values.pop(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(name, "a list of texts", value)
        return tuple(value)

    def settings(self, name: str) -> dict[str, str]:
        """Take a table of names and values of any kind; return the values as text."""
        value = self._values.pop(name, {})
        if not isinstance(value, dict) or any(isinstance(item, dict | list) for item in value.values()):
            self._refuse(name, "a table of names in quotes and values", value)
        return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}

    def table(self, name: str) -> Table:
        """Take a table inside this one; an empty one if the key is missing."""
        return Table(f"{self.location} {name}".strip(), self._values.pop(name, {}))

    def tables(self, name: str) -> list[Table]:
        """Take the tables of a list, counted from 0 in errors."""
        value = self._values.pop(name, [])
        if not isinstance(value, list):
            self._refuse(name, f"a list: write [[{name}]]", value)
        return [Table(f"{self.location} {name}.{number}".strip(), item) for number, item in enumerate(value)]

    def done(self) -> None:
        """Refuse any key that was not taken."""
        for name in self._values:
            msg = f"{self.location or 'a recipe'} has no {name!r}"
            raise UsageError(msg)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: object) -> TypeGuard[Sequence[int]]:
    return _is_list_of_numbers(value) and len(value) == PAIR


def _is_list_of_numbers(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, list | tuple) and len(value) >= PAIR and all(map(_is_number, value))
