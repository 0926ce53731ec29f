"""Avro values, by fastavro."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import fastavro
import pyarrow as pa
from fastavro import _read_py as plain_reader
from fastavro.validation import validate

from seglog_format.errors import UsageError
from seglog_format.values.shape import JSON_TEXT, Shape, list_of, map_of, struct_of
from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from seglog_format.values.schemas import SchemaText

PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
MAX_DECIMAL128: Final = 38

Names = dict[str, Any]


class AvroDecoder:
    """Decodes Avro values by a reader's schema.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText) -> None:
        """Prepare for a reader's schema.

        Raises:
            UsageError: the text is not an Avro schema.
        """
        try:
            self._reader, self._names = _parsed(reader)
        except UndecodedError as error:
            msg = f"the reader's schema: {error}"
            raise UsageError(msg) from error
        self.shape = _shape(self._reader, self._names, ())
        self._writers: dict[SchemaText, tuple[Any, bool]] = {}

    def decode(self, data: bytes, writer: SchemaText) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the value does not match the schemas.
        """
        schema, is_recursive = self._writer(writer)
        stream = io.BytesIO(data)
        # compiled code would recurse as deeply as hostile bytes ask for; Python's own code stops at its recursion limit
        read = plain_reader.schemaless_reader if is_recursive else fastavro.schemaless_reader
        try:
            value = read(stream, schema, self._reader)
        except Exception as error:  # the library raises errors of any class
            msg = f"not a value of its Avro schema: {type(error).__name__} {error}".rstrip()
            raise UndecodedError(msg) from error
        if stream.tell() != len(data):
            msg = f"{len(data) - stream.tell()} bytes after the Avro value"
            raise UndecodedError(msg)
        return self.shape.of(value)

    def _writer(self, writer: SchemaText) -> tuple[Any, bool]:
        if writer not in self._writers:
            schema, names = _parsed(writer)
            _refuse_empty_items(schema, names, ())
            self._writers[writer] = schema, _is_recursive(schema, names, ())
        return self._writers[writer]


def _parsed(schema: SchemaText) -> tuple[Any, Names]:
    names: Names = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), names)
        return fastavro.parse_schema(json.loads(schema.text), names), names
    except Exception as error:  # as above
        msg = f"not an Avro schema: {type(error).__name__} {error}".rstrip()
        raise UndecodedError(msg) from error


def _kind(schema: Any) -> Any:  # noqa: ANN401 - parsed JSON
    return schema["type"] if isinstance(schema, dict) else schema


def _resolved(schema: Any, names: Names) -> Any:  # noqa: ANN401 - as above
    """Return the schema that a name refers to."""
    kind = _kind(schema)
    return names[kind] if isinstance(kind, str) and kind in names else schema


def _shape(schema: Any, names: Names, above: tuple[str, ...]) -> Shape:  # noqa: ANN401 - as above
    schema = _resolved(schema, names)
    if isinstance(schema, list):
        return _union(schema, names, above)
    kind = _kind(schema)
    if kind in {"record", "error"}:
        if schema["name"] in above:
            raise _RecursiveError
        inside = (*above, schema["name"])
        try:
            return struct_of({each["name"]: _shape(each["type"], names, inside) for each in schema["fields"]})
        except _RecursiveError:
            return JSON_TEXT
    if kind == "array":
        return list_of(_shape(schema["items"], names, above))
    if kind == "map":
        return map_of(_shape(schema["values"], names, above))
    return _leaf(schema, kind)


class _RecursiveError(Exception):
    pass


def _leaf(schema: Any, kind: str) -> Shape:  # noqa: ANN401 - as above
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical in LOGICAL:
        return Shape(LOGICAL[logical])
    if logical == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        make = pa.decimal128 if precision <= MAX_DECIMAL128 else pa.decimal256
        return Shape(make(precision, scale))
    if logical == "uuid":
        return Shape(pa.string(), str)
    if kind == "enum":
        return Shape(pa.string())
    if kind == "fixed":
        return Shape(pa.binary(schema["size"]))
    return Shape(PRIMITIVES[kind])


def _union(branches: list[Any], names: Names, above: tuple[str, ...]) -> Shape:
    """Return the shape of a union: that of its only branch besides null, or a struct with a member for each branch."""
    rest = [each for each in branches if each != "null"]
    if len(rest) == 1:
        return _shape(rest[0], names, above)
    shapes = [_shape(each, names, above) for each in rest]
    kind = pa.struct([pa.field(f"member{number}", shape.type) for number, shape in enumerate(shapes)])
    return Shape(kind, partial(_member, rest, shapes, names))


def _member(branches: list[Any], shapes: list[Shape], names: Names, value: Any) -> dict[str, Any]:  # noqa: ANN401
    for number, (branch, shape) in enumerate(zip(branches, shapes, strict=True)):
        if validate(value, _resolved(branch, names), raise_errors=False):
            return {f"member{number}": shape.of(value)}
    msg = f"no branch of the union accepts {type(value).__name__}"
    raise UndecodedError(msg)


def _inside(schema: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the schemas directly inside of one."""
    if isinstance(schema, list):
        return schema
    kind = _kind(schema)
    if kind in {"record", "error"}:
        return [each["type"] for each in schema["fields"]]
    inside = {"array": "items", "map": "values"}.get(kind)
    return [] if inside is None else [schema[inside]]


def _is_recursive(schema: Any, names: Names, above: tuple[str, ...]) -> bool:  # noqa: ANN401 - as above
    schema = _resolved(schema, names)
    name = schema.get("name") if isinstance(schema, dict) else None
    if name is not None and name in above:
        return True
    deeper = above if name is None else (*above, name)
    return any(_is_recursive(each, names, deeper) for each in _inside(schema))


def _refuse_empty_items(schema: Any, names: Names, above: tuple[str, ...]) -> None:  # noqa: ANN401 - as above
    """Refuse arrays whose items take no bytes: a count of a few bytes could create any number of objects.

    Raises:
        UndecodedError: the schema has such an array.
    """
    schema = _resolved(schema, names)
    name = schema.get("name") if isinstance(schema, dict) else None
    if name is not None and name in above:
        return
    if _kind(schema) == "array" and _is_empty(schema["items"], names, ()):
        msg = "the schema has an array whose items take no bytes"
        raise UndecodedError(msg)
    for each in _inside(schema):
        _refuse_empty_items(each, names, above if name is None else (*above, name))


def _is_empty(schema: Any, names: Names, above: tuple[str, ...]) -> bool:  # noqa: ANN401 - as above
    schema = _resolved(schema, names)
    kind = _kind(schema)
    if isinstance(schema, list):
        return False  # the number of the branch takes at least one byte
    if kind == "fixed":
        return bool(schema["size"] == 0)
    if kind not in {"record", "error"}:
        return bool(kind == "null")
    if schema["name"] in above:
        return True
    return all(_is_empty(each["type"], names, (*above, schema["name"])) for each in schema["fields"])
