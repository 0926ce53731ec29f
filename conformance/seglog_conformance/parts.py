"""Directories of the suite's other parts: in a wheel next to this module, in a working tree above it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent


def part(name: str) -> Path:
    """Return the directory of a part of the suite.

    Args:
        name: ``cases``, ``adapters``, ``known_failures`` or ``templates``.
    """
    packed = PACKAGE / f"_{name}"
    return packed if packed.is_dir() else PACKAGE.parent / name
