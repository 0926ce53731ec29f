"""Names for the generators of pages: structures as they are shown, editions, broker lines, exit statuses."""

from __future__ import annotations

from seglog_format.cli.explain import (
    Edition,
    State,
    broker_lines,
    changed_marks,
    editions,
    is_only_reworded,
    rules_of,
    state_of_chapters,
    state_text,
)
from seglog_format.cli.kaitai_set import kaitai_set
from seglog_format.cli.main import STATUSES
from seglog_format.cli.structures import Structure, structures, svg, table

__all__ = [
    "STATUSES",
    "Edition",
    "State",
    "Structure",
    "broker_lines",
    "changed_marks",
    "editions",
    "is_only_reworded",
    "kaitai_set",
    "rules_of",
    "state_of_chapters",
    "state_text",
    "structures",
    "svg",
    "table",
]
