"""Random recipes, which together use every feature of recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.generation.recipe import recipe_from
from seglog_format.generation.recipe_model import CODECS, ORDERS, VALUE_KINDS, Recipe
from seglog_format.generation.seeded_random import SeededRandom

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
    """Generate a random recipe: one topic, up to three partitions, up to four steps, no faults.

    Args:
        seed: 0 or more; the same seed gives the same recipe, and is the seed in the recipe.
        magics: magic numbers that may be used; lower ones are used in earlier steps.
        end: ``clean`` or ``killed``.
    """
    rng = SeededRandom(seed, "recipe")
    steps = [_step(rng, magic, number) for number, magic in enumerate(_magics(rng, magics))]
    topic = {
        "name": f"made-{seed}",
        "partitions": rng.number(1, 3),
        "settings": _settings(rng),
        "step": steps,
    }
    return recipe_from({"seed": seed, "end": end, "topic": [topic]})


def _magics(rng: SeededRandom, magics: Sequence[int]) -> list[int]:
    """Draw a magic for each step."""
    old = [magic for magic in magics if magic < MAGIC_2]
    new = [magic for magic in magics if magic == MAGIC_2]
    pool = list(magics) if not new or (old and rng.happens(OLD_MAGICS_SHARE)) else new
    return sorted(rng.one_of(pool) for _ in range(rng.number(1, 4)))


def _settings(rng: SeededRandom) -> dict[str, object]:
    settings: dict[str, object] = {
        "segment.bytes": rng.one_of(SEGMENT_SIZES),
        "index.interval.bytes": rng.one_of(INDEX_INTERVALS),
        "segment.index.bytes": rng.one_of(INDEX_SIZES),
        "preallocate": rng.happens(0.2),
    }
    if rng.happens(0.2):
        settings["message.timestamp.type"] = "LogAppendTime"
    if rng.happens(0.2):
        settings["segment.ms"] = rng.number(100, 5000)
    return settings


def _step(rng: SeededRandom, magic: int, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "records": rng.number(1, 120),
        "batch": [1, rng.number(1, 12)],
        "magic": magic,
        "codec": rng.one_of(CODECS if magic == MAGIC_2 else CODECS[:-1]),
        "roll": rng.happens(0.2),
        "leader_epoch": number,
        "key": _value(rng, 20),
        "value": _value(rng, LONGEST_VALUE),
        "timestamps": {"order": rng.one_of(ORDERS), "step_ms": rng.number(0, 500)},
    }
    return step | (_newer(rng, number) if magic == MAGIC_2 else {})


def _newer(rng: SeededRandom, number: int) -> dict[str, Any]:
    """Draw the features that only magic 2 has."""
    newer: dict[str, Any] = {"producers": _producers(rng, number)}
    if rng.happens(0.5):
        newer["headers"] = {"count": [0, rng.number(1, 4)], "null": 0.2}
    if rng.happens(FOLLOWER_SHARE):
        newer |= {"role": "follower", "gap": [0, rng.number(0, 30)], "removed": 0.2, "emptied": 0.1}
    return newer


def _value(rng: SeededRandom, longest: int) -> dict[str, Any]:
    kind = rng.one_of(VALUE_KINDS)
    return {"kind": kind, "text": "fixed", "size": [0, rng.number(0, longest)], "null": 0.05, "empty": 0.05}


def _producers(rng: SeededRandom, number: int) -> dict[str, Any]:
    """Draw producers; each step has different ids, so later steps do not end a transaction that was left open."""
    kind = rng.one_of(("plain", "idempotent", "transactional", "transactional"))
    producers: dict[str, Any] = {"kind": kind, "count": rng.number(1, 4), "first_id": 1000 * (number + 1)}
    if kind == "transactional":
        producers |= {"abort": rng.fraction(), "open": rng.number(0, 1), "batches": [1, 4]}
    return producers
