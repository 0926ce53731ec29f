"""``seglog warm``: compile the columnar engine ahead."""

from __future__ import annotations

import time
from typing import Final

import click

from seglog_format.cli.output import write_text

EPILOG: Final = """\b
Examples:
  seglog warm"""


@click.command(epilog=EPILOG)
def command() -> None:
    """Compile the columnar engine for this machine, so that no other command has to.

    What is compiled is kept beside the package, or in the user's cache directory where that is read-only, or where
    NUMBA_CACHE_DIR says. It is compiled again only when the package or numba changes.
    """
    from seglog_format.log.scanning import engine

    started = time.monotonic()
    kernels = list(engine("warm").warm())
    count = sum(is_new for _, is_new in kernels)
    what = f"{count} compiled in {time.monotonic() - started:.1f} s" if count else "all compiled before"
    write_text(f"{len(kernels)} kernels: {what}")
