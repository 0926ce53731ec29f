"""Lookups and reads once more, by a reader that begins at index entries without proving them.

The answers are the same, but where a time index names offsets that are not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from authoring.casefile import Family

ASKED: Final = ("lookup", "read")
LYING: Final = "/time-index-offset-"


def add_trusting(family: Family) -> None:
    """Add the same cases for such a reader."""
    for case in [case for case in family.cases if case["op"] in ASKED and LYING not in case["id"]]:
        request = case["request"]
        family.cases.append(
            {
                **{key: value for key, value in case.items() if key != "smoke"},
                "id": f"{case['id']}-trusting",
                "needs": sorted({*case["needs"], "trustIndexes"}),
                "request": {**request, "options": {**request.get("options", {}), "trustIndexes": True}},
            }
        )
