"""``seglog schema``: the layout of every structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.options import json_option
from seglog_format.cli.output import write_json, write_text

if TYPE_CHECKING:
    from seglog_format.cli.structures import Structure

EPILOG: Final = """\b
Examples:
  seglog schema RecordBatchHeader
  seglog schema --format svg RecordBatchHeader > header.svg
  seglog schema --format ksy > seglog.ksy
  seglog schema --json | jq -r .structure"""


@click.command(epilog=EPILOG)
@click.argument("names", metavar="[STRUCTURE]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "svg", "ksy"]),
    default="md",
    show_default=True,
    help="Markdown tables, JSON lines, a picture of the bytes, or a Kaitai Struct declaration.",
)
@json_option
def command(names: tuple[str, ...], *, form: str, as_json: bool) -> None:
    """Print the layout of every declared structure, or of those named: fields, offsets, sizes, types, meaning.

    Names are not case-sensitive.
    """
    chosen = _chosen(names)
    if as_json or form == "json":
        for structure in chosen:
            write_json(structure.as_object())
    else:
        write_text(_text(form, chosen))


def _chosen(names: tuple[str, ...]) -> list[Structure]:
    from difflib import get_close_matches

    from seglog_format.cli.structures import structures

    known = {structure.name.lower(): structure for structure in structures()}
    for name in names:
        if name.lower() not in known:
            close = get_close_matches(name.lower(), known, n=3)
            hint = "; there is " + ", ".join(known[one].name for one in close) if close else ""
            msg = f"no structure {name!r}{hint}"
            raise click.UsageError(msg)
    return [known[name.lower()] for name in names] or list(known.values())


def _text(form: str, chosen: list[Structure]) -> str:
    from seglog_format.cli.kaitai_set import ksy
    from seglog_format.cli.structures import markdown, svg

    return {"md": markdown, "svg": svg, "ksy": ksy}[form](chosen)
