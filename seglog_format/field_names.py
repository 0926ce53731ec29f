"""Names of fields: Python's in this package, Kafka's wherever people or other programs read them."""

from __future__ import annotations

import re
from typing import Final

SNAKE_CASE: Final = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
UNIT: Final = "_ms"
"""Kafka's names of times have no unit."""
AS_WRITTEN: Final = frozenset({"topic_id"})
"""Names that Kafka's files spell this way: the key in ``partition.metadata``."""


def kafka_name(field: str) -> str:
    """Return the name that Kafka gives a field: in camelCase, and without a unit.

    Args:
        field: a Python name, which may have dots and indexes, such as ``records[3].base_timestamp_ms``. A text that is
            not in snake_case stays unchanged.
    """
    return SNAKE_CASE.sub(_kafka_word, field)


def _kafka_word(match: re.Match[str]) -> str:
    name = match.group()
    if name in AS_WRITTEN:
        return name
    first, *others = name.removesuffix(UNIT).split("_")
    return first + "".join(part.capitalize() for part in others)
