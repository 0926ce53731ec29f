"""Keys, values, headers and timestamps as recipes describe them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seglog_format.model import NO_TIMESTAMP
from seglog_format.record_model import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.generation.chance import Chance
    from seglog_format.generation.recipe import HeaderRecipe, TimestampRecipe, ValueRecipe

WORDS: Final = ("order", "payment", "sensor", "käufer", "город", "注文", "log", "a", "of", "segment", "offset", "0815")
"""What texts are made of; some are longer in UTF-8 than they look."""

SHUFFLED_SPAN: Final = 20
"""How many neighbours change places where timestamps are out of order."""


def make_value(recipe: ValueRecipe, chance: Chance) -> bytes | None:
    """A key or a value."""
    is_null, is_empty = chance.happens(recipe.null), chance.happens(recipe.empty)
    if is_null or recipe.kind == "null":
        return None
    return b"" if is_empty or recipe.kind == "empty" else MAKERS[recipe.kind](recipe, chance)


def _fixed(recipe: ValueRecipe, _chance: Chance) -> bytes:
    return recipe.text.encode()


def _random(recipe: ValueRecipe, chance: Chance) -> bytes:
    return chance.data(chance.number(*recipe.size))


def _text(recipe: ValueRecipe, chance: Chance) -> bytes:
    """Words, cut to a size; where that falls into a character, dots take its place."""
    size, words = chance.number(*recipe.size), b""
    while len(words) < size:
        words += chance.one_of(WORDS).encode() + b" "
    return words[:size].decode(errors="ignore").encode().ljust(size, b".")


def _json(_recipe: ValueRecipe, chance: Chance) -> bytes:
    content = {
        "id": chance.number(0, 10**9),
        "event": chance.one_of(WORDS),
        "cents": chance.number(-10_000, 10_000),
        "ok": chance.happens(0.5),
        "trace": chance.data(8).hex(),
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


MAKERS: Final[dict[str, Callable[[ValueRecipe, Chance], bytes]]] = {
    "fixed": _fixed,
    "random": _random,
    "text": _text,
    "json": _json,
}


def make_headers(recipe: HeaderRecipe, chance: Chance) -> tuple[RecordHeader, ...]:
    """The headers of a record; keys repeat now and then."""
    return tuple(_header(recipe, chance) for _ in range(chance.number(*recipe.count)))


def _header(recipe: HeaderRecipe, chance: Chance) -> RecordHeader:
    key = chance.one_of(WORDS).encode()
    is_null = chance.happens(recipe.null)
    return RecordHeader(key, None if is_null else chance.data(chance.number(*recipe.size)))


def make_timestamps(recipe: TimestampRecipe, count: int, start_ms: int, chance: Chance) -> list[int]:
    """One timestamp for each of so many records."""
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
    return [timestamp_ms for group in groups for timestamp_ms in chance.shuffled(group)]
