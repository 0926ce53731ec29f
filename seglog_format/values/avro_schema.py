"""Avro schemas: their text, as types that refer to each other."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from seglog_format.values.schemas import SchemaText

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
RECORDS: Final = ("record", "error")
NAMED: Final = (*RECORDS, "enum", "fixed")
LOGICAL_OF: Final = {
    "int": ("date", "time-millis"),
    "long": (
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    ),
    "string": ("uuid",),
    "bytes": ("decimal",),
    "fixed": ("decimal", "uuid"),
}
"""The logical types of each type; any other is ignored."""
MAX_PRECISION: Final = 76
"""Maximum digits of a decimal column; a decimal with more stays bytes."""
UUID_SIZE: Final = 16
MAX_TYPES: Final = 20_000
"""Maximum number of types in a schema."""
NO_DEFAULT: Final = object()


@dataclass(slots=True, eq=False)
class AvroType:
    """A type of a schema.

    Attributes:
        kind: such as ``record`` or ``union``.
        name: with its namespace; empty for types without a name.
        aliases: other names of the type, with their namespaces.
        fields: of a record.
        items: of an array, or the values of a map.
        branches: of a union.
        symbols: of an enum.
        default: symbol of an enum for symbols that it does not have; None for none.
        size: of a fixed type, in bytes.
        logical: the logical type; None for none.
        precision: of a decimal: its digits.
        scale: of a decimal: its digits after the point.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    logical: str | None = None
    precision: int = 0
    scale: int = 0

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


class AvroField(NamedTuple):
    """A field of a record.

    Attributes:
        name: of the field.
        type: of its values.
        default: as JSON; `NO_DEFAULT` for none.
        aliases: other names of the field.
    """

    name: str
    type: AvroType
    default: Any
    aliases: tuple[str, ...]


def avro_type(schema: SchemaText) -> AvroType:
    """Return the type that a schema describes.

    Raises:
        UndecodedError: the text is not an Avro schema.
        Exception: other errors of hostile text, such as RecursionError.
    """
    parser = _Parser()
    for _, text in schema.references:
        parser.parsed(_json(text), "")
    return parser.parsed(_json(schema.text), "")


def _json(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError as error:
        msg = f"not an Avro schema: not JSON: {error}"
        raise UndecodedError(msg) from error


def _refused(what: str) -> UndecodedError:
    return UndecodedError(f"not an Avro schema: {what}")


@dataclass(slots=True)
class _Parser:
    names: dict[str, AvroType] = field(default_factory=dict)
    count: int = 0

    def parsed(self, schema: Any, namespace: str) -> AvroType:  # noqa: ANN401 - any JSON
        self.count += 1
        if self.count > MAX_TYPES:
            msg = f"more than {MAX_TYPES} types"
            raise _refused(msg)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return self._of_name(schema, namespace)
        if not isinstance(schema, dict):
            msg = f"{schema!r:.40} is no type"
            raise _refused(msg)
        kind = schema.get("type")
        if not isinstance(kind, str):
            return self.parsed(kind, namespace)
        if kind in NAMED:
            return self._named(kind, schema, namespace)
        if kind in {"array", "map"}:
            return AvroType(kind, items=self.parsed(schema.get("items" if kind == "array" else "values"), namespace))
        found = self._of_name(kind, namespace)
        return found if found.name else _with_logical(AvroType(kind), schema)

    def _union(self, schema: list[Any], namespace: str) -> AvroType:
        branches = tuple(self.parsed(each, namespace) for each in schema)
        known = [each.name or each.kind for each in branches]
        if len(set(known)) < len(known) or "union" in known:
            msg = "a union has a branch twice, or a union as a branch"
            raise _refused(msg)
        return AvroType("union", branches=branches)

    def _of_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        found = self.names.get(_full_name(name, namespace)) or self.names.get(name)
        if found is None:
            msg = f"there is no type {name[:80]!r}"
            raise _refused(msg)
        return found

    def _named(self, kind: str, schema: dict[str, Any], namespace: str) -> AvroType:
        name = _name_of(schema)
        inside = schema.get("namespace", namespace)
        full = _full_name(name, inside if isinstance(inside, str) else namespace)
        space = full.rpartition(".")[0]
        if full in self.names or name in PRIMITIVES:
            msg = f"there are two types {full[:80]!r}"
            raise _refused(msg)
        aliases = tuple(_full_name(each, space) for each in _texts(schema.get("aliases", [])))
        found = self.names[full] = AvroType(kind, full, aliases)
        if kind == "fixed":
            found.size = _whole_number(schema.get("size"), "size")
            return _with_logical(found, schema)
        if kind == "enum":
            found.symbols = _texts(schema.get("symbols"))
            default = schema.get("default")
            found.default = default if isinstance(default, str) and default in found.symbols else None
        else:
            found.fields = tuple(self._field(each, space) for each in _listed(schema.get("fields")))
            _require_different("fields", [each.name for each in found.fields])
        return found

    def _field(self, schema: Any, namespace: str) -> AvroField:  # noqa: ANN401 - any JSON
        if not isinstance(schema, dict):
            msg = "a field is no object"
            raise _refused(msg)
        kind = self.parsed(schema.get("type"), namespace)
        aliases = _texts(schema.get("aliases", []))
        return AvroField(_name_of(schema), kind, schema.get("default", NO_DEFAULT), aliases)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _name_of(schema: dict[str, Any]) -> str:
    name = schema.get("name")
    if not isinstance(name, str) or not name:
        msg = f"{name!r:.40} is no name"
        raise _refused(msg)
    return name


def _listed(value: object) -> list[Any]:
    if not isinstance(value, list):
        msg = f"expected a list, found {value!r:.40}"
        raise _refused(msg)
    return value


def _texts(value: object) -> tuple[str, ...]:
    found = _listed(value)
    if not all(isinstance(each, str) for each in found):
        msg = f"expected texts, found {value!r:.40}"
        raise _refused(msg)
    _require_different("names", found)
    return tuple(found)


def _require_different(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        msg = f"two {what} are the same"
        raise _refused(msg)


def _whole_number(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        msg = f"{value!r:.40} is no {name}"
        raise _refused(msg)
    return value


def _with_logical(found: AvroType, schema: dict[str, Any]) -> AvroType:
    """Add the logical type of a schema; ignore it where it is not one of the type (Avro's specification)."""
    logical = schema.get("logicalType")
    if logical not in LOGICAL_OF.get(found.kind, ()):
        return found
    if logical == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision <= MAX_PRECISION:
            return found
        if precision < 1 or (found.kind == "fixed" and precision > _digits_of(found.size)):
            return found
        found.precision, found.scale = precision, scale
    if logical == "uuid" and found.kind == "fixed" and found.size != UUID_SIZE:
        return found
    found.logical = logical
    return found


def _digits_of(size: int) -> int:
    """Return how many decimal digits every number of a size in bytes can have; at most `MAX_PRECISION`."""
    return MAX_PRECISION if size > MAX_PRECISION else len(str(2 ** (8 * size - 1) - 1)) - 1 if size else 0
