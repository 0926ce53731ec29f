"""What reports say in one way: where they were made, without names and paths of the machine, and how times spread."""

from __future__ import annotations

import os
import platform
import statistics
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def machine() -> dict[str, Any]:
    """Return the kind of machine."""
    return {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()}


def versions(*packages: str) -> dict[str, str]:
    """Of Python, and of installed packages that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median of what several rounds took, with the least and the most."""
    return {"least": min(seconds), "median": statistics.median(seconds), "most": max(seconds)}
