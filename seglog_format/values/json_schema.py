"""JSON values that a JSON Schema describes, by jsonschema, in bounded time."""

from __future__ import annotations

import json
import time
from functools import lru_cache, partial
from math import isinf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft7Validator, extend, validator_for
from referencing import Registry
from referencing.jsonschema import DRAFT7, specification_with

from seglog_format.values.schemas import TYPED, UndecodedError
from seglog_format.values.shape import JSON_TEXT, JSON_TIMES, MAX_DEPTH, PLAIN_TEXT, Shape, Visits, list_of, struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from referencing import Resolver

    from seglog_format.values.schemas import SchemaText


# -- checks of JSON values against a JSON Schema, by jsonschema, in bounded time ---------------------------------------


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


# -- JSON values that a JSON Schema describes, by jsonschema -----------------------------------------------------------


class JsonSchemaDecoder:
    """Decodes JSON values by a reader's schema, after a check against the writer's.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText, times: str = TYPED) -> None:
        """Prepare for a reader's schema.

        Args:
            reader: the schema.
            times: one of `TIMES_AS`.

        Raises:
            Exception: of any class, for text that is not a JSON Schema.
        """
        parsed = _parsed(reader)
        self.shape = _Shapes(times).shape(parsed.schema, parsed.registry.resolver(), 0)

    def prepared(self, writer: SchemaText, *, is_plain: bool) -> Callable[[bytes], Any]:  # noqa: ARG002 - of all kinds
        """Return the function that decodes values of a writer's schema to objects in the form that Arrow accepts.

        Raises:
            Exception: as above.
        """
        check = checker(*_parsed(writer))

        def decode(data: bytes) -> Any:  # noqa: ANN401 - decoded objects
            value = parsed_json(data)
            check(value, len(data))
            return self.shape.of(value)

        return decode


def parsed_json(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON
    """Parse bytes as JSON.

    Raises:
        UndecodedError: they are not JSON.
    """
    try:
        return json.loads(data, parse_float=_finite, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise UndecodedError(msg) from error


def _finite(text: str) -> float:
    found = float(text)
    if isinf(found):
        msg = f"{text[:MAX_NUMBER]} is too large for a number of 64 bits"
        raise ValueError(msg)
    return found


def _no_number(text: str) -> None:
    msg = f"{text} is no number"  # Python's own reader takes NaN and Infinity
    raise ValueError(msg)


MAX_NUMBER: Final = 40
"""Maximum characters of a number in a message."""


class _Parsed(NamedTuple):
    schema: Any
    dialect: str
    registry: Registry[Any]


def _parsed(schema: SchemaText) -> _Parsed:
    """Return a schema, and the registry that resolves its references without fetching any."""
    registry: Registry[Any] = Registry()
    for name, text in schema.references:
        other, dialect = _contents(text)
        registry = registry.with_resource(name, specification_with(dialect, default=DRAFT7).create_resource(other))
    main, dialect = _contents(schema.text)
    resource = specification_with(dialect, default=DRAFT7).create_resource(main)
    return _Parsed(main, dialect, registry.with_resource("", resource))


def _contents(text: str) -> tuple[Any, str]:
    """Return a schema without the dialects of its parts, and its own dialect."""
    found = parsed_json(text)
    dialect = found.get(DIALECT) if isinstance(found, dict) else None
    left = [found]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if isinstance(each.get(DIALECT), str):
                del each[DIALECT]
            left += each.values()
        elif isinstance(each, list):
            left += each
    return found, dialect if isinstance(dialect, str) else ""


DIALECT: Final = "$schema"
MAX_REFERRED: Final = 1_000_000
"""Maximum number of parts of a schema that are visited to find references of types to themselves."""
OPAQUE: Final = frozenset({"definitions", "$defs", "enum", "default", "const"})
"""Parts of a schema that are no part of its type."""


class _Shapes:
    """Makes shapes of schemas. Types that contain themselves, or are nested too deeply, are JSON as text."""

    def __init__(self, times: str) -> None:
        self._times = JSON_TIMES if times == TYPED else {}
        self._visits = Visits()
        self._referred = Visits(MAX_REFERRED)
        self._recursive: dict[int, bool] = {}

    def shape(self, schema: Any, resolver: Resolver[Any], depth: int) -> Shape:  # noqa: ANN401 - parsed JSON
        """Return the shape of a schema at a depth of nested types.

        Raises:
            Exception: of any class: a reference leads nowhere, or the schema is none.
        """
        self._visits.add()
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return JSON_TEXT
        if "$ref" in schema:
            found = resolver.lookup(schema["$ref"])
            if self._is_recursive(found.contents, found.resolver):
                return JSON_TEXT
            return self.shape(found.contents, found.resolver, depth + 1)
        alternatives = schema.get("oneOf", schema.get("anyOf"))
        if alternatives is not None:
            rest = [each for each in alternatives if each != {"type": "null"}]
            return _choice([self.shape(each, resolver, depth + 1) for each in rest])
        return self._typed(schema, resolver, depth)

    def _typed(self, schema: dict[str, Any], resolver: Resolver[Any], depth: int) -> Shape:
        kinds = _kinds(schema)
        if kinds == ["object"] and schema.get("properties"):
            properties = schema["properties"].items()
            return _checked(struct_of({name: self.shape(each, resolver, depth + 1) for name, each in properties}), dict)
        if kinds == ["array"] and isinstance(schema.get("items"), dict):
            return _checked(list_of(self.shape(schema["items"], resolver, depth + 1)), list)
        text = SCALARS["string"]
        if isinstance(schema.get("format"), str):
            text = self._times.get(schema["format"], text)
        return _choice([text if kind == "string" else SCALARS.get(kind, JSON_TEXT) for kind in kinds])

    def _is_recursive(self, schema: Any, resolver: Resolver[Any]) -> bool:  # noqa: ANN401 - as above
        """Return whether a type contains itself, directly or through others."""
        if id(schema) not in self._recursive:
            self._recursive[id(schema)] = self._reaches(schema, resolver)
        return self._recursive[id(schema)]

    def _reaches(self, target: Any, resolver: Resolver[Any]) -> bool:  # noqa: ANN401 - as above
        left = [(target, resolver)]
        visited: set[int] = set()
        while left:
            schema, at = left.pop()
            self._referred.add()
            if isinstance(schema, list):
                left += [(each, at) for each in schema]
            if not isinstance(schema, dict):
                continue
            if isinstance(schema.get("$ref"), str):
                found = at.lookup(schema["$ref"])
                if found.contents is target:
                    return True
                if id(found.contents) not in visited:
                    visited.add(id(found.contents))
                    left.append((found.contents, found.resolver))
            left += [(each, at) for name, each in schema.items() if name not in OPAQUE]
        return False


def _kinds(schema: dict[str, Any]) -> list[str]:
    """Return the types of a schema's values besides null: those that it names, or else of the values that it lists."""
    named = schema.get("type")
    if named is None and "enum" in schema:
        named = sorted({_kind_of(each) for each in schema["enum"]})
    elif named is None and "const" in schema:
        named = _kind_of(schema["const"])
    kinds = [each for each in (named if isinstance(named, list) else [named or "any"]) if each != "null"]
    return [each for each in kinds if each != "integer" or "number" not in kinds]


def _kind_of(value: Any) -> str:  # noqa: ANN401 - any JSON
    return JSON_KINDS.get(type(value), "any")


JSON_KINDS: Final = {type(None): "null", str: "string", bool: "boolean", int: "integer", float: "number"}


def _choice(shapes: list[Shape]) -> Shape:
    """Return the shape of a choice: that which all alternatives have; else plain text if no alternative has parts."""
    if shapes and all(shape is shapes[0] for shape in shapes):
        return shapes[0]
    scalars = {id(shape) for shape in (*SCALARS.values(), *JSON_TIMES.values(), PLAIN_TEXT)}
    return PLAIN_TEXT if shapes and all(id(shape) in scalars for shape in shapes) else JSON_TEXT


def _checked(shape: Shape, *kinds: type) -> Shape:
    def change(value: Any) -> Any:  # noqa: ANN401 - decoded objects
        if type(value) not in kinds:
            msg = f"the reader's schema expects {kinds[0].__name__}, found {type(value).__name__}"
            raise UndecodedError(msg)
        return shape.of(value)

    return shape._replace(change=change)


def _integer(value: float) -> int:
    if value != int(value) or int(value) not in INT64:
        msg = f"the reader's schema expects an integer of 64 bits, found {str(value)[:MAX_NUMBER]}"
        raise UndecodedError(msg)
    return int(value)


def _number(value: float) -> float:
    if isinstance(value, int) and value not in EXACT and (value not in DOUBLES or int(float(value)) != value):
        msg = f"the reader's schema expects a number of 64 bits, found {str(value)[:MAX_NUMBER]}"
        raise UndecodedError(msg)
    return float(value)


INT64: Final = range(-(2**63), 2**63)
EXACT: Final = range(-(2**53), 2**53 + 1)
"""Integers that a number of 64 bits holds, each of them; beyond, it holds some."""
DOUBLES: Final = range(-(2**1023), 2**1023)
"""Integers that do not overflow such a number."""


SCALARS: Final = {
    "integer": _checked(Shape(pa.int64(), _integer), int, float),
    "number": _checked(Shape(pa.float64(), _number), float, int),
    "string": _checked(Shape(pa.string()), str),
    "boolean": _checked(Shape(pa.bool_()), bool),
}
