"""Avro schemas: types that refer to each other, the bytes of types without parts, and logical types."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from seglog_format.values.schemas import UndecodedError

if TYPE_CHECKING:
    from seglog_format.values.schemas import SchemaText


# -- the bytes of Avro values: numbers, texts and other types without parts --------------------------------------------


MAX_SHIFT: Final = 63
INT64: Final = range(-(2**63), 2**63)
INT32: Final = range(-(2**31), 2**31)
FLOAT: Final = struct.Struct("<f")
DOUBLE: Final = struct.Struct("<d")


class Input:
    """The bytes of a value, and the position of the next one to read."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0


Read = Callable[[Input], Any]


def read_whole(read: Read, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
    """Read a value that takes all bytes.

    Raises:
        UndecodedError: it takes fewer, or there are too few.
    """
    source = Input(data)
    try:
        value = read(source)
    except IndexError as error:
        msg = "not a value of its Avro schema: its bytes end early"
        raise UndecodedError(msg) from error
    except UndecodedError as error:
        msg = f"not a value of its Avro schema: {error}"
        raise UndecodedError(msg) from error
    if source.position != len(data):
        msg = f"{len(data) - source.position} bytes after the Avro value"
        raise UndecodedError(msg)
    return value


def read_long(source: Input) -> int:
    """Read a number of at most 64 bits."""
    data, position = source.data, source.position
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more bytes follow
            break
        shift += 7
        if shift > MAX_SHIFT:
            msg = "a number takes more than ten bytes"
            raise UndecodedError(msg)
    source.position = position
    value = (value >> 1) ^ -(value & 1)
    return value if value in INT64 else _refuse_number(value)


def read_int(source: Input) -> int:
    """Read a number of at most 32 bits."""
    value = read_long(source)
    return value if value in INT32 else _refuse_number(value)


def _refuse_number(value: int) -> int:
    msg = f"the number {value} is out of range"
    raise UndecodedError(msg)


def taken(source: Input, size: int) -> bytes:
    """Read a number of bytes.

    Raises:
        UndecodedError: there are fewer.
    """
    position = source.position
    end = position + size
    if size < 0 or end > len(source.data):
        msg = f"its bytes end early: {size} wanted, {len(source.data) - position} left"
        raise UndecodedError(msg)
    source.position = end
    return source.data[position:end]


def read_bytes(source: Input) -> bytes:
    """Read bytes."""
    return taken(source, read_long(source))


def read_string(source: Input) -> str:
    """Read a text."""
    return read_bytes(source).decode()


def _boolean(source: Input) -> bool:
    (byte,) = taken(source, 1)
    if byte > 1:
        msg = f"the byte {byte} is neither true nor false"
        raise UndecodedError(msg)
    return byte == 1


def _float(source: Input) -> float:
    found: float = FLOAT.unpack(taken(source, FLOAT.size))[0]
    return found


def _double(source: Input) -> float:
    found: float = DOUBLE.unpack(taken(source, DOUBLE.size))[0]
    return found


def read_null(_source: Input) -> None:
    """Read null."""
    return


READS: Final[dict[str, Read]] = {
    "null": read_null,
    "boolean": _boolean,
    "int": read_int,
    "long": read_long,
    "float": _float,
    "double": _double,
    "bytes": read_bytes,
    "string": read_string,
}


def block_count(source: Input) -> int:
    """Return the number of items in the next block of an array or map; 0 at its end."""
    count = read_long(source)
    if count < 0:
        read_long(source)  # the size of the block in bytes
    return abs(count)


# -- Avro's logical types: numbers, bytes and texts as dates, times, decimals and UUIDs --------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A type of the reader's schema as a column, or as a part of one.

    Attributes:
        type: Arrow's.
        inside: the columns of fields, items or members.
        width: as of `Shape`.
        is_text: whether values are JSON as text.
    """

    type: pa.DataType
    inside: tuple[Column, ...] = ()
    width: int = 1
    is_text: bool = False


TEXT: Final = Column(pa.string(), is_text=True)

MICRO: Final = 1_000
MILLI: Final = 1_000_000
DAY_MICROS: Final = 86_400_000_000
TIMES: Final = {
    "date": ("date", 1),
    "time-millis": ("time", MILLI),
    "time-micros": ("time", MICRO),
    "timestamp-millis": ("timestamp", MILLI),
    "timestamp-micros": ("timestamp", MICRO),
    "timestamp-nanos": ("timestamp", 1),
    "local-timestamp-millis": ("timestamp", MILLI),
    "local-timestamp-micros": ("timestamp", MICRO),
    "local-timestamp-nanos": ("timestamp", 1),
}
"""What the numbers of a logical type count: days, or times in units of so many nanoseconds."""
COLUMNS: Final = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}
"""Arrow's types by logical types. Nanoseconds stay numbers: tables hold microseconds."""
EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone
RANGES: Final = {
    "date": range(-date(1970, 1, 1).toordinal() + 1, date.max.toordinal() - date(1970, 1, 1).toordinal() + 1),
    "time": range(DAY_MICROS),
    "timestamp": range(-62_135_596_800_000_000, 253_402_300_800_000_000),
}
"""What readers of tables can show: days and microseconds of the years 1 to 9999, and times of a day."""
MAX_DECIMAL128: Final = 38


def logical_column(kind: AvroType) -> pa.DataType | None:
    """Return the type of a column for a logical type; None where the column is that of the type itself."""
    if kind.logical == "decimal":
        return (pa.decimal128 if kind.precision <= MAX_DECIMAL128 else pa.decimal256)(kind.precision, kind.scale)
    return COLUMNS.get(kind.logical or "")


def converted(read: Read, writer: AvroType, reader: AvroType, *, is_text: bool) -> Read:
    """Return a plan that reads a value, and converts it to the reader's logical type.

    The value counts in the unit of the writer's logical type, or in the reader's if the writer has none.

    Args:
        read: reads the value as the reader's type.
        writer: type that the value was written as.
        reader: type to convert it to.
        is_text: whether the value becomes a part of JSON as text.

    Raises:
        UndecodedError: the writer has a logical type of another kind.
    """
    change = _change(writer, reader, is_text=is_text)
    return read if change is None else lambda source: change(read(source))


def _change(writer: AvroType, reader: AvroType, *, is_text: bool) -> Callable[[Any], Any] | None:
    logical = reader.logical
    if logical is None:
        return None
    if logical == "decimal":
        scale = writer.scale if writer.logical == "decimal" else reader.scale
        return lambda data: _decimal(data, scale)
    if logical == "uuid":
        return (lambda data: str(UUID(bytes=data))) if reader.kind == "fixed" else (lambda text: str(UUID(text)))
    family, unit = TIMES[logical]
    from_family, from_unit = TIMES.get(writer.logical or "", (family, unit))
    if from_family != family:
        msg = f"written as {writer.logical}, and the reader's schema has {logical}"
        raise UndecodedError(msg)
    to_unit = 1 if logical not in COLUMNS or family == "date" else MICRO
    as_object = _objects(logical) if is_text else None
    return lambda number: _time(number * from_unit, to_unit, logical, as_object)


def _time(count: int, unit: int, logical: str, as_object: Callable[[int], Any] | None) -> Any:  # noqa: ANN401
    found, rest = divmod(count, unit)
    if rest:
        msg = f"a time of {count} nanoseconds, and the column has microseconds"
        raise UndecodedError(msg)
    if logical in COLUMNS and found not in RANGES[TIMES[logical][0]]:
        msg = f"{found} is out of the range of {logical}"
        raise UndecodedError(msg)
    return found if as_object is None else as_object(found)


def _objects(logical: str) -> Callable[[int], Any] | None:
    """Return the function that makes an object whose text is the date or time; None for numbers."""
    if logical not in COLUMNS:
        return None
    family = TIMES[logical][0]
    if family == "date":
        return lambda days: (EPOCH + timedelta(days)).date()
    if family == "time":
        return _time_of_day
    zone = None if logical.startswith("local") else UTC
    return lambda micros: (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=zone)


def _time_of_day(micros: int) -> time:
    return (EPOCH + timedelta(microseconds=micros)).time()


def _decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


# -- Avro schemas: their text, as types that refer to each other -------------------------------------------------------


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
