"""Let replicas on three real brokers diverge, damage a disk, and compare the plan with what elections kept."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofs.harness import Outcome
from proofs.kafka.oracle import CLUSTERS, Oracle
from proofs.kafka.served import ISOLATIONS, Answer
from proofs.kafka.three_brokers import BROKERS, ThreeBrokers
from proofs.kafka.waiting import wait_for
from proofs.resurrect import What, find_failures
from seglog_format import Severity, open_cluster, resurrect, verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from seglog_format.types import PreparedResurrection


LOST: Final = "lost"
"""A topic whose last records an unclean election gives up."""
KEPT: Final = "kept"
"""A topic whose last records only one broker has, which alone may lead it."""
STEADY: Final = "steady"
"""A topic that all brokers hold whole."""
TOPICS: Final = {
    LOST: {"partitions": 1, "replication": 3, "config": {"unclean.leader.election.enable": "true"}},
    KEPT: {"partitions": 1, "replication": 3},
    STEADY: {"partitions": 3, "replication": 3, "config": {"retention.ms": "3600000"}},
}
FIRST, ALONE, AFTER = 200, 50, 30
"""Numbers of records that all brokers get, that only the last one gets, and that the others get after its end."""
LAST: Final = BROKERS[-1]
OTHERS: Final = BROKERS[:-1]
DAMAGED: Final = OTHERS[0]
"""The broker that is stopped last, whose disk is damaged: in each of its logs, after the first quarter."""


class Truth(NamedTuple):
    """The records that a leader served before it was stopped: first and end offset, count and digest by partition."""

    served: dict[What, Answer]

    def ask(self, kafka: Oracle, address: str, topic: str, partitions: int = 1) -> None:
        """Store the records that a consumer gets at present."""
        for number in range(partitions):
            for isolation in ISOLATIONS:
                what = {"topic": topic, "partition": number, "isolation": isolation}
                self.served[topic, number, isolation] = kafka.must("served", bootstrap=address, **what)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option for the releases."""
    parser.add_argument("--kafka", nargs="+", default=[*CLUSTERS.releases], help="releases of the brokers")


def prove(options: argparse.Namespace) -> Outcome:
    """Make a cluster of each release, and resurrect it."""
    failures: list[str] = []
    facts: dict[str, Any] = {"clusters": {}}
    for release in options.kafka:
        found, facts["clusters"][release] = find_diverged_failures(release)
        failures += [f"{release}: {text}" for text in found]
    return Outcome(facts, failures, {"kafka": ", ".join(CLUSTERS.releases[each] for each in options.kafka)})


def find_diverged_failures(release: str) -> tuple[list[str], dict[str, Any]]:
    """Let the replicas of a cluster diverge, damage a disk, and compare the node made of them with the served records.

    Returns:
        The differences, and the number of comparisons.
    """
    with tempfile.TemporaryDirectory() as root, Oracle(release, project=CLUSTERS) as kafka:
        cluster = ThreeBrokers(release, Path(root))
        truth = Truth({})
        let_diverge(cluster, kafka, truth)
        damaged = [damage(log) for log in sorted(cluster.logs[DAMAGED].glob("*-?/*.log")) if is_of_topics(log)]
        sources = [cluster.logs[node] for node in BROKERS]
        target = Path(root) / "node"
        failures = list(_unlike_cluster(sources))
        plan = resurrect(sources, kafka=release)
        failures += _wrong_choices(plan, cluster)
        found, partitions = find_failures(sources, target, release, served=truth.served)
        failures += found
        problems = [finding for finding in verify(target) if finding.severity is not Severity.NOTE]
        failures += [f"verify: {finding}" for finding in problems]
        notes = [f"{about}: {text.replace(root, '')}" for about, text in plan.made.notes]
        return failures, {"partitions": partitions, "damagedLogs": len(damaged), "told": notes}


def let_diverge(cluster: ThreeBrokers, kafka: Oracle, truth: Truth) -> None:
    """Write to three brokers, then to one alone, then, without it, to the others, which an unclean election allows."""
    with cluster.controller.running():
        with cluster.running(LAST) as alone:
            with cluster.running(*OTHERS) as others:
                together = f"{alone},{others}"
                wait_for("topics are created", lambda: _creates(kafka, together))
                for topic, made in TOPICS.items():
                    write(kafka, together, topic, FIRST, partitions=made["partitions"])
                wait_for(
                    "all replicas are in sync",
                    lambda: all(row["isr"] == [*BROKERS] for row in _partitions(kafka, together)),
                )
                truth.ask(kafka, together, STEADY, 3)
            wait_for(
                "the last broker leads",
                lambda: all(row == {"leader": LAST, "isr": [LAST]} for row in _partitions(kafka, alone)),
            )
            for topic in (LOST, KEPT):
                write(kafka, alone, topic, ALONE, acks="1", text="alone")
            truth.ask(kafka, alone, KEPT)
        with cluster.running(*OTHERS) as others:
            wait_for("the others are in sync", lambda: _partitions(kafka, others, LOST)[0]["isr"] == [*OTHERS])
            write(kafka, others, LOST, AFTER, text="after")
            truth.ask(kafka, others, LOST)


def _creates(kafka: Oracle, address: str) -> bool:
    """Create the topics, when enough brokers run."""
    return "error" not in kafka.ask("create", bootstrap=address, topics=TOPICS)


def write(kafka: Oracle, address: str, topic: str, records: int, **fields: object) -> None:
    """Write records to a topic."""
    kafka.must("write", bootstrap=address, topic=topic, records=records, **{"partitions": 1, **fields})


def _partitions(kafka: Oracle, address: str, *topics: str) -> list[dict[str, Any]]:
    answer = kafka.must("describe", bootstrap=address, topics=topics or [*TOPICS])
    return [row for rows in answer.values() for row in rows]


def is_of_topics(log: Path) -> bool:
    """Return whether a file is of one of our topics."""
    return log.parent.name.rpartition("-")[0] in TOPICS


def damage(log: Path) -> Path:
    """Flip a bit after the first quarter of a file."""
    data = bytearray(log.read_bytes())
    data[len(data) // 4] ^= 1
    log.write_bytes(data)
    return log


def _unlike_cluster(sources: list[Path]) -> Iterator[str]:
    """Yield differences between the cluster and our reading of it: the possible leaders of each partition."""
    image = open_cluster(sources).image()
    for name, expected in {LOST: [DAMAGED], KEPT: [LAST], STEADY: [LAST]}.items():
        topic = image.topic_named(name)
        partitions = [] if topic is None else [topic.partitions[number] for number in sorted(topic.partitions)]
        found = [sorted({*fields["isr"], *(fields.get("eligibleLeaderReplicas") or ())}) for fields in partitions]
        if found != [expected] * TOPICS[name]["partitions"]:
            yield f"leaders that {name} might have: expected {expected}, found {found}"


def _wrong_choices(plan: PreparedResurrection, cluster: ThreeBrokers) -> Iterator[str]:
    """Yield partitions whose chosen replica is not one that an election kept, and losses that are not reported."""
    whole = {*BROKERS} - {DAMAGED}
    expected = {(LOST, 0): {*OTHERS} & whole, (KEPT, 0): {LAST}, **{(STEADY, number): whole for number in range(3)}}
    for (topic, number), nodes in expected.items():
        name = f"{topic}-{number}"
        taken = next(node for node in BROKERS if plan.made.logs[topic, number].path == cluster.logs[node] / name)
        if taken not in nodes:
            yield f"{name}: taken from broker {taken}, not from {nodes}"
        texts = [text for about, text in plan.made.notes if about == name]
        for other in {*BROKERS} - {taken}:
            if not any(f"not from {cluster.logs[other] / name}:" in text for text in texts):
                yield f"{name}: no note names broker {other}"
    lost = f"offsets {FIRST} to {FIRST + ALONE - 1} of the other are lost"
    notes = [(about, text) for about, text in plan.made.notes if "are lost" in text]
    where = [about for about, text in notes if lost in text and str(cluster.logs[LAST]) in text]
    if len(notes) != 1 or where != [f"{LOST}-0"]:
        yield f"losses: expected {lost}, of broker {LAST}, found {notes}"
