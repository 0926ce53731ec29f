"""The records that every writer writes: JSON-like text under distinct keys, from a seed."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

BATCH_RECORDS: Final = 500
"""Records of a batch, whoever writes it."""
FIRST_TIMESTAMP_MS: Final = 1_700_000_000_000
MAX_STEP_MS: Final = 3
"""Timestamps rise by so much at most from one record to the next."""

EVENTS: Final = ("page_view", "click", "add_to_cart", "search", "login", "purchase", "scroll")
AGENTS: Final = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5)", "okhttp/4.12.0")
TEXT: Final = '{"id":"%016x","event":"%s","user":"user-%05d","path":"/products/%d","status":%d,"ms":%d,"agent":"%s"}'


class Row(NamedTuple):
    """A record for a producer."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def rows_of(seed: int, batch_count: int) -> list[list[Row]]:
    """Return the rows of each batch.

    Args:
        seed: seed of all random values.
        batch_count: batches of `BATCH_RECORDS` rows.
    """
    dice = random.Random(f"writers {seed}")
    time_ms = FIRST_TIMESTAMP_MS
    batches = []
    for first in range(0, batch_count * BATCH_RECORDS, BATCH_RECORDS):
        rows = []
        for number in range(first, first + BATCH_RECORDS):
            time_ms += dice.randrange(MAX_STEP_MS + 1)
            rows.append(Row(b"key-%08d" % number, _text(dice), time_ms))
        batches.append(rows)
    return batches


def _text(dice: random.Random) -> bytes:
    status, took_ms = dice.choice((200, 200, 200, 404)), dice.randrange(2000)
    user, item = dice.randrange(40_000), dice.randrange(5000)
    identity, event, agent = dice.getrandbits(62), dice.choice(EVENTS), dice.choice(AGENTS)
    return (TEXT % (identity, event, user, item, status, took_ms, agent)).encode()
