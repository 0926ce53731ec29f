"""Kill a server again and again while eight idempotent producers write to it.

In the end every acknowledged record must be there exactly once, and those of each producer in order.

The producers here wait without a time limit. A producer that gives up on a record reports that to its application,
begins a new epoch, and sends records of unknown state again: then some records are missing and others are there twice,
whatever the server does. That was seen on a machine so busy that a client's timeout expired; it is counted separately,
and is a failure.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

import seglog_format as seglog
from proofs.harness import Outcome
from seglog_format import LogConfig, LogWriter
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
TOPIC: Final = "orders"
START_SECONDS: Final = 30
PATIENCE_SECONDS: Final = 600
PAUSE_SECONDS: Final = 0.05
"""Of a producer between two records."""

FAULTS: Final = ("lost", "twice", "out_of_order", "given_up", "new_epochs", "exit_status")
"""What has to be 0."""


class Killed:
    """A server process that is killed and started again on the same port."""

    def __init__(self, directory: Path, options: Sequence[str] = ()) -> None:
        self._directory = directory
        self._options = options
        self.port = 0
        self.kills = 0
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "seglog_format.cli", "serve", "--writable", *self._options]
        process = child_processes.start(
            [*command, "--port", str(self.port), str(self._directory)],
            stderr=subprocess.PIPE,
            text=True,
            directory=ROOT,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if "listening on" in line:
                self.port = int(line.rsplit(":", 1)[1])
                return process
        message = f"the server did not start: {process.wait()}"
        raise RuntimeError(message)

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._process.send_signal(signal.SIGKILL)
        self._ended()
        self.kills += 1
        self._process = self._started()

    def stop(self) -> int:
        """End it with a signal; return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        assert self._process.stderr is not None
        self._process.stderr.close()
        return self._process.wait(START_SECONDS)


def make_log(directory: Path, partitions: int = 1) -> None:
    """Create an empty topic."""
    with LogWriter(directory, LogConfig(retention_ms=-1)) as writer:
        for number in range(partitions):
            writer.open(TOPIC, number)


def kill_while(server: Killed, *, seed: int, between: tuple[float, float], seconds: float) -> None:
    """Kill the server at random times until the time is over."""
    dice, deadline = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(dice.uniform(*between))
        server.kill()


class Producing:
    """One process with several producers, which writes their acknowledgements in the end."""

    def __init__(self, command: Sequence[str], port: int, names: Sequence[str], seconds: float) -> None:
        self._names = names
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the answers
        self._process = child_processes.start(
            command, directory=ROOT, stdin=subprocess.PIPE, stdout=self._output, text=True
        )
        with self._process.stdin or io.StringIO() as reported:
            tasks = [_task(name, seconds) for name in names]
            json.dump({"port": port, "tasks": tasks}, reported)

    def answers(self) -> dict[str, Any]:
        """Wait for the producers, and return their outcomes by name."""
        self._process.wait(PATIENCE_SECONDS)
        with self._output:
            self._output.seek(0)
            return dict(zip(self._names, json.load(self._output), strict=True))


def _task(name: str, seconds: float) -> dict[str, Any]:
    return {"kind": "steady", "topic": TOPIC, "prefix": name, "seconds": seconds, "pause": PAUSE_SECONDS}


def check(directory: Path, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Compare acknowledged records with the records that the reference reads.

    In the result, `given_up` counts records that a client gave up, and `new_epochs` the new epochs of producers: if one
    is not 0, the client may have caused duplicates.
    """
    stored: dict[str, list[int]] = defaultdict(list)
    epochs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for path in sorted(directory.glob(f"{TOPIC}-*")):
        with seglog.open_partition(path) as partition:
            for batch in partition.batches():
                assert isinstance(batch.header, RecordBatchHeader)
                for record in batch.records:
                    name, _, number = (record.value or b"").decode().rpartition("-")
                    stored[name].append(int(number))
                    epochs[name].add((batch.header.producer_id, batch.header.producer_epoch))
    lost = sum(len(set(answer["acknowledged"]) - set(stored[name])) for name, answer in answers.items())
    twice = sum(count - 1 for numbers in stored.values() for count in Counter(numbers).values() if count > 1)
    disordered = sum(one >= other for numbers in stored.values() for one, other in pairwise(numbers))
    return {
        "acknowledged": sum(len(answer["acknowledged"]) for answer in answers.values()),
        "given_up": sum(len(answer["failed"]) + answer["left"] for answer in answers.values()),
        "new_epochs": sum(len(each) - 1 for each in epochs.values()),
        "stored": sum(map(len, stored.values())),
        "lost": lost,
        "twice": twice,
        "out_of_order": disordered,
    }


def clients() -> dict[str, list[str]]:
    """Return the stock producers, as commands."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "conformance")]
    from test_serve_clients import command  # noqa: PLC0415 - its place is known by now

    return {name: command(name) for name in ("librdkafka", "kafka-clients")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--producers", type=int, default=8)
    parser.add_argument("--between", type=float, nargs=2, default=[4.0, 10.0], help="seconds between two kills")
    parser.add_argument("--acknowledge", default="flushed", help="as for serve")
    parser.add_argument("--broker", action="store_true", help="have a real broker open the directory in the end")
    parser.set_defaults(seed=9)


def prove(options: argparse.Namespace) -> Outcome:
    """Kill a server while producers write to it, and compare its log with their acknowledgements."""
    with tempfile.TemporaryDirectory(prefix="serve-kills-") as root:
        result = run(Path(root) / "logs", options)
        if options.broker:
            result["read_by_a_broker"] = read_by_broker(Path(root) / "logs", Path(root) / "broker")
    from seglog_conformance.registry import listed  # noqa: PLC0415 - its place is known by now
    from test_serve_clients import SOURCES  # noqa: PLC0415 - as above

    own = {"librdkafka": listed("librdkafka").version, "kafka-clients": listed(str(SOURCES / "kafka-clients")).version}
    return Outcome({**result, "loadAverage": round(os.getloadavg()[1], 1)}, list(failures_of(result)), own)


def failures_of(result: dict[str, Any]) -> Iterator[str]:
    """Yield the failures in a result."""
    for name in FAULTS:
        if result[name]:
            yield f"{name}: {result[name]}"
    if result["given_up"] or result["new_epochs"]:
        yield "a client gave up or began again: records may be missing or there twice through itself"
    if result.get("read_by_a_broker", result["stored"]) != result["stored"]:
        yield f"a broker reads {result['read_by_a_broker']} of {result['stored']} records"


def read_by_broker(directory: Path, home: Path) -> int:
    """Return the number of records that Kafka's own consumer gets from a real broker with the directory."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "conformance")]
    from test_serve_clients import asked  # noqa: PLC0415 - as above

    from proofs.serve.broker import broker_with  # noqa: PLC0415 - its place is known by now

    with seglog.open_partition(directory / f"{TOPIC}-0") as partition:
        end = partition.log_end_offset
    task = {"kind": "records", "topic": TOPIC, "isolation": "read_committed", "end": end, "last": end - 1}
    with broker_with(directory / f"{TOPIC}-0", home) as port:
        found = asked("kafka-clients", port, {"all": task})["all"]
    return len(found)


def run(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run everything."""
    make_log(directory)
    server = Killed(directory, ["--acknowledge", options.acknowledge])
    share = options.producers // 2
    producing = [
        Producing(command, server.port, [f"{name}-{number}" for number in range(share)], options.seconds)
        for name, command in clients().items()
    ]
    kill_while(server, seed=options.seed, between=tuple(options.between), seconds=options.seconds)
    answers = {name: answer for each in producing for name, answer in each.answers().items()}
    status = server.stop()
    return {
        "seed": options.seed,
        "seconds": options.seconds,
        "producers": len(answers),
        "kills": server.kills,
        "acknowledge": options.acknowledge,
        "exit_status": status,
        **check(directory, answers),
    }
