"""What a new node has to take care of: open transactions, producer ids, directories that brokers renamed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from seglog_format.cluster.coordinators import OPEN_STATES, TRANSACTION_STATE, transaction_state
from seglog_format.cluster.releases import GROUP_FEATURES
from seglog_format.errors import SeglogError
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import open_partition
from seglog_format.log.producer_snapshot import ProducerSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.new_image import NewImage
    from seglog_format.cluster.releases import Release

PRODUCER_ID_DISTANCE: Final = 1_000_000
"""New producer ids start so far above the highest one known, since snapshots lack the latest producers."""


def note_renamed(made: NewImage, cluster: Cluster) -> None:
    """Name directories that brokers renamed; what moves to another disk is at hand where it comes from."""
    for entry in cluster.left_out:
        name = entry.name
        if name.state != "future" or name.topic_partition not in made.logs:
            made.note(f"{name.topic}-{name.partition}", f"{entry.path} is left out: --renamed {name.state} takes it")


def note_groups(made: NewImage, cluster: Cluster, release: Release) -> None:
    """Name the groups of a type that the release does not know."""
    for name, group in sorted(cluster.coordinators.groups.items()):
        feature = GROUP_FEATURES.get(group.type)
        if feature is not None and feature not in release.features:
            kept = "" if group.type == "share" else "; its committed positions stay"
            made.note(f"group {name}", f"is a {group.type} group, which Kafka {release.version} does not know{kept}")


def note_transactions(made: NewImage, cluster: Cluster) -> None:
    """Say what becomes of transactions that were open."""
    has_coordinator = any(topic == TRANSACTION_STATE for topic, _ in made.logs)
    for name, fields in sorted(cluster.coordinators.transactions.items()):
        if transaction_state(fields) in OPEN_STATES and has_coordinator:
            partitions = [
                f"{each['topic']}-{number}"
                for each in fields["transactionPartitions"] or ()
                for number in each["partitionIds"]
            ]
            text = (
                f"was open; its coordinator ends it, with one more offset in {', '.join(partitions) or 'no partition'}"
            )
            made.note(f"transaction {name}", text)
    if not has_coordinator:
        for (topic, number), replica in sorted(made.logs.items()):
            with open_partition(replica.path) as partition:
                if partition.transactions.open_offsets:
                    offset = partition.last_stable_offset
                    text = f"a transaction is open at offset {offset}, and no producer is left to end it"
                    made.note(f"{topic}-{number}", f"{text}; with read_committed, reading stops there")


def see_to_producer_ids(made: NewImage, cluster: Cluster) -> None:
    """Start new producer ids above all that the logs hold, where no metadata says how far they went."""
    highest = max(_producer_ids(made, cluster), default=-1)
    start = max(highest + 1, made.image.next_producer_id, 0) + PRODUCER_ID_DISTANCE
    made.image.next_producer_id = start
    if highest >= 0:
        made.note("producer ids", f"the logs hold ids up to {highest}; new ones start at {start}")


def _producer_ids(made: NewImage, cluster: Cluster) -> Iterator[int]:
    yield from (fields["producerId"] for fields in cluster.coordinators.transactions.values())
    for replica in made.logs.values():
        for snapshot in list_partition(replica.path).snapshots:
            with suppress(SeglogError):
                yield from (each.producer_id for each in ProducerSnapshot.open(snapshot.path).producers)
