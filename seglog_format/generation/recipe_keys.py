"""The keys of a recipe with their defaults, for people who write one."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Final

from seglog_format.generation.recipe import (
    HeaderRecipe,
    ProducerRecipe,
    Recipe,
    StepRecipe,
    TimestampRecipe,
    TopicRecipe,
    ValueRecipe,
)

TABLES: Final = ("topics", "config", "steps", "key", "value", "headers", "timestamps", "producers")
"""Attributes that a recipe gives as tables of their own."""


def key_list() -> dict[str, dict[str, str]]:
    """Return the keys of each table of a recipe, with their defaults as TOML; those without one have to be given."""
    tables = {
        "top level": fields(Recipe),
        "[[topic]]": fields(TopicRecipe),
        "[[topic.step]]": fields(StepRecipe),
        "[topic.step.key] and [topic.step.value]": fields(ValueRecipe),
        "[topic.step.headers]": fields(HeaderRecipe),
        "[topic.step.timestamps]": fields(TimestampRecipe),
        "[topic.step.producers]": fields(ProducerRecipe),
    }
    return {
        name: {key.name: _toml(key.default) for key in keys if key.name not in TABLES} for name, keys in tables.items()
    }


def _toml(default: object) -> str:
    """Return a default as a recipe would write it."""
    if default is MISSING:
        return "(to be given)"
    if default is None:
        return "(none)"
    if isinstance(default, tuple):
        return str(list(default))
    return str(default).lower() if isinstance(default, bool) else repr(default)
