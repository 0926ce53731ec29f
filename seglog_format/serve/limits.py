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

MAX_BATCH_PARTS: Final = 100_000

UNCOUNTED_SIZE: Final = 8 * KIBI
"""Bytes that are held for a connection count in steps of this; so most requests and answers cost no accounting."""

ITEM_SIZE: Final = KIBI
"""What an item of a request takes in memory while the request is answered, with its part of the answer."""

OPEN_FILE_SIZE: Final = 8 * KIBI
"""What a file counts as that stays open until its part of an answer is sent."""

DAY_SECONDS: Final = 86_400.0


class Limits(NamedTuple):
    """What clients may take.

    Attributes:
        held_size: bytes held for all connections together, of requests and of answers. Beyond it, that connection is
            closed which has held the most for the longest.
        request_items: items of all arrays of one request together: topics, partitions, groups. One with more closes
            its connection before an object is made of any.
        batch_parts: records and record headers of one batch from a producer. One with more is refused as too large.
        batch_output_size: bytes that one batch may decompress to. One with more is refused as too large.
        gone_seconds: so long a connection stays whose client has ended it while its answer is being made.
        least_idle_seconds: one on which nothing came for so long makes room for a new one where there are too many.
        members: members of all consumer groups. A new one takes the place of the one that was silent the longest.
        member_size: bytes of what one member says of itself, or is told.
        members_size: bytes of that for all members together.
        groups: groups whose committed offsets are kept. A new one takes the place of the one that was unused longest.
        committed_size: bytes of all committed offsets together; as above.
        group_idle_seconds: committed offsets are forgotten when the group was not used for so long.
    """

    held_size: int = 40 * MEBI
    request_items: int = MAX_REQUEST_ITEMS
    batch_parts: int = MAX_BATCH_PARTS
    batch_output_size: int = 32 * MEBI
    gone_seconds: float = 2.0
    least_idle_seconds: float = 1.0
    members: int = 1000
    member_size: int = 64 * KIBI
    members_size: int = 8 * MEBI
    groups: int = 10_000
    committed_size: int = 8 * MEBI
    group_idle_seconds: float = 7 * DAY_SECONDS


DEFAULT_LIMITS: Final = Limits()

LIGHT_SIZE: Final = 16 * KIBI
"""Bytes of a request that is answered among the quick ones; a larger one waits for the thread of the long ones."""

LIGHT_PRODUCE_SIZE: Final = 2 * MEBI
"""The same where the bytes are mostly records, which cost little unless there are many in them."""

LIGHT_ITEMS: Final = 200
LIGHT_BATCHES: Final = 20
"""Batches of a request of a producer: each may have to wait for the disk."""

LIGHT_PARTS: Final = 2000
LIGHT_OUTPUT_SIZE: Final = 4 * MEBI
LIGHT_IRREGULAR_SIZE: Final = 2 * KIBI
IRREGULAR_SIZE: Final = 32 * KIBI
"""Bytes of a batch that is not as most producers write it, and therefore read slowly."""

LONG_HELD_SECONDS: Final = 0.05
"""Who looks into a partition for longer than this lets the quick requests for it wait with the long ones."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread may hold the interpreter's lock while others wait for it, for `sys.setswitchinterval`.

A processor releases the lock at each system call and, while an I/O thread computes, waits this long to get it back.
With Python's default of 0.005, one round over a hundred connections that never stop asking takes half a second.
"""
