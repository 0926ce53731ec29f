"""Comparison of JSON values."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import MISSING, Difference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from seglog_conformance.protocol import Json

OUTCOMES: Final = "outcomes"
"""Field with the possible results of a power cut: only expected ones may occur, but not all must."""
TRANSACTION_INDEX: Final = ".txnindex"
HEADERS: Final = ".headers"
REFUSAL_CLASS: Final = ".reject.class"
"""End of the path of a refusal's class, which only informs: two implementations may name one reason in two ways."""


def differences(
    expected: Json, found: Json, *, also: Json | None = None, untold: Collection[str] = ()
) -> Iterator[Difference]:
    """Yield the differences of an object from the expected one, which is compared whole.

    A name that is not expected is a difference as well. Null and absent are alike, and so are an
    empty transaction index, which holds no transaction, and an empty list of headers. All other empty values differ
    from absent ones. The class of a step's refusal is not compared.

    Args:
        expected: what has to be there.
        found: what is there.
        also: what may be there; if it is, it has to be this.
        untold: patterns of the paths where anything may be, or nothing; ``*`` matches any text.
    """
    return _Walk(untold).members("", expected, also or {}, found)


def extras(found: Json, expected: Collection[str], untold: Collection[str], path: str = "") -> Iterator[Difference]:
    """Yield the members of an object that are neither expected nor untold, by the same rules."""
    unexpected = {name: value for name, value in found.items() if name not in expected}
    return _Walk(untold).members(path, {}, {}, unexpected)


@cache
def _pattern(untold: Collection[str]) -> re.Pattern[str]:
    parts = (".*".join(re.escape(text) for text in pattern.split("*")) for pattern in untold)
    return re.compile("|".join(parts) or r"(?!)")


class _Walk:
    """A walk through an expected object, and the object that was found."""

    def __init__(self, untold: Collection[str]) -> None:
        self._patterns = tuple(untold)
        self._untold = _pattern(self._patterns)

    def members(self, path: str, expected: Json, also: Json, found: Json) -> Iterator[Difference]:
        """Yield the differences of all members of an object."""
        for name in dict.fromkeys((*expected, *found)):
            one, may, other = (holder.get(name, MISSING) for holder in (expected, also, found))
            yield from self._value(f"{path}.{name}" if path else name, one, may, other)

    def _value(self, path: str, expected: Any, also: Any, found: Any) -> Iterator[Difference]:  # noqa: ANN401 - JSON
        wanted = also if expected is MISSING else expected
        is_nothing = _is_nothing(path, found) and (expected is MISSING or _is_nothing(path, expected))
        if is_nothing or (path.endswith(REFUSAL_CLASS) and expected is not MISSING):
            return
        if wanted is MISSING:
            yield from self._unexpected(path, found)
        elif path.rpartition(".")[2] == OUTCOMES and isinstance(found, list):
            yield from (Difference(path, wanted, one) for one in found if one not in wanted)
        elif _is_object(wanted) and _is_object(found):
            required, more = ({}, also) if expected is MISSING else (expected, also if _is_object(also) else {})
            yield from self.members(path, required, more, found)
        elif isinstance(wanted, list) and isinstance(found, list):
            yield from self._items(path, expected, also, found)
        elif not same(wanted, found):
            yield Difference(path, wanted, found)

    def _unexpected(self, path: str, found: Any) -> Iterator[Difference]:  # noqa: ANN401 - JSON
        """Yield what is not untold: all of the value, or members of an object of which some are."""
        if self._untold.fullmatch(path):
            return
        if found and _is_object(found) and any(pattern.startswith(f"{path}.") for pattern in self._patterns):
            yield from self.members(path, {}, {}, found)
        else:
            yield Difference(path, MISSING, found)

    def _items(self, path: str, expected: Any, also: Any, found: list[Any]) -> Iterator[Difference]:  # noqa: ANN401
        count = len(also if expected is MISSING else expected)
        if count != len(found):
            yield Difference(f"{path}.length", count, len(found))
        for number in range(min(count, len(found))):
            parts = ((holder[number : number + 1] if isinstance(holder, list) else []) for holder in (expected, also))
            one, may = (part[0] if part else MISSING for part in parts)
            yield from self._value(f"{path}[{number}]", one, may, found[number])


def _is_nothing(path: str, value: object) -> bool:
    is_empty = (value == "" and path.endswith(TRANSACTION_INDEX)) or (value == [] and path.endswith(HEADERS))
    return value is None or value is MISSING or is_empty


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and not _is_digest(value)


def _is_digest(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"bytes", "sha256"}


def same(expected: object, found: object) -> bool:
    """Return whether two JSON values are equal, with numbers as text or not, bytes as hex or as a digest."""
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None or found is None:
        return expected is found
    if _is_digest(expected) or _is_digest(found):
        return _digest(expected) == _digest(found)
    if isinstance(expected, str | int) and isinstance(found, str | int):
        return str(expected) == str(found)
    return expected == found


def _digest(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        data = bytes.fromhex(value)
    except ValueError:
        return None
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
