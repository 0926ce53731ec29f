"""Figures of several rounds on pages: the median, and its range."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def shown(spread: Mapping[str, float], digits: int = 0, scale: int = 1) -> str:
    """Return the median with the least and the most, as ``3.1 (2.9 to 4.0)``.

    Args:
        spread: result of `proofs.report_facts.spread`, as in reports.
        digits: number of decimals.
        scale: factor for each figure.
    """
    middle, least, most = (f"{spread[name] * scale:,.{digits}f}" for name in ("median", "least", "most"))
    return f"{middle} ({least} to {most})"


def distances(spreads: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the distance of the fastest and the slowest pass of each cell from its median pass."""
    sentences = []
    for name, key in (("fastest", "least"), ("slowest", "most")):
        shares = sorted(abs(spread[key] / spread["median"] - 1) for spread in spreads if key in spread)
        if shares:
            sentences.append(
                f"Half of all cells have their {name} pass within {median(shares):.0%} of the median one, all within "
                f"{shares[-1]:.0%}."
            )
    return " ".join(sentences)
