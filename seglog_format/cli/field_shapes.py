"""Shape of each field, taken from its declaration: for the JSON and Kaitai Struct exports.

A layout row is for people. A program also needs the byte order, the type of a length, what an array holds,
which field counts it, and which values are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from construct import Array, Bytes, Construct, FormatField, Renamed, Tell

from seglog_format.cli.declared import declared_structures
from seglog_format.field_names import kafka_name
from seglog_format.schema.fields import Checked, type_name
from seglog_format.schema.protocol_parts import CompactLength
from seglog_format.schema.varint import NullableBytes, UnsignedVarint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
