"""Common parts of reports: the machine and versions, without names and paths, and the spread of times."""

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
    """Return the versions of Python, and of installed packages that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median of the seconds of several rounds, with the least and the most."""
    return {"least": min(seconds), "median": statistics.median(seconds), "most": max(seconds)}
