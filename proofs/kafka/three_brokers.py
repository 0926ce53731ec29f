"""Three brokers and a controller on the loopback interface, each with a log directory of its own."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from proofs.kafka.node import HOST, KafkaNode, free_ports, new_id
from proofs.kafka.oracle import CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONTROLLER: Final = 100
BROKERS: Final = (1, 2, 3)
HEAP: Final = "256m"

COMMON: Final = """\
node.id={node}
controller.quorum.voters={controller_id}@{host}:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=3
offsets.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=2097152
replica.lag.time.max.ms=3000
"""
OF_CONTROLLER: Final = "process.roles=controller\nlisteners=CONTROLLER://{host}:{port}\n"
OF_BROKER: Final = (
    "process.roles=broker\nlisteners=PLAINTEXT://{host}:{port}\nadvertised.listeners=PLAINTEXT://{host}:{port}\n"
)


class ThreeBrokers:
    """A cluster of three brokers and a controller, with everything below one directory.

    Attributes:
        controller: controller of the cluster.
        brokers: brokers by node id.
        logs: log directories of the brokers, by node id.
    """

    def __init__(self, release: str, home: Path, more: str = "") -> None:
        """Format the log directories.

        Args:
            release: release of Kafka.
            home: an empty directory.
            more: further settings of all nodes.
        """
        ids = (CONTROLLER, *BROKERS)
        ports = dict(zip(ids, free_ports(len(ids)), strict=True))
        self.logs: Mapping[int, Path] = {node: home / f"broker-{node}" for node in BROKERS}
        cluster_id = new_id()
        nodes: dict[int, KafkaNode] = {}
        for node, port in ports.items():
            own = home / f"home-{node}"
            own.mkdir()
            text = (OF_CONTROLLER if node == CONTROLLER else OF_BROKER) + COMMON
            settings = text.format(
                node=node,
                host=HOST,
                port=port,
                controller_id=CONTROLLER,
                controller_port=ports[CONTROLLER],
                logs=self.logs.get(node, own / "logs"),
            )
            nodes[node] = KafkaNode(release, own, port, settings + more, project=CLUSTERS, heap=HEAP)
            nodes[node].format(cluster_id)
        self.controller = nodes.pop(CONTROLLER)
        self.brokers: Mapping[int, KafkaNode] = nodes

    @contextmanager
    def running(self, *brokers: int) -> Iterator[str]:
        """Start some of the brokers, and stop them one by one at the end.

        Returns:
            The addresses for clients.
        """
        with ExitStack() as stack:
            for node in brokers:
                stack.enter_context(self.brokers[node].running())
            yield ",".join(self.brokers[node].address for node in brokers)
