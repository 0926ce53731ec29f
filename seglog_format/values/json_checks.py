"""Checks of JSON values against a JSON Schema, by jsonschema, in bounded time.

A schema may be hostile. So each keyword counts its work, patterns are matched in linear time, and items are compared by
a set.
"""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft7Validator, extend, validator_for

from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from referencing import Registry

BASE_WORK: Final = 200_000
WORK_PER_BYTE: Final = 50
"""Steps that the check of a value may take: some, and more for each of its bytes."""
SECONDS: Final = 10
"""Maximum duration of the check of a value."""
MAX_STRIKES: Final = 3
"""Number of values whose check may take too long; after that, no more values of the schema are checked."""
MAX_MESSAGE: Final = 80

Json: TypeAlias = Any
"""Parsed JSON, or a validator of the library, which has no public class."""
Keyword: TypeAlias = "Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]"
"""A check: of a validator, the keyword's value, the checked value and the schema; errors of the library."""


class _TooLongError(UndecodedError):
    pass


class _Budget:
    def __init__(self) -> None:
        self.left = 0
        self.end = 0.0

    def begin(self, size: int) -> None:
        self.left = BASE_WORK + WORK_PER_BYTE * size
        self.end = time.monotonic() + SECONDS

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0 or time.monotonic() > self.end:
            msg = "its JSON Schema takes too long to check"
            raise _TooLongError(msg)


def checker(schema: Json, dialect: str, registry: Registry[Any]) -> Callable[[Json, int], None]:
    """Return the function that checks a value of a size in bytes by a schema; it raises `UndecodedError`.

    Args:
        schema: the schema; no part of it has a dialect of its own, which would be checked without a count.
        dialect: its ``$schema``; empty for none.
        registry: resolves its references.
    """
    budget = _Budget()
    kind = validator_for({"$schema": dialect}, default=Draft7Validator)
    keywords: Mapping[str, Keyword] = {**kind.VALIDATORS, **BOUNDED}
    if "unevaluatedProperties" in keywords:
        keywords = {**keywords, "unevaluatedProperties": _unevaluated_properties}
    counting = extend(kind, {name: partial(_counted, keyword, budget) for name, keyword in keywords.items()})
    validator = counting(schema, registry=registry)
    strikes = 0

    def check(value: Json, size: int) -> None:
        nonlocal strikes
        if strikes >= MAX_STRIKES:
            msg = f"its JSON Schema took too long to check {strikes} values"
            raise UndecodedError(msg)
        budget.begin(size)
        try:
            found = next(validator.iter_errors(value), None)
        except _TooLongError:
            strikes += 1
            raise
        except Exception as error:  # references without a target, and circles of references
            msg = f"not checked by its JSON Schema: {type(error).__name__} {_short(error)}"
            raise UndecodedError(msg) from error
        if found is not None:
            msg = f"not what its JSON Schema says: {found.json_path}: {_short(found.message)}"
            raise UndecodedError(msg)

    return check


def _counted(
    keyword: Keyword, budget: _Budget, validator: Json, value: Json, instance: Json, schema: Json
) -> Iterator[ValidationError]:
    budget.spend(1 + _size_of(value) + _size_of(instance))
    yield from keyword(validator, value, instance, schema) or ()


def _size_of(value: Json) -> int:
    return len(value) if isinstance(value, (list, dict, str)) else 0


@lru_cache(maxsize=4096)
def _matches(pattern: str, text: str) -> bool:
    """Return whether a text contains a pattern, in linear time; true for patterns that need more, such as lookahead."""
    try:
        found = pc.match_substring_regex(pa.scalar(text, pa.string()), pattern).as_py()
    except pa.ArrowInvalid:
        return True
    return bool(found)


def _pattern(_validator: Json, pattern: str, instance: Json, _schema: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Json, patterns: dict[str, Any], instance: Json, _schema: Json
) -> Iterator[ValidationError]:
    for pattern, schema in patterns.items():
        for name, value in instance.items() if isinstance(instance, dict) else ():
            if _matches(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Json, allowed: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items() if isinstance(instance, dict) else ():
        if name not in known and not any(_matches(each, name) for each in patterns):
            if allowed is False:
                yield ValidationError(f"there is a property {name!r}, which the schema does not have")
            yield from validator.descend(value, allowed, path=name)


def _unique_items(_validator: Json, is_wanted: Json, instance: Json, _schema: Json) -> Iterator[ValidationError]:
    if is_wanted and isinstance(instance, list) and len({_hashable(each) for each in instance}) < len(instance):
        yield ValidationError("an item occurs twice")


def _hashable(value: Json) -> Json:
    """Return a value that equals another exactly where the JSON values are equal."""
    if isinstance(value, dict):
        return "object", frozenset((name, _hashable(each)) for name, each in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_hashable, value))
    return ("boolean", value) if isinstance(value, bool) else value


def _unevaluated_properties(_validator: Json, _wanted: Json, _instance: Json, _schema: Json) -> None:
    """Check nothing: the library matches patterns for this keyword by itself."""


BOUNDED: Final[Mapping[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
"""Keywords that the library checks in more than linear time."""


def _short(error: object) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."
