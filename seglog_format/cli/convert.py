"""``seglog convert``: conversion of JSON lines to files."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from itertools import starmap
from typing import IO, TYPE_CHECKING, Any

import click

from seglog_format.cli.options import PATH, json_option
from seglog_format.cli.output import write_line
from seglog_format.errors import UsageError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EPILOG = """\b
Examples:
  seglog dump --json my-topic-0 | seglog convert - -o my-copy-0
  seglog dump --json data | seglog convert - -o copy
  seglog dump --json --remote /mnt/tier a-0 | seglog convert - -o whole-0"""


@click.command(epilog=EPILOG)
@click.argument("lines", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, metavar="DIR", help="Write here: a new or empty directory.")
@click.option(
    "--bytes",
    "bytes_as",
    type=click.Choice(["utf8", "hex", "base64"]),
    default="utf8",
    show_default=True,
    help="How keys, values and headers are written in the lines.",
)
@json_option
def command(lines: Path, *, output: Path, bytes_as: Any, as_json: bool) -> int:  # noqa: ANN401 - one of the choices
    """Make files from the lines in the file LINES, which dump --json printed; - is standard input.

    Sizes and checksums are computed again. Logs without index lines get an offset and a time index. Lines of
    damaged batches are refused. Nothing is left in DIR after any failure.
    """
    from seglog_format.lines.rebuild import rebuilt_files
    from seglog_format.storage.new_directory import all_or_nothing, write_new_file

    with all_or_nothing(output) as staging, _opened(lines) as texts:
        files = rebuilt_files(_objects(texts), bytes_as=bytes_as)
        written = [(made.name, write_new_file(staging, made.name, made.pieces)) for made in files]
    for name, size in written:
        write_line({"type": "file", "file": name, "bytes": size} if as_json else _text(name, size))
    return 0


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open the file of lines, or standard input."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(reason_of(error)) from error
    with file:
        yield file


def _objects(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    def read(number: int, text: bytes) -> dict[str, Any]:
        try:
            line: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:
            msg = f"line {number} is no JSON: {error}"
            raise UsageError(msg) from error
        return line

    return starmap(read, enumerate(lines, 1))  # keeps no line in memory: one may be a gigabyte


def _text(name: str, size: int) -> str:
    from seglog_format.cli.output import printable

    return f"{printable(name)}  {size} bytes"
