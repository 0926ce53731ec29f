"""A Kafka process on the loopback interface, which ends by itself even if the process that started it is gone."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.kafka.oracle import LOGS, JavaProject, OracleError, class_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 300
STOP_SECONDS: Final = 60
LIFETIME_SECONDS: Final = 900
"""Time limit, after which a node stops even if the process that started it is gone."""
JAVA_OPTIONS: Final = ("-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class KafkaNode:
    """A broker, a controller, or both in one process, with everything below one directory.

    Args:
        release: one of the project's releases.
        home: an empty directory.
        port: port on which it listens.
        settings: its configuration.
        project: project that provides the class path.
        heap: maximum heap size, in Java's notation.
    """

    def __init__(
        self, release: str, home: Path, port: int, settings: str, *, project: JavaProject = LOGS, heap: str = "512m"
    ) -> None:
        self.home, self.port = home, port
        self.output = home / "output.txt"
        self.settings = home / "server.properties"
        self.settings.write_text(settings, encoding="utf-8")
        self._java = ["java", f"-Xmx{heap}", *JAVA_OPTIONS, "-cp", class_path(release, project)]

    def format(self, cluster_id: str) -> None:
        """Format its log directories for a cluster."""
        arguments = ["format", f"--cluster-id={cluster_id}", "--config", str(self.settings)]  # it may begin with a dash
        with self.output.open("a") as output:
            child_processes.run(
                [*self._java, "kafka.tools.StorageTool", *arguments],
                directory=self.settings.parent,
                stdout=output,
                stderr=output,
                timeout=START_SECONDS,
                check=True,
            )

    @property
    def address(self) -> str:
        """Return the address for clients."""
        return f"{HOST}:{self.port}"

    @contextmanager
    def running(self, lifetime_seconds: int = LIFETIME_SECONDS, *, kills: bool = False) -> Iterator[None]:
        """Start the node, and stop it at the end.

        Args:
            lifetime_seconds: time limit, after which it is stopped in any case.
            kills: whether the end is a kill instead of a clean stop.

        Raises:
            OracleError: the node does not start, or does not stop.
        """
        limit = ["timeout", "--kill-after=20", str(lifetime_seconds)] if child_processes.find_program("timeout") else []
        with self.output.open("a") as output:
            process = child_processes.start(
                [*limit, *self._java, "kafka.Kafka", str(self.settings)],
                directory=self.settings.parent,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._wait(process)
            yield
        finally:
            if kills:
                kill(process)
            else:
                self._stop(process)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            if is_open(self.address):
                return
            time.sleep(0.2)
        msg = f"the node does not start: {self._last_output()}"
        raise OracleError(msg)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill(process)
            msg = f"the node does not stop: {self._last_output()}"
            raise OracleError(msg) from None

    def _last_output(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")[-2000:]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with a session of its own, together with the one that limits its lifetime."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def is_open(address: str) -> bool:
    """Return whether something listens at an address, such as ``127.0.0.1:9092``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def new_id() -> str:
    """Return a new id for a cluster."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
