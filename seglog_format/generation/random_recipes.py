"""Recipes made up from a seed, which together ask for everything that recipes can ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.generation.chance import Chance
from seglog_format.generation.recipe import CODECS, ORDERS, VALUE_KINDS, Recipe, recipe_from

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC_2: Final = 2
LONGEST_VALUE: Final = 300
SEGMENT_SIZES: Final = (8192, 16384, 65536, 1 << 20)
INDEX_INTERVALS: Final = (0, 100, 512, 4096)
INDEX_SIZES: Final = (120, 4096, 1 << 16)

OLD_MAGICS_SHARE: Final = 0.2
FOLLOWER_SHARE: Final = 0.3


def random_recipe(seed: int, *, magics: Sequence[int] = (0, 1, 2), end: str = "clean") -> Recipe:
    """Make up a recipe: one topic, up to three partitions, up to four steps, nothing damaged.

    Args:
        seed: 0 or more; the same one makes the same recipe, and is the recipe's own seed.
        magics: that may be used; older ones come before newer ones.
        end: ``clean`` or ``killed``.
    """
    chance = Chance(seed, "recipe")
    steps = [_step(chance, magic, number) for number, magic in enumerate(_magics(chance, magics))]
    topic = {
        "name": f"made-{seed}",
        "partitions": chance.number(1, 3),
        "settings": _settings(chance),
        "step": steps,
    }
    return recipe_from({"seed": seed, "end": end, "topic": [topic]})


def _magics(chance: Chance, magics: Sequence[int]) -> list[int]:
    """One for each step."""
    old = [magic for magic in magics if magic < MAGIC_2]
    new = [magic for magic in magics if magic == MAGIC_2]
    pool = list(magics) if not new or (old and chance.happens(OLD_MAGICS_SHARE)) else new
    return sorted(chance.one_of(pool) for _ in range(chance.number(1, 4)))


def _settings(chance: Chance) -> dict[str, object]:
    settings: dict[str, object] = {
        "segment.bytes": chance.one_of(SEGMENT_SIZES),
        "index.interval.bytes": chance.one_of(INDEX_INTERVALS),
        "segment.index.bytes": chance.one_of(INDEX_SIZES),
        "preallocate": chance.happens(0.2),
    }
    if chance.happens(0.2):
        settings["message.timestamp.type"] = "LogAppendTime"
    if chance.happens(0.2):
        settings["segment.ms"] = chance.number(100, 5000)
    return settings


def _step(chance: Chance, magic: int, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "records": chance.number(1, 120),
        "batch": [1, chance.number(1, 12)],
        "magic": magic,
        "codec": chance.one_of(CODECS if magic == MAGIC_2 else CODECS[:-1]),
        "roll": chance.happens(0.2),
        "leader_epoch": number,
        "key": _value(chance, 20),
        "value": _value(chance, LONGEST_VALUE),
        "timestamps": {"order": chance.one_of(ORDERS), "step_ms": chance.number(0, 500)},
    }
    return step | (_newer(chance, number) if magic == MAGIC_2 else {})


def _newer(chance: Chance, number: int) -> dict[str, Any]:
    """What only magic 2 has."""
    newer: dict[str, Any] = {"producers": _producers(chance, number)}
    if chance.happens(0.5):
        newer["headers"] = {"count": [0, chance.number(1, 4)], "null": 0.2}
    if chance.happens(FOLLOWER_SHARE):
        newer |= {"role": "follower", "gap": [0, chance.number(0, 30)], "removed": 0.2, "emptied": 0.1}
    return newer


def _value(chance: Chance, longest: int) -> dict[str, Any]:
    kind = chance.one_of(VALUE_KINDS)
    return {"kind": kind, "text": "fixed", "size": [0, chance.number(0, longest)], "null": 0.05, "empty": 0.05}


def _producers(chance: Chance, number: int) -> dict[str, Any]:
    """Those of each step have ids of their own, so that a transaction left open stays open."""
    kind = chance.one_of(("plain", "idempotent", "transactional", "transactional"))
    producers: dict[str, Any] = {"kind": kind, "count": chance.number(1, 4), "first_id": 1000 * (number + 1)}
    if kind == "transactional":
        producers |= {"abort": chance.fraction(), "open": chance.number(0, 1), "batches": [1, 4]}
    return producers
