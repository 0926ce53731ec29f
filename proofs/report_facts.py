"""What the head of a report says of where it was made: no names and no paths of the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any


def machine() -> dict[str, Any]:
    """Return the kind of machine."""
    return {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()}


def versions(*packages: str) -> dict[str, str]:
    """Of Python, and of installed packages that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
