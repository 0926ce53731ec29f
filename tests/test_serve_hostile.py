"""Clients that mean harm, or have died without saying so: nobody else notices, and nothing is left behind."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

import pytest
from helpers.serving import Served, serving
from helpers.support import bundled

from proofs.serve import serve_fuzz
from proofs.serve.client import API_VERSIONS, FETCH, Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(next(bundled("4.3.0/large").glob("*-0")), next(bundled("4.3.0/segs").glob("*-0"))) as running:
        yield running


def wait_for_connections(served: Served, count: int) -> None:
    deadline = time.monotonic() + 10
    while served.server.load.connections != count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert served.server.load.connections == count


def test_five_hundred_idle_connections_disturb_nobody(served: Served) -> None:
    threads = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", served.port), timeout=10) for _ in range(500)]
    wait_for_connections(served, 500)
    with served.client() as client:
        start = time.monotonic()
        for _ in range(50):
            assert client.fetch("segs", 0).records
        assert time.monotonic() - start < 10
        assert threading.active_count() == threads
    for each in idle:
        each.close()
    wait_for_connections(served, 0)


def test_a_connection_that_says_no_more_still_gets_its_answer(served: Served) -> None:
    with served.client() as client:
        client.send(API_VERSIONS, 0)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.receive(API_VERSIONS, 0).api_keys
        assert client.receive_frame() is None
    wait_for_connections(served, 0)


def large_fetch(client: Client) -> None:
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    fields = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 24, "isolation_level": 0}
    client.send(FETCH, 11, **fields, topics=[{"topic": "large", "partitions": [wanted]}], rack_id="")


def test_readers_that_never_read_hold_up_nobody_and_leave_nothing(served: Served) -> None:
    slow = [served.client() for _ in range(40)]
    for client in slow:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        large_fetch(client)
    with served.client() as client:
        for _ in range(20):
            assert client.fetch("segs", 0).records
    for client in slow:  # they go without a word: what is left is a reset
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    wait_for_connections(served, 0)


def test_a_request_that_stops_half_way_is_closed_when_its_time_is_over() -> None:
    with serving(next(bundled("4.3.0/segs").glob("*-0")), idle_seconds=0.2) as served, served.client() as client:
        client.socket.sendall(struct.pack(">ihh", 100, 18, 0))
        assert client.receive_frame() is None
        wait_for_connections(served, 0)


def test_what_comes_to_mind_harms_nothing(tmp_path: Path) -> None:
    found = serve_fuzz.fuzz(tmp_path / "logs", count=1500, seed=11)
    assert found["messages"] == 1500
    assert serve_fuzz.is_fine(found), found
