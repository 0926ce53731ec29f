"""Settings of a server, and limits on what clients may use of it, all in one module.

Clients are not authenticated, so every client counts as hostile. The text of each limit says what it bounds, and what
happens to a client beyond it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

KIBI: Final = 1 << 10
MEBI: Final = 1 << 20

MAX_REQUEST_SIZE: Final = MEBI
"""Maximum size of a request to a read-only server."""

MAX_PRODUCE_SIZE: Final = 32 * MEBI
"""Maximum size of a request to a server that accepts records."""

MAX_REQUEST_ITEMS: Final = 10_000

MAX_BATCH_PARTS: Final = 100_000

UNCOUNTED_SIZE: Final = 8 * KIBI
"""Bytes held for a connection are counted in steps of this, so most requests cost no accounting."""

ITEM_SIZE: Final = KIBI
"""Estimated memory of one item of a request, with its part of the answer."""

OPEN_FILE_SIZE: Final = 8 * KIBI
"""Bytes that an open file counts as, until its part of an answer is sent."""

DAY_SECONDS: Final = 86_400.0


class Limits(NamedTuple):
    """Limits on what clients may use.

    Attributes:
        held_size: bytes held for all connections together, of requests and of answers. Beyond it, the connection that
            has held the most for the longest is closed.
        request_items: items of all arrays of one request together: topics, partitions, groups. A request with more is
            not decoded, and its connection is closed.
        batch_parts: records and record headers of one batch from a producer. A batch with more is refused as too large.
        batch_output_size: bytes that one batch may decompress to. A batch with more is refused as too large.
        gone_seconds: time for which a connection that its client has closed is kept while its answer is being made.
        least_idle_seconds: time without traffic after which a connection may be closed to make room for a new one.
        members: members of all consumer groups. A new member replaces the one with the oldest heartbeat.
        member_size: bytes of a member's own texts, or of its assignment.
        members_size: bytes of texts and assignments of all members together.
        groups: groups whose committed offsets are kept. A new group replaces the least recently used one.
        committed_size: bytes of all committed offsets together. New ones replace those of the least recently used
            group.
        group_idle_seconds: time without use after which the committed offsets of a group are dropped.
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
"""Maximum size of a request in a queue of fast requests; larger ones go to the queue of long ones."""

LIGHT_PRODUCE_SIZE: Final = 2 * MEBI
"""The same for produce requests: their bytes are mostly records, which are checked fast."""

LIGHT_ITEMS: Final = 200
LIGHT_BATCHES: Final = 20
"""Maximum number of batches of a fast produce request: each may have to wait for the disk."""

LIGHT_PARTS: Final = 2000
LIGHT_OUTPUT_SIZE: Final = 4 * MEBI
"""Maximum number of records and record headers of a fast batch, and of bytes that they decompress to."""

LONG_HELD_SECONDS: Final = 0.05
"""If a partition's lock has been held for longer, fast requests for it move to the queue of long ones."""

SWITCH_SECONDS: Final = 0.0005
"""Time that a thread may hold the interpreter's lock while others wait for it, for `sys.setswitchinterval`.

A processor releases the lock at each system call and, while an I/O thread computes, waits this long to get it back.
With Python's default of 0.005, one round over a hundred busy connections takes half a second.
"""


# -- settings of a server ----------------------------------------------------------------------------------------------


DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092


class Settings(NamedTuple):
    """Address, number of threads, and limits for clients.

    Attributes:
        host: address to listen on.
        port: port to listen on; 0 for any that is free.
        processors: threads that read requests and send answers.
        io_threads: threads that read logs.
        max_connections: maximum number; further connections are closed at once.
        max_request_size: bytes; a larger request closes its connection.
        queue_length: requests that may wait for an I/O thread; while it is full, nothing more is read.
        idle_seconds: time without traffic after which a connection is closed.
        limits: limits on what clients may use.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    processors: int = 2
    io_threads: int = 4
    max_connections: int = 1000
    max_request_size: int = MAX_REQUEST_SIZE
    queue_length: int = 500
    idle_seconds: float = 600.0
    limits: Limits = DEFAULT_LIMITS
