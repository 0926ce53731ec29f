"""What the seconds of several passes come to."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median pass, with the shortest and the longest."""
    return {"least": min(seconds), "median": statistics.median(seconds), "most": max(seconds)}
