"""Figures of several rounds on pages: the median, and its range."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def shown(spread: Mapping[str, float], digits: int = 0, scale: int = 1) -> str:
    """Return the median with the least and the most, as ``3.1 (2.9 to 4.0)``.

    Args:
        spread: of `proofs.report_facts.spread`, as reports keep it.
        digits: behind the point.
        scale: what each figure is multiplied by.
    """
    median, least, most = (f"{spread[name] * scale:,.{digits}f}" for name in ("median", "least", "most"))
    return f"{median} ({least} to {most})"
