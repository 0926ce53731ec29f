"""All families, in the order of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite_cases import compressed, control, damage, legacy, plain, records, storage

if TYPE_CHECKING:
    from suite_cases.casefile import Family

MODULES = (plain, compressed, control, legacy, damage, records, storage)


def all_families() -> list[Family]:
    """Made anew each time."""
    return sorted((family for module in MODULES for family in module.families()), key=lambda family: family.number)
