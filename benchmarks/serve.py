"""The speed of fetches: `seglog serve` against a real broker with the same files, in one run.

A client fetches and discards batches; it knows their number of records, so it need not parse them. Several clients are
several processes. The servers take turns; the report has the figure of each round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import at_offset, java_version
from seglog_conformance.toolchains import child_processes

from proofs.kafka.node import free_ports
from proofs.report_facts import BENCHMARKED, load, run_conditions, write_report
from proofs.serve.broker import RELEASE, broker_with
from seglog_format import LogConfig, PartitionWriter, build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
TOPIC: Final = "bench"
TIME_MS: Final = int(time.time() * 1000)
"""Time of the records: brokers delete segments that are older than a week."""
RECORDS: Final = 16
VALUE_SIZE: Final = 1000
MEBI: Final = 1 << 20
LARGE, SINGLE = MEBI, 1
"""Bytes of a fetch: many batches, or one."""


def batch() -> bytes:
    """Return a batch as a busy producer sends it."""
    return encode_batch(
        build_batch([new_record(value=bytes(VALUE_SIZE), timestamp_ms=TIME_MS) for _ in range(RECORDS)])
    )


def make_log(directory: Path, size: int) -> int:
    """Write a log of about `size` bytes; return its number of records."""
    one, offset = batch(), 0
    config = LogConfig(segment_bytes=64 * MEBI, retention_ms=-1)
    with PartitionWriter(directory / f"{TOPIC}-0", config) as writer:
        for _ in range(size // len(one)):
            writer.append_as_follower(at_offset(one, offset))
            offset += RECORDS
    return offset


def request(offset: int, size: int) -> bytes:
    """Return a Fetch from an offset on; the layout is that of version 11."""
    body = struct.pack(">hhih4s", 1, 11, 1, 4, b"test")
    body += struct.pack(">iiiibiii", -1, 500, 1, 64 * MEBI, 0, 0, -1, 1)
    body += struct.pack(">h5si", len(TOPIC), TOPIC.encode(), 1)
    body += struct.pack(">iiqqi", 0, -1, offset, -1, size)
    body += struct.pack(">ih", 0, 0)
    return struct.pack(">i", len(body)) + body


def drain(reported: tuple[int, int, int]) -> int:
    """Fetch until an offset is reached; report the number of bytes."""
    port, size, end = reported
    batch_size, offset, total = len(batch()), 0, 0
    buffer = bytearray(4 * MEBI)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connected:
        while offset < end:
            connected.sendall(request(offset, size))
            answer = _answer(connected, buffer)
            count = answer // batch_size
            if not count:
                message = f"a fetch from offset {offset} returned no records"
                raise RuntimeError(message)
            offset += count * RECORDS
            total += answer
    return total


def _answer(connected: socket.socket, buffer: bytearray) -> int:
    """Receive an answer; return its size."""
    view, position, size = memoryview(buffer), 0, 4
    while position < size:
        position += connected.recv_into(view[position : max(size, 4)])
        if position == 4:  # noqa: PLR2004 - the size of the size
            size = 4 + int.from_bytes(buffer[:4], "big")
    return size - 4


def throughput(port: int, clients: int, size: int, end: int) -> float:
    """Return the megabytes a second of all clients together."""
    with child_processes.isolated_interpreters(), Pool(clients) as pool:
        pool.map(_warm, range(clients))
        started = time.perf_counter()
        total = sum(pool.map(drain, [(port, size, end)] * clients, chunksize=1))
        return total / (time.perf_counter() - started) / 1e6


def _warm(_: int) -> None:
    time.sleep(0.05)


@contextmanager
def our_server(directory: Path) -> Iterator[tuple[int, int]]:
    """Run `seglog serve` on a directory; yield its port and its process."""
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", str(directory)]
    process = child_processes.start(command, stderr=subprocess.PIPE, text=True, directory=ROOT)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "listening on" in line)
        yield int(line.rsplit(":", 1)[1]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stderr.close()


def memory_of(process_id: int) -> dict[str, float]:
    """Return a process's peak memory, and its present memory without mapped files, in mebibytes."""
    found = {}
    with suppress(OSError):
        for line in Path(f"/proc/{process_id}/status").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name in {"VmHWM", "RssAnon"}:
                found[{"VmHWM": "peak_mib_with_mapped_files", "RssAnon": "own_mib"}[name]] = (
                    int(value.split()[0]) / 1024
                )
    return {name: round(value, 1) for name, value in found.items()}


def first_byte(directory: Path, rounds: int) -> list[tuple[float, float]]:
    """Return the milliseconds from the start of a server to the first log byte, and its processor time, by round."""
    found = []
    # an installed package has its bytecode beside it, and so has a checkout after its first start
    for _ in range(rounds):
        (port,) = _free_port()
        started = time.perf_counter()
        process = child_processes.start(
            [sys.executable, "-m", "seglog_format.cli", "serve", "--port", str(port), str(directory)],
            stderr=subprocess.DEVNULL,
            directory=ROOT,
            changes={"PYTHONDONTWRITEBYTECODE": None},
        )
        try:
            _fetch_one(port)
            found.append(((time.perf_counter() - started) * 1000, _processor_ms(process.pid)))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    return found


def _processor_ms(process_id: int) -> float:
    """Return the processor time of a process in milliseconds; 0 if it is not known."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) * 1000 / os.sysconf("SC_CLK_TCK")


def bare_start(rounds: int) -> list[float]:
    """Return the milliseconds in which Python starts and imports the command line's library, for comparison."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        child_processes.run([sys.executable, "-c", "import click"], check=True, directory=ROOT)
        found.append((time.perf_counter() - started) * 1000)
    return found


def first_byte_report(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the time until a server with many partitions sends the first byte of one of them."""
    times = first_byte(many_partitions(root, options.partitions), options.starts)
    return {
        "partitions": options.partitions,
        "starts": options.starts,
        "wall": [round(wall) for wall, _ in times],
        "on_a_processor": [round(processor) for _, processor in times],
        "python_with_click_alone": [round(each) for each in bare_start(options.starts)],
        "load_average": load(),
    }


def _fetch_one(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connected:
                connected.sendall(request(0, SINGLE))
                connected.recv(1)
                return
        except ConnectionRefusedError:
            time.sleep(0.002)
    message = "the server did not start"
    raise RuntimeError(message)


def _free_port() -> list[int]:
    return free_ports(1)


def many_partitions(directory: Path, count: int) -> Path:
    """Write a log directory with `count` partitions, of which clients request the first."""
    make_log(directory, 200_000)
    for number in range(1, count):
        shutil.copytree(directory / f"{TOPIC}-0", directory / f"{TOPIC}-{number}", copy_function=os.link)
    return directory


def taking_turns(peers: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the figures of each peer, round by round."""
    found: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, measured in peers.items():
            found[name].append(measured())
    return found


def compare(root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything, with servers that run at the same time and are asked in turns."""
    logs = root / "logs"
    end = make_log(logs, options.size * MEBI)
    with ExitStack() as running:
        ours, ours_id = running.enter_context(our_server(logs))
        broker = running.enter_context(broker_with(logs / f"{TOPIC}-0", root / "broker"))
        found = {
            f"{clients} {'client' if clients == 1 else 'clients'}": taking_turns(
                {
                    "seglog serve": lambda clients=clients: throughput(ours, clients, LARGE, end),
                    "Kafka broker": lambda clients=clients: throughput(broker, clients, LARGE, end),
                },
                options.rounds,
            )
            for clients in (1, 8)
        }
        few = end // 8
        found["one batch a fetch"] = taking_turns(
            {
                "seglog serve": lambda: throughput(ours, 1, SINGLE, few),
                "Kafka broker": lambda: throughput(broker, 1, SINGLE, few),
            },
            options.rounds,
        )
        memory = memory_of(ours_id)
    return {"megabytes_a_second": found, "memory": memory}


def main() -> int:
    """Measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256, help="mebibytes of the log")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument(
        "--starts", type=int, default=10, help="starts of the server, to measure the time to the first byte"
    )
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    command = f"make bench NAME=serve ARGS='--size {options.size} --rounds {options.rounds}'"
    conditions = run_conditions(command, versions={"kafka": RELEASE, "java": java_version()}, measures=BENCHMARKED)
    with tempfile.TemporaryDirectory(prefix="serve-bench-") as root:
        first = first_byte_report(Path(root) / "many", options)
        measured = compare(Path(root), options)
    result = {
        "log_mib": options.size,
        "batch_bytes": len(batch()),
        "rounds": options.rounds,
        **measured,
        "first_byte_ms": first,
    }
    for peers in result["megabytes_a_second"].values():
        for name in peers:
            peers[name] = [round(each, 1) for each in peers[name]]
    print(write_report(options.report, conditions, result), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
