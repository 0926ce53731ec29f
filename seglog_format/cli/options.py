"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.state.config import BrokerGeneration

PATH: Final = click.Path(path_type=Path, readable=False)  # the command reports what it cannot read

path_argument: Final = click.argument("path", type=PATH)

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")

KIBI: Final = 1024
SIZE_UNITS: Final = {"k": KIBI, "m": KIBI**2, "g": KIBI**3, "": 1}


def size_of(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """Parse a number of bytes: ``4096``, ``64k``, ``256m``, ``1g``."""
    digits = value.rstrip("kKmMgG")
    unit = value[len(digits) :].lower()
    if not (digits.isascii() and digits.isdecimal()) or unit not in SIZE_UNITS:
        msg = f"{value!r} is not a size such as 4096, 64k or 256m"
        raise click.BadParameter(msg)
    return int(digits) * SIZE_UNITS[unit]


def limit_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--limit``: the maximum size that one batch may decompress to."""
    option = click.option(
        "--limit",
        metavar="SIZE",
        callback=size_of,
        default="256m",
        show_default=True,
        help="Refuse batches that decompress to more than this.",
    )
    return option(function)


GENERATIONS: Final = ("0.8", "0.10.1", "0.11", "2.0", "3.7", "4.1")
"""First version of each generation of brokers; a test compares them with `BrokerGeneration`."""


def generation_of(_context: click.Context, _parameter: click.Parameter, value: str | None) -> BrokerGeneration | None:
    """Parse a generation of brokers."""
    from seglog_format.state.config import BrokerGeneration

    return None if value is None else BrokerGeneration(value)


generation_option: Final = click.option(
    "--generation",
    type=click.Choice(GENERATIONS),
    callback=generation_of,
    help="Write indexes like brokers from this version on; by default like the existing indexes.",
)

index_interval_option: Final = click.option(
    "--index-interval-bytes",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Value of index.interval.bytes; by default inferred from the existing indexes.",
)

ENGINES: Final = ("auto", "reference", "plain", "columnar")

engine_option: Final = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    show_default=True,
    help="The reader: plain decoders; columnar, which is compiled and falls back to them; or reference, the slow"
    " declarations. Results are the same. auto takes columnar above 32 MB, if it is installed.",
)
