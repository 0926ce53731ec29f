"""Fields beside coloured bytes, on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seglog_format.cli.render import printable
from seglog_format.cli.render_field import value_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.inspection import Block, Field, Inspection

COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
FAILED: Final = "bold white on red"
WIDE: Final = 130
WIDTH_OF_FILES: Final = 160
"""Columns if the output is no terminal."""

SHOWN_ROWS: Final = 6
"""Rows of a long field shown before the gap; one more comes after it."""


def print_inspection(inspection: Inspection) -> None:
    """Print every block."""
    console = make_console()
    for number, block in enumerate(inspection.blocks):
        if number:
            console.print()
        print_block(console, block)
    if inspection.remark:
        console.print(Text(printable(inspection.remark), style="dim"))


def make_console() -> Console:
    """Return standard output as a console; colours on a terminal only, unless the environment says otherwise."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES
    return Console(file=sys.stdout, highlight=False, width=width, soft_wrap=False)


def print_block(console: Console, block: Block) -> None:
    """Print one block: title, problems, bytes and fields."""
    console.print(Text(printable(block.title), style="bold"))
    for problem in block.problems:
        console.print(Text(printable(problem), style="bold red"))
    row_size = 16 if console.width >= WIDE else 8
    styles = field_styles(block.fields)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=8 + row_size * 4 + row_size // 8 + 2)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_row(hex_text(block, styles, row_size), tree_text(block.fields, styles))
    console.print(grid)


def field_styles(fields: list[Field]) -> list[str]:
    """Return a style for each field: neighbouring leaves differ, groups are plain."""
    styles, leaves = [], 0
    for field in fields:
        if field.is_group:
            styles.append("bold")
        else:
            styles.append(FAILED if field.failed else COLOURS[leaves % len(COLOURS)])
            leaves += 1
    return styles


def tree_text(fields: list[Field], styles: list[str]) -> Text:
    """Return names, values and notes, indented by depth."""
    text = Text()
    for field, style in zip(fields, styles, strict=True):
        text.append("  " * field.depth)
        text.append(field.name, FAILED if field.failed else style)
        if value := value_text(field):
            text.append(f" {value}")
        if field.note:
            text.append(f"  {printable(field.note)}", "dim")
        text.append("\n")
    text.rstrip()
    return text


def hex_text(block: Block, styles: list[str], row_size: int) -> Text:
    """Return rows of position, bytes and characters; rows in the middle of a long field are left out."""
    text = Text()
    style_at = _style_of_bytes(block, styles, row_size)
    for start, skipped in _rows(block, row_size):
        if skipped:
            text.append(f"{'':8}  … {skipped:,} bytes …\n", "dim")
        else:
            _append_row(text, block, start, style_at, row_size)
    text.rstrip()
    return text


def _style_of_bytes(block: Block, styles: list[str], row_size: int) -> dict[int, str]:
    """Return the style of each byte to show, by the innermost field around it."""
    result: dict[int, str] = {}
    for field, style in zip(block.fields, styles, strict=True):
        if not field.is_group:
            for part in _shown(field, (SHOWN_ROWS + 2) * row_size):
                result.update(dict.fromkeys(part, style))
    return result


def _shown(field: Field, size: int) -> tuple[range, ...]:
    """Return the bytes of a field to show: all, or its beginning and its end."""
    if field.end - field.start <= 2 * size:
        return (range(field.start, field.end),)
    return range(field.start, field.start + size), range(field.end - size, field.end)


def _rows(block: Block, row_size: int) -> Iterator[tuple[int, int]]:
    """Yield the start of each row, or the number of bytes left out instead of it."""
    gaps = _gaps(block.fields, row_size)
    start = 0
    while start < len(block.data):
        end = gaps.get(start)
        if end is None:
            yield start, 0
            start += row_size
        else:
            yield start, end - start
            start = end


def _gaps(fields: list[Field], row_size: int) -> dict[int, int]:
    """Return the rows to leave out, from start to end, in the middle of long fields."""
    gaps = {}
    for field in fields:
        start = -(-field.start // row_size) * row_size + SHOWN_ROWS * row_size
        end = (field.end - 1) // row_size * row_size - row_size
        if not field.is_group and end > start:
            gaps[start] = end
    return gaps


def _append_row(text: Text, block: Block, start: int, style_at: dict[int, str], row_size: int) -> None:
    row = bytes(block.data[start : start + row_size])
    text.append(f"{block.position + start:08x}", "dim")
    for index, byte in enumerate(row):
        gap = "  " if index % 8 == 0 else " "
        text.append(gap)
        text.append(f"{byte:02x}", style_at.get(start + index))
    missing = row_size - len(row)
    text.append("   " * missing + " " * (missing // 8) + "  ")
    for index, byte in enumerate(row):
        text.append(chr(byte) if 0x20 <= byte < 0x7F else ".", style_at.get(start + index))  # noqa: PLR2004 - ASCII
    text.append("\n")


def json_fields(inspection: Inspection) -> Iterator[dict[str, Any]]:
    """Yield one object for each field."""
    for number, block in enumerate(inspection.blocks):
        for path, field in _with_paths(block.fields):
            yield {
                "file": inspection.title,
                "block": number,
                "isDecompressed": block.is_derived,
                "field": path,
                "position": block.position + field.start,
                "size": field.end - field.start,
                "value": field.value.hex()
                if isinstance(field.value, bytes)
                else None
                if field.is_group
                else field.value,
                "note": field.note,
                "doc": field.doc,
                "requirements": list(field.requirements),
                "failed": field.failed,
            }
        for problem in block.problems:
            yield {"file": inspection.title, "block": number, "problem": problem}


def _json_value(field: Field) -> object:
    if field.is_group:
        return None
    return field.value.hex() if isinstance(field.value, bytes) else field.value


def _with_paths(fields: list[Field]) -> Iterator[tuple[str, Field]]:
    """Yield each field with its dotted name."""
    path: list[str] = []
    for field in fields:
        path = [*path[: field.depth], field.name]
        yield ".".join(path).replace(".[", "["), field
