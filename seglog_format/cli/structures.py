"""Every declared structure with its fields, as pages, exports and `seglog schema` show it."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from construct import Array, Bytes, Construct, FormatField, Renamed, SizeofError, Struct, Tell

from seglog_format import schema
from seglog_format.field_names import kafka_name
from seglog_format.schema.fields import Checked, FieldLayout, NullableBytes, UnsignedVarint, layout, type_name
from seglog_format.schema.protocol import CompactLength

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# -- the structures that the schema modules declare, by name -----------------------------------------------------------


CHAPTER: Final = re.compile(r"chapters?\s+(\d+)(?:\s+and\s+(\d+))?")


class Declared(NamedTuple):
    """A declaration and the module that it is in.

    Attributes:
        name: such as ``RecordBatchHeader``.
        chapter: number of the chapter that specifies it; 0 where its module names none.
        module: stem of the schema module.
        declaration: the construct declaration.
    """

    name: str
    chapter: int
    module: str
    declaration: Struct


def declared_structures() -> Iterator[Declared]:
    """Yield each declared structure once, by module and in the order of declaration."""
    seen: set[int] = set()
    for module in pkgutil.iter_modules(schema.__path__):
        content = import_module(f"{schema.__name__}.{module.name}")
        match = CHAPTER.search(content.__doc__ or "")
        chapter = int(match[match.lastindex or 1]) if match else 0
        for name, declaration in vars(content).items():
            if isinstance(declaration, Struct) and not name.startswith("_") and id(declaration) not in seen:
                seen.add(id(declaration))
                yield Declared(name, chapter, module.name, declaration)


# -- shape of each field, taken from its declaration: for the JSON and Kaitai Struct exports ---------------------------


COUNT_NAME: Final = re.compile(r"this\.(\w+)|this\['(\w+)'\]")


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a field; attributes that do not apply are None or False.

    Attributes:
        kind: ``number``, ``varint``, ``bytes``, ``nullable bytes``, ``array``, ``mark`` (no bytes) or ``other``.
        type: of a number or varint, such as ``int32``.
        size: of a number or of bytes.
        is_little_endian: numbers are big-endian otherwise.
        length: type of the length before nullable bytes.
        element: name of the structure that an array holds.
        count: name of the field that holds the number of elements.
        minimum: smallest valid value of a number.
        is_never_null: nullable bytes that must not be null.
        expected: the valid values, as text.
        requirement: id of the requirement that an error names.
    """

    kind: str
    type: str = ""
    size: int | None = None
    is_little_endian: bool = False
    length: str = ""
    element: str = ""
    count: str = ""
    minimum: int | None = None
    is_never_null: bool = False
    expected: str = ""
    requirement: str = ""

    def as_object(self) -> dict[str, Any]:
        """Return what JSON adds to the layout row; attributes that do not apply are left out."""
        found = {
            "endian": "little" if self.is_little_endian else "",
            "length": self.length,
            "of": self.element,
            "count": kafka_name(self.count),
            "minimum": self.minimum,
            "expected": self.expected,
            "refusedBy": self.requirement,
        }
        said = {key: value for key, value in found.items() if value is not None and value != ""}
        return said | ({"nullable": False} if self.is_never_null else {})


def shape(field: Construct) -> Shape:
    """Return how a declared field is read."""
    plain = field
    while isinstance(plain, Renamed):
        plain = plain.subcon
    return _with_condition(_shape(plain), field)


def _shape(plain: Any) -> Shape:  # noqa: ANN401 - construct is untyped
    return next((made(plain) for kind, made in KINDS if isinstance(plain, kind)), Shape("other"))


def _number(plain: Any) -> Shape:  # noqa: ANN401 - construct is untyped
    size = int(plain.sizeof())
    return Shape("number", type_name(plain), size, is_little_endian=plain.fmtstr[0] == "<" and size > 1)


def _bytes(plain: Any) -> Shape:  # noqa: ANN401 - construct is untyped
    return Shape("bytes", size=plain.length) if isinstance(plain.length, int) else Shape("other")


def _array(plain: Any) -> Shape:  # noqa: ANN401 - construct is untyped
    match = COUNT_NAME.search(repr(plain.count))
    element = _names().get(id(plain.subcon), "")
    if match is None or not element:
        return Shape("other")
    return Shape("array", element=element, count=match[1] or match[2])


KINDS: Final[tuple[tuple[type, Callable[[Any], Shape]], ...]] = (
    (type(Tell), lambda _plain: Shape("mark")),
    (FormatField, _number),
    (CompactLength, lambda _plain: Shape("other")),
    (UnsignedVarint, lambda plain: Shape("varint", plain.type_name)),
    (NullableBytes, lambda plain: Shape("nullable bytes", length=type_name(plain.subcon))),
    (Bytes, _bytes),
    (Array, _array),
)
"""Converters of declarations by class; the first match is used."""


@cache
def _names() -> dict[int, str]:
    return {id(one.declaration): one.name for one in declared_structures()}


def _with_condition(plain: Shape, field: Construct) -> Shape:
    """Add the condition of a `Checked` field, if it is a bound or excludes null."""
    checked = next(_checks(field), None)
    if checked is None:
        return plain
    is_number = plain.kind in {"number", "varint"}
    is_bytes = plain.kind == "nullable bytes"
    return replace(
        plain,
        minimum=0 if is_number and checked.condition(0) and not checked.condition(-1) else None,
        is_never_null=is_bytes and not checked.condition(None),
        expected=checked.expected,
        requirement=checked.requirement,
    )


def _checks(field: Any) -> Iterator[Checked]:  # noqa: ANN401 - construct is untyped
    while isinstance(field, Renamed):
        if isinstance(field, Checked):
            yield field
        field = field.subcon


# -- every declared structure with its fields --------------------------------------------------------------------------


POSITION_MARK: Final = "tell"
"""Type of declarations that record a position and have no bytes."""


@dataclass(frozen=True, slots=True)
class Structure:
    """One declared structure.

    Attributes:
        name: such as ``RecordBatchHeader``.
        chapter: number of the chapter that specifies it; 0 where its module names none.
        module: stem of the schema module.
        size: its size; None if it varies.
        fields: in stored order.
        declaration: the construct declaration.
    """

    name: str
    chapter: int
    module: str
    size: int | None
    fields: tuple[FieldLayout, ...]
    declaration: Struct

    def as_object(self) -> dict[str, Any]:
        """Return the structure for JSON."""
        return {
            "structure": self.name,
            "chapter": self.chapter,
            "module": self.module,
            "size": self.size,
            "fields": [_field_object(field) | self._shape(field.name) for field in self.fields],
        }

    def _shape(self, name: str) -> dict[str, Any]:
        declared = next(one for one in self.declaration.subcons if one.name == name)
        return shape(declared).as_object()


def _field_object(field: FieldLayout) -> dict[str, Any]:
    return ({"default": field.default} if field.default else {}) | {
        "field": kafka_name(field.name),
        "offset": field.offset,
        "size": field.size,
        "type": field.type,
        "doc": field.doc,
        "requirements": list(field.requirements),
        "since": field.since,
    }


def structures() -> list[Structure]:
    """Return all structures, by chapter."""
    return sorted(map(_structure, declared_structures()), key=lambda structure: (structure.chapter, structure.module))


def _structure(found: Declared) -> Structure:
    fields = tuple(field for field in layout(found.declaration) if field.name and field.type != POSITION_MARK)
    size = _size(found.declaration)
    return Structure(found.name, found.chapter, found.module, size, fields, found.declaration)


def _size(declaration: Construct) -> int | None:
    try:
        return int(declaration.sizeof())
    except SizeofError:
        return None
