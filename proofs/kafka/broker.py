"""Serve partitions that we wrote from a real broker to a stock consumer.

The broker first creates the topics and stops. Then our files replace those of their partitions, and it starts again.
``partition.metadata`` and the files in the root of the log directory remain the broker's own.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.kafka.node import HOST, START_SECONDS, KafkaNode, free_ports, new_id
from proofs.kafka.oracle import LOGS, JavaProject, Oracle, OracleError
from proofs.kafka.result import Result
from seglog_format import decode_batch
from seglog_format.generation.generate import GeneratedPartition, generate
from seglog_format.generation.recipe import random_recipe
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_format import LogConfig
    from seglog_format.generation.plan import PartitionPlan, PlannedAppend
    from seglog_format.generation.recipe_model import StepRecipe

KEPT: Final = "partition.metadata"
TOPIC_CONFIG: Final = {"retention.ms": "-1", "retention.bytes": "-1"}

SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.enable=false
log.cleaner.dedupe.buffer.size=2097152
offsets.retention.minutes=2147483647
transactional.id.expiration.ms=2147483647
"""


class Broker(KafkaNode):
    """A broker and controller in one process, with everything below one directory.

    Args:
        release: one of the project's releases.
        home: an empty directory.
        project: project that provides the class path.
        logs: a log directory that is already formatted; None to format a new one.
        settings: additional lines for its settings.
    """

    def __init__(
        self, release: str, home: Path, *, project: JavaProject = LOGS, logs: Path | None = None, settings: str = ""
    ) -> None:
        self.logs = logs or home / "logs"
        port, controller = free_ports(2)
        text = SETTINGS.format(host=HOST, port=port, controller=controller, logs=self.logs)
        super().__init__(release, home, port, text + settings, project=project)
        if logs is None:
            self.format(new_id())


def check_broker(oracle: Oracle, seeds: Iterable[int]) -> Result:
    """Serve the partitions generated from each seed, and compare what a consumer gets with the plan.

    Args:
        oracle: provides the consumer; a broker of the same release serves.
        seeds: seeds of the recipes, one topic each.
    """
    result = Result("a broker serves generated partitions to a stock consumer")
    with tempfile.TemporaryDirectory() as root:
        home = Path(root) / "broker"
        home.mkdir()
        broker = Broker(oracle.release, home)
        made = [part for seed in seeds for part in make(seed, Path(root) / f"made-{seed}")]
        with broker.running():
            create_topics(oracle, broker, made)
        for partition in made:
            replace_files(broker.logs / partition.path.name, partition.path)
        with broker.running():
            for partition in made:
                for isolation in ("read_uncommitted", "read_committed"):
                    consume(result, oracle, broker, partition, isolation)
                result.checked += 1
    return result


def make(seed: int, directory: Path) -> Sequence[GeneratedPartition]:
    """Make the partitions of a random recipe; every other seed leaves no transaction open."""
    recipe = random_recipe(seed)
    ends_all = bool(seed % 2)
    topics = (
        replace(topic, steps=tuple(_served(step, ends_all=ends_all) for step in topic.steps)) for topic in recipe.topics
    )
    return generate(replace(recipe, topics=tuple(topics)), directory, seed).partitions


def _served(step: StepRecipe, *, ends_all: bool) -> StepRecipe:
    """Return the same step under leader epoch 0: the epoch of a new topic, which the controller expects."""
    producers = replace(step.producers, open=0) if ends_all else step.producers
    return replace(step, leader_epoch=0, producers=producers)


def create_topics(oracle: Oracle, broker: Broker, made: Sequence[GeneratedPartition]) -> None:
    """Create a topic for each recipe."""
    topics: dict[str, Any] = {}
    for partition in made:
        plan = partition.plan
        topics[plan.topic.name] = {"partitions": plan.topic.partitions, "config": TOPIC_CONFIG}
    oracle.must("create", bootstrap=broker.address, topics=topics)
    deadline = time.monotonic() + START_SECONDS
    while not all((broker.logs / partition.path.name / KEPT).exists() for partition in made):
        if time.monotonic() > deadline:
            msg = "the broker does not create the partitions"
            raise OracleError(msg)
        time.sleep(0.1)


def replace_files(theirs: Path, ours: Path) -> None:
    """Replace a broker's files by ours, but keep its identity of the topic."""
    for path in theirs.iterdir():
        if path.name != KEPT:
            path.unlink()
    for path in ours.iterdir():
        if path.name != KEPT:
            shutil.copy(path, theirs)


def consume(result: Result, oracle: Oracle, broker: Broker, partition: GeneratedPartition, isolation: str) -> None:
    """Read a partition from start to end, and compare every field of every record."""
    plan = partition.plan
    name = f"{partition.path.name}, Kafka {oracle.version}, {isolation}"
    answer = oracle.ask(
        "consume", bootstrap=broker.address, topic=plan.topic.name, partition=plan.partition, isolation=isolation
    )
    if "error" in answer:
        result.fail(name, f"{answer['error']}: {answer['message']}")
        return
    committed = isolation == "read_committed"
    end = stable_end(plan) if committed else plan.end_offset
    result.equal(name, "start offset", 0, answer["startOffset"])
    result.equal(name, "end offset", end, answer["endOffset"])
    expected = [
        line for append in plan.appends for line in lines_of_append(append, plan.topic.config) if line["offset"] < end
    ]
    if committed:
        gone = aborted_offsets(plan)
        expected = [line for line in expected if line["offset"] not in gone]
    result.equal(name, "number of records", len(expected), len(answer["records"]))
    for ours, theirs in zip(expected, answer["records"], strict=False):
        if not result.equal(name, f"record {ours['offset']}", ours, theirs):
            break
    result.counts[f"records read, {isolation}"] += len(answer["records"])


def stable_end(plan: PartitionPlan) -> int:
    """Return the last stable offset: the start of the oldest open transaction, or the end."""
    opened = (transaction.first_offset for transaction in plan.transactions if transaction.last_offset is None)
    return min(opened, default=plan.end_offset)


def aborted_offsets(plan: PartitionPlan) -> set[int]:
    """Return the offsets of the records of aborted transactions."""
    gone: set[int] = set()
    for append in plan.appends:
        header = decode_batch(append.data).header
        if not isinstance(header, RecordBatchHeader) or not header.is_transactional or append.is_control:
            continue
        for transaction in plan.transactions:
            is_inside = transaction.first_offset <= append.base_offset <= (transaction.last_offset or -1)
            if transaction.is_aborted and is_inside and transaction.producer_id == header.producer_id:
                gone.update(record.offset for record in append.records)
    return gone


def lines_of_append(append: PlannedAppend, config: LogConfig) -> Iterator[dict[str, Any]]:
    """Yield the records of an append as the oracle reports them, without end markers, which consumers do not get."""
    if append.is_control:
        return
    header = decode_batch(append.data).header
    kind = header.timestamp_type if append.is_follower or not header.magic else config.message_timestamp_type
    epoch = {"leaderEpoch": append.leader_epoch} if isinstance(header, RecordBatchHeader) else {}
    for record in append.records:
        yield {
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestampType": kind.value,
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": [[field.key.decode(), _base64(field.value)] for field in record.headers],
            **epoch,
        }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
