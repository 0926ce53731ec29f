"""A Kafka client of a few lines, which sends exactly the given fields."""

from __future__ import annotations

import io
import socket
import struct
from typing import Any, Final, Self, TypeAlias

from kio.serial import entity_reader

from proofs.serve.messages import request_frame, response_type

Answer: TypeAlias = Any
"""A message, with the fields of its version."""

PRODUCE, FETCH, LIST_OFFSETS, METADATA = range(4)
API_VERSIONS = 18

UNASKED: Final[dict[str, object]] = {
    "allow_auto_topic_creation": False,
    "forgotten_topics_data": (),
    "include_cluster_authorized_operations": False,
    "include_fenced_brokers": False,
    "include_topic_authorized_operations": False,
    "timeout": 0,
}
"""Fields that some versions have, with values that do not matter here."""


class Client:
    """A connection. Requests are mappings of field names, in the format in which the package writes answers."""

    def __init__(self, port: int, *, timeout: float = 10) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._number = 0

    def send(self, api_key: int, version: int, **fields: object) -> None:
        """Send a request, without waiting for its answer."""
        self._number += 1
        self.send_frame(request_frame(api_key, version, self._number, "test", UNASKED | fields))

    def send_frame(self, frame: bytes) -> None:
        """Send bytes preceded by their size."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int, *, before_last: int = 0) -> Answer:
        """Return the next answer, which belongs to the last request, or to the one `before_last` requests before it."""
        frame = self.receive_frame()
        assert frame is not None
        kind = response_type(api_key, version)
        header, size = entity_reader(kind.__header_schema__)(frame, 0)
        assert header.correlation_id == self._number - before_last
        body, body_size = entity_reader(kind)(frame, size)
        assert size + body_size == len(frame)
        return body

    def receive_frame(self) -> bytes | None:
        """Return the next answer; None if the server has closed the connection."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def _exactly(self, size: int) -> bytes | None:
        buffer = io.BytesIO()
        while buffer.tell() < size:
            try:
                data = self.socket.recv(size - buffer.tell())
            except ConnectionResetError:
                return None
            if not data:
                return None
            buffer.write(data)
        return buffer.getvalue()

    def ask(self, api_key: int, version: int, **fields: object) -> Answer:
        """Send a request and wait for its answer."""
        self.send(api_key, version, **fields)
        return self.receive(api_key, version)

    def fetch(self, topic: str, offset: int, *, version: int = 12, number: int = 0, **changed: Answer) -> Answer:
        """Fetch one partition, and return its part of the answer."""
        partition = {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        fields: dict[str, object] = {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "topics": [{"topic": topic, "partitions": [partition | changed.pop("partition", {})]}],
        }
        answer = self.ask(FETCH, version, **(fields | changed))
        return answer.responses[0].partitions[0] if answer.responses else answer

    def list_offset(
        self, topic: str, timestamp_ms: int, *, number: int = 0, version: int = 7, level: int = 0
    ) -> Answer:
        """Return the answer to a search by timestamp in one partition."""
        asked = {"partition_index": number, "timestamp": timestamp_ms}
        topics = [{"name": topic, "partitions": [asked]}]
        answer = self.ask(LIST_OFFSETS, version, replica_id=-1, isolation_level=level, topics=topics)
        return answer.topics[0].partitions[0]

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
