"""A server in a process of its own, with its memory, its descriptors, its exit, and its logs afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

from proofs.serve.wire import TIME_MS, TOPIC
from seglog_format import LogConfig, LogWriter, new_record, open_partition

if TYPE_CHECKING:
    from typing import Self

ROOT: Final = Path(__file__).resolve().parent.parent.parent
LOOK_SECONDS: Final = 0.02
START_SECONDS: Final = 60
END_SECONDS: Final = 60
MEGA: Final = 1_000_000
LARGE_RECORDS: Final = 24
LARGE_SIZE: Final = 1 << 19


def make_logs(directory: Path) -> None:
    """Write one log with records to read, and one with large records."""
    with LogWriter(directory, LogConfig(retention_ms=-1, segment_bytes=1 << 22)) as writer:
        orders = writer.open(TOPIC, 0)
        for number in range(200):
            orders.append([new_record(value=b"%d" % number * 10, timestamp_ms=TIME_MS + number)])
        large = writer.open(TOPIC, 1)
        for number in range(LARGE_RECORDS):
            large.append([new_record(value=os.urandom(LARGE_SIZE), timestamp_ms=TIME_MS + number)])


class Target:
    """A running server. A context manager.

    Attributes:
        port: port on which it listens.
        peak_anonymous: highest observed anonymous memory, in bytes.
        end_seconds: seconds until it ended after SIGTERM; None if it had to be killed.
        end_status: its exit status.
    """

    def __init__(self, directory: Path, *, is_writable: bool) -> None:
        """Start the server.

        Raises:
            RuntimeError: the server does not listen.
        """
        options = ["--writable", "--acknowledge", "written"] if is_writable else []
        command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", "--idle-seconds", "60", *options]
        self._said = directory.with_suffix(".errors")
        environment = {"XDG_STATE_HOME": str(directory.with_suffix(".state"))}
        with self._said.open("w") as said:
            self.process = child_processes.start(
                [*command, str(directory)], stderr=said, text=True, directory=ROOT, changes=environment
            )
        self.port = self._port()
        self.peak_anonymous = 0
        self.end_seconds: float | None = None
        self.end_status: int | None = None
        self._stopped = Event()
        self._watching = Thread(target=self._watch, daemon=True)
        self._watching.start()

    def _port(self) -> int:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            for line in self.said():
                if "listening on" in line:
                    return int(line.rsplit(":", 1)[1])
            time.sleep(LOOK_SECONDS)
        message = f"the server did not start: {self.said()}"
        raise RuntimeError(message)

    def said(self) -> list[str]:
        """Return the lines of its standard error."""
        return self._said.read_text().splitlines()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self.peak_anonymous = max(self.peak_anonymous, self._status("RssAnon"))

    def _status(self, name: str) -> int:
        with suppress(OSError):
            for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
        return 0

    @property
    def peak(self) -> int:
        """Return the peak memory of all kinds in bytes, as the system counts it."""
        return self._status("VmHWM")

    @property
    def descriptors(self) -> int:
        """Return the number of its open files and sockets."""
        with suppress(OSError):
            return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])
        return 0

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self.process.poll() is None

    def end(self) -> None:
        """Send SIGTERM, and measure the time until the server ends."""
        self._stopped.set()
        self._watching.join()
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.end_status = self.process.wait(END_SECONDS)
            self.end_seconds = time.monotonic() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self.is_alive:
            self.process.kill()
            self.process.wait()


class HonestClient:
    """The process of the honest client."""

    def __init__(self, port: int, *, is_writing: bool) -> None:
        command = [sys.executable, "-m", "proofs.serve.honest", str(port), "write" if is_writing else "read"]
        self._process = child_processes.start(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, directory=ROOT
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            message = "the honest client did not start"
            raise RuntimeError(message)

    def end(self) -> dict[str, Any]:
        """End the process, and return its report."""
        said, _ = self._process.communicate(timeout=120)
        found: dict[str, Any] = json.loads(said)
        return found


def stored(directory: Path, number: int) -> dict[int, bytes]:
    """Return the values of a partition, by offset."""
    with open_partition(directory / f"{TOPIC}-{number}") as partition:
        return {record.offset: record.value or b"" for record in partition.records()}


def verify_status(directory: Path) -> int:
    """Return the exit status of ``seglog verify`` for the logs."""
    command = [sys.executable, "-m", "seglog_format.cli", "verify", str(directory)]
    return child_processes.run(command, directory=ROOT, capture_output=True, check=False, timeout=600).returncode
