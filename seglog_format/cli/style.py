"""Standard output as a terminal: its width, and colours, as ``--color`` says, unless ``NO_COLOR`` forbids them."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import Final

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
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where standard output is none, so programs get whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled(text: str, style: str) -> str:
    """Return the text in a colour or weight, if text may be coloured."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if has_colour() else text
