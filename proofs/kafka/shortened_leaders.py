"""A cluster whose last leader has less than stale replicas: emptied, cut, idle or damaged logs."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofs.kafka.oracle import CLUSTERS, Oracle
from proofs.kafka.served import ISOLATIONS
from proofs.kafka.three_brokers import BROKERS, CONTROLLER, ThreeBrokers
from proofs.kafka.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTIED: Final = "emptied"
"""A topic that retention has emptied on its last leader."""
CUT: Final = "cut"
"""A topic whose first half was deleted by DeleteRecords."""
ENDED: Final = "ended"
"""A topic whose records were all deleted by DeleteRecords."""
IDLE: Final = "idle"
"""A topic to which nothing was written."""
DAMAGED: Final = "damaged"
"""A topic whose last leader keeps less than a stale replica after a bit was flipped."""
TORN: Final = "torn"
"""A topic whose last leader keeps more than a stale replica after a bit was flipped."""
STEADY: Final = "steady"
"""A topic to which nothing of this happens."""
TOPICS: Final = (EMPTIED, CUT, ENDED, IDLE, DAMAGED, TORN, STEADY)
FLIPPED: Final = {DAMAGED: 0.25, TORN: 0.9}
"""Where a bit is flipped in the log of the last leader, as a part of its size."""
METADATA: Final = "__cluster_metadata-0"
GROUP: Final = "readers"
EACH: Final = 100
"""Number of records that all brokers get, then two of them, then the last one alone."""
END: Final = 3 * EACH
WAIT_SECONDS: Final = 240
"""Brokers that were killed recover their logs, on machines that may be busy."""
FIRST, SECOND, LAST = reversed(BROKERS)
SETTINGS: Final = """\
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
replica.high.watermark.checkpoint.interval.ms=500
log.flush.start.offset.checkpoint.interval.ms=500
log.index.size.max.bytes=65536
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
"""


class Answers(NamedTuple):
    """What the brokers answered before and after the last leader was killed.

    Attributes:
        served: records of each topic by isolation level: begin, end, count and digest.
        positions: of the group, by partition.
        stale: leaders and ISR by topic, when only the stale replicas ran again.
        elected: leaders and ISR by topic, when all brokers ran again.
        ends: begin and end by topic, when all brokers ran again.
    """

    served: dict[str, dict[str, dict[str, Any]]]
    positions: dict[str, int]
    stale: dict[str, Any]
    elected: dict[str, Any]
    ends: dict[str, list[int]]


def make_shortened_leaders(release: str, target: Path) -> Answers:
    """Let the last leader's logs lose records, and kill the brokers one by one.

    Args:
        release: release of Kafka.
        target: gets copies of the log directories as the kills left them: `b1`, `b2` and `b3` of the brokers, `ctrl` of
            the controller before it missed the last leader, and `ctrl-later` after that.

    Returns:
        The answers of the brokers.
    """
    with tempfile.TemporaryDirectory() as root, Oracle(release, project=CLUSTERS) as kafka:
        cluster = ThreeBrokers(release, Path(root), SETTINGS)
        with cluster.controller.running():
            last = cluster.brokers[LAST]
            with last.running(kills=True):
                _write_in_stages(cluster, kafka)
                answers = _shorten(kafka, last.address)
            _copy(cluster, Path(root), target)
            with cluster.running(FIRST, SECOND) as address:
                wait_for("the controller misses the leader", lambda: _none_led(_leaders(kafka, address)), WAIT_SECONDS)
                stale = _leaders(kafka, address)
                _copy_metadata(Path(root), target / "ctrl-later")
                with cluster.running(LAST) as whole:
                    wait_for("all topics have a leader", lambda: _all_led(_leaders(kafka, whole)), WAIT_SECONDS)
                    elected = _leaders(kafka, whole)
                    ends = {topic: _ends(kafka, whole, topic) for topic in TOPICS}
        return answers._replace(stale=stale, elected=elected, ends=ends)


def _write_in_stages(cluster: ThreeBrokers, kafka: Oracle) -> None:
    """Write to three brokers, kill one, write to two, kill one, and write to the last."""
    last = cluster.brokers[LAST].address
    made = {topic: {"partitions": 1, "replication": 3} for topic in TOPICS}
    with cluster.brokers[SECOND].running(kills=True):
        with cluster.brokers[FIRST].running(kills=True):
            wait_for("topics are created", lambda: "error" not in kafka.ask("create", bootstrap=last, topics=made))
            _write(kafka, last)
            consume(kafka, last)
            _wait_for_isr(kafka, last, [*BROKERS])
        _wait_for_isr(kafka, last, [LAST, SECOND])
        _write(kafka, last)
    _wait_for_isr(kafka, last, [LAST])
    _write(kafka, last)
    consume(kafka, last)


def _write(kafka: Oracle, address: str) -> None:
    for topic in TOPICS:
        if topic != IDLE:
            kafka.must("write", bootstrap=address, topic=topic, records=EACH, partitions=1)


def consume(kafka: Oracle, address: str, reset: str = "earliest", group: str = GROUP) -> Mapping[str, dict[str, int]]:
    """Read all topics as a group and commit; return by partition its position before and after, and the first offset.

    Raises:
        OracleError: the consumer failed, for instance because the log was truncated.
    """
    return kafka.must("consume", bootstrap=address, group=group, topics=TOPICS, reset=reset)


def _wait_for_isr(kafka: Oracle, address: str, isr: list[int]) -> None:
    topics = [*TOPICS, "__consumer_offsets"]
    wait_for(
        f"the ISR is {isr}",
        lambda: all(
            row["isr"] == isr and (isr != [LAST] or row["leader"] == LAST)
            for rows in _leaders(kafka, address, topics).values()
            for row in rows
        ),
        WAIT_SECONDS,
    )


def _leaders(kafka: Oracle, address: str, topics: list[str] | None = None) -> dict[str, Any]:
    return kafka.ask("describe", bootstrap=address, topics=topics or [*TOPICS])


def _all_led(leaders: dict[str, Any]) -> bool:
    return "error" not in leaders and all(row["leader"] >= 0 for rows in leaders.values() for row in rows)


def _none_led(leaders: dict[str, Any]) -> bool:
    return "error" not in leaders and all(row["leader"] < 0 for rows in leaders.values() for row in rows)


def _ends(kafka: Oracle, address: str, topic: str) -> list[int]:
    said = kafka.must("served", bootstrap=address, topic=topic, partition=0, isolation="read_uncommitted")
    return [said["begin"], said["end"]]


def _shorten(kafka: Oracle, address: str) -> Answers:
    """Let retention empty a topic, delete records of two others, and return what is served then."""
    expiry = {"retention.ms": "1000", "file.delete.delay.ms": "500"}
    kafka.must("configure", bootstrap=address, topic=EMPTIED, settings=expiry)
    kafka.must("deleteRecords", bootstrap=address, topic=CUT, partition=0, offset=END // 2)
    kafka.must("deleteRecords", bootstrap=address, topic=ENDED, partition=0, offset=-1)
    wait_for("retention has emptied a topic", lambda: _ends(kafka, address, EMPTIED) == [END, END], WAIT_SECONDS)
    served = {
        topic: {
            isolation: kafka.must("served", bootstrap=address, topic=topic, partition=0, isolation=isolation)
            for isolation in ISOLATIONS
        }
        for topic in TOPICS
    }
    positions = kafka.must("groups", bootstrap=address, groups=[GROUP])[GROUP]
    time.sleep(2)  # until the files are gone and the checkpoints are written
    return Answers(served, positions, {}, {}, {})


def _copy(cluster: ThreeBrokers, root: Path, target: Path) -> None:
    _copy_metadata(root, target / "ctrl")
    for node in BROKERS:
        shutil.copytree(cluster.logs[node], target / f"b{node}", ignore=_others_files)


def _copy_metadata(root: Path, target: Path) -> None:
    shutil.copytree(root / f"home-{CONTROLLER}" / "logs", target, ignore=_others_files)


def _others_files(directory: str, names: list[str]) -> list[str]:
    """Leave out what is large and not looked at: the brokers' copies of the metadata log, and its indexes."""
    if Path(directory).name == METADATA:
        return [name for name in names if name.endswith("index")]
    return [name for name in names if name == METADATA and Path(directory).name.startswith("broker-")]


def damage_last_leader(sources: Path) -> None:
    """Flip a bit in the logs of the topics whose last leader is to be damaged."""
    for topic, part in FLIPPED.items():
        (log,) = (sources / f"b{LAST}" / f"{topic}-0").glob("*.log")
        data = bytearray(log.read_bytes())
        data[int(len(data) * part)] ^= 1
        log.write_bytes(data)
