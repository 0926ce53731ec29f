"""Metadata of construct declarations: documentation, requirement ids, layout.

``"magic" / Int8sb * Doc("Version of this entry.", "SEG-BAT-004")`` puts a `Doc` in construct's own docs slot. The
functions of this module read it: `layout` for tables and diagrams. A declaration is written once and everything else is
derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Self

from construct import Construct, ConstructError, FormatField, Renamed, SizeofError, Struct, ValidationError


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
