"""Anonymous memory of this process, as the kernel accounts for it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def peak_while(run: Callable[[], object]) -> dict[str, Any]:
    """Return the bytes before a callable runs, and the peak while it runs."""
    before, most, stop = anonymous_bytes(), [0], threading.Event()
    watch = threading.Thread(target=watched, args=(most, stop))
    watch.start()
    try:
        run()
    finally:
        stop.set()
        watch.join()
    return {"before": before, "peak": max(most[0], before)}


def watched(most: list[int], stop: threading.Event) -> None:
    """Sample every few milliseconds."""
    while not stop.wait(0.004):
        most[0] = max(most[0], anonymous_bytes())


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process, in bytes."""
    with suppress(FileNotFoundError), Path("/proc/self/smaps_rollup").open(encoding="ascii") as file:
        for line in file:
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    return 0
