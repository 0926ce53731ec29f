"""Findings as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.cli.output import count_text, printable, styled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.checks import Finding
    from seglog_format.checks.finding import Extent

COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def finding_text(finding: Finding) -> str:
    """Return one finding on one line, its severity first."""
    severity = finding.severity.value
    return f"{styled(severity, COLOURS[severity])}: {printable(str(finding))}"


def summary(counts: Mapping[str, int], extent: Extent) -> str:
    """Return the number of findings, and how much was checked."""
    if not extent.files:
        return "nothing was checked: there is no file"
    found = [count_text(counts[severity], severity) for severity in COLOURS if counts.get(severity)]
    checked = f"{count_text(extent.files, 'file')}, {count_text(extent.batches, 'batch')} checked"
    return f"{', '.join(found) or 'no problems found'} ({checked})"
