"""Every declared structure with its fields, as pages, exports and `seglog schema` show it."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from construct import Array, Bytes, Construct, FormatField, Renamed, SizeofError, Struct, Tell

from seglog_format import schema
from seglog_format.field_names import kafka_name
from seglog_format.schema.fields import Checked, FieldLayout, NullableBytes, UnsignedVarint, layout, type_name
from seglog_format.schema.protocol import CompactLength

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Link = Callable[[str], str]


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


# -- layouts as SVG pictures: one box for each field, as wide as its bytes, eight bytes to a row -----------------------


BYTES_PER_ROW: Final = 8
BYTE_WIDTH: Final = 88
ROW_HEIGHT: Final = 34
LEFT: Final = 56
HEAD: Final = 52
GAP: Final = 18
WIDTH: Final = LEFT + BYTES_PER_ROW * BYTE_WIDTH + 12
COLOURS: Final = ("#cfe8ff", "#d5f2d2", "#fde2c4", "#ead8fb", "#ffd6de", "#cdf0ee", "#eceab2")
CHARACTER_WIDTH: Final = 7.3


@dataclass(frozen=True, slots=True)
class _Box:
    """Part of a field within one row: column and row of its first byte, bytes, and whether its size varies."""

    column: int
    row: int
    size: int
    is_variable: bool


def svg(structures: Iterable[Structure], link: Link | None = None) -> str:
    """Return one picture of some structures, below each other.

    Args:
        structures: what to draw.
        link: returns the address of a requirement id.
    """
    parts, top = [], 0
    for structure in structures:
        drawn, height = _drawing(structure, top, link)
        parts.append(drawn)
        top += height + GAP
    height = max(top - GAP, 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="monospace" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>"
    )


def _drawing(structure: Structure, top: int, link: Link | None) -> tuple[str, int]:
    """Return the picture of one structure, and its height."""
    placed = list(_placed(structure.fields))
    rows = 1 + max((box.row for _, boxes in placed for box in boxes), default=0)
    size = "variable size" if structure.size is None else f"{structure.size} bytes"
    lines = [
        f'<g transform="translate(0,{top})">',
        _title(structure.name, size),
        *(_column_head(column) for column in range(BYTES_PER_ROW)),
        *_row_heads(placed),
    ]
    for index, (field, boxes) in enumerate(placed):
        lines.append(_field(field, boxes, COLOURS[index % len(COLOURS)], link))
    lines.append("</g>")
    return "\n".join(lines), HEAD + rows * ROW_HEIGHT + 4


def _title(name: str, size: str) -> str:
    words = f'<tspan dx="8" font-weight="normal" fill="#6b7280">{size}</tspan>'
    return f'<text x="8" y="18" font-size="14" font-weight="bold">{escape(name)}{words}</text>'


def _placed(fields: Iterable[FieldLayout]) -> Iterator[tuple[FieldLayout, list[_Box]]]:
    """Yield the boxes of each field. A field of variable size takes the rest of its row."""
    at = 0
    for field in fields:
        if field.size is None:
            column = at % BYTES_PER_ROW
            yield field, [_Box(column, at // BYTES_PER_ROW, BYTES_PER_ROW - column, is_variable=True)]
            at += BYTES_PER_ROW - column
        else:
            yield field, list(_split(at, field.size))
            at += field.size


def _split(at: int, size: int) -> Iterator[_Box]:
    while size:
        column = at % BYTES_PER_ROW
        part = min(size, BYTES_PER_ROW - column)
        yield _Box(column, at // BYTES_PER_ROW, part, is_variable=False)
        at, size = at + part, size - part


def _column_head(column: int) -> str:
    x = LEFT + column * BYTE_WIDTH + BYTE_WIDTH // 2
    return f'<text x="{x}" y="{HEAD - 8}" text-anchor="middle" fill="#6b7280">{column}</text>'


def _row_heads(placed: list[tuple[FieldLayout, list[_Box]]]) -> Iterator[str]:
    """Yield the byte offset at which each row starts, as long as it is known."""
    last_row = -1
    for field, boxes in placed:
        if field.offset is None:
            return
        for box in boxes:
            if box.row > last_row:
                y = HEAD + box.row * ROW_HEIGHT + 21
                yield f'<text x="{LEFT - 8}" y="{y}" text-anchor="end" fill="#6b7280">{box.row * BYTES_PER_ROW}</text>'
                last_row = box.row


def _field(field: FieldLayout, boxes: list[_Box], colour: str, link: Link | None) -> str:
    """Return all boxes of a field, its name in the widest."""
    ids = f" [{', '.join(field.requirements)}]" if field.requirements else ""
    title = f"{kafka_name(field.name)}: {field.type}. {field.doc}{ids}"
    widest = max(boxes, key=lambda box: box.size, default=None)
    shapes = "".join(_drawn_shape(box, colour) + (_label(field, box) if box is widest else "") for box in boxes)
    group = f"<g><title>{escape(title)}</title>{shapes}</g>"
    if link is None or not field.requirements:
        return group
    return f'<a href="{escape(link(field.requirements[0]))}">{group}</a>'


def _drawn_shape(box: _Box, colour: str) -> str:
    x, y = LEFT + box.column * BYTE_WIDTH, HEAD + box.row * ROW_HEIGHT
    dash = ' stroke-dasharray="5 3"' if box.is_variable else ""
    return (
        f'<rect x="{x}" y="{y}" width="{box.size * BYTE_WIDTH}" height="{ROW_HEIGHT}" fill="{colour}"'
        f' stroke="#1c2024"{dash}/>'
    )


def _label(field: FieldLayout, box: _Box) -> str:
    width = box.size * BYTE_WIDTH
    name = kafka_name(field.name)
    fitting = int((width - 6) / CHARACTER_WIDTH)
    if len(name) > fitting:
        name = name[: max(fitting - 1, 1)] + "…"
    x, y = LEFT + box.column * BYTE_WIDTH + width // 2, HEAD + box.row * ROW_HEIGHT + 21
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="#1c2024">{escape(name)}</text>'


# -- layouts as Markdown tables ----------------------------------------------------------------------------------------


HEADING: Final = "| offset | size | type | field | meaning | requirements | since | default |"


def markdown(structures: Iterable[Structure]) -> str:
    """Return a heading and a table for each structure."""
    return "\n\n".join(_section(structure) for structure in structures)


def _section(structure: Structure) -> str:
    size = "variable size" if structure.size is None else f"{structure.size} bytes"
    chapter = f", chapter {structure.chapter}" if structure.chapter else ""
    return f"### {structure.name} ({size}{chapter})\n\n{table(structure)}"


def table(structure: Structure) -> str:
    """Return offset, size, type, field, meaning, requirements, first version and default of each field."""
    rows = [HEADING, f"|{'---|' * HEADING.count(' | ')}---|"]
    for field in structure.fields:
        cells = (
            "" if field.offset is None else str(field.offset),
            "" if field.size is None else str(field.size),
            field.type,
            f"`{kafka_name(field.name)}`",
            field.doc.replace("|", "\\|"),
            ", ".join(field.requirements),
            field.since,
            field.default,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
