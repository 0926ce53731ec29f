"""When Python looks for garbage: not while modules are loaded, of which next to nothing becomes any."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_collecting() -> Iterator[None]:
    """Look for no garbage where hardly any is made; it would take a tenth of a start. What is there then stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
