"""``seglog fixtures``: export of the conformance suite's test vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.options import PATH, epilog_of, json_option
from seglog_format.cli.output import diagnose, write_line

if TYPE_CHECKING:
    from pathlib import Path

EPILOG: Final = """\b
Examples:
  seglog fixtures export -o seglog-vectors.zip
  seglog fixtures list --json --family crc | jq -r .directory"""


@click.group(epilog=EPILOG)
def command() -> None:
    """Export the test vectors of the conformance suite."""


@command.command(epilog=epilog_of("fixtures export"))
@click.option("-o", "--output", type=PATH, required=True, help="The archive to write.")
@click.option(
    "--family", "families", multiple=True, metavar="FAMILY", help="Number or name of a family; by default all."
)
def export(output: Path, families: tuple[str, ...]) -> None:
    """Write all cases to a zip archive of plain files: bytes, requests and expected answers.

    No Python is needed to use it; its README.txt lists the content. The same cases make the same archive.
    """
    from seglog_conformance.cases import load_cases, selected
    from seglog_conformance.export import export as write

    count = write(selected(load_cases(), families), output)
    diagnose(f"wrote {count} cases to {output}")


@command.command("list", epilog=epilog_of("fixtures list"))
@click.option(
    "--family", "families", multiple=True, metavar="FAMILY", help="Number or name of a family; by default all."
)
@json_option
def list_vectors(families: tuple[str, ...], *, as_json: bool) -> None:
    """List the directories of an archive, with the subject of each."""
    from seglog_conformance.cases import load_cases, selected
    from seglog_conformance.export import index

    for line in index(selected(load_cases(), families)):
        write_line(line if as_json else f"{line['directory']}  {line['op']}  {line['level']} {line['result']}")
