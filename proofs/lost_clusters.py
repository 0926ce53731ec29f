"""Lose the cluster of a stock broker in many ways, and compare the records of the new node with the old broker's."""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofs.harness import Outcome
from proofs.kafka.broker import Broker
from proofs.kafka.oracle import CLUSTERS, Oracle
from proofs.kafka.served import ISOLATIONS, Answer
from proofs.resurrect import AS_A_USER, FILLED, SETTINGS, Choices, What, find_failures
from seglog_format import open_cluster, open_log_directory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


TOPICS: Final[dict[str, dict[str, Any]]] = {
    "a.b_c-1": {"partitions": 3, "replication": 1, "config": {"retention.ms": "1000000"}},
    "a_b.c": {"partitions": 2, "replication": 1, "config": {"segment.bytes": "1048576"}},
}
"""Topics besides that of `FILLED`: their names are easily confused."""
RECORDS: Final = 40
METADATA: Final = "__cluster_metadata-0"
GARBAGE: Final = b"\xff\x00 not a checkpoint"
MANY_PARTITIONS: Final = "offsets.topic.num.partitions=50\n"


class Lost(NamedTuple):
    """The remains of a cluster, and the partitions that a node of it must serve.

    Attributes:
        sources: log directories.
        choices: options of the resurrection.
        gone: partitions without any remains.
    """

    sources: list[Path]
    choices: Choices = AS_A_USER
    gone: frozenset[tuple[str, int]] = frozenset()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for releases and ways."""
    parser.add_argument("--kafka", nargs="+", default=[*CLUSTERS.releases], help="releases of the brokers")
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS], help="how clusters are lost")


def prove(options: argparse.Namespace) -> Outcome:
    """Lose a cluster of each release in each way, and resurrect it."""
    failures: list[str] = []
    facts: dict[str, Any] = {"clusters": {}}
    for release in options.kafka:
        with tempfile.TemporaryDirectory() as root:
            old, served = filled(release, Path(root))
            for way in options.ways:
                found, partitions = find_lost_failures(release, way, old, served, Path(root) / way)
                failures += [f"{way} on {release}: {text}" for text in found]
                facts["clusters"][f"{way} on {release}"] = {"partitions": partitions, "failures": len(found)}
    return Outcome(facts, failures, {"kafka": ", ".join(CLUSTERS.releases[each] for each in options.kafka)})


def filled(release: str, root: Path) -> tuple[Path, dict[What, Answer]]:
    """Return the log directory that a stock broker left, and the records that it served."""
    home = root / "first"
    home.mkdir()
    broker = Broker(release, home, project=CLUSTERS, settings=SETTINGS + MANY_PARTITIONS)
    served: dict[What, Answer] = {}
    with Oracle(release, project=CLUSTERS) as kafka, broker.running():
        kafka.must("fill", bootstrap=broker.address, **FILLED)
        kafka.must("create", bootstrap=broker.address, topics=TOPICS)
        for topic, made in TOPICS.items():
            text = {"topic": topic, "partitions": made["partitions"], "records": RECORDS, "acks": "all"}
            kafka.must("write", bootstrap=broker.address, **text)
        for topic, made in {**TOPICS, FILLED["topic"]: FILLED}.items():
            for number in range(made["partitions"]):
                for isolation in ISOLATIONS:
                    what = {"topic": topic, "partition": number, "isolation": isolation}
                    served[topic, number, isolation] = kafka.must("served", bootstrap=broker.address, **what)
    return broker.logs, served


def find_lost_failures(
    release: str, way: str, old: Path, served: dict[What, Answer], root: Path
) -> tuple[list[str], int]:
    """Lose parts of a copy of a log directory, make a node of the rest, and compare.

    Returns:
        The differences, and the number of compared partitions.
    """
    root.mkdir()
    shutil.copytree(old, root / "old")
    lost = WAYS[way](root / "old")
    truth = {what: answer for what, answer in served.items() if what[:2] not in lost.gone}
    found, partitions = find_failures(lost.sources, root / "node", release, served=truth, choices=lost.choices)
    positions = open_cluster(lost.sources).coordinators.groups[FILLED["group"]].offsets
    if [positions[FILLED["topic"], number].offset for number in range(FILLED["partitions"])] != FILLED["offsets"]:
        found.append(f"positions: expected {FILLED['offsets']}, found {positions}")
    logs = open_log_directory(root / "node").partitions.keys()
    return [*found, *(f"no log of {key}" for key in sorted({what[:2] for what in truth} - logs))], partitions


# -- ways to lose a cluster --------------------------------------------------------------------------------------------


def _several_disks(old: Path) -> Lost:
    """Put every other partition on a second disk, and the metadata log on a third one."""
    disks = [old, old.with_name("second"), old.with_name("third")]
    for disk in disks[1:]:
        disk.mkdir()
        shutil.copy2(old / "meta.properties", disk)
    (old / METADATA).rename(disks[2] / METADATA)
    for path in sorted(open_log_directory(old).partitions.values())[::2]:
        path.path.rename(disks[1] / path.path.name)
    return Lost(disks)


def _no_metadata(old: Path) -> Lost:
    """Lose the metadata log, except for the records with which the broker was formatted."""
    shutil.rmtree(old / METADATA)
    return Lost([old])


def _cut_metadata(old: Path) -> Lost:
    """Cut the metadata log inside the record that creates the last topic."""
    (log,) = (old / METADATA).glob("*.log")
    for checkpoint in (old / METADATA).glob("*.checkpoint"):
        if not checkpoint.name.startswith("0" * 20):
            checkpoint.unlink()
    data = log.read_bytes()
    log.write_bytes(data[: data.rindex(b"a_b.c") + 2])
    return Lost([old])


def _new_metadata(old: Path) -> Lost:
    """Give the node the metadata log of a new cluster with another topic of the same name, with empty partitions."""
    for path in sorted(old.glob("a.b_c-1-?")):
        path.rename(path.with_name(f"{path.name}.{'0' * 32}-stray"))
        path.mkdir()
        (path / "00000000000000000000.log").touch()
        (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", encoding="ascii")
    return Lost([old], Choices(renamed=("stray",), unknown_topics=True))


def _leftovers(old: Path) -> Lost:
    """Add directories of deleted topics, of moves, and of another topic of the same name; damage small files."""
    shutil.copytree(old / "a_b.c-0", old / f"a_b.c-0.{'1' * 32}-future")
    shutil.copytree(old / "a_b.c-1", old / f"gone.topic-1.{'2' * 32}-delete")
    (old / "orders-0" / "leader-epoch-checkpoint").write_bytes(GARBAGE)
    (old / "orders-1" / "leader-epoch-checkpoint").unlink()
    (old / "orders-2" / "partition.metadata").write_bytes(GARBAGE)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint"):
        (old / name).write_bytes(GARBAGE)
    for index in (old / "a.b_c-1-0").glob("*index"):
        index.write_bytes(GARBAGE)
    (old / "a.b_c-1-1" / "00000000000000000040.snapshot").write_bytes(GARBAGE)
    (old / "lost+found").mkdir()
    return Lost([old])


def _missing_partitions(old: Path) -> Lost:
    """Lose the metadata, a partition, and the partitions of the groups' topic without a group."""
    shutil.rmtree(old / METADATA)
    (old / "bootstrap.checkpoint").unlink(missing_ok=True)
    shutil.rmtree(old / "a.b_c-1-0")
    for path in old.glob("__consumer_offsets-*"):
        if not any(log.stat().st_size for log in path.glob("*.log")):
            shutil.rmtree(path)
    return Lost([old], gone=frozenset({("a.b_c-1", 0)}))


def _first_positions(old: Path) -> Lost:
    """Lose the metadata, and store the group's offsets as brokers of 0.8.2 wrote them: in messages of magic 0."""
    shutil.rmtree(old / METADATA)
    (old / "bootstrap.checkpoint").unlink(missing_ok=True)
    group, topic = (_text(FILLED[name]) for name in ("group", "topic"))
    data = b"".join(
        _message(
            offset=number,
            key=struct.pack(">h", 0) + group + topic + struct.pack(">i", number),
            value=struct.pack(">hq", 0, position) + _text("") + struct.pack(">q", 1_400_000_000_000),
        )
        for number, position in enumerate(FILLED["offsets"])
    )
    for path in old.glob("__consumer_offsets-*"):
        if any(log.stat().st_size for log in path.glob("*.log")):
            shutil.rmtree(path)
            path.mkdir()
            (path / f"{0:020}.log").write_bytes(data)
    return Lost([old])


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode("ascii")


def _message(*, offset: int, key: bytes, value: bytes) -> bytes:
    body = struct.pack(">bb", 0, 0) + struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


WAYS: Final[dict[str, Callable[[Path], Lost]]] = {
    "several-disks": _several_disks,
    "no-metadata": _no_metadata,
    "cut-metadata": _cut_metadata,
    "new-metadata": _new_metadata,
    "leftovers": _leftovers,
    "missing-partitions": _missing_partitions,
    "first-positions": _first_positions,
}
