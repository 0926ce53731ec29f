"""Standard output for data, standard error for everything else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.render import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@cache
def _encode() -> Callable[[object], str]:
    """What encodes: everything outside ASCII is escaped, so that no byte of a file reaches a terminal as it is."""
    from json import JSONEncoder  # who prints none starts without it

    return JSONEncoder(separators=(",", ":")).encode


def write_json(value: dict[str, Any]) -> None:
    """One object on one line of standard output."""
    sys.stdout.write(_encode()(value) + "\n")


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
