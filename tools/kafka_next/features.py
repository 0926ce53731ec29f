"""Feature levels that appendix B does not describe: what such a level changes on disk was not looked at yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tools.kafka_next.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

APPENDIX: Final = REPOSITORY / "spec" / "B-version-history.md"
ROW: Final = re.compile(r"^\| `(?P<feature>[\w.]+\.version)` \| (?P<first>\d+)(?: to (?P<last>\d+))? \|", re.MULTILINE)
FOR_TESTS: Final = ("test.", "unit.test.")
"""Beginnings of the names of features that only Kafka's own tests use."""


def described() -> set[tuple[str, int]]:
    """Return the features with the levels that have a row in appendix B."""
    rows = ROW.findall(APPENDIX.read_text(encoding="utf-8"))
    return {(feature, level) for feature, first, last in rows for level in range(int(first), int(last or first) + 1)}


def reported(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield feature and level of each level that a report calls new or changed."""
    for feature, levels in found.get("new", {}).items():
        yield from ((feature, level) for level in levels.values())
    for feature, levels in found.get("changed", {}).items():
        yield from ((feature, now) for _, now in levels.values() if now is not None)


def in_production(found: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Return feature and number of each reported level that is in production, without features for tests."""
    return {
        (feature, int(level.partition(",")[0]))
        for feature, level in reported(found)
        if not feature.startswith(FOR_TESTS) and not level.endswith("in development")
    }


def undescribed(found: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the levels in a report that are in production and have no row in appendix B.

    Args:
        found: the part of a report about features.
    """
    return sorted(each for each in in_production(found) - described() if each[1] > 0)
