"""A Kafka client of a few lines, which says exactly what it is told to; and a server to talk to."""

from __future__ import annotations

import io
import socket
import struct
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from kio.serial import entity_reader

from seglog_format.serve.catalog import CatalogOptions, open_catalog
from seglog_format.serve.limits import Limits
from seglog_format.serve.schemas import request_type, response_type, write_entity
from seglog_format.serve.server import Server
from seglog_format.serve.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.serve.writing import Writers

Answer: TypeAlias = Any
"""A message; its fields are those of its version."""

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
"""Fields that some versions have, and that make no difference here."""


class Client:
    """A connection. Requests are mappings of field names, as answers are written in the package."""

    def __init__(self, port: int, *, timeout: float = 10) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._number = 0

    def send(self, api_key: int, version: int, **fields: object) -> None:
        """Send a request, without waiting for its answer."""
        kind = request_type(api_key, version)
        self._number += 1
        header = {
            "request_api_key": api_key,
            "request_api_version": version,
            "correlation_id": self._number,
            "client_id": "test",
        }
        frame = write_entity(kind.__header_schema__, header) + write_entity(kind, UNASKED | fields)
        self.send_frame(frame)

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their size before them."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int, *, before_last: int = 0) -> Answer:
        """Return the next answer, which is that to the last request, or to one so many before it."""
        frame = self.receive_frame()
        assert frame is not None
        kind = response_type(api_key, version)
        header, size = entity_reader(kind.__header_schema__)(frame, 0)
        assert header.correlation_id == self._number - before_last
        body, body_size = entity_reader(kind)(frame, size)
        assert size + body_size == len(frame)
        return body

    def receive_frame(self) -> bytes | None:
        """Return the next answer; None where the server has closed the connection."""
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
        """Fetch one partition; what comes is its part of the answer."""
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


class Served(SimpleNamespace):
    """A running server: its port, what it found, and where it failed."""

    port: int
    findings: list[str]
    failures: list[str]
    server: Server

    def client(self) -> Client:
        """Open a connection to this server."""
        return Client(self.port)


@contextmanager
def serving(
    *paths: Path,
    options: CatalogOptions | None = None,
    writers: Writers | None = None,
    limits: dict[str, Answer] | None = None,
    state: Path | None = None,
    reported: list[str] | None = None,
    **settings: Answer,
) -> Iterator[Served]:
    """Provide a server over these directories; it must not have failed at anything, unless a list for that is given."""
    findings: list[str] = []
    failures: list[str] = [] if reported is None else reported
    if writers is not None:
        options = CatalogOptions(end_of=writers.end_of)
    catalog = open_catalog(paths, on_finding=findings.append, options=options)
    if writers is not None:
        writers.open(catalog.topics)
    all_settings = Settings(port=0, limits=Limits(**limits or {}), **settings)
    with Server(catalog, all_settings, failures.append, writers, state=state) as server:
        yield Served(port=server.address.port, findings=findings, failures=failures, server=server)
    assert reported is not None or failures == []
