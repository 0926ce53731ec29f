"""Directories of the suite's other parts, in a wheel next to this module, in a working tree above it; and of builds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent


def part(name: str) -> Path:
    """Return the directory of a part of the suite.

    Args:
        name: ``cases``, ``adapters``, ``known_failures``, ``templates`` or ``language_files``.
    """
    packed = PACKAGE / f"_{name}"
    return packed if packed.is_dir() else PACKAGE.parent / name


def own_builds() -> Path:
    """Return the directory for builds in this user's cache.

    It is not below the current directory: tool chains obey settings in the directories above a build, and a build that
    is found there may be anyone's.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "seglog-format" / "conform"
