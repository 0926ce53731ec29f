"""Comparison of JSON values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.verdicts import MISSING, Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.protocol import Json

OUTCOMES: Final = "outcomes"
"""Field with the possible results of a power cut: only expected ones may occur, but not all must."""


def differences(path: str, expected: Any, holder: Json, name: str) -> Iterator[Difference]:  # noqa: ANN401 - JSON
    """Yield the differences of a field from the expected value; in objects, only expected fields are compared.

    Args:
        path: path of the field, for messages.
        expected: expected value.
        holder: object with the field.
        name: name of the field.
    """
    if name not in holder:
        if expected is not None:
            yield Difference(path, expected, MISSING)
        return
    found = holder[name]
    if name == OUTCOMES and isinstance(found, list):
        yield from (Difference(path, expected, one) for one in found if one not in expected)
    elif isinstance(expected, dict) and isinstance(found, dict) and not _is_digest(expected):
        for key in expected:
            yield from differences(f"{path}.{key}", expected[key], found, key)
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _list_differences(path, expected, found)
    elif not same(expected, found):
        yield Difference(path, expected, found)


def _list_differences(path: str, expected: list[Any], found: list[Any]) -> Iterator[Difference]:
    if len(expected) != len(found):
        yield Difference(f"{path}.length", len(expected), len(found))
    for number, (one, other) in enumerate(zip(expected, found, strict=False)):
        yield from differences(f"{path}[{number}]", one, {"item": other}, "item")


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
