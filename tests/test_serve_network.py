"""The path of a request: frames, limits, hostile bytes, slow and silent clients, many connections, an end in order."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from helpers.serving import Served, serving
from helpers.support import bundled
from helpers.walking import each_of
from kio.schema.errors import ErrorCode

from proofs.serve.client import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, PRODUCE, Client
from seglog_format.serve import slices
from seglog_format.serve.server import APIS
from seglog_format.serve.wire import (
    GAP,
    UnreadableRequestError,
    encode_response,
    envelope,
    read_counted,
    request_type,
    response_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def partition() -> Path:
    return next(bundled("4.3.0/segs").glob("*-0"))


def wide() -> Path:
    return next(bundled("4.3.0/large").glob("*-0"))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(partition(), wide(), idle_seconds=30) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as connected:
        yield connected


def is_alive(served: Served) -> bool:
    with served.client() as client:
        return client.ask(API_VERSIONS, 0).error_code is ErrorCode.none


@pytest.mark.parametrize("version", range(5))
def test_versions_are_told(client: Client, version: int) -> None:
    reported = client.ask(API_VERSIONS, version, client_software_name="x", client_software_version="1").api_keys
    assert {each.api_key: (each.min_version, each.max_version) for each in reported} == {
        key: (api.lowest, api.highest) for key, api in APIS.items()
    }


def test_a_version_from_the_future_is_answered_in_the_oldest_form(client: Client) -> None:
    client.send_frame(struct.pack(">hhih", API_VERSIONS, 99, 1, -1) + b"\x07" * 9)
    client._number = 1
    answer = client.receive(API_VERSIONS, 0)
    assert answer.error_code is ErrorCode.unsupported_version
    assert answer.api_keys


@each_of("key", sorted(APIS))
def test_the_library_knows_every_version(key: int) -> None:
    for version in range(APIS[key].lowest, APIS[key].highest + 1):
        assert request_type(key, version).__api_key__ == response_type(key, version).__api_key__ == key


@each_of("key", sorted(APIS))
def test_what_answers_a_request_is_there(key: int) -> None:
    assert callable(getattr(import_module(f"seglog_format.serve.{APIS[key].module}"), APIS[key].name))


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_this_server_for_everything(served: Served, client: Client, version: int) -> None:
    answer = client.ask(METADATA, version, topics=[] if version == 0 else None)
    assert [(each.host, each.port) for each in answer.brokers] == [("127.0.0.1", served.port)]
    assert [each.name for each in answer.topics] == ["large", "segs"]
    assert {each.partitions[0].leader_id for each in answer.topics} == {answer.brokers[0].node_id}


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_a_topic_without_a_name_is_unknown(client: Client, version: int) -> None:
    topic = client.ask(METADATA, version, topics=[{"topic_id": None, "name": None}]).topics[0]
    assert topic.error_code is ErrorCode.unknown_topic_id
    assert topic.name == (None if version >= 12 else "")


def test_nothing_can_be_written(client: Client) -> None:
    topics = [{"name": "segs", "partition_data": [{"index": 0, "records": b"x"}]}]
    answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=0, topic_data=topics)
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.topic_authorization_failed
    client.send(PRODUCE, 9, transactional_id=None, acks=0, timeout=0, topic_data=topics)
    assert client.receive_frame() is None


def test_requests_on_one_connection_are_answered_in_order(client: Client) -> None:
    for _ in range(20):
        client.send(API_VERSIONS, 0)
    answers = [client.receive_frame() for _ in range(20)]
    assert [struct.unpack_from(">i", answer or b"")[0] for answer in answers] == list(range(1, 21))


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    frame = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
    for byte in struct.pack(">i", len(frame)) + frame:
        client.socket.sendall(bytes([byte]))
    client._number = 1
    assert client.receive(API_VERSIONS, 0).api_keys


def test_a_log_that_ends_is_waited_for_as_long_as_asked(client: Client) -> None:
    end = client.list_offset("segs", -1).offset
    start = time.monotonic()
    assert client.fetch("segs", end, max_wait=300).records == b""
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize("size", [-1, 0, 7, (1 << 20) + 1, (1 << 31) - 1])
def test_a_frame_of_an_impossible_size_closes_its_connection(client: Client, size: int) -> None:
    client.socket.sendall(struct.pack(">i", size))
    assert client.receive_frame() is None


@pytest.mark.parametrize(
    ("key", "version"), [(FETCH, 3), (FETCH, 99), (LIST_OFFSETS, 0), (99, 0), (-1, -1), (METADATA, -1)]
)
def test_what_is_no_request_here_closes_its_connection(client: Client, key: int, version: int) -> None:
    client.send_frame(struct.pack(">hhih", key, version, 1, -1) + bytes(40))
    assert client.receive_frame() is None


IMPOSSIBLE = {
    "array": (FETCH, 4, struct.pack(">iiiibi", -1, 1, 1, 1, 0, (1 << 31) - 1)),
    "null array": (FETCH, 4, struct.pack(">iiiibi", -1, 1, 1, 1, 0, -1)),
    "compact array": (FETCH, 12, struct.pack(">iiiibii", -1, 1, 1, 1, 0, 0, 0) + b"\xff\xff\xff\xff\x0f"),
    "compact string": (API_VERSIONS, 3, b"\xff\xff\xff\xff\x0f"),
    "tagged field": (API_VERSIONS, 3, b"\x01\x01\x01\x00\xff\xff\xff\xff\x0f"),
    "number of tags": (API_VERSIONS, 3, b"\x01\x01\xff\xff\xff\xff\x0f"),
    "varint without end": (API_VERSIONS, 3, b"\xff" * 20),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_count_that_cannot_be_closes_the_connection(served: Served, name: str) -> None:
    key, version, body = IMPOSSIBLE[name]
    header = struct.pack(">hhih", key, version, 1, -1)
    with served.client() as client:
        client.send_frame(header + (b"\0" if request_type(key, version).__flexible__ else b"") + body)
        assert client.receive_frame() is None
    assert is_alive(served)


def test_every_request_that_is_cut_short_is_refused_or_read() -> None:
    dice = random.Random(9)  # noqa: S311 - reproducible
    for _ in range(1500):
        key = dice.choice(sorted(APIS))
        kind = request_type(key, dice.randint(APIS[key].lowest, APIS[key].highest))
        data = bytes(dice.choice([0, 0, 1, 2, 3, 0x7F, 0xFF, dice.randrange(256)]) for _ in range(60))
        for each in (kind.__header_schema__, kind):
            try:
                _, size, _ = read_counted(each, data, 0)
            except UnreadableRequestError:
                continue
            assert size <= len(data)


def test_a_hundred_connections_full_of_garbage_harm_nobody(served: Served) -> None:
    dice = random.Random(4)  # noqa: S311 - reproducible
    keys = sorted(APIS)
    with served.client() as watching:
        for number in range(100):
            with served.client() as client:
                body = dice.randbytes(dice.randrange(200))
                if number % 3:
                    key = dice.choice(keys)
                    version = dice.randint(APIS[key].lowest, APIS[key].highest)
                    body = struct.pack(">hhih", key, version, 1, -1) + body
                if number % 2:
                    body = struct.pack(">i", len(body)) + body
                client.socket.sendall(body)
        assert watching.ask(API_VERSIONS, 0).api_keys


def test_a_slow_reader_holds_up_nobody_and_gets_every_byte() -> None:
    with serving(wide(), processors=1, io_threads=1) as served, served.client() as slow, served.client() as quick:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
        fields = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 24, "isolation_level": 0}
        slow.send(FETCH, 11, **fields, topics=[{"topic": "large", "partitions": [wanted]}], rack_id="")
        for _ in range(20):
            assert quick.fetch("large", 0).records
        time.sleep(0.1)
        records = slow.receive(FETCH, 11).responses[0].partitions[0].records
        log = min(wide().glob("*.log"))
        assert log.read_bytes().startswith(records)
        assert len(records) > 1 << 17


def test_many_connections_at_once(served: Served) -> None:
    clients = [served.client() for _ in range(200)]
    try:
        for client in clients:
            client.send(API_VERSIONS, 0)
        assert all(client.receive(API_VERSIONS, 0).api_keys for client in clients)
    finally:
        for client in clients:
            client.close()


def test_more_connections_than_allowed_are_closed() -> None:
    with serving(partition(), max_connections=2) as served, served.client() as first, served.client() as second:
        assert first.ask(API_VERSIONS, 0).api_keys
        assert second.ask(API_VERSIONS, 0).api_keys
        with served.client() as third:
            assert third.receive_frame() is None
        second.close()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with served.client() as again:
                try:
                    again.send(API_VERSIONS, 0)
                    if again.receive_frame():
                        return
                except OSError:
                    pass
            time.sleep(0.02)
        pytest.fail("the place of a closed connection was not given to another")


def test_a_silent_connection_is_closed() -> None:
    with serving(partition(), idle_seconds=0.1) as served, served.client() as client:
        assert client.receive_frame() is None


def test_a_full_queue_makes_requests_wait_and_loses_none() -> None:
    with serving(wide(), queue_length=1, io_threads=1, processors=1) as served:
        clients = [served.client() for _ in range(30)]
        for client in clients:
            client.send(API_VERSIONS, 0)
        assert all(client.receive(API_VERSIONS, 0).api_keys for client in clients)
        for client in clients:
            client.close()


def test_the_end_closes_connections_and_threads() -> None:
    before = threading.active_count()
    with serving(partition()) as served:
        client = served.client()
        assert client.ask(API_VERSIONS, 0).api_keys
        client.send(FETCH, 11, **waiting_fetch(client.list_offset("segs", -1).offset))
    assert client.receive_frame() is not None  # what was asked is answered first
    assert client.receive_frame() is None
    client.close()
    assert threading.active_count() <= before


def waiting_fetch(offset: int) -> dict[str, object]:
    wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}
    fields = {"replica_id": -1, "max_wait": 60_000, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0}
    return fields | {"topics": [{"topic": "segs", "partitions": [wanted]}], "rack_id": ""}


@pytest.mark.parametrize("sendfile", [False, True])
def test_log_bytes_are_sent_with_and_without_sendfile(tmp_path: Path, *, sendfile: bool) -> None:
    if sendfile and not slices.HAS_SENDFILE:
        pytest.skip("this system has no sendfile")
    file = tmp_path / "log"
    file.write_bytes(bytes(range(256)) * 16)
    one, other = socket.socketpair()
    part = slices.FileSlice(str(file), 100, 3000)
    file.unlink()
    while part.size:
        part.send(one, sendfile=sendfile)
    part.close()
    assert other.recv(1 << 16) == (bytes(range(256)) * 16)[100:3100]
    one.close()
    other.close()


def test_a_file_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(bytes(60))
    one, other = socket.socketpair()
    part = slices.FileSlice(str(file), 50, 10)
    file.write_bytes(bytes(50))
    for sendfile in {False, slices.HAS_SENDFILE}:
        with pytest.raises(slices.SliceLostError):
            part.send(one, sendfile=sendfile)
    part.close()
    one.close()
    other.close()


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("size", [1, 126, 127, 128, 20_000])
def test_sizes_before_log_bytes_are_those_of_the_version(tmp_path: Path, version: int, size: int) -> None:
    file = tmp_path / "log"
    file.write_bytes(bytes(size))

    def fields(records: object) -> dict[str, object]:
        rows = {"partition_index": 0, "error_code": 0, "high_watermark": 5, "aborted_transactions": None}
        topics = [{"topic": "t", "partitions": [rows | {"records": records}]}] * 2
        return {"throttle_time": 0, "error_code": 0, "responses": topics}

    def filled(records: slices.Chunk) -> bytes:
        chunks = envelope(FETCH, version, fields(GAP)).filled(7, [records] * 2)
        return b"".join(each if isinstance(each, bytes) else file.read_bytes() for each in chunks)

    (expected,) = encode_response(FETCH, version, 7, fields(bytes(size)))
    assert filled(bytes(size)) == expected
    assert filled(slices.FileSlice(str(file), 0, size)) == expected
