"""What a client may take of a server: more is refused before it costs anything."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from helpers.serving import Served, serving
from helpers.support import bundled

from proofs.serve.client import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, Client

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, EPOCHS = 8, 9, 10, 23
MANY = 40_000


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(next(bundled("4.3.0/segs").glob("*-0"))) as running:
        yield running


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


TOPIC_OF_MANY = struct.pack(">ih4si", 1, 4, b"segs", MANY)
"""An array of one topic, with so many partitions."""

TOO_MANY = {
    "empty names in Metadata": header(METADATA, 1) + struct.pack(">i", MANY) + b"\0\0" * MANY,
    "partitions in ListOffsets": header(LIST_OFFSETS, 1) + struct.pack(">i", -1) + TOPIC_OF_MANY + bytes(12 * MANY),
    "partitions in OffsetFetch": header(OFFSET_FETCH, 1) + b"\0\1g" + TOPIC_OF_MANY + bytes(4 * MANY),
    "topics in Fetch": header(FETCH, 4) + struct.pack(">iiiibi", -1, 0, 1, 1, 0, MANY) + bytes(6 * MANY),
    "topics in OffsetCommit": header(OFFSET_COMMIT, 5) + b"\0\1g" + struct.pack(">ihi", 1, 0, MANY) + bytes(6 * MANY),
    "keys in FindCoordinator": header(FIND_COORDINATOR, 4) + b"\0\0" + b"\xc1\xb8\x02" + b"\1" * MANY + b"\0",
    "tagged fields": header(API_VERSIONS, 3) + b"\0\2a\2b" + b"\xc0\xb8\x02" + b"\x63\0" * MANY,
    "topics among some of none": header(EPOCHS, 2) + struct.pack(">i", MANY) + b"\0\0\0\0\0\0" * MANY,
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_a_request_with_too_many_items_closes_its_connection(served: Served, name: str) -> None:
    with served.client() as client:
        client.send_frame(TOO_MANY[name])
        assert client.receive_frame() is None
    with served.client() as client:
        assert client.ask(API_VERSIONS, 0).api_keys


def test_as_many_items_as_are_allowed_are_answered() -> None:
    path = next(bundled("4.3.0/segs").glob("*-0"))
    with serving(path, limits={"request_items": 5}) as served, served.client() as client:
        names = [{"name": f"t{number}"} for number in range(5)]
        assert len(client.ask(METADATA, 4, topics=names).topics) == 5
        client.send(METADATA, 4, topics=[*names, {"name": "one more"}])
        assert client.receive_frame() is None


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as connected:
        yield connected


def test_a_topic_that_is_named_a_thousand_times_is_told_of_once(client: Client) -> None:
    topics = client.ask(METADATA, 4, topics=[{"name": name} for name in ["segs", "", "x"] * 1000]).topics
    assert [topic.name for topic in topics] == ["segs", "", "x"]


def test_a_partition_that_is_named_a_thousand_times_is_answered_once(client: Client) -> None:
    asked = {"partition_index": 0, "timestamp": -1}
    topics = [{"name": "segs", "partitions": [asked] * 100}] * 10
    (topic,) = client.ask(LIST_OFFSETS, 2, replica_id=-1, isolation_level=0, topics=topics).topics
    assert len(topic.partitions) == 1
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    fields = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1, "isolation_level": 0}
    topics = [{"topic": "segs", "partitions": [wanted] * 100}] * 10
    (topic,) = client.ask(FETCH, 6, **fields, topics=topics).responses
    assert len(topic.partitions) == 1
    topics = [{"topic": "segs", "partitions": [{"partition": 0, "leader_epoch": 0}] * 100}] * 10
    (topic,) = client.ask(EPOCHS, 2, topics=topics).topics
    assert len(topic.partitions) == 1


def test_a_group_that_is_named_a_thousand_times_is_answered_once(client: Client) -> None:
    topics = [{"name": "segs", "partition_indexes": [0] * 100}] * 10
    (topic,) = client.ask(OFFSET_FETCH, 5, group_id="g", topics=topics).topics
    assert len(topic.partitions) == 1
    groups = [{"group_id": "g", "topics": topics}] * 3
    (group,) = client.ask(OFFSET_FETCH, 8, groups=groups, require_stable=False).groups
    assert len(group.topics) == 1
    assert len(client.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"] * 1000).coordinators) == 1
