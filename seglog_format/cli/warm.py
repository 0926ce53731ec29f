"""``seglog warm``: advance compilation of the columnar engine."""

from __future__ import annotations

import time
from typing import Final

import click

from seglog_format.cli.options import json_option
from seglog_format.cli.output import write_json, write_text

EPILOG: Final = """\b
Examples:
  seglog warm --json
  NUMBA_CACHE_DIR=/var/cache/seglog seglog warm"""


@click.command(epilog=EPILOG)
@json_option
def command(*, as_json: bool) -> None:
    """Compile the columnar engine for this machine, so no other command has to.

    Compiled code is stored beside the package, or in the user's cache directory if that is read-only, or where
    NUMBA_CACHE_DIR says. It is compiled again only when the package or numba changes.

    Anyone who can write to that directory can run code as you. So one that every user can write to, or that belongs to
    another user, is refused.
    """
    from seglog_format.engine.columnar import warm

    started = time.monotonic()
    kernels = list(warm())
    seconds = round(time.monotonic() - started, 1)
    count = sum(is_new for _, is_new in kernels)
    if as_json:
        write_json({"kernels": len(kernels), "compiled": count, "seconds": seconds})
    else:
        write_text(f"{len(kernels)} kernels: {f'{count} compiled in {seconds} s' if count else 'all compiled before'}")
