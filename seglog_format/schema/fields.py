"""Metadata of construct declarations (documentation, requirement ids, layout), and variable-length numbers.

``"magic" / Int8sb * Doc("Version of this entry.", "SEG-BAT-004")`` puts a `Doc` in construct's own docs slot. The
functions of this module read it: `layout` for tables and diagrams. A declaration is written once and everything else is
derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Self

from construct import (
    Construct,
    ConstructError,
    FormatField,
    IntegerError,
    Renamed,
    SizeofError,
    Struct,
    Subconstruct,
    ValidationError,
    stream_read,
    stream_write,
)


class Doc(str):  # noqa: SLOT000 - construct stores it in place of a plain str
    """A field's documentation, with the ids of the requirements that define it."""

    requirements: tuple[str, ...]
    since: str
    default: str

    def __new__(cls, text: str, *requirements: str, since: str = "0.8.0", default: str = "") -> Self:
        """Make a documentation string.

        Args:
            text: one sentence: meaning, unit, sentinel values.
            requirements: ids; an error at this field names the first.
            since: first broker version that has the field.
            default: the value that a writer stores for an absent value; empty if a value is never absent.
        """
        doc = super().__new__(cls, text)
        doc.requirements = requirements
        doc.since = since
        doc.default = default
        return doc


class Checked(Renamed):
    """A field whose value must satisfy a condition; otherwise a `SchemaError` that names the requirement."""

    def __init__(self, subcon: Construct, condition: Any, expected: str, requirement: str) -> None:
        super().__init__(subcon)
        self.condition = condition
        self.expected = expected
        self.requirement = requirement

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        value = self.subcon._parsereport(stream, context, path)
        if not self.condition(value):
            raise SchemaError(self.expected, value, self.requirement)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if not self.condition(obj):
            msg = f"expected {self.expected} ({self.requirement})"
            raise ValidationError(msg, path=path)
        return self.subcon._build(obj, stream, context, path)


class SchemaError(Exception):
    """A value that a declaration does not allow. `codec` converts it to a `FormatError`; users never see it."""

    def __init__(self, expected: str, found: object, requirement: str) -> None:
        super().__init__(expected, found, requirement)
        self.expected = expected
        self.found = found
        self.requirement = requirement


CONSTRUCT_ERRORS: Final = (ConstructError, SchemaError)
"""What parsing by a declaration raises for bytes that do not fit it."""


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One row of a layout table.

    Attributes:
        name: of the field, snake_case.
        offset: bytes from the start of the structure; None after a field of variable size.
        size: bytes; None where it varies.
        type: such as ``int32``, ``varint``, ``bytes``.
        doc: one sentence.
        requirements: ids.
        since: first broker version.
        default: the value that a writer stores for an absent value; empty if a value is never absent.
    """

    name: str
    offset: int | None
    size: int | None
    type: str
    doc: str
    requirements: tuple[str, ...]
    since: str
    default: str


FORMAT_TYPES = {"b": "int8", "h": "int16", "i": "int32", "l": "int32", "q": "int64"}
FORMAT_TYPES |= {code.upper(): "u" + name for code, name in list(FORMAT_TYPES.items())}


def layout(declaration: Struct) -> tuple[FieldLayout, ...]:
    """Return the fields of a declaration in stored order, nested ones as one row."""
    rows = []
    offset: int | None = 0
    for field in declaration.subcons:
        size = _size(field)
        doc = field.docs if isinstance(field.docs, Doc) else Doc(field.docs)
        metadata = (str(doc), doc.requirements, doc.since, doc.default)
        rows.append(FieldLayout(field.name, offset, size, type_name(field), *metadata))
        offset = None if offset is None or size is None else offset + size
    return tuple(rows)


def _size(field: Construct) -> int | None:
    try:
        return int(field.sizeof())
    except SizeofError:
        return None


def position_of(declaration: Struct, name: str) -> int:
    """Return the byte position of a field; all fields before it must have a fixed size."""
    before = takewhile(lambda field: field.name != name, declaration.subcons)
    return sum(int(field.sizeof()) for field in before)


def type_name(field: Construct) -> str:
    """Return ``int32`` for a number, else the declaration's own name."""
    inner = field
    while isinstance(inner, Renamed):
        inner = inner.subcon
    if isinstance(inner, FormatField):
        return FORMAT_TYPES[inner.fmtstr[-1].lower()] if inner.fmtstr[-1].islower() else FORMAT_TYPES[inner.fmtstr[-1]]
    return str(getattr(inner, "type_name", type(inner).__name__.lower()))


# -- variable-length numbers, and byte strings with such lengths (chapter 31) -----------------------------------------


VARINT_MAX_SIZE = {32: 5, 64: 10}


def unsigned_varint(value: int) -> bytes:
    """Return the shortest encoding of a number that is not negative."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def zigzag(value: int) -> int:
    """Convert 0, -1, 1, -2, ... to 0, 1, 2, 3, ..."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """Convert 0, 1, 2, 3, ... to 0, -1, 1, -2, ..."""
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1


class UnsignedVarint(Construct):
    """An unsigned number of at most ``bits`` bits; more bits in the last byte are dropped (SEG-REC-004)."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.type_name = f"uvarint{bits}"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for group in range(VARINT_MAX_SIZE[self.bits]):
            byte = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * group)
            if byte < 0x80:
                return int(value & (1 << self.bits) - 1)
        limit = f"a varint of at most {VARINT_MAX_SIZE[self.bits]} bytes"
        raise SchemaError(limit, "a longer one", "SEG-REC-004")

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if not 0 <= obj < 1 << self.bits:
            msg = f"a number of {self.bits} bits cannot hold the value"
            raise IntegerError(msg, path=path)
        data = unsigned_varint(obj)
        stream_write(stream, data, len(data), path)
        return obj


class Varint(UnsignedVarint):
    """A signed, zigzag encoded number."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.type_name = f"varint{bits}"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return unzigzag(super()._parse(stream, context, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(zigzag(obj), stream, context, path)
        return obj


Varint32 = Varint(32)
Varint64 = Varint(64)
UnsignedVarint32 = UnsignedVarint(32)


class NullableBytes(Subconstruct):
    """Bytes after their length; any negative length means null (SEG-REC-007, SEG-MSG-007)."""

    type_name = "nullable bytes"

    def __init__(self, length: Construct) -> None:
        super().__init__(length)

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        size = self.subcon._parsereport(stream, context, path)
        return None if size < 0 else bytes(stream_read(stream, size, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.subcon._build(-1 if obj is None else len(obj), stream, context, path)
        if obj is not None:
            stream_write(stream, obj, len(obj), path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)
