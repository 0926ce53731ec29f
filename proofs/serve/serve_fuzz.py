"""Send a server valid, changed, cut and garbage requests: it answers as before.

No request may fail because of a defect of the server, and its memory may not grow without bound. In the end it must
answer as it did at the start, and leave valid logs.
"""

from __future__ import annotations

import random
import signal
import socket
import struct
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kio.schema.errors import ErrorCode
from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome
from proofs.serve.client import API_VERSIONS, Client
from proofs.serve.messages import is_array, is_nullable, message_in, request_frame, request_type
from seglog_format import LogConfig, LogWriter, build_batch, encode_batch, new_record, open_partition

if TYPE_CHECKING:
    import argparse
    import subprocess

ROOT: Final = Path(__file__).resolve().parents[2]
TOPICS: Final = ("orders", "empty", "nowhere", "../orders", "", "x" * 300)
ANSWER_SECONDS: Final = 0.01
POOL_SIZE: Final = 2000
RENEWED: Final = 0.05
MESSAGES_OF_A_CONNECTION: Final = 40
EXTREMES: Final = (0, 1, -1, 2, 7, 100, 0x7FFF, -0x8000, 0x7FFFFFFF, -0x80000000)
SIZES: Final = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}
RECORD_COUNT: Final = 200
MEBI: Final = 1 << 20


Versions: TypeAlias = dict[int, tuple[int, int]]
"""Lowest and highest version of each API, by its key."""


def versions_of(port: int) -> Versions:
    """Return the requests that a server supports, as it answers."""
    with Client(port) as client:
        return {each.api_key: (each.min_version, each.max_version) for each in client.ask(API_VERSIONS, 0).api_keys}


class Maker:
    """Generates requests."""

    def __init__(self, seed: int, versions: Versions) -> None:
        self.dice = random.Random(seed)
        self._versions = versions
        self._pool: list[bytes] = []

    def frame(self) -> bytes:
        """Return the next request with its size, which may be wrong."""
        body = self._any_request()
        kind = self.dice.random()
        if kind < 0.5:  # noqa: PLR2004 - half of them stay as they are
            return struct.pack(">i", len(body)) + body
        body = self._changed(body)
        if kind < 0.95:  # noqa: PLR2004 - one in twenty claims another size
            return struct.pack(">i", len(body)) + body
        return struct.pack(">i", self.dice.choice([*EXTREMES, len(body) + 1, len(body) - 1])) + body

    def _any_request(self) -> bytes:
        """Return a new request, or an earlier one: to generate a request takes far longer than to change it."""
        if len(self._pool) < POOL_SIZE or self.dice.random() < RENEWED:
            made = self._request()
            if len(self._pool) < POOL_SIZE:
                self._pool.append(made)
            else:
                self._pool[self.dice.randrange(POOL_SIZE)] = made
            return made
        return self.dice.choice(self._pool)

    def _request(self) -> bytes:
        key = self.dice.choice(sorted(self._versions))
        version = self.dice.randint(*self._versions[key])
        number, client_id = self.dice.getrandbits(31), self.dice.choice([None, "", "fuzz", "x" * 200])
        return request_frame(key, version, number, client_id, self._values(request_type(key, version)))

    def _values(self, kind: type[Any]) -> dict[str, Any]:
        return {name: self._value(annotation, kafka_type) for name, annotation, kafka_type in _fields_of(kind)}

    def _value(self, annotation: Any, kafka_type: str) -> Any:  # noqa: ANN401 - of any type
        if is_nullable(annotation) and self.dice.random() < 0.2:  # noqa: PLR2004 - one in five is null
            return None
        nested = message_in(annotation)
        one = (lambda: self._values(nested)) if nested is not None else (lambda: self._plain(kafka_type))
        return tuple(one() for _ in range(self.dice.randint(0, 2))) if is_array(annotation) else one()

    def _plain(self, kafka_type: str) -> Any:  # noqa: ANN401 - of any type
        dice = self.dice
        if kafka_type in SIZES:
            return self._number(kafka_type)
        made = {
            "string": lambda: dice.choice([*TOPICS[:2] * 3, *TOPICS, "consumer", "range", "group"]),
            "bool": lambda: dice.random() < 0.5,  # noqa: PLR2004 - heads or tails
            "bytes": lambda: dice.randbytes(dice.randint(0, 50)),
            "records": self._records,
            "uuid": lambda: dice.choice([None, uuid.UUID(int=dice.getrandbits(128))]),
            "error_code": lambda: 0,
            "timedelta_i32": lambda: dice.choice([0, 0, 0, 1, 5, 60_000]),
            "timedelta_i64": lambda: dice.choice([0, 1, 60_000]),
            "datetime_i64": lambda: datetime.fromtimestamp(dice.randint(0, 2**31), UTC),
        }
        return made[kafka_type]()

    def _number(self, kafka_type: str) -> int:
        bits = 8 * SIZES[kafka_type]
        value = self.dice.choice([0, 0, 1, self.dice.choice(EXTREMES), self.dice.getrandbits(bits - 1)])
        low, high = (0, (1 << bits) - 1) if kafka_type.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return max(low, min(high, value))

    def _records(self) -> bytes:
        values = [new_record(value=self.dice.randbytes(20), timestamp_ms=1) for _ in range(self.dice.randint(1, 3))]
        batch = encode_batch(build_batch(values))
        return batch if self.dice.random() < 0.5 else self._changed(batch)  # noqa: PLR2004 - heads or tails

    def _changed(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.dice.randint(1, 4)):
            position = self.dice.randrange(len(changed)) if changed else 0
            match self.dice.randrange(5):
                case 0 if changed:
                    changed[position] ^= 1 << self.dice.randrange(8)
                case 1:
                    del changed[position:]
                case 2:
                    changed[position:position] = self.dice.randbytes(self.dice.randint(1, 8))
                case 3:
                    changed[position : position + 4] = struct.pack(">i", self.dice.choice(EXTREMES))
                case _:
                    changed[position : position + self.dice.randint(1, 8)] = b""
        return bytes(changed)


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, Any, str], ...]:
    return tuple((each.name, each.type, each.metadata.get("kafka_type", "")) for each in fields(kind))


class Sender(Thread):
    """Sends messages on one connection after another."""

    def __init__(self, port: int, seed: int, count: int, versions: Versions) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._count = count
        self._maker = Maker(seed, versions)
        self.found: Counter[str] = Counter()
        self.trouble: list[str] = []
        self.is_stopped = False

    def run(self) -> None:
        """Send all messages."""
        left = self._count
        while left > 0 and not self.is_stopped:
            size = min(left, MESSAGES_OF_A_CONNECTION)
            left -= size
            try:
                self._send(size)
            except OSError as error:
                self.trouble.append(str(error))
                time.sleep(0.1)

    def _send(self, count: int) -> None:
        connected = self._connected()
        for _ in range(count):
            self.found["messages"] += 1
            try:
                connected.sendall(self._maker.frame())
                if not self._answered(connected):
                    connected.close()
                    connected = self._connected()
            except (BrokenPipeError, ConnectionResetError):
                self.found["closed"] += 1
                connected.close()
                connected = self._connected()
        connected.close()

    def _connected(self) -> socket.socket:
        connected = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        connected.settimeout(ANSWER_SECONDS)
        return connected

    def _answered(self, connected: socket.socket) -> bool:
        """Return whether the connection can be used for the next message."""
        try:
            data = connected.recv(1 << 16)
        except TimeoutError:
            self.found["silent"] += 1
            return False
        self.found["answered" if data else "closed"] += 1
        return bool(data)


def make_logs(directory: Path) -> None:
    """Write logs for the server to read."""
    with LogWriter(directory, LogConfig(retention_ms=-1, segment_bytes=4096)) as writer:
        writer.open("empty", 0)
        orders = writer.open("orders", 0)
        for number in range(RECORD_COUNT):
            orders.append([new_record(value=b"%d" % number * 10, timestamp_ms=number)])


def memory(process: subprocess.Popen[str]) -> int:
    """Return the bytes that a process holds in memory; 0 if they are not known."""
    with suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def is_alive(port: int) -> bool:
    """Return whether the server answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connected:
        frame = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
        connected.sendall(struct.pack(">i", len(frame)) + frame)
        answer = b""
        while len(answer) < 10 and (data := connected.recv(1 << 12)):  # noqa: PLR2004 - up to the error code
            answer += data
    return answer[8:10] == struct.pack(">h", ErrorCode.none.value)


def fuzz(directory: Path, *, count: int, seed: int, senders: int = 2, patience: float = 3600) -> dict[str, Any]:
    """Send `count` messages to a new server; return the result."""
    make_logs(directory)
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--writable", "--acknowledge", "written"]
    errors = directory.parent / "errors.txt"
    with errors.open("w") as said:
        process = child_processes.start(
            [*command, "--port", "0", "--idle-seconds", "20", str(directory)], stderr=said, text=True, directory=ROOT
        )
    port = _port(errors)
    versions = versions_of(port)
    threads = [Sender(port, seed * 1000 + number, count // senders, versions) for number in range(senders)]
    started, before = time.monotonic(), 0
    for thread in threads:
        thread.start()
    deadline = started + patience
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        time.sleep(0.2)
        if not before and sum(thread.found["messages"] for thread in threads) > count // 4:
            before = memory(process)
    for thread in threads:
        thread.is_stopped = True
        thread.join()
    after, alive = memory(process), process.poll() is None and is_alive(port)
    process.send_signal(signal.SIGTERM)
    status = process.wait(60)
    found = sum((thread.found for thread in threads), Counter())
    failures = [line for line in errors.read_text().splitlines() if "not answered" in line or "encoded" in line]
    trouble = [each for thread in threads for each in thread.trouble]
    return {
        "wanted": count,
        **{name: found[name] for name in ("messages", "answered", "closed", "silent")},
        "seconds": round(time.monotonic() - started, 1),
        "memory_mib_after_a_quarter": round(before / MEBI, 1),
        "memory_mib_at_the_end": round(after / MEBI, 1),
        "answers_at_the_end": alive,
        "exit_status": status,
        "failures": failures[:20],
        "refused_connections": trouble[:20],
        "logs_are_sound": _is_sound(directory),
    }


def _port(errors: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for line in errors.read_text().splitlines():
            if "listening on" in line:
                return int(line.rsplit(":", 1)[1])
        time.sleep(0.05)
    message = f"the server did not start: {errors.read_text()}"
    raise RuntimeError(message)


def _is_sound(directory: Path) -> bool:
    for path in directory.glob("*-0"):
        with open_partition(path) as partition:
            offsets = [record.offset for record in partition.records()]
        if offsets != list(range(len(offsets))) or ("orders" in path.name and len(offsets) < RECORD_COUNT):
            return False
    return True


def is_fine(result: dict[str, Any]) -> bool:
    """Return whether nothing was found."""
    is_clean = result["answers_at_the_end"] and result["logs_are_sound"] and result["exit_status"] == 0
    grown = result["memory_mib_at_the_end"] - result["memory_mib_after_a_quarter"]
    return is_clean and not result["failures"] and not result["refused_connections"] and grown < 100  # noqa: PLR2004


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--count", type=int, default=1_000_000, help="requests")
    parser.add_argument("--seconds", type=float, default=36_000, help="end then, however many were sent")
    parser.set_defaults(seed=9)


def prove(options: argparse.Namespace) -> Outcome:
    """Send changed requests to a server, and check that it still answers, and that its logs are valid."""
    with tempfile.TemporaryDirectory(prefix="serve-fuzz-") as root:
        result = fuzz(Path(root) / "logs", count=options.count, seed=options.seed, patience=options.seconds)
    is_bad = not is_fine(result)
    found = list(map(str, result.pop("failures")))
    return Outcome(result, found or ["the server or its logs did not stay sound"] if is_bad else ())
