"""The keys of a recipe with their defaults, for help texts and documents."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from seglog_format.generation.recipe_model import (
    CODECS,
    ENDS,
    ORDERS,
    PRODUCER_KINDS,
    ROLES,
    VALUE_KINDS,
    HeaderRecipe,
    ProducerRecipe,
    Recipe,
    StepRecipe,
    TimestampRecipe,
    TopicRecipe,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from _typeshed import DataclassInstance

INNER: Final = ("topics", "config", "steps", "key", "value", "headers", "timestamps", "producers")
"""Attributes that are tables of their own in a recipe."""

STEP: Final = StepRecipe()
TABLES: Final[Mapping[str, DataclassInstance]] = {
    "top level": Recipe(topics=()),
    "[[topic]]": TopicRecipe(),
    "[[topic.step]]": STEP,
    "[topic.step.key]": STEP.key,
    "[topic.step.value]": STEP.value,
    "[topic.step.headers]": HeaderRecipe(),
    "[topic.step.timestamps]": TimestampRecipe(),
    "[topic.step.producers]": ProducerRecipe(),
}
"""Each table of a recipe, with the defaults of all keys."""

CHOICES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "top level": {"end": ENDS},
    "[[topic.step]]": {"codec": CODECS, "role": ROLES},
    "[topic.step.key]": {"kind": VALUE_KINDS},
    "[topic.step.value]": {"kind": VALUE_KINDS},
    "[topic.step.timestamps]": {"order": ORDERS},
    "[topic.step.producers]": {"kind": PRODUCER_KINDS},
}


def key_list() -> dict[str, dict[str, str]]:
    """Return the keys of each table of a recipe, with their defaults as TOML."""
    return {
        name: {key.name: _toml(getattr(usual, key.name)) for key in fields(usual) if key.name not in INNER}
        for name, usual in TABLES.items()
    }


def choice_list() -> dict[str, dict[str, list[str]]]:
    """Return by table and key the values of each key that takes one of a few words."""
    return {name: {key: list(words) for key, words in CHOICES.get(name, {}).items()} for name in TABLES}


def _toml(default: object) -> str:
    """Return a default as a recipe would write it."""
    if default is None:
        return "(none)"
    if isinstance(default, tuple):
        return str(list(default))
    return str(default).lower() if isinstance(default, bool) else repr(default)
