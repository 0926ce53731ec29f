"""``seglog explorer``: the explorer in the browser, with files of this machine."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.options import PATH
from seglog_format.cli.output import diagnose
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LARGEST_TOTAL: Final = 2 << 30
"""Bytes of all files together; a browser keeps them while the page is open."""
REST_SECONDS: Final = 120

EPILOG: Final = """\b
Examples:
  seglog explorer
  seglog explorer my-topic-0
  seglog explorer --no-browser my-topic-0/00000000000000000000.log"""


@click.command(epilog=EPILOG)
@click.argument("path", type=PATH, required=False)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port of 127.0.0.1; by default any."
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
@click.option(
    "--rest",
    "rest_seconds",
    type=click.FloatRange(min=1),
    default=REST_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="End after no page has been open for this long.",
)
def command(path: Path | None, *, port: int, no_browser: bool, rest_seconds: float) -> int:
    """Open the explorer in the browser, with the files at PATH: a partition directory, or a file and its segment.

    Nothing leaves this machine: a server on 127.0.0.1 hands the page and the files to the browser, and ends by itself
    when the page is closed. Without PATH, drop files on the page or choose a sample.
    """
    from seglog_format.cli.explorer_server import ExplorerServer

    try:
        server = ExplorerServer(_named(_files(path)) if path else {}, port, rest_seconds)
    except OSError as error:
        msg = f"port {port}: {error.strerror}"
        raise UsageError(msg) from error
    with server:
        diagnose(server.address)
        if not no_browser:
            webbrowser.open(server.address)
        server.serve_until_closed()
    return 0


def _files(path: Path) -> list[Path]:
    """Return the files of a partition directory, or those of the segment of a file.

    Raises:
        UsageError: the path is neither, or the files are too large together.
    """
    from seglog_format.cli.paths import partition_directory_at
    from seglog_format.log.listing import list_partition

    if path.is_file():
        stem = path.name.partition(".")[0]
        beside = [
            one.path for one in list_partition(path.absolute().parent).files if one.path.name.startswith(f"{stem}.")
        ]
        found = [path, *(one for one in beside if stem.isdecimal() and one.name != path.name)]
    else:
        found = [one.path for one in list_partition(partition_directory_at(path)).files]
    if sum(one.stat().st_size for one in found) > LARGEST_TOTAL:
        msg = f"{path}: more than 2 GiB for a browser; name a file of one segment"
        raise UsageError(msg)
    return found


def _named(files: Iterable[Path]) -> dict[str, Path]:
    return {f"{one.absolute().parent.name}/{one.name}": one for one in files}
