"""Kafka's message protocol, as far as records use it: typed fields that depend on versions (chapter 32).

The values of KRaft control records, and the records of Kafka's own topics, are messages of this protocol. A
`MessageDefinition` says which fields a message has since which version; `declaration` makes the construct declaration
of one version. In a flexible version lengths are compact (an unsigned varint of the length plus one, 0 for null) and
every structure ends in tagged fields, which a reader may skip without knowing them. Field names are Kafka's own,
in camelCase, because that is how its tools print them.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

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
    Int32ub,
    Int64sb,
    SizeofError,
    Struct,
    Subconstruct,
    stream_read,
    stream_write,
)

from seglog_format.schema.fields import Checked, Doc, UnsignedVarint, UnsignedVarint32

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# -- the building blocks of messages of Kafka's protocol: lengths, text, arrays, tagged fields (chapter 32) -----------


TAGGED_FIELDS = "taggedFields"
"""Name of the last field of every structure of a flexible version."""

UNKNOWN_TAGGED_FIELDS = "unknownTaggedFields"
"""Name of the field for tags that are not in the definition."""


class CompactLength(UnsignedVarint):
    """A length stored as an unsigned varint of itself plus one, so 0 is null."""

    def __init__(self) -> None:
        super().__init__(32)
        self.type_name = "compact length"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(obj + 1, stream, context, path)
        return obj


class Uuid(Adapter):
    """Sixteen bytes as Kafka shows them: 22 characters of URL-safe Base64 without padding."""

    type_name = "uuid"

    def __init__(self) -> None:
        super().__init__(Bytes(16))

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        return base64.urlsafe_b64encode(obj).decode("ascii").rstrip("=")

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        return base64.urlsafe_b64decode(obj + "==")


class Measured(Subconstruct):
    """Bytes after their length; a negative one is null."""

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


class Utf8(Measured):
    """Text. Bytes that are not UTF-8 become replacement characters, as in Kafka's own tools."""

    type_name = "string"

    def _content(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")

    def _bytes(self, content: str) -> bytes:
        return content.encode("utf-8")


class CountedArray(Array):
    """Elements after their count; a negative count is null. The bytes, not the count, limit the memory."""

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


class Optional(Subconstruct):
    """A structure after a number that says whether it is present.

    Args:
        structure: the optional structure.
        mark: the number: an unsigned varint in a tagged field, else a byte.
        absent: value of the number if the structure is absent; a greater value means that it is present.
    """

    def __init__(self, structure: Construct, mark: Construct, absent: int) -> None:
        super().__init__(structure)
        self.mark = mark
        self.absent = absent

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        is_null = self.mark._parsereport(stream, context, path) <= self.absent
        return None if is_null else self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.mark._build(self.absent if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class TaggedFields(Construct):
    """Pairs of a tag and a value after its size: known ones by name, the others as stored."""

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
        known = {tag: field.build(obj[field.name]) for tag, field in self.known.items() if field.name in obj}
        unknown = {each["tag"]: each["data"] for each in obj.get(UNKNOWN_TAGGED_FIELDS, ())}
        values = sorted((known | unknown).items())
        UnsignedVarint32._build(len(values), stream, context, path)
        for tag, data in values:
            UnsignedVarint32._build(tag, stream, context, path)
            UnsignedVarint32._build(len(data), stream, context, path)
            stream_write(stream, data, len(data), path)
        return obj


# -- Kafka's message protocol, as far as records use it: typed fields that depend on versions (chapter 32) --


@dataclass(frozen=True, slots=True)
class Shape:
    """The facts that decide the layout of a field.

    Attributes:
        version: of the message.
        flexible: whether that version has compact lengths and tagged fields.
        requirement: id of the requirement that an invalid message breaks.
        broker: first broker version that writes the message.
    """

    version: int
    flexible: bool
    requirement: str
    broker: str


class FieldType(Protocol):
    """A type of Kafka's message definitions."""

    def declare(self, shape: Shape) -> Construct:
        """Return the declaration in a message of one version."""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A type that is the same in every version.

    Attributes:
        construct: its declaration.
    """

    construct: Construct

    def declare(self, shape: Shape) -> Construct:
        """Return the declaration in a message of one version."""
        return self.construct


class Text:
    """Text after a length of 16 bits, or a compact one."""

    def declare(self, shape: Shape) -> Construct:
        """Return the declaration in a message of one version."""
        return Utf8(CompactLength() if shape.flexible else Int16sb)


class Blob:
    """Bytes after a length of 32 bits, or a compact one."""

    def declare(self, shape: Shape) -> Construct:
        """Return the declaration in a message of one version."""
        return Measured(CompactLength() if shape.flexible else Int32sb)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayOf:
    """Elements after a count of 32 bits, or a compact one.

    Attributes:
        element: type of each.
    """

    element: FieldType

    def declare(self, shape: Shape) -> Construct:
        """Return the declaration in a message of one version."""
        element = _required(self.element.declare(shape), shape)
        return CountedArray(CompactLength() if shape.flexible else Int32sb, element)


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Consecutive fields, followed by tagged ones in a flexible version.

    Attributes:
        fields: in stored order.
    """

    fields: tuple[Field, ...]

    def declare(self, shape: Shape) -> Struct:
        """Return the declaration in a message of one version."""
        present = [field for field in self.fields if field.exists(shape.version)]
        rows = [field.declaration(shape) for field in present if field.tag is None]
        if shape.flexible:
            tagged = {field.tag: field.declaration(shape) for field in present if field.tag is not None}
            doc = Doc("Fields that a reader may skip.", shape.requirement, since=shape.broker)
            rows.append(TAGGED_FIELDS / TaggedFields(tagged) * doc)
        return Struct(*rows)


SIMPLE_TYPES: Final[dict[str, FieldType]] = {
    "bool": Fixed(Flag),
    "int8": Fixed(Int8sb),
    "int16": Fixed(Int16sb),
    "uint16": Fixed(Int16ub),
    "int32": Fixed(Int32sb),
    "uint32": Fixed(Int32ub),
    "int64": Fixed(Int64sb),
    "float64": Fixed(Float64b),
    "uuid": Fixed(Uuid()),
    "string": Text(),
    "bytes": Blob(),
}
"""Types without parameters, by Kafka's names."""


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
        tag: number of a tagged field; None for one that is always present.
        default: the value of an omitted field, as Kafka's definitions write it; None if they have none.
        check: adds a condition on the value to the declaration.
    """

    name: str
    type: FieldType
    doc: str = ""
    since: int = 0
    until: int | None = None
    nullable: bool = False
    tag: int | None = None
    default: str | None = None
    check: Callable[[Construct], Construct] | None = None

    def exists(self, version: int) -> bool:
        """Return whether messages of this version have the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    def declaration(self, shape: Shape) -> Construct:
        """Return the named declaration of this field in one version."""
        value = self.type.declare(shape)
        if not self.nullable:
            value = _required(value, shape)
        elif isinstance(self.type, Structure):
            value = Optional(value, Int8sb, -1) if self.tag is None else Optional(value, UnsignedVarint32, 0)
        if self.check:
            value = self.check(value)
        return self.name / value * Doc(self.doc or self.name, shape.requirement, since=shape.broker)


@dataclass(frozen=True, eq=False, slots=True)
class MessageDefinition:
    """All versions of one message.

    Attributes:
        name: Kafka's, such as ``LeaderChangeMessage``.
        fields: in stored order.
        latest: the highest version described.
        flexible_since: first version with compact lengths and tagged fields; None: no version.
        requirement: id of the requirement that an invalid message breaks.
        broker: first broker version that writes the message.
        earliest: the lowest version described.
        releases: the first and the last line of releases with this layout; the last is empty if it is still in use.
        earlier: other layouts of the same versions in early releases, the newest first.
    """

    name: str
    fields: tuple[Field, ...]
    latest: int = 0
    flexible_since: int | None = 0
    requirement: str = "SEG-CTL-010"
    broker: str = "0.8.2"
    earliest: int = 0
    releases: tuple[str, str] = ("", "")
    earlier: tuple[MessageDefinition, ...] = ()

    def describes(self, version: int) -> bool:
        """Return whether a version of the message is described."""
        return self.earliest <= version <= self.latest


@cache
def declaration(definition: MessageDefinition, version: int) -> Struct:
    """Return the construct declaration of one version, the earliest to the latest."""
    since = definition.flexible_since
    flexible = since is not None and version >= since
    shape = Shape(version, flexible, definition.requirement, definition.broker)
    return Structure(definition.fields).declare(shape)


# -- messages whose fields come from Kafka's own definitions, stored as tables in ``messages/`` -----------------------


TABLES: Final = Path(__file__).with_name("messages")
NEWEST: Final = 2**15 - 1
"""Last version of a field without a last version."""
OLDEST_LINE: Final = "2.8"
"""The first release line whose jars have definitions; its fields may be older."""

_NO_DOCS: Final[Mapping[str, str]] = {}
_NO_CHECKS: Final[Mapping[str, Callable[[Construct], Construct]]] = {}


@cache
def table(name: str) -> dict[str, Any]:
    """Return a table: ``release``, the newest release that it was derived from, and ``messages``."""
    text = (TABLES / f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def rows(name: str) -> list[dict[str, Any]]:
    """Return the messages of a table."""
    found: list[dict[str, Any]] = table(name)["messages"]
    return found


def message(
    name: str,
    row: Mapping[str, Any],
    *,
    broker: str,
    requirement: str = "SEG-CTL-010",
    docs: Mapping[str, str] = _NO_DOCS,
    checks: Mapping[str, Callable[[Construct], Construct]] = _NO_CHECKS,
) -> MessageDefinition:
    """Create the definition that a row of a table describes.

    Args:
        name: of the message in output and errors.
        row: of a table.
        broker: first version that writes the message, if it is older than the definitions.
        requirement: id of the requirement that an invalid message breaks.
        docs: a sentence for a field, by its path, such as ``voters.voterId``.
        checks: of values, by the path of the field.
    """
    first, last = _span(row["versions"])
    flexible, _ = _span(row["flexible"]) if "flexible" in row else (None, None)
    since = row["since"]
    return MessageDefinition(
        name,
        tuple(_field(each, "", docs, checks) for each in row["fields"]),
        latest=last,
        flexible_since=flexible,
        requirement=requirement,
        broker=broker if since == OLDEST_LINE else f"{since}.0",
        earliest=first,
        releases=(since, row.get("until", "")),
        earlier=tuple(message(name, each, broker=broker, requirement=requirement) for each in row.get("earlier", ())),
    )


def _field(
    row: Mapping[str, Any],
    above: str,
    docs: Mapping[str, str],
    checks: Mapping[str, Callable[[Construct], Construct]],
) -> Field:
    path = above + row["name"]
    inside = tuple(_field(each, f"{path}.", docs, checks) for each in row.get("fields", ()))
    first, last = _span(row.get("versions", "0+"))
    return Field(
        row["name"],
        _type(row["type"], inside),
        docs.get(path, ""),
        since=first,
        until=None if last == NEWEST else last,
        nullable=row.get("nullable", False),
        tag=row.get("tag"),
        default=row.get("default"),
        check=checks.get(path),
    )


def _type(word: str, inside: tuple[Field, ...]) -> FieldType:
    if word.startswith("[]"):
        return ArrayOf(_type(word[2:], inside))
    return Structure(inside) if word == "struct" else SIMPLE_TYPES[word]


def _span(versions: str) -> tuple[int, int]:
    """Parse first and last version from ``3``, ``0-4`` or ``2+``."""
    first, _, last = versions.removesuffix("+").partition("-")
    return int(first), NEWEST if versions.endswith("+") else int(last or first)


def upper_snake(name: str) -> str:
    """Return ``NO_OP_RECORD`` for ``NoOpRecord``, as Kafka's tools print it."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).upper()


def lower_camel(name: str) -> str:
    """Return ``offsetCommit`` for ``OffsetCommit``."""
    return name[0].lower() + name[1:]
