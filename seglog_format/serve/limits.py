"""How much clients may take of a server, all in one place.

Nobody has to log in here, so that every client counts as one who means harm. Each limit says what it bounds, and what
becomes of a client beyond it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

KIBI: Final = 1 << 10
MEBI: Final = 1 << 20

MAX_REQUEST_SIZE: Final = MEBI
"""Bytes of the largest request where nobody may write."""

MAX_PRODUCE_SIZE: Final = 32 * MEBI
"""Bytes of the largest request where producers may send records."""

MAX_REQUEST_ITEMS: Final = 10_000
"""Topics, partitions, groups and other items of all arrays of one request; with more it closes its connection."""


class Limits(NamedTuple):
    """What clients may take.

    Attributes:
        request_items: items of all arrays of one request together; one with more closes its connection.
    """

    request_items: int = MAX_REQUEST_ITEMS
