"""The tasks of the memory proof's child processes, and a consumer for the server."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from proofs.children import Ended, watched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proofs.memory_logs import Made

SEGLOG: Final = ("-m", "seglog_format.cli")
SCAN: Final = """
import sys
from seglog_format import open_partition
layout, threads = sys.argv[2], int(sys.argv[3])
with open_partition(sys.argv[1]) as partition:
    rows = 0
    for batch in partition.scan(layout=layout, threads=threads):
        rows, last = rows + len(batch), batch.slice(len(batch) - 1).to_pylist()[0]
print(rows, last["offset"], len(last["value"]))
"""
RECORDS: Final = """
import sys
from itertools import islice
from seglog_format import open_partition
start, count = int(sys.argv[2]), int(sys.argv[3])
with open_partition(sys.argv[1]) as partition:
    for record in islice(partition.records(start), count or None):
        last = record.offset, len(record.value)
print(*last)
"""
REFERENCE: Final = """
import sys
sys.modules["pyarrow"] = None
from seglog_format import engine
engine.lacking = lambda: engine.NOT_INSTALLED
"""
SPARK: Final = """
import sys
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StructType
from seglog_format.spark.executing import batches_of
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.options import parse_options
from seglog_format.spark.planning import plan
options = parse_options({"path": sys.argv[1], "mode": sys.argv[2]})
schema = to_arrow_schema(StructType().add("value", BinaryType()).add("offset", LongType()), timezone="UTC")
rows = sum(len(batch) for task in plan(options, EVERYTHING)
           for batch in batches_of(task, schema, options, EVERYTHING))
print(rows)
"""
FETCH: Final = 1
FETCH_VERSION: Final = 4
MAX_BYTES: Final = 2**20
BATCH_START: Final = struct.Struct(">qi4xb4x2xi")


@dataclass(frozen=True)
class Task:
    """A task that a child process does with a partition.

    Attributes:
        name: name of the task.
        run: runs the task, and returns the end of the child.
    """

    name: str
    run: Callable[[Made], Ended]


def command(name: str, *arguments: str, of_root: bool = False, address_space: int | None = None) -> Task:
    """Return a task that runs a command on the partition, or on the log directory."""

    def run(made: Made) -> Ended:
        path = made.root if of_root else made.path
        return watched([*SEGLOG, *arguments, str(path)], address_space=address_space)

    return Task(name, run)


def script(name: str, code: str, *arguments: object, address_space: int | None = None) -> Task:
    """Return a task that runs a few lines of Python, which get the partition as an argument."""
    words = [str(argument) for argument in arguments]
    return Task(name, lambda made: watched(["-c", code, str(made.path), *words], address_space=address_space))


def of_file(name: str, *arguments: str) -> Task:
    """Return a task that runs a command on the first log file."""
    return Task(name, lambda made: watched([*SEGLOG, *arguments, str(made.log(0))]))


def salvage(scratch: Path) -> Task:
    """Return a task that copies intact batches to another directory."""
    numbers = iter(range(100))

    def run(made: Made) -> Ended:
        return watched([*SEGLOG, "salvage", str(made.path), "-o", str(scratch / f"salvaged-{next(numbers)}" / "x-0")])

    return Task("salvage", run)


def serve(limit: int) -> Task:
    """Return a task that serves the directory while a consumer reads up to `limit` bytes."""

    def run(made: Made) -> Ended:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        is_done, consumed = Event(), list[str]()
        consumer = Thread(target=_consume, args=(port, made.end, limit, consumed, is_done))
        consumer.start()
        ended = watched([*SEGLOG, "serve", "--port", str(port), str(made.root)], ends_when=is_done.is_set)
        consumer.join()
        return Ended(0 if consumed else 1, "".join(consumed), ended.errors, ended.anonymous_bytes)

    return Task("serve", run)


def _consume(port: int, end: int, limit: int, consumed: list[str], is_done: Event) -> None:
    """Read from the first offset on, and note the offset that was reached."""
    try:
        with _connected(port) as connection:
            offset = size = 0
            while offset < end and size < limit:
                data = _fetched(connection, offset)
                if not data:
                    return
                size, offset = size + len(data), _offset_after(data)
            consumed.append(f"consumed {size} bytes, up to offset {offset}")
    finally:
        is_done.set()


def _connected(port: int) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _fetched(connection: socket.socket, offset: int) -> bytes:
    topic = b"large"
    request = struct.pack(">hhih", FETCH, FETCH_VERSION, 1, -1)
    request += struct.pack(">iiiibih", -1, 100, 1, MAX_BYTES, 0, 1, len(topic)) + topic
    request += struct.pack(">iiqi", 1, 0, offset, MAX_BYTES)
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    answer = _exactly(connection, size)
    at = 4 + 4 + 4 + 2 + len(topic) + 4 + 4
    error, _, _, aborted = struct.unpack_from(">hqqi", answer, at)
    assert error == 0, f"the server answers with error {error}"
    return answer[at + 22 + 16 * max(aborted, 0) + 4 :]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        assert piece, "the server hung up"
        data += piece
    return bytes(data)


def _offset_after(data: bytes) -> int:
    """Return the offset after the last whole batch."""
    position = offset = 0
    while position + BATCH_START.size <= len(data):
        base, size, _, delta = BATCH_START.unpack_from(data, position)
        position += 12 + size
        offset = base + delta + 1 if position <= len(data) else offset
    return offset
