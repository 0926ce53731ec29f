"""What clients hold of a server: memory, connections, descriptors and time are given back, whoever asks for them."""

from __future__ import annotations

import socket
import struct
import threading
import time
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import Served, serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

from proofs.serve import serve_kills
from proofs.serve.client import API_VERSIONS, METADATA, PRODUCE, Client
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.checksum import crc32c
from seglog_format.codec.encode import encode_batch
from seglog_format.serve import connection as serving_connection
from seglog_format.serve.calls import Address
from seglog_format.serve.connection import Budget
from seglog_format.serve.lanes import Lanes
from seglog_format.serve.limits import Settings
from seglog_format.serve.processor import Processor
from seglog_format.serve.writing import Writers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOIN_GROUP = 11
MEBI = 1 << 20
SECONDS = 15


def segs() -> Path:
    return next(bundled("4.3.0/segs").glob("*-0"))


def until(condition: Any) -> bool:  # noqa: ANN401 - a function
    """Tell whether something is so before long."""
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def is_closed(connected: socket.socket) -> bool:
    try:
        return not connected.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    serve_kills.make_log(tmp_path / "logs", partitions=2)
    return tmp_path / "logs"


def announced(served: Served, size: int, sent: int) -> socket.socket:
    """Return a connection on which the beginning of a request has come, as far as the server takes it."""
    connected = socket.create_connection(("127.0.0.1", served.port), timeout=2)
    with suppress(OSError):
        connected.sendall(struct.pack(">ihhih", size, PRODUCE, 9, 1, -1) + bytes(sent))
    connected.settimeout(0.01)
    return connected


def test_half_requests_take_no_more_memory_than_all_of_them_may() -> None:
    with serving(segs(), max_request_size=32 * MEBI) as served, served.client() as client:
        half = [announced(served, 31 * MEBI, 8 * MEBI) for _ in range(12)]
        assert client.ask(API_VERSIONS, 0).api_keys
        assert until(lambda: sum(map(is_closed, half)) >= 6)
        for each in half:
            each.close()


def test_a_short_request_comes_through_while_others_hold_all_there_is() -> None:
    with serving(segs(), limits={"held_size": MEBI}) as served, served.client() as client:
        half = [announced(served, MEBI, MEBI // 2) for _ in range(8)]
        for _ in range(20):
            assert client.ask(METADATA, 4, topics=None).topics
        for each in half:
            each.close()


def test_who_does_not_read_a_large_answer_is_closed_before_memory_runs_out() -> None:
    names = [{"name": "n" * 200 + str(number)} for number in range(4500)]
    with serving(segs(), limits={"held_size": 4 * MEBI}) as served, served.client() as client:
        slow = []
        for _ in range(12):
            one = Client(served.port, timeout=1)
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            one.send(METADATA, 4, topics=names)
            slow.append(one)
        assert until(lambda: served.server.load.connections < 12)
        assert client.ask(API_VERSIONS, 0).api_keys
        for one in slow:
            one.close()


def join(client: Client, group: str) -> None:
    """Join a group, and wait for the answer as long as two members let the third wait."""
    member = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}
    client.send(JOIN_GROUP, 0, group_id=group, session_timeout=1_800_000, member_id="", **member)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_client_that_goes_while_it_waits_is_noticed(*, is_read: bool) -> None:
    with serving(segs()) as served, served.client() as first:
        join(first, "g")
        assert first.receive(JOIN_GROUP, 0).error_code is ErrorCode.none
        late = [served.client() for _ in range(20)]
        for each in late:
            join(each, "g")  # waits for the first member to join again
            if not is_read:
                each.send(API_VERSIONS, 0)  # which nobody reads meanwhile
        assert until(lambda: served.server.load.connections == 21)
        for each in late:
            each.close()
        assert until(lambda: served.server.load.connections == 1)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors where Linux lists them")
def test_a_thousand_members_that_go_leave_no_descriptor() -> None:
    with serving(segs()) as served:
        before = len([*Path("/proc/self/fd").iterdir()])
        for number in range(200):
            with served.client() as client:
                join(client, f"g{number % 10}")
        assert until(lambda: len([*Path("/proc/self/fd").iterdir()]) <= before + 2)


@pytest.mark.parametrize("has_asked", [False, True])
def test_the_longest_idle_connection_makes_room_for_a_new_one(*, has_asked: bool) -> None:
    with serving(segs(), max_connections=5) as served:
        idle = [served.client() for _ in range(5)]
        for each in idle if has_asked else ():
            assert each.ask(API_VERSIONS, 0).api_keys
        assert until(lambda: served.server.load.connections == 5)
        time.sleep(1.2 if has_asked else 0)
        with served.client() as honest:
            assert honest.ask(API_VERSIONS, 0).api_keys
        assert is_closed(idle[0].socket)
        if has_asked:
            assert idle[4].ask(API_VERSIONS, 0).api_keys
        for each in idle:
            each.close()


def test_a_new_connection_is_not_displaced_by_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first request may be on its way, while members of groups wait for each other."""
    monkeypatch.setattr(serving_connection, "NEW_SECONDS", SECONDS)
    with serving(segs(), max_connections=3) as served, served.client() as first, served.client() as member:
        join(first, "g")
        assert first.receive(JOIN_GROUP, 0).error_code is ErrorCode.none
        join(member, "g")
        with served.client() as honest:
            assert until(lambda: served.server.load.connections == 3)
            time.sleep(1.2)
            with served.client() as another:
                assert another.ask(API_VERSIONS, 0).api_keys
            assert honest.ask(API_VERSIONS, 0).api_keys


EMPTY_RECORD = b"\x0c\0\0\0\1\1\0"
"""Seven bytes: a length of 6, no key, no value, no headers."""


def crafted(section: bytes, count: int) -> bytes:
    """Return a batch, its checksum right, whose records are these bytes, compressed with gzip."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    body = packer.compress(section) + packer.flush()
    made = bytearray(encode_batch(build_batch([new_record(value=None, timestamp_ms=1)])))[:61]
    struct.pack_into(">i", made, 8, 49 + len(body))
    struct.pack_into(">h", made, 21, 1)
    struct.pack_into(">i", made, 23, count - 1)
    struct.pack_into(">i", made, 57, count)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:]) + body))
    return bytes(made) + body


def varint(value: int) -> bytes:
    """Return a positive number as records store it."""
    left, made = 2 * value, bytearray()
    while left > 127:
        made.append(left & 127 | 128)
        left >>= 7
    return bytes([*made, left])


def produce(client: Client, data: bytes, *, number: int = 0) -> Any:  # noqa: ANN401 - a message
    topics = [{"name": "orders", "partition_data": [{"index": number, "records": data}]}]
    answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=0, topic_data=topics)
    return answer.responses[0].partition_responses[0]


@pytest.mark.parametrize("claimed", [None, 50, 2_000_000_000])
def test_a_batch_of_a_million_records_is_refused_at_once(directory: Path, claimed: int | None) -> None:
    data = crafted(EMPTY_RECORD * 1_000_000, claimed or 1_000_000)
    assert len(data) < 20_000
    with serving(directory, writers=Writers()) as served, served.client() as client, served.client() as honest:
        began = time.monotonic()
        answers: list[Any] = []
        sending = threading.Thread(target=lambda: answers.append(produce(client, data)))
        sending.start()
        for _ in range(10):
            assert honest.ask(API_VERSIONS, 0).api_keys
        sending.join(60)
        assert answers[0].error_code in {ErrorCode.message_too_large, ErrorCode.corrupt_message}
        assert time.monotonic() - began < 30
        assert honest.list_offset("orders", -1).offset == 0


def test_a_batch_of_a_million_headers_is_refused(directory: Path) -> None:
    headers = varint(1_000_000) + b"\0\1" * 1_000_000
    record = b"\0\0\0\1\1" + headers
    with serving(directory, writers=Writers()) as served, served.client() as client:
        answer = produce(client, crafted(varint(len(record)) + record, 1))
        assert answer.error_code is ErrorCode.message_too_large


@pytest.mark.parametrize("count", [1, 3000])
def test_batches_of_many_records_are_taken(directory: Path, count: int) -> None:
    values = [new_record(value=b"%d" % number, timestamp_ms=1) for number in range(count)]
    with serving(directory, writers=Writers()) as served, served.client() as client:
        assert produce(client, encode_batch(build_batch(values))).error_code is ErrorCode.none
        assert client.list_offset("orders", -1).offset == count


def test_the_end_does_not_wait_for_clients_that_never_go(directory: Path) -> None:
    with serving(directory, writers=Writers()) as served:
        waiting = [served.client() for _ in range(20)]
        for each in waiting:
            join(each, "g")
        assert until(lambda: served.server.load.connections == 20)
        began = time.monotonic()
    assert time.monotonic() - began < 20
    for each in waiting:
        each.close()


@pytest.fixture
def full_processor() -> Iterator[Processor]:
    """Provide a processor whose requests find no room in the queue."""
    processor = Processor(0, Lanes(0, 1), Budget(MEBI), Settings(), lambda: None)
    processor.start()
    yield processor
    processor.stop(SECONDS)


@pytest.fixture
def client_and_server() -> Iterator[Callable[[], tuple[socket.socket, serving_connection.Connection]]]:
    """Provide what makes connections; close them in the end."""
    with ExitStack() as stack:

        def connected() -> tuple[socket.socket, serving_connection.Connection]:
            client, ours = map(stack.enter_context, socket.socketpair())
            client.settimeout(SECONDS)
            ours.settimeout(0)
            return client, serving_connection.Connection(ours, Address("127.0.0.1", 1), MEBI)

        yield connected


def test_a_processor_outlives_a_connection_whose_request_found_no_room(
    full_processor: Processor, client_and_server: Callable[[], tuple[socket.socket, serving_connection.Connection]]
) -> None:
    request = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
    for _ in range(2):
        client, connection = client_and_server()
        full_processor.add(connection)
        client.sendall(struct.pack(">i", len(request)) + request)
        assert until(lambda held=connection: held.is_busy)
        connection.end()
        assert until(lambda held=connection: held.is_closed)


def test_a_connection_that_is_closed_before_it_is_taken_does_not_stay(
    full_processor: Processor, client_and_server: Callable[[], tuple[socket.socket, serving_connection.Connection]]
) -> None:
    client, connection = client_and_server()
    connection.is_doomed = True
    full_processor.add(connection)
    assert is_closed(client)
