"""Standard output for data, standard error for everything else."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format import names
from seglog_format.cli import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# -- text for people: escaped for terminals, sizes, times --------------------------------------------------------------


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SIZE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
KIBI: Final = 1024


def printable(text: str) -> str:
    r"""Escape everything that could control a terminal, as ``\x1b``, ``\u202e`` and the like."""
    return text if text.isprintable() else names.printable(text, len(text))


def time_text(timestamp_ms: int) -> str:
    """Return an instant in UTC with milliseconds; the bare number if no calendar has it, ``-`` for none."""
    if timestamp_ms == -1:
        return "-"
    try:
        moment = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms}ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def size_text(size: int) -> str:
    """Return a size in the largest unit that keeps the number above 1: ``999 B``, ``1.5 KiB``."""
    if size < KIBI:
        return f"{size} B"
    amount, unit = float(size), 0
    while amount >= KIBI and unit < len(SIZE_UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {SIZE_UNITS[unit]}"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 batch``, ``2 batches``."""
    if count == 1:
        return f"1 {noun}"
    plural = noun + ("es" if noun.endswith(("ch", "x", "s")) else "s")
    if noun.endswith("y"):
        plural = noun[:-1] + "ies"
    return f"{count:,} {plural}"


# -- standard output for data ------------------------------------------------------------------------------------------


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
    from seglog_format.lines.options import LongBytes, LongList

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


STANDARD_INPUT_FILE: Final[list[str]] = []
"""Path of the file with the bytes of standard input, if a command has read them."""


def as_given(text: str) -> str:
    """Return a text with the name that the user gave to standard input, not that of its temporary file."""
    for path in STANDARD_INPUT_FILE:
        text = text.replace(path, names.STANDARD_INPUT)
    return text


def diagnose(message: str) -> None:
    """Write one line to standard error, after what standard output has so far: where both go to one file, in order."""
    progress.hide()
    REPORTED.append(message)
    with suppress(OSError, ValueError):  # of a closed output: the end of the command says so
        sys.stdout.flush()
    click.echo(f"seglog: {printable(as_given(message))}", err=True)


# -- standard output as a terminal: its width, and colours, as ``--color`` says, unless ``NO_COLOR`` forbids them ------


CHOICE: Final = "SEGLOG_COLOR"
"""The variable of the environment that holds the choice; processes that a command starts follow it."""
CODES: Final = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "bold": 1, "dim": 2}


CHOICES: Final = ("auto", "always", "never")


def choose(when: str) -> None:
    """Set when text is coloured: one of `CHOICES`; ``auto`` leaves it to the terminal and to ``NO_COLOR``."""
    os.environ[CHOICE] = when
    has_colour.cache_clear()


@cache
def has_colour() -> bool:
    """Return whether text may be coloured."""
    if (choice := os.environ.get(CHOICE, "auto")) in {"always", "never"}:
        return choice == "always"
    is_shown = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return not os.environ.get("NO_COLOR") and (is_shown or bool(os.environ.get("FORCE_COLOR")))


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where standard output is none, so programs get whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled(text: str, style: str) -> str:
    """Return the text in a colour or weight, if text may be coloured."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if has_colour() else text
