"""The records that every writer is given: small, and each about something that a client may get wrong.

A record that a client may refuse is a subject of its own, so a refusal is about one record.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from proofs.writers.rows import FIRST_TIMESTAMP_MS, Row

LARGE_SIZE: Final = 40_000
MANY: Final = 150
"""Records beside each other whose offsets take two bytes in a batch."""

Header = tuple[bytes, bytes | None]


class Subject(NamedTuple):
    """Records that belong together.

    Attributes:
        name: their topic.
        rows: the rows for a producer.
    """

    name: str
    rows: tuple[Row, ...]


def subjects_of(seed: int) -> tuple[Subject, ...]:
    """Return all records by subject; no time is later than today, since brokers refuse the future.

    Args:
        seed: seed of the random bytes.
    """
    dice = random.Random(f"pairs {seed}")
    return (
        Subject("keys and values", tuple(_row(b"key-%d" % number, dice.randbytes(20), number) for number in range(3))),
        Subject("null key", (_row(None, b"v"),)),
        Subject("null value", (_row(b"k", None),)),
        Subject("null key and value", (_row(None, None),)),
        Subject("empty key", (_row(b"", b"v"),)),
        Subject("empty value", (_row(b"k", b""),)),
        Subject("empty key and value", (_row(b"", b""),)),
        Subject("headers", (_headed((b"a", b"1")), _headed((b"b", b"1"), (b"a", b"\xff\x00")))),
        Subject("repeated header", (_headed((b"a", b"1"), (b"b", b"2"), (b"a", b"3")),)),
        Subject("empty header key", (_headed((b"", b"1")),)),
        Subject("empty header value", (_headed((b"a", b"")),)),
        Subject("null header value", (_headed((b"a", None)),)),
        Subject("header key beyond ASCII", (_headed(("schlüssel-キー".encode(), b"1")),)),
        Subject("falling times", tuple(_row(b"t%d" % number, b"v", -1000 * number) for number in range(3))),
        Subject("time 0", (Row(b"t", b"v", 0),)),
        Subject("many", tuple(_row(b"m%03d" % number, b"v" * (number % 7), number) for number in range(MANY))),
        Subject("large", (_row(b"l", dice.randbytes(LARGE_SIZE)), _row(b"l", b"again " * (LARGE_SIZE // 6)))),
    )


def _row(key: bytes | None, value: bytes | None, later_ms: int = 0) -> Row:
    return Row(key, value, FIRST_TIMESTAMP_MS + later_ms)


def _headed(*headers: Header) -> Row:
    return Row(b"k", b"v", FIRST_TIMESTAMP_MS, headers)
