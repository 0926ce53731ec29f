"""``seglog warm``: compilation of the columnar engine."""

from __future__ import annotations

import time
from typing import Final

import click

from seglog_format.cli.options import json_option
from seglog_format.cli.output import write_line

LEVELS: Final = ("v2", "v4", "any")
EPILOG: Final = """\b
Examples:
  seglog warm
  seglog warm --level v2 --level v4"""


@click.command(epilog=EPILOG)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(LEVELS),
    help="Compile for processors of this level instead; repeatable.",
)
@json_option
def command(*, levels: tuple[str, ...], as_json: bool) -> None:
    """Compile the columnar engine, beside the package, where no wheel has brought it.

    No other command compiles anything: without the result they read by the plain engine. This takes numba (the extra
    compile) and about a minute, and is needed again only when the package changes.

    Level v2 is x86-64 with SSE 4.2 and carry-less products, v4 has AVX-512 as well; any other processor is level any.
    """
    from seglog_format.engine import make_libraries

    started = time.monotonic()
    kernels = make_libraries(levels)
    seconds = round(time.monotonic() - started, 1)
    count = sum(is_new for _, is_new in kernels)
    write_line(
        {"kernels": len(kernels), "compiled": count, "seconds": seconds}
        if as_json
        else f"{len(kernels)} kernels: {f'{count} compiled in {seconds} s' if count else 'all compiled before'}"
    )
