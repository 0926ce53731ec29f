"""A small Spark cluster on this machine, whose workers have different host names.

Spark never runs a second attempt of a task on the host of the first, and all executors of ``local-cluster`` are on one
host: there speculation never starts a second attempt. The workers here listen on loopback addresses of their own.
"""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.spark.maven import REPOSITORY
from seglog_format.spark.sessions import provide_java

if TYPE_CHECKING:
    from collections.abc import Iterator

MASTER_HOST: Final = "127.0.0.1"
WORKER_HOSTS: Final = ("127.0.0.2", "127.0.0.3")
CORES: Final = 3
"""Cores of each worker, as Spark counts them."""
START_SECONDS: Final = 180
END_SECONDS: Final = 30


@contextmanager
def cluster(directory: Path, python_path: str) -> Iterator[str]:
    """Run a master and two workers for the time of the block; yield the address for a session.

    Args:
        directory: an empty directory for their output.
        python_path: module path for the Python of the executors.

    Yields:
        The address for a session.
    """
    provide_java()
    address = f"spark://{MASTER_HOST}:{_free_port()}"
    with ExitStack() as running:
        port = address.rpartition(":")[2]
        master = ("master.Master", "--host", MASTER_HOST, "--port", port, "--webui-port", "0")
        running.enter_context(_process(directory / "master.txt", MASTER_HOST, python_path, master))
        for number, host in enumerate(WORKER_HOSTS):
            size = ("--cores", str(CORES), "--memory", "1g", "--work-dir", str(directory / f"work-{number}"))
            worker = ("worker.Worker", "--host", host, "--port", "0", "--webui-port", "0", *size, address)
            running.enter_context(_process(directory / f"worker-{number}.txt", host, python_path, worker))
        _wait_for_workers(directory)
        yield address


def _free_port() -> int:
    with socket.create_server((MASTER_HOST, 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def _process(output: Path, host: str, python_path: str, arguments: tuple[str, ...]) -> Iterator[None]:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    home = Path(found.origin).parent
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "PYTHONPATH": python_path}
    name, *rest = arguments
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *rest]
    with output.open("w") as text:
        process = child_processes.start(
            command, directory=REPOSITORY, stdout=text, stderr=subprocess.STDOUT, changes=environment
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_workers(directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    outputs = [directory / f"worker-{number}.txt" for number in range(len(WORKER_HOSTS))]
    while not all("Successfully registered" in path.read_text(errors="replace") for path in outputs):
        if time.monotonic() > deadline:
            msg = f"Spark's workers do not start: {outputs[0].read_text(errors='replace')[-500:]}"
            raise TimeoutError(msg)
        time.sleep(0.5)
