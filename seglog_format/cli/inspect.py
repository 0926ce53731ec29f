"""``seglog inspect``: a row for each field, with its bytes."""

from __future__ import annotations

import codecs
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from rich.console import Console
from rich.text import Text

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import json_option, offset_of, readable_path
from seglog_format.cli.output import diagnose, printable, write_lines
from seglog_format.field_names import kafka_name
from seglog_format.log.path_kind import foreign_at, foreign_kind, packed_with
from seglog_format.names import STANDARD_INPUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.inspection import Block, Field, Inspection, Selection

# -- a field's value as text, for the terminal and for the HTML page ---------------------------------------------------


MAX_TEXT: Final = 60
MAX_DECODED: Final = 4096
"""Bytes by which a value is recognised as text."""
UTF8: Final = codecs.getincrementaldecoder("utf-8")
MAX_HEX: Final = 24
HEX_FIELDS: Final = {"crc", "attributes"}
"""Numbers shown in hex."""


def value_text(field: Field) -> str:
    """Return the value in a few characters: a number, the first bytes, or nothing for a group."""
    value = field.value
    if field.is_group or value == "":
        return ""
    if value is None:
        return "?" if field.failed else "null"
    if isinstance(value, bytes):
        return bytes_text(value)
    if field.name in HEX_FIELDS and isinstance(value, int):
        width = 2 * (field.end - field.start)
        return f"0x{value % 16**width:0{width}x}"
    return printable(str(value))


def bytes_text(value: bytes) -> str:
    """Return quoted text for printable UTF-8, else hex digits; long values are cut, with the size in front."""
    try:
        text = UTF8().decode(value[:MAX_DECODED], final=len(value) <= MAX_DECODED)
    except UnicodeDecodeError:
        text = ""
    if value and (not text or sum(not character.isprintable() for character in text) * 4 > len(text)):
        digits = value[:MAX_HEX].hex()
        return f"0x{digits}" if len(value) <= MAX_HEX else f"{len(value)} bytes 0x{digits}…"
    if len(text) <= MAX_TEXT:
        return f'"{printable(text)}"'
    return f'{len(value)} bytes "{printable(text[:MAX_TEXT])}…"'


# -- one row for each field --------------------------------------------------------------------------------------------


COLOURS: Final = ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "bright_cyan", "bright_green")
FAILED: Final = "bold white on red"
WIDE: Final = 100
"""Width of a terminal from which on eight bytes of a field are shown, and its rule; below it, four bytes."""
NARROW: Final = f"left out below {WIDE} columns: rules, and what … stands for (see --json)"
WIDTH_OF_FILES: Final = 160
"""Columns if the output is no terminal."""
MAX_NAME_WIDTH: Final = 36
RULE_WIDTH: Final = len("SEG-BAT-003")
HEADINGS: Final = ("position", "size", "bytes", "field", "value", "rule")
MARK: Final = "!"
"""Before a field at which reading stopped, or whose value is wrong: paper shows no colour."""


class Widths(NamedTuple):
    """Columns of a row, in characters.

    Attributes:
        rule: 0 where there is no room for it.
    """

    position: int
    size: int
    bytes: int
    field: int
    value: int
    rule: int


def print_inspection(inspection: Inspection, depth: int | None = None) -> None:
    """Print every block.

    Args:
        inspection: what to show.
        depth: of the innermost fields to show, 0 for the outermost; None for all.
    """
    console = make_console()
    for number, block in enumerate(inspection.blocks):
        if number:
            console.print()
        print_block(console, block, depth)
    if console.width < WIDE:
        console.print(Text(NARROW, style="dim"))
    if inspection.remark:
        console.print(Text(printable(inspection.remark), style="dim"))


class PlainConsole(Console):
    """A console that leaves a closed pipe to `main`, as all other commands do."""

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would end the process with 1."""
        raise  # noqa: PLE0704 - it is called while the error is handled


def make_console() -> Console:
    """Return standard output as a console; colours on a terminal only, unless the environment says otherwise."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES
    return PlainConsole(file=sys.stdout, highlight=False, width=width, soft_wrap=False)


def print_block(console: Console, block: Block, depth: int | None = None) -> None:
    """Print one block: title, problems, and a row for each field."""
    console.print(Text(printable(block.title), style="bold"))
    for problem in block.problems:
        console.print(Text(printable(problem), style="bold red"))
    fields = [field for field in block.fields if depth is None or field.depth <= depth]
    if fields:
        for row in field_rows(block, fields, widths_for(block, fields, console.width), depth):
            console.print(row, no_wrap=True, overflow="ellipsis", crop=True)


def widths_for(block: Block, fields: Iterable[Field], width: int) -> Widths:
    """Return the widths of the columns for some fields of a block, in a line of `width` characters."""
    is_wide = width >= WIDE
    position = max(len(HEADINGS[0]), len(str(block.position + len(block.data))))
    size = max(len(HEADINGS[1]), len(str(len(block.data))))
    shown = 3 * (8 if is_wide else 4) - 1
    name = min(max(len(_name(field)) for field in fields), MAX_NAME_WIDTH)
    rule = RULE_WIDTH if is_wide else 0
    fixed = len(MARK) + position + size + shown + name + rule + 2 * (len(HEADINGS) - 1 - (not rule))
    return Widths(position, size, shown, name, max(width - fixed, len(HEADINGS[4])), rule)


def field_rows(block: Block, fields: Iterable[Field], widths: Widths, depth: int | None = None) -> Iterator[Text]:
    """Yield the heading, and a row for each field; neighbours differ in colour."""
    yield _row(" ", HEADINGS, widths, ("dim",) * len(HEADINGS))
    leaves = 0
    for field in fields:
        is_folded = field.is_group and field.depth == depth
        colour = COLOURS[leaves % len(COLOURS)]
        leaves += not field.is_group
        style = FAILED if field.failed else "bold" if field.is_group else colour
        cells = (
            str(block.position + field.start),
            str(field.end - field.start),
            bytes_of(block, field, widths.bytes) if is_folded or not field.is_group else "",
            _name(field),
            "  ".join(filter(None, (value_text(field), printable(field.note)))),
            next(iter(field.requirements), ""),  # `--json` and `--html` have the others
        )
        yield _row(MARK if field.failed else " ", cells, widths, ("dim", "dim", colour, style, "", "dim"))


def _row(mark: str, cells: tuple[str, ...], widths: Widths, styles: tuple[str, ...]) -> Text:
    text = Text(mark, FAILED if mark == MARK else "")
    for number, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=True)):
        if not width:
            continue
        part = Text(cell.rjust(width) if number < HEADINGS.index("bytes") else cell, style)
        part.truncate(width, overflow="ellipsis", pad=True)
        text.append("  " if number else "").append_text(part)
    text.rstrip()
    return text


def bytes_of(block: Block, field: Field, width: int) -> str:
    """Return the bytes of a field in hex, as far as they fit into `width` characters."""
    count, most = field.end - field.start, (width + 1) // 3
    if count <= most:
        return bytes(block.data[field.start : field.end]).hex(" ")
    return bytes(block.data[field.start : field.start + most - 1]).hex(" ") + " …"


def _name(field: Field) -> str:
    return "  " * field.depth + kafka_name(field.name)


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
                "value": _json_value(field),
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
        yield kafka_name(".".join(path).replace(".[", "[")), field


# -- one HTML page with fields and bytes: no server, no network, only this file ----------------------------------------
# The page carries its data as JSON and draws one page of bytes at a time, so a file of a megabyte is as fast as a
# batch. Text from files is only ever put into the page as text, never as markup.


TITLE_MARK: Final = "$TITLE$"
DATA_MARK: Final = "$DATA$"
MAX_PLAIN_SIZE: Final = 1 << 18
"""Maximum characters of uncompressed data in a page; browsers before 2023 cannot decompress more."""


def page(inspection: Inspection) -> str:
    """Return the whole page as text."""
    from html import escape
    from importlib.resources import files

    content = _Content(inspection)
    template = files("seglog_format.cli").joinpath("page.html").read_text(encoding="utf-8")
    before_title, after_title = template.split(TITLE_MARK)
    before_data, after_data = after_title.split(DATA_MARK)
    return before_title + escape(content.title) + before_data + packed(content.json_text()) + after_data


def packed(text: str) -> str:
    """Return JSON unchanged, or Base64 of its deflated bytes if it is long; the page's script distinguishes them."""
    import zlib

    return text if len(text) <= MAX_PLAIN_SIZE else _base64(zlib.compress(text.encode("ascii")))


def _base64(data: bytes | memoryview) -> str:
    from base64 import b64encode

    return b64encode(data).decode("ascii")


class _Content:
    """The data for the page's script; repeated texts are stored once."""

    def __init__(self, inspection: Inspection) -> None:
        self.names: dict[str, int] = {}
        self.docs: dict[tuple[str, tuple[str, ...]], int] = {}
        self.blocks = [self._block(block) for block in inspection.blocks]
        self.title = printable(inspection.title)
        self.remark = printable(inspection.remark)

    def _block(self, block: Block) -> dict[str, Any]:
        return {
            "title": printable(block.title),
            "position": block.position,
            "derived": block.is_derived,
            "problems": [printable(problem) for problem in block.problems],
            "data": _base64(block.data),
            "fields": [self._field(field) for field in block.fields],
        }

    def _field(self, field: Field) -> list[Any]:
        """Return name, start, size, depth, value, note, documentation, and whether it is a group (1) or wrong (2)."""
        doc = (field.doc, field.requirements)
        row: list[Any] = [
            self.names.setdefault(kafka_name(field.name), len(self.names)),
            field.start,
            field.end - field.start,
            field.depth,
            self.docs.setdefault(doc, len(self.docs)),
            int(field.is_group) + 2 * field.failed,
            value_text(field),
            printable(field.note),
        ]
        while row[-1] == "":
            row.pop()
        return row

    def json_text(self) -> str:
        """Return everything as JSON that is safe inside a script element."""
        import json

        from seglog_format.requirements import requirements

        known = requirements()
        used = sorted({identifier for _, ids in self.docs for identifier in ids if identifier in known})
        value = {
            "title": self.title,
            "remark": self.remark,
            "names": list(self.names),
            "docs": [[doc, list(ids)] for doc, ids in self.docs],
            "requirements": {identifier: [known[identifier].level, known[identifier].text] for identifier in used},
            "blocks": self.blocks,
        }
        return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


EPILOG: Final = """\b
Examples:
  seglog inspect 00000000000000000000.log --offset 42
  seglog inspect 00000000000000000000.log:4096
  seglog inspect --all --depth 0 00000000000000000000.log
  kcat ... | seglog inspect -
  echo 'AAAAAAAAAAo...' | seglog inspect -
  seglog inspect 00000000000000000000.log --html page.html"""

POSITION: Final = re.compile(r"(.+):(\d+)")


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE[:POSITION]|-")
@json_option
@click.option("--offset", type=offset_of, metavar="N", help="Start with the batch that holds this offset.")
@click.option("--position", type=click.IntRange(min=0), metavar="P", help="Start at this byte.")
@click.option("--batch", type=click.IntRange(min=0), metavar="N", help="Start with batch, message or slot N, from 0.")
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="How many to show; by default 1 batch or 16 slots."
)
@click.option("--all", "whole", is_flag=True, help="Show everything from there on.")
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="Fold deeper levels; 0 shows entries only.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE",
    help="Write one page with everything in it.",
)
def command(file: str, *, as_json: bool, whole: bool, depth: int | None, html: Path | None, **start: int | None) -> int:
    """Show each field of a batch, message, index entry or snapshot in a row: position, size, bytes, name, value, rule.

    A row that begins with ! has a wrong value, or is where reading stopped. A dash reads standard input: a batch, a
    message set or a fetch response, as hex, hex dump, Base64 or bytes. The page that --html writes needs only a
    browser; it shows the whole file unless a part is selected.
    """
    from seglog_format.inspection import Selection

    if sum(start[name] is not None for name in ("offset", "position", "batch")) > 1:
        msg = "--offset, --position and --batch exclude each other"
        raise click.UsageError(msg)
    everything = whole or (html is not None and start["count"] is None)
    inspection = _inspected(file, Selection(**start, whole=everything))
    if html is not None:
        _write_page(inspection, html)
    else:
        _show(inspection, depth, as_json=as_json)
    if (foreign := _foreign(file)) is not None:
        diagnose(f"{file}: {foreign}")
    return FINDINGS if inspection.problems or foreign is not None else 0


def _inspected(file: str, wanted: Selection) -> Inspection:
    from seglog_format.errors import UsageError
    from seglog_format.inspection import inspect_file, inspect_pasted

    context, given = click.get_current_context(), Path(file)
    if file == STANDARD_INPUT:
        content = readable_path(file, context).read_bytes()
        if (foreign := foreign_kind(file, content)) is not None:
            msg = f"{file}: {foreign}"
            raise UsageError(msg)
        return inspect_pasted(content, wanted)
    match = POSITION.fullmatch(file)
    if match and not given.exists():
        if wanted.position is not None:
            msg = "give the position once"
            raise click.UsageError(msg)
        file, wanted = match[1], replace(wanted, position=int(match[2]))
    return inspect_file(readable_path(file, context), wanted)


def _foreign(file: str) -> str | None:
    """Return what a file is that is not of this format; None if nothing shows it, or it is an index or a snapshot."""
    from seglog_format.lines.sources import SourceKind, source_of

    path = Path(file)
    is_log = source_of(path, path.name, 0).kind in {SourceKind.LOG, SourceKind.OTHER}
    return foreign_at(path) if is_log and path.is_file() and not packed_with(path) else None


def _show(inspection: Inspection, depth: int | None, *, as_json: bool) -> None:
    if not as_json:
        print_inspection(inspection, depth)
        return
    write_lines(json_fields(inspection))


def _write_page(inspection: Inspection, path: Path) -> None:
    from seglog_format.storage.new_directory import write_report

    text = page(inspection)
    write_report(path, text)
    diagnose(f"wrote {path}, {len(text):,} bytes")
