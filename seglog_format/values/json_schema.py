"""JSON values that a JSON Schema describes, by jsonschema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft7Validator, validator_for
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from seglog_format.errors import UsageError
from seglog_format.values.shape import JSON_TEXT, Shape, list_of, struct_of
from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from referencing import Resolver

    from seglog_format.values.schemas import SchemaText

MAX_TEXT: Final = 80
"""Maximum characters of a reason that a library gives."""


class JsonSchemaDecoder:
    """Decodes JSON values by a reader's schema, after a check against the writer's.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText) -> None:
        """Prepare for a reader's schema.

        Raises:
            UsageError: the text is not a JSON Schema.
        """
        try:
            schema, registry = _parsed(reader)
            self.shape = _shape(schema, registry.resolver(), 0)
        except Exception as error:
            msg = f"the reader's schema: {_short(error)}"
            raise UsageError(msg) from error
        self._writers: dict[SchemaText, Any] = {}

    def decode(self, data: bytes, writer: SchemaText) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the value does not match the schemas.
        """
        value = parsed_json(data)
        try:
            self._writer(writer).validate(value)
        except UndecodedError:
            raise
        except ValidationError as error:
            msg = f"not what its JSON Schema says: {error.json_path}: {_short(error.message)}"
            raise UndecodedError(msg) from error
        except Exception as error:  # references without a target, and circles of references
            msg = f"not checked by its JSON Schema: {_short(error)}"
            raise UndecodedError(msg) from error
        return self.shape.of(value)

    def _writer(self, writer: SchemaText) -> Any:  # noqa: ANN401 - a class of the library for each draft
        if writer not in self._writers:
            try:
                schema, registry = _parsed(writer)
                kind = validator_for(schema, default=Draft7Validator)
                kind.check_schema(schema)
            except (ValueError, SchemaError, RecursionError) as error:
                msg = f"not a JSON Schema: {_short(error)}"
                raise UndecodedError(msg) from error
            self._writers[writer] = kind(schema, registry=registry)
        return self._writers[writer]


def parsed_json(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Parse bytes as JSON.

    Raises:
        UndecodedError: they are not JSON.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {_short(error)}"
        raise UndecodedError(msg) from error


def _short(error: object) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def _parsed(schema: SchemaText) -> tuple[Any, Registry[Any]]:
    """Return a schema, and the registry that resolves its references without fetching any."""
    registry: Registry[Any] = Registry()
    for name, text in schema.references:
        registry = registry.with_resource(name, Resource.from_contents(json.loads(text), DRAFT7))
    main = json.loads(schema.text)
    return main, registry.with_resource("", Resource.from_contents(main, DRAFT7))


MAX_DEPTH: Final = 32
"""Maximum depth of nested types; deeper types, and types that contain themselves, are JSON as text."""


def _shape(schema: Any, resolver: Resolver[Any], depth: int) -> Shape:  # noqa: ANN401 - parsed JSON
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return JSON_TEXT
    if "$ref" in schema:
        found = resolver.lookup(schema["$ref"])
        if _reaches_itself(found.contents, found.resolver, schema["$ref"], 0):
            return JSON_TEXT
        return _shape(found.contents, found.resolver, depth + 1)
    alternatives = schema.get("oneOf", schema.get("anyOf"))
    if alternatives is not None:
        rest = [each for each in alternatives if each != {"type": "null"}]
        return _shape(rest[0], resolver, depth + 1) if len(rest) == 1 else JSON_TEXT
    return _typed(schema, resolver, depth)


def _typed(schema: dict[str, Any], resolver: Resolver[Any], depth: int) -> Shape:
    kind = schema.get("type")
    kinds = [each for each in (kind if isinstance(kind, list) else [kind]) if each != "null"]
    if len(kinds) != 1:
        return JSON_TEXT
    if kinds[0] == "object" and schema.get("properties"):
        properties = schema["properties"].items()
        return _object_of({name: _shape(each, resolver, depth + 1) for name, each in properties})
    if kinds[0] == "array" and isinstance(schema.get("items"), dict):
        return _checked(list_of(_shape(schema["items"], resolver, depth + 1)), list)
    return SCALARS.get(kinds[0] or "", JSON_TEXT)


def _reaches_itself(schema: Any, resolver: Resolver[Any], target: str, depth: int) -> bool:  # noqa: ANN401 - as above
    """Return whether a schema refers to a target, directly or through others."""
    if depth > MAX_DEPTH:
        return True
    if isinstance(schema, list):
        return any(_reaches_itself(each, resolver, target, depth + 1) for each in schema)
    if not isinstance(schema, dict):
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference == target:
            return True
        found = resolver.lookup(reference)
        if _reaches_itself(found.contents, found.resolver, target, depth + 1):
            return True
    inside = [each for name, each in schema.items() if name not in {"definitions", "$defs", "enum", "default", "const"}]
    return any(_reaches_itself(each, resolver, target, depth + 1) for each in inside)


def _object_of(fields: dict[str, Shape]) -> Shape:
    return _checked(struct_of(fields), dict)


def _checked(shape: Shape, *kinds: type) -> Shape:
    def change(value: Any) -> Any:  # noqa: ANN401 - decoded objects
        if type(value) not in kinds:
            msg = f"the reader's schema expects {kinds[0].__name__}, found {type(value).__name__}"
            raise UndecodedError(msg)
        return shape.of(value)

    return Shape(shape.type, change)


def _integer(value: float) -> int:
    if value != int(value):
        msg = f"the reader's schema expects an integer, found {value}"
        raise UndecodedError(msg)
    return int(value)


SCALARS: Final = {
    "integer": _checked(Shape(pa.int64(), _integer), int, float),
    "number": _checked(Shape(pa.float64(), float), float, int),
    "string": _checked(Shape(pa.string()), str),
    "boolean": _checked(Shape(pa.bool_()), bool),
}
