"""Findings as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.cli.render import count_text, printable
from seglog_format.cli.style import styled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.checks import Finding

COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def finding_text(finding: Finding) -> str:
    """One finding on one line, its severity first."""
    severity = finding.severity.value
    return f"{styled(severity, COLOURS[severity])}: {printable(str(finding))}"


def summary(counts: Mapping[str, int]) -> str:
    """How many findings there were."""
    found = [count_text(counts[severity], severity) for severity in COLOURS if counts.get(severity)]
    return ", ".join(found) or "nothing found: everything is as the specification says"
