"""A stock broker whose coordinators have 50 partitions each, with names of both signs of Java's hash in them.

Nodes of it, with its metadata, without, and with a part of the partitions, have to answer what it answered.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofs.kafka.broker import Broker
from proofs.kafka.oracle import CLUSTERS, Oracle
from proofs.kafka.served import ISOLATIONS
from seglog_format import resurrect

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from proofs.kafka.node import KafkaNode
    from seglog_format.types import PreparedResurrection

COUNT: Final = 50
KEPT_BACK: Final = 3
"""Share groups do not accept records whose offset is a multiple of it; see ``Shares.java``."""
SHARE_FEATURES: Final = {"metadata.version": 33, "share.version": 2}
"""Levels of 4.4.0 without which it has no share groups."""
NODES: Final = {"3.9": ("3.9", "4.4"), "4.4": ("4.4",)}
"""Releases that start from what a broker left, by its release."""

TOPIC: Final = "orders"
PARTITIONS: Final = 3
RECORDS: Final = 20
INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
RELEASES_WITH_SHARE_GROUPS: Final = frozenset({"4.4"})

GROUPS: Final = (
    "billing-app",
    "orders-audit",
    "mailer",
    "search-indexer",
    "warehouse",
    "group-A",
    "group-two",
    "polygenelubricants",
    "app \N{GRINNING FACE}",
    "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n",
)
"""Java's hash of one of them is the least int."""

TRANSACTIONAL_IDS: Final = (
    "payments-1",
    "payments-2",
    "invoices",
    "polygenelubricants",
    "ledger-eu",
    "ledger-us",
    "tx \N{GRINNING FACE}",
    "stock-7",
)
SHARE_GROUPS: Final = ("share-blue", "share-red", "share \N{GRINNING FACE}")

SETTINGS: Final = """\
offsets.topic.num.partitions=50
transaction.state.log.num.partitions=50
log.index.size.max.bytes=4096
"""
SHARE_SETTINGS: Final = """\
share.coordinator.state.topic.num.partitions=50
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.share.delivery.count.limit=10
"""


def filled(release: str, home: Path, settings: str) -> tuple[Path, dict[str, Any]]:
    """Fill a stock broker's coordinators, and stop it cleanly.

    Args:
        release: of the broker.
        home: an empty directory.
        settings: additional settings; a broker says its settings only with an authorizer.

    Returns:
        Its log directory, and what it answered before it stopped.
    """
    with_shares = release in RELEASES_WITH_SHARE_GROUPS
    settings += SETTINGS + (SHARE_SETTINGS if with_shares else "")
    broker = Broker(release, home, project=CLUSTERS, settings=settings)
    with Oracle(release, project=CLUSTERS) as kafka, broker.running():
        topics = {TOPIC: {"partitions": PARTITIONS, "replication": 1, "config": {"retention.ms": "-1"}}}
        kafka.must("create", bootstrap=broker.address, topics=topics)
        kafka.must("write", bootstrap=broker.address, topic=TOPIC, partitions=PARTITIONS, records=RECORDS, acks="all")
        groups = {group: [number, number + 1] for number, group in enumerate(GROUPS)}
        kafka.must("commit", bootstrap=broker.address, topic=TOPIC, groups=groups)
        ids = {name: f"readers of {name}" for name in TRANSACTIONAL_IDS}
        kafka.must("transactions", bootstrap=broker.address, topic=TOPIC, ids=ids)
        if with_shares:
            # each transaction has added a record to the first partition, and a marker that no consumer gets
            records = PARTITIONS * RECORDS + len(ids)
            kafka.must("share", bootstrap=broker.address, topic=TOPIC, groups=SHARE_GROUPS, records=records)
        said = answers(kafka, broker.address, with_shares=with_shares)
    return broker.logs, said


def answers(kafka: Oracle, address: str, *, with_shares: bool) -> dict[str, Any]:
    """Return what a broker says of its groups, transactions, share groups, and the settings of its own topics."""
    groups = [*GROUPS, *(f"readers of {name}" for name in TRANSACTIONAL_IDS)]
    topics = INTERNAL if with_shares else INTERNAL[:2]
    said = {
        "groups": kafka.must("groups", bootstrap=address, groups=groups),
        "transactions": kafka.must("transactionStates", bootstrap=address, ids=TRANSACTIONAL_IDS),
        "settings": kafka.must("settings", bootstrap=address, topics=[*topics, TOPIC])["topics"],
        "records": {
            f"{TOPIC}-{number}, {isolation}": kafka.must(
                "served", bootstrap=address, topic=TOPIC, partition=number, isolation=isolation
            )
            for number in range(PARTITIONS)
            for isolation in ISOLATIONS
        },
    }
    described = kafka.must("describe", bootstrap=address, topics=topics)
    said["partitions"] = {topic: len(rows) for topic, rows in described.items()}
    if with_shares:
        said["shareGroups"] = kafka.must("shareOffsets", bootstrap=address, groups=SHARE_GROUPS)
    return said


def partitions_with(logs: Path, topic: str, name: str) -> list[int]:
    """Return the partitions of a coordinator in whose files a name stands; keys store its size before it."""
    text = name.encode("utf-8")
    stored = len(text).to_bytes(2, "big") + text
    found = {path.parent for path in logs.glob(f"{topic}-*/*.log") if stored in path.read_bytes()}
    return sorted(int(path.name.rpartition("-")[2]) for path in found)


# -- nodes of what it left ---------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """A comparison of a node with the broker that left its log directory.

    Attributes:
        name: what was compared.
        failures: differences that the plan does not report.
        partitions: how many partitions the node has.
    """

    name: str
    failures: list[str]
    partitions: int


def comparisons(kafka: Collection[str], start: Callable[[str, Path], KafkaNode], settings: str) -> Iterator[Comparison]:
    """Fill brokers, make nodes of what they left in each way, start these, and compare their answers.

    Args:
        kafka: releases that may start from the nodes.
        start: makes a broker of a release on a node's directory.
        settings: additional settings of the brokers that are filled.
    """
    for source, known in NODES.items():
        releases = [release for release in known if release in kafka]
        with tempfile.TemporaryDirectory() as root:
            home = Path(root) / "first"
            home.mkdir()
            logs, said = filled(source, home, settings)
            for way, lose in WAYS.items():
                old = Path(root) / way
                shutil.copytree(logs, old)
                lose(old)
                for release in releases:
                    name = f"50 partitions by {source}, {way}, on {release}"
                    yield _compared(name, (logs, old), said, start, release)


def _without_metadata(old: Path) -> None:
    shutil.rmtree(old / "__cluster_metadata-0")
    (old / "bootstrap.checkpoint").unlink(missing_ok=True)
    for path in old.glob("*-offset-checkpoint"):
        path.unlink()


def _part(old: Path) -> None:
    """Lose metadata, checkpoints, and one partition in four of each coordinator, with the last one."""
    _without_metadata(old)
    for topic in INTERNAL:
        for number in range(1, COUNT, 4):
            shutil.rmtree(old / f"{topic}-{number}", ignore_errors=True)


WAYS: Final[dict[str, Callable[[Path], None]]] = {
    "with metadata": lambda _old: None,
    "without metadata": _without_metadata,
    "a part without metadata": _part,
}


def _compared(
    name: str,
    directories: tuple[Path, Path],
    said: Mapping[str, Any],
    start: Callable[[str, Path], KafkaNode],
    release: str,
) -> Comparison:
    logs, old = directories
    with tempfile.TemporaryDirectory() as root:
        target = Path(root) / "node"
        plan = resurrect(old, target, kafka=release, unknown_topics=True)
        plan.apply()
        with_shares = "shareGroups" in said
        broker = start(release, target)
        with Oracle(release, project=CLUSTERS) as kafka, broker.running():
            if with_shares and "share.version" not in plan.made.image.features:
                kafka.must("upgrade", bootstrap=broker.address, features=SHARE_FEATURES)  # as the plan says
            found = answers(kafka, broker.address, with_shares=with_shares)
            if with_shares:
                groups = [group for group in SHARE_GROUPS if not _lost(logs, old, INTERNAL[2], group)]
                left = kept_back()
                asked = {"topic": TOPIC, "groups": groups, "records": len(left)}
                found["rest"] = kafka.must("rest", bootstrap=broker.address, **asked)
                said = {**said, "rest": dict.fromkeys(groups, left)}
    failures = [*_different(said, found, logs, old), *_unreported_settings(said["settings"], found["settings"], plan)]
    failures += _unreported_partitions(logs, old, plan)
    noted = {note.about for note in plan.made.notes}
    if with_shares and "share.version" not in plan.made.image.features:
        failures += [
            f"{group} lacks share.version, and no word of it" for group in groups if f"group {group}" not in noted
        ]
    return Comparison(name, failures, sum(len(topic.partitions) for topic in plan.made.image.topics.values()))


def kept_back() -> list[str]:
    """Return the records that no share group has accepted, as ``Shares.java`` names them.

    The first partition has a record and a marker of each transaction after the others.
    """
    offsets = {number: list(range(RECORDS)) for number in range(PARTITIONS)}
    offsets[0] += range(RECORDS, RECORDS + 2 * len(TRANSACTIONAL_IDS), 2)
    return sorted(
        f"{TOPIC}-{number}:{each}" for number, found in offsets.items() for each in found if not each % KEPT_BACK
    )


ABOUT: Final = {"groups": INTERNAL[0], "transactions": INTERNAL[1], "shareGroups": INTERNAL[2]}
"""Answers about names, and the topics in which these are."""


def _lost(logs: Path, old: Path, topic: str, name: str) -> bool:
    return partitions_with(logs, topic, name) != partitions_with(old, topic, name)


def _different(said: Mapping[str, Any], found: Mapping[str, Any], logs: Path, old: Path) -> Iterator[str]:
    """Yield answers that are not those of the first broker, except about names whose partitions were lost."""
    for about in said.keys() - {"settings"}:
        for name, value in said[about].items():
            if about in ABOUT and _lost(logs, old, ABOUT[about], name):
                continue
            if found[about].get(name) != value:
                yield f"{about}: {name}: expected {value}, found {found[about].get(name)}"


def _unreported_settings(
    said: Mapping[str, Mapping[str, str]], found: Mapping[str, Mapping[str, str]], plan: PreparedResurrection
) -> Iterator[str]:
    """Yield settings that differ although the plan does not report it."""
    for topic, old in said.items():
        reported = plan.made.old_settings.get(topic, {})
        is_lost = any(note.about == topic and "its settings are lost" in note.text for note in plan.made.notes)
        for name in old.keys() | found[topic].keys():
            is_reported = is_lost or reported.get(name, "") == old.get(name)
            if old.get(name) != found[topic].get(name) and not is_reported:
                yield f"settings: {topic}: {name}: was {old.get(name)}, is {found[topic].get(name)}, and no word of it"


def _unreported_partitions(logs: Path, old: Path, plan: PreparedResurrection) -> Iterator[str]:
    """Yield partitions that were lost although the plan does not report it."""
    noted = {note.about for note in plan.made.notes}
    for name in sorted({path.name for path in logs.glob("__*_*-*")} - {path.name for path in old.glob("__*_*-*")}):
        if not name.startswith("__cluster") and name not in noted:
            yield f"{name} is lost, and no word of it"
