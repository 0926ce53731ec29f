"""Kafka's message protocol, as far as records use it: typed fields that come and go with versions (chapter 32).

The values of KRaft control records, and the records of Kafka's own topics, are messages of this protocol. A
`MessageDefinition` says which fields a message has since which version; `declaration` makes the construct declaration
of one version. In a flexible version lengths are compact (an unsigned varint of the length plus one, 0 for null) and
every structure ends in tagged fields, which a reader may skip without knowing them. Field names are Kafka's own,
in camelCase, because that is how its tools print them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from construct import (
    Adapter,
    Array,
    Bytes,
    Construct,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int64sb,
    SizeofError,
    Struct,
    Subconstruct,
    stream_read,
    stream_write,
)

from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.varint import UnsignedVarint, UnsignedVarint32

if TYPE_CHECKING:
    from collections.abc import Mapping

TAGGED_FIELDS = "taggedFields"
"""Name of the field that ends every structure of a flexible version."""

UNKNOWN_TAGGED_FIELDS = "unknownTaggedFields"
"""Where the tags stand that the definition does not name."""


class CompactLength(UnsignedVarint):
    """A length stored as an unsigned varint of itself plus one, so that 0 is null."""

    def __init__(self) -> None:
        super().__init__(32)
        self.type_name = "compact length"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(obj + 1, stream, context, path)
        return obj


class Uuid(Adapter):
    """Sixteen bytes, shown as Kafka shows them: 22 characters of URL-safe Base64 without padding."""

    type_name = "uuid"

    def __init__(self) -> None:
        super().__init__(Bytes(16))

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        return base64.urlsafe_b64encode(obj).decode("ascii").rstrip("=")

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        return base64.urlsafe_b64decode(obj + "==")


class _Measured(Subconstruct):
    """Bytes behind their length; a negative one is null."""

    type_name = "bytes"

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = self.subcon._parsereport(stream, context, path)
        return None if size < 0 else self._content(stream_read(stream, size, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = b"" if obj is None else self._bytes(obj)
        self.subcon._build(-1 if obj is None else len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj

    def _content(self, data: bytes) -> Any:
        return data

    def _bytes(self, content: Any) -> bytes:
        return bytes(content)

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class _Utf8(_Measured):
    """Text. Bytes that are not UTF-8 become replacement characters, as they do in Kafka's own tools."""

    type_name = "string"

    def _content(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")

    def _bytes(self, content: str) -> bytes:
        return content.encode("utf-8")


class _CountedArray(Array):
    """Elements behind their count, a negative one is null; memory follows the bytes that are there, not the count."""

    type_name = "array"

    def __init__(self, count: Construct, element: Construct) -> None:
        super().__init__(0, element)
        self.countsubcon = count

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.countsubcon._parsereport(stream, context, path)
        return None if count < 0 else Array(count, self.subcon)._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.countsubcon._build(-1 if obj is None else len(obj), stream, context, path)
        for element in obj or ():
            self.subcon._build(element, stream, context, path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class _Optional(Subconstruct):
    """A structure behind a byte that says whether it is there; a negative one is null."""

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        is_null = Int8sb._parsereport(stream, context, path) < 0
        return None if is_null else self.subcon._parsereport(stream, context, path)

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class _TaggedFields(Construct):
    """Pairs of a tag and a value behind its size: known ones by name, the others as they stand."""

    type_name = "tagged fields"

    def __init__(self, known: Mapping[int, Construct]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        unknown = []
        for _ in range(UnsignedVarint32._parsereport(stream, context, path)):
            tag = UnsignedVarint32._parsereport(stream, context, path)
            data = stream_read(stream, UnsignedVarint32._parsereport(stream, context, path), path)
            if tag in self.known:
                values[self.known[tag].name] = self.known[tag].parse(data)
            else:
                unknown.append({"tag": tag, "data": data})
        return values | ({UNKNOWN_TAGGED_FIELDS: unknown} if unknown else {})

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        """None at all, which is what every message that is written here has."""
        UnsignedVarint32._build(0, stream, context, path)
        return obj


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how a field is laid out.

    Attributes:
        version: of the message.
        flexible: whether that version has compact lengths and tagged fields.
        requirement: what a message breaks that does not fit its definition.
        broker: first broker version that writes the message.
    """

    version: int
    flexible: bool
    requirement: str
    broker: str


FieldType: TypeAlias = Callable[[Shape], Construct]
"""A type of Kafka's message definitions: makes its declaration for a message of one version."""


def _fixed(construct: Construct) -> FieldType:
    return lambda _: construct


BOOL = _fixed(Flag)
INT8 = _fixed(Int8sb)
INT16 = _fixed(Int16sb)
UINT16 = _fixed(Int16ub)
INT32 = _fixed(Int32sb)
INT64 = _fixed(Int64sb)
FLOAT64 = _fixed(Float64b)
UUID = _fixed(Uuid())


def string(shape: Shape) -> Construct:
    """Text behind a length of 16 bits, or a compact one."""
    return _Utf8(CompactLength() if shape.flexible else Int16sb)


def blob(shape: Shape) -> Construct:
    """Bytes behind a length of 32 bits, or a compact one."""
    return _Measured(CompactLength() if shape.flexible else Int32sb)


def array(element: FieldType) -> FieldType:
    """Elements behind a count of 32 bits, or a compact one."""

    def declare(shape: Shape) -> Construct:
        return _CountedArray(CompactLength() if shape.flexible else Int32sb, _required(element(shape), shape))

    return declare


def structure(*fields: Field) -> FieldType:
    """Fields one after the other, and tagged ones at the end in a flexible version."""
    return lambda shape: _structure(fields, shape)


def nullable_structure(*fields: Field) -> FieldType:
    """The same behind a byte that is negative where there is none."""
    return lambda shape: _Optional(_structure(fields, shape))


def _required(construct: Construct, shape: Shape) -> Construct:
    return Checked(construct, lambda value: value is not None, "a value that is not null", shape.requirement)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    Attributes:
        name: Kafka's, in camelCase.
        type: of the value.
        doc: one sentence.
        since: first version of the message that has the field.
        until: last version that has it; None: all later ones.
        nullable: whether the value may be null.
        tag: number of a tagged field; None for one that is always there.
        check: makes a declaration that also holds the value to a condition.
    """

    name: str
    type: FieldType
    doc: str = ""
    since: int = 0
    until: int | None = None
    nullable: bool = False
    tag: int | None = None
    check: Callable[[Construct], Construct] | None = None

    def exists(self, version: int) -> bool:
        """Whether messages of this version have the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    def declaration(self, shape: Shape) -> Construct:
        """The named declaration of this field in one version."""
        value = self.type(shape)
        if not self.nullable:
            value = _required(value, shape)
        if self.check:
            value = self.check(value)
        return self.name / value * Doc(self.doc or self.name, shape.requirement, since=shape.broker)


def _structure(fields: tuple[Field, ...], shape: Shape) -> Struct:
    present = [field for field in fields if field.exists(shape.version)]
    rows = [field.declaration(shape) for field in present if field.tag is None]
    if shape.flexible:
        tagged = {field.tag: field.declaration(shape) for field in present if field.tag is not None}
        doc = Doc("Fields that a reader may skip.", shape.requirement, since=shape.broker)
        rows.append(TAGGED_FIELDS / _TaggedFields(tagged) * doc)
    return Struct(*rows)


@dataclass(frozen=True, eq=False, slots=True)
class MessageDefinition:
    """All versions of one message.

    Attributes:
        name: Kafka's, such as ``LeaderChangeMessage``.
        fields: in stored order.
        latest: the highest version that is described here.
        flexible_since: first version with compact lengths and tagged fields; None: no version.
        requirement: what a message breaks that does not fit its definition.
        broker: first broker version that writes the message.
    """

    name: str
    fields: tuple[Field, ...]
    latest: int = 0
    flexible_since: int | None = 0
    requirement: str = "SEG-CTL-010"
    broker: str = "0.8.2"


@cache
def declaration(definition: MessageDefinition, version: int) -> Struct:
    """The construct declaration of one version, 0 to the latest."""
    since = definition.flexible_since
    flexible = since is not None and version >= since
    return _structure(definition.fields, Shape(version, flexible, definition.requirement, definition.broker))
