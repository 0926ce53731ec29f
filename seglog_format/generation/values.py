"""Generate keys, values, headers and timestamps as recipes describe them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seglog_format.generation.recipe_model import SHUFFLED_SPAN
from seglog_format.model import NO_TIMESTAMP
from seglog_format.record_model import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.generation.recipe_model import HeaderRecipe, TimestampRecipe, ValueRecipe
    from seglog_format.generation.seeded_random import SeededRandom

WORDS: Final = ("order", "payment", "sensor", "käufer", "город", "注文", "log", "a", "of", "segment", "offset", "0815")
"""Words of generated texts; some have more bytes in UTF-8 than characters."""


def make_value(recipe: ValueRecipe, rng: SeededRandom) -> bytes | None:
    """Generate a key or a value."""
    is_null, is_empty = rng.happens(recipe.null), rng.happens(recipe.empty)
    if is_null or recipe.kind == "null":
        return None
    return b"" if is_empty or recipe.kind == "empty" else MAKERS[recipe.kind](recipe, rng)


def _fixed(recipe: ValueRecipe, _rng: SeededRandom) -> bytes:
    return recipe.text.encode()


def _random(recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    return rng.data(rng.number(recipe.size[0], recipe.size[-1]))


def _text(recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    """Generate words, cut to a size; dots replace a character that would be cut."""
    size, words = rng.number(recipe.size[0], recipe.size[-1]), b""
    while len(words) < size:
        words += rng.one_of(WORDS).encode() + b" "
    return words[:size].decode(errors="ignore").encode().ljust(size, b".")


def _json(_recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    content = {
        "id": rng.number(0, 10**9),
        "event": rng.one_of(WORDS),
        "cents": rng.number(-10_000, 10_000),
        "ok": rng.happens(0.5),
        "trace": rng.data(8).hex(),
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


MAKERS: Final[dict[str, Callable[[ValueRecipe, SeededRandom], bytes]]] = {
    "fixed": _fixed,
    "random": _random,
    "text": _text,
    "json": _json,
}


def make_headers(recipe: HeaderRecipe, rng: SeededRandom) -> tuple[RecordHeader, ...]:
    """Generate the headers of a record; some keys repeat."""
    return tuple(_header(recipe, rng) for _ in range(rng.number(*recipe.count)))


def _header(recipe: HeaderRecipe, rng: SeededRandom) -> RecordHeader:
    key = rng.one_of(WORDS).encode()
    is_null = rng.happens(recipe.null)
    return RecordHeader(key, None if is_null else rng.data(rng.number(recipe.size[0], recipe.size[-1])))


def make_timestamps(recipe: TimestampRecipe, count: int, start_ms: int, rng: SeededRandom) -> list[int]:
    """Generate a timestamp for each of a number of records."""
    match recipe.order:
        case "zero":
            return [0] * count
        case "none":
            return [NO_TIMESTAMP] * count
        case "equal":
            return [start_ms] * count
    ascending = [start_ms + number * recipe.step_ms for number in range(count)]
    if recipe.order == "ascending":
        return ascending
    groups = (ascending[first : first + SHUFFLED_SPAN] for first in range(0, count, SHUFFLED_SPAN))
    return [timestamp_ms for group in groups for timestamp_ms in rng.shuffled(group)]
