"""A real broker that holds a partition directory of ours."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from proofs.kafka.broker import Broker, replace_files
from proofs.kafka.oracle import OracleError
from proofs.serve.client import METADATA, Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RELEASE: Final = "4.1"
CREATE_SECONDS: Final = 60
SETTLE_SECONDS: Final = 2


@contextmanager
def broker_with(partition: Path, home: Path) -> Iterator[int]:
    """Run a broker that has the files of a partition as partition 0; yield its port.

    The broker creates the topic when a client asks for it, and is stopped; then our files replace its files.

    Args:
        partition: our directory, which is not changed.
        home: directory to create for all files of the broker.

    Raises:
        OracleError: the broker does not start, or creates no topic.
    """
    topic = partition.name.removesuffix("-0")
    home.mkdir()
    broker = Broker(RELEASE, home)
    theirs = broker.logs / partition.name
    with broker.running():
        _have_made(broker.port, topic, theirs)
    replace_files(theirs, partition)
    with broker.running():
        time.sleep(SETTLE_SECONDS)
        yield broker.port


def _have_made(port: int, topic: str, path: Path) -> None:
    deadline = time.monotonic() + CREATE_SECONDS
    while not (path / "partition.metadata").exists():
        if time.monotonic() > deadline:
            msg = f"the broker does not make {topic}"
            raise OracleError(msg)
        with Client(port) as client:
            client.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=True)
        time.sleep(0.5)
