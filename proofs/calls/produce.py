"""A producer and a server, which must sync before it answers."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final

from proofs.serve.messages import request_frame
from proofs.serve.process import serve_process
from seglog_format import build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PRODUCE, VERSION, BATCHES = 0, 9, 3
SIZE: Final = struct.Struct(">i")


def produce(root: Path, topic: str, begins: Callable[[], None], ends: Callable[[], None]) -> None:
    """Serve a log directory, and append to it over the network.

    Args:
        root: the log directory.
        topic: topic with a partition 0.
        begins: called when the server is ready: from then on, each answer is an acknowledgement.
        ends: called before the server is closed.
    """
    with (
        serve_process("--writable", str(root)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as client,
    ):
        begins()
        for number in range(BATCHES):
            _ask(client, number, topic)
        ends()


def _ask(client: socket.socket, number: int, topic: str) -> None:
    """Append one batch, and wait for the answer."""
    batch = encode_batch(build_batch([new_record(value=b"value", timestamp_ms=1000)]))
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    body = {"transactional_id": None, "acks": -1, "timeout": 0, "topic_data": topics}
    frame = request_frame(PRODUCE, VERSION, number, "watched", body)
    client.sendall(SIZE.pack(len(frame)) + frame)
    (size,) = SIZE.unpack(_exactly(client, SIZE.size))
    _exactly(client, size)


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            msg = "the server has closed the connection"
            raise RuntimeError(msg)
        data += more
    return data
