"""All families, in the order of their numbers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from authoring import (
    after_error,
    appends,
    bad_streams,
    broker_files,
    compaction,
    compressed,
    control,
    crossed,
    damage,
    decisions,
    derived,
    encodings,
    files,
    indexes,
    legacy,
    lookups,
    plain,
    reading,
    records,
    recovery,
)
from authoring.boundaries import boundaries
from authoring.control_fields import control_fields
from authoring.corners import corners
from authoring.kinds import kinds
from authoring.missed import missed
from authoring.own_topics import own_topics
from authoring.shapes import shapes
from authoring.twice import twice

if TYPE_CHECKING:
    from authoring.casefile import Family

MODULES = (
    after_error,
    appends,
    bad_streams,
    broker_files,
    compaction,
    compressed,
    control,
    crossed,
    damage,
    decisions,
    derived,
    encodings,
    files,
    indexes,
    legacy,
    lookups,
    plain,
    reading,
    records,
    recovery,
)


@cache
def all_families() -> tuple[Family, ...]:
    """Every family with its cases."""
    found = sorted((family for module in MODULES for family in module.families()), key=lambda family: family.number)
    control_family = next(family for family in found if family.name == "control-records")
    control_fields(control_family)
    own_topics(control_family)
    named = {family.name: family for family in found}
    corners(named)
    shapes(named)
    missed(named)
    boundaries(named)
    twice(named)
    kinds(named)
    return tuple(found)
