"""Layouts as Markdown tables; other formats have modules of their own."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from seglog_format.cli.kaitai_set import ksy
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.cli.structures import Structure
    from seglog_format.schema.fields import FieldLayout

    Link = Callable[[str], str]


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
    shapes = "".join(_shape(box, colour) + (_label(field, box) if box is widest else "") for box in boxes)
    group = f"<g><title>{escape(title)}</title>{shapes}</g>"
    if link is None or not field.requirements:
        return group
    return f'<a href="{escape(link(field.requirements[0]))}">{group}</a>'


def _shape(box: _Box, colour: str) -> str:
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


__all__ = ["ksy", "markdown", "svg"]


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
