"""``seglog inspect``: a row for each field, with its bytes."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import json_option, offset_of
from seglog_format.cli.output import diagnose, write_lines
from seglog_format.log.foreign_files import foreign_at, foreign_kind

if TYPE_CHECKING:
    from seglog_format.inspection import Inspection, Selection

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

    if file == "-":
        content = sys.stdin.buffer.read()
        if (foreign := foreign_kind(file, content)) is not None:
            msg = f"{file}: {foreign}"
            raise UsageError(msg)
        return inspect_pasted(content, wanted)
    path = Path(file)
    match = POSITION.fullmatch(file)
    if match and not path.exists():
        if wanted.position is not None:
            msg = "give the position once"
            raise click.UsageError(msg)
        path, wanted = Path(match[1]), replace(wanted, position=int(match[2]))
    return inspect_file(path, wanted)


def _foreign(file: str) -> str | None:
    """Return what a file is that is not of this format; None if nothing shows it, or it is an index or a snapshot."""
    from seglog_format.lines.sources import SourceKind, source_of

    path = Path(file)
    is_log = source_of(path, path.name, 0).kind in {SourceKind.LOG, SourceKind.OTHER}
    return foreign_at(path) if is_log and path.is_file() else None


def _show(inspection: Inspection, depth: int | None, *, as_json: bool) -> None:
    from seglog_format.cli.render_inspect import json_fields, print_inspection

    if not as_json:
        print_inspection(inspection, depth)
        return
    write_lines(json_fields(inspection))


def _write_page(inspection: Inspection, path: Path) -> None:
    from seglog_format.cli.render_inspect import page
    from seglog_format.storage.new_directory import write_report

    text = page(inspection)
    write_report(path, text)
    diagnose(f"wrote {path}, {len(text):,} bytes")
