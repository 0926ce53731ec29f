"""Requests as bytes, and a connection for them."""

from __future__ import annotations

import socket
import struct
import zlib
from typing import TYPE_CHECKING, Final

import google_crc32c

from proofs.serve.messages import request_frame
from seglog_format import build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from typing import Self

PRODUCE, FETCH, LIST_OFFSETS, METADATA = range(4)
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP = 8, 9, 10, 11
API_VERSIONS, INIT_PRODUCER_ID = 18, 22
TOPIC: Final = "orders"
TIME_MS: Final = 1_700_000_000_000
MORE: Final = 0x80
"""Flag of a byte in a number that continues."""

EMPTY_RECORD: Final = b"\x0c\0\0\0\1\1\0"
"""The smallest record, seven bytes: its length, no key, no value, no headers."""


class Connection:
    """A connection that sends and receives frames without checks."""

    def __init__(self, port: int, *, seconds: float = 30, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(seconds)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise

    def send(self, body: bytes) -> None:
        """Send a request."""
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def receive(self) -> bytes | None:
        """Return the next answer; None if the server has closed the connection."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def _exactly(self, size: int) -> bytes | None:
        parts, left = [], size
        while left:
            try:
                part = self.socket.recv(min(left, 1 << 20))
            except (ConnectionResetError, BrokenPipeError):
                return None
            if not part:
                return None
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def ask(self, body: bytes) -> bytes | None:
        """Send a request, and return its answer."""
        self.send(body)
        return self.receive()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def header(key: int, version: int) -> bytes:
    """Return the header of a request of a version that is not flexible."""
    return struct.pack(">hhih", key, version, 1, -1)


def request(key: int, version: int, **fields: object) -> bytes:
    """Return a request as clients send it."""
    return request_frame(key, version, 1, "proof", fields)


def fetch(offset: int, *, number: int = 0, max_bytes: int = 1 << 16, max_wait: int = 0) -> bytes:
    """Return a request to fetch from one partition."""
    partition = {"partition": number, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    topics = [{"topic": TOPIC, "partitions": [partition]}]
    limits = {"max_wait": max_wait, "min_bytes": 1, "max_bytes": max_bytes}
    return request(FETCH, 4, replica_id=-1, isolation_level=0, topics=topics, **limits)


def produce(data: bytes, *, number: int = 0) -> bytes:
    """Return a request to produce one batch."""
    topics = [{"name": TOPIC, "partition_data": [{"index": number, "records": data}]}]
    return request(PRODUCE, 5, transactional_id=None, acks=-1, timeout=1000, topic_data=topics)


def join(group: str, *, session_ms: int = 1_800_000) -> bytes:
    """Return a request to join a group with the longest possible session."""
    protocols = [{"name": "range", "metadata": b"m"}]
    member = {"group_id": group, "member_id": "", "protocol_type": "consumer"}
    return request(JOIN_GROUP, 0, session_timeout=session_ms, protocols=protocols, **member)


def commit(group: str, offset: int, metadata: str = "") -> bytes:
    """Return a request to commit an offset without being a member."""
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}
    member = {"group_id": group, "member_id": "", "generation_id_or_member_epoch": -1, "retention_time": -1}
    return request(OFFSET_COMMIT, 2, topics=[{"name": TOPIC, "partitions": [row]}], **member)


def batch(*values: bytes) -> bytes:
    """Return a batch as an honest producer sends it."""
    return encode_batch(build_batch([new_record(value=value, timestamp_ms=TIME_MS) for value in values]))


def crafted(section: bytes, count: int) -> bytes:
    """Return a batch with a right checksum, whose records are `count` copies of some bytes, compressed with gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    step = max(1, (1 << 20) // max(len(section), 1))
    parts = [packer.compress(section * min(step, count - done)) for done in range(0, count, step)]
    body = b"".join([*parts, packer.flush()])
    made = bytearray(batch(b""))[:61]
    struct.pack_into(">i", made, 8, 49 + len(body))
    struct.pack_into(">h", made, 21, 1)
    struct.pack_into(">i", made, 23, min(count, 2**31 - 1) - 1)
    struct.pack_into(">i", made, 57, count)
    struct.pack_into(">I", made, 17, google_crc32c.value(bytes(made[21:]) + body))
    return bytes(made) + body


def varint(value: int) -> bytes:
    """Return a positive number as records store it."""
    left, made = 2 * value, bytearray()
    while left >= MORE:
        made.append(left % MORE | MORE)
        left >>= 7
    return bytes([*made, left])
