"""A badge for a page: the share of the ``must`` cases that an implementation passes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from seglog_conformance.runner import COMPLETE
from seglog_conformance.verdicts import Verdict, level_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_conformance.cases import Case
    from seglog_conformance.runner import Outcome

LABEL: Final = "segmented log format"
LETTER: Final = 6.6
GOOD, FAIR, POOR, UNKNOWN = "#2e7d32", "#b58900", "#c62828", "#666666"
FAIR_SHARE: Final = 0.9

SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{title}">
<title>{title}</title>
<rect width="{left}" height="20" fill="#444444"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#ffffff" font-family="Verdana,sans-serif" font-size="11">
<text x="6" y="14">{label}</text><text x="{start}" y="14">{message}</text></g></svg>
"""


def badge(outcome: Outcome, cases: Mapping[str, Case]) -> str:
    """Return an SVG with the share of passed ``must`` cases."""
    message, colour = _message(outcome, cases)
    left, right = int(len(LABEL) * LETTER) + 12, int(len(message) * LETTER) + 12
    without = f" ({outcome.scale_note})" if outcome.scale_note else ""
    title = f"{LABEL}: {outcome.name} {outcome.version} {message}{without}"
    return SVG.format(
        width=left + right,
        left=left,
        right=right,
        start=left + 6,
        colour=colour,
        label=escape(LABEL),
        message=escape(message),
        title=escape(title, quote=True),
    )


def _message(outcome: Outcome, cases: Mapping[str, Case]) -> tuple[str, str]:
    asked = [
        result
        for result in outcome.results
        if level_of(cases[result.case].level, result.raw) == "must" and result.verdict is not Verdict.SKIP
    ]
    if outcome.state != COMPLETE or not asked:
        return "not known", UNKNOWN
    if outcome.twins.recognized:
        return "answers by recognition", POOR
    passed = sum(result.raw is Verdict.PASS for result in asked)
    colour = GOOD if passed == len(asked) else FAIR if passed >= FAIR_SHARE * len(asked) else POOR
    return f"{passed} of {len(asked)} must", colour
