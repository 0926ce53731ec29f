"""Every requirement of `spec/`, in reading order."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format import requirement

if TYPE_CHECKING:
    from seglog_format.types import Requirement

SPEC: Final = Path(__file__).resolve().parent.parent / "spec"
DEFINED: Final = re.compile(r"(?<=\n\n)\[(SEG-[A-Z]{3}-\d{3})\]: ")
"""A definition begins a paragraph; the example in chapter 00 is in a fence."""


@cache
def requirements() -> dict[str, Requirement]:
    """Return every requirement that a chapter defines, by id.

    Raises:
        UsageError: an id is defined twice, or the package does not know it.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted(SPEC.glob("*.md"))]
    return {identifier: requirement(identifier) for text in texts for identifier in DEFINED.findall(text)}


def broker_marks(entry: Requirement) -> str:
    """Return since when brokers keep a rule and whether they do, for a page.

    Args:
        entry: the rule.
    """
    since = f"since {entry.since} ({entry.since_basis}) · " if entry.since else ""
    mark = entry.brokers
    return f"{since}kept by brokers: {mark.kept} ({mark.version}, {mark.basis})"
