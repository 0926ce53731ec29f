"""Standard output for data, standard error for everything else."""

from __future__ import annotations

import sys
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli import progress
from seglog_format.cli.render import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.model import MissingOffsets

SHOWN_SIZE: Final = 4096
"""Maximum bytes of a key, value or header, and maximum headers of a record, that text shows."""
REPORTED: Final[deque[str]] = deque(maxlen=1000)
"""The latest messages on standard error."""
LONG_SIZE: Final = 2**16
"""Bytes of a value, or items of a list, beyond which JSON is written in pieces."""


@cache
def _encode() -> Callable[[object], str]:
    """Return the JSON encoder: it escapes all but ASCII, so no byte of a file reaches a terminal unescaped."""
    from json import JSONEncoder  # commands that print no JSON start without it

    return JSONEncoder(separators=(",", ":")).encode


def write_json(value: dict[str, Any]) -> None:
    """Write one object on one line of standard output; in pieces if a value is too long for one text."""
    progress.hide()
    try:
        sys.stdout.write(_encode()(value) + "\n")
    except TypeError:
        sys.stdout.writelines(_pieces(value))
        sys.stdout.write("\n")


def _pieces(value: object) -> Iterator[str]:
    """Yield the JSON text of a value in pieces."""
    from seglog_format.lines.long import LongBytes, LongList

    if isinstance(value, LongBytes):
        yield from value.json_pieces(_encode())
    elif isinstance(value, dict):
        yield "{"
        for number, (name, item) in enumerate(value.items()):
            yield f"{',' if number else ''}{_encode()(name)}:"
            yield from _pieces(item)
        yield "}"
    elif isinstance(value, list | LongList):
        yield "["
        for number, item in enumerate(value):
            yield "," if number else ""
            yield from _pieces(item)
        yield "]"
    else:
        yield _encode()(value)


def json_text(value: object) -> str:
    """Return the JSON text of a value."""
    return _encode()(value)


def write_text(text: str) -> None:
    """Write one line to standard output; the caller has made it `printable`."""
    progress.hide()
    sys.stdout.write(text + "\n")


def diagnose(message: str) -> None:
    """Write one line to standard error."""
    progress.hide()
    REPORTED.append(message)
    click.echo(f"seglog: {printable(message)}", err=True)


def missing_object(missing: MissingOffsets) -> dict[str, int]:
    """Return missing offsets for JSON."""
    return {
        "firstOffset": missing.first_offset,
        "nextOffset": missing.next_offset,
        "offsetCount": missing.offset_count,
    }
