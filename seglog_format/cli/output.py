"""Standard output for data, standard error for everything else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.render import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.model import MissingOffsets

SHOWN_SIZE: Final = 4096
"""Bytes of a key, value or header, and headers of a record, beyond which text shows only the first."""
LONG_SIZE: Final = 2**16
"""Bytes of a value, or items of a list, beyond which JSON is written in pieces."""


@cache
def _encode() -> Callable[[object], str]:
    """What encodes: everything outside ASCII is escaped, so that no byte of a file reaches a terminal as it is."""
    from json import JSONEncoder  # who prints none starts without it

    return JSONEncoder(separators=(",", ":")).encode


def write_json(value: dict[str, Any]) -> None:
    """One object on one line of standard output; in pieces where something in it is too long to be one text."""
    try:
        sys.stdout.write(_encode()(value) + "\n")
    except TypeError:
        sys.stdout.writelines(_pieces(value))
        sys.stdout.write("\n")


def _pieces(value: object) -> Iterator[str]:
    """The JSON text of a value, piece by piece."""
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
    """The same object as text."""
    return _encode()(value)


def write_text(text: str) -> None:
    """One line of standard output; the caller has made it `printable`."""
    sys.stdout.write(text + "\n")


def diagnose(message: str) -> None:
    """One line of standard error."""
    click.echo(f"seglog: {printable(message)}", err=True)


def is_busy(path: Path) -> bool:
    """Whether a broker works on the files at a path; then they are copied, because it may cut them short."""
    from seglog_format.log.broker_lock import is_locked

    absolute = path.absolute()
    return any(is_locked(directory) for directory in (absolute, absolute.parent, absolute.parent.parent))


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, on a terminal that shows nothing else.

    Args:
        label: what is going on.
        total: at which value it is done, in any unit.

    Yields:
        A function that takes how far the work is.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield _ignore
        return
    with click.progressbar(length=max(total, 1), label=label, file=sys.stderr, show_eta=True) as bar:
        yield lambda done: bar.update(done - bar.pos)


def _ignore(_done: int) -> None:
    return


def missing_object(missing: MissingOffsets) -> dict[str, int]:
    """Missing offsets for JSON."""
    return {
        "firstOffset": missing.first_offset,
        "nextOffset": missing.next_offset,
        "offsetCount": missing.offset_count,
    }
