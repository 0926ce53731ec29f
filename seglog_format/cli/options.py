"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

PATH: Final = click.Path(path_type=Path)

path_argument: Final = click.argument("path", type=PATH)

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")

KIBI: Final = 1024
SIZE_UNITS: Final = {"k": KIBI, "m": KIBI**2, "g": KIBI**3, "": 1}


def size_of(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """Callback of options that take a number of bytes: ``4096``, ``64k``, ``256m``, ``1g``."""
    digits = value.rstrip("kKmMgG")
    unit = value[len(digits) :].lower()
    if not (digits.isascii() and digits.isdecimal()) or unit not in SIZE_UNITS:
        msg = f"{value!r} is not a size such as 4096, 64k or 256m"
        raise click.BadParameter(msg)
    return int(digits) * SIZE_UNITS[unit]


def limit_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--limit``: how much one batch may decompress to."""
    option = click.option(
        "--limit",
        metavar="SIZE",
        callback=size_of,
        default="256m",
        show_default=True,
        help="Refuse batches that decompress to more than this.",
    )
    return option(function)
