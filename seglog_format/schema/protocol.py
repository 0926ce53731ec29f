"""Kafka's message protocol, as far as records use it: typed fields that depend on versions (chapter 32).

The values of KRaft control records, and the records of Kafka's own topics, are messages of this protocol. A
`MessageDefinition` says which fields a message has since which version; `declaration` makes the construct declaration
of one version. In a flexible version lengths are compact (an unsigned varint of the length plus one, 0 for null) and
every structure ends in tagged fields, which a reader may skip without knowing them. Field names are Kafka's own,
in camelCase, because that is how its tools print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from construct import (
    Construct,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Struct,
)

from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.protocol_parts import (
    TAGGED_FIELDS,
    CompactLength,
    CountedArray,
    Measured,
    Optional,
    TaggedFields,
    Utf8,
    Uuid,
)
from seglog_format.schema.varint import UnsignedVarint32

if TYPE_CHECKING:
    from collections.abc import Callable


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
