"""Notes and precautions for a new node: open transactions, producer ids, directories that brokers renamed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog_format.cluster.coordinators import OPEN_STATES, TRANSACTION_STATE, transaction_state
from seglog_format.cluster.releases import GROUP_FEATURES
from seglog_format.errors import SeglogError
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.log.producer_snapshot import ProducerSnapshot
from seglog_format.log.transactions import Transactions, read_on
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.comparison import Replicas
    from seglog_format.cluster.new_image import NewImage
    from seglog_format.cluster.releases import Release
    from seglog_format.cluster.whole_log import WholeLog
    from seglog_format.log.directory import TopicPartition

PRODUCER_ID_DISTANCE: Final = 1_000_000
"""Distance of new producer ids from the highest known one, because snapshots lack the latest producers."""

MAX_PRODUCER_ID: Final = INT64_MAX - 2 * PRODUCER_ID_DISTANCE
"""Higher producer ids count as damage: a node would have no ids left above them."""


def note_directories(made: NewImage, cluster: Cluster) -> None:
    """Note the log directories that another process holds, and the partition directories that cannot be opened."""
    for directory in cluster.directories.directories:
        if directory.is_locked:
            text = "a broker or another writer holds its lock file; what it writes during the copy may be missing"
            made.note(str(directory.path), text)
        for error in directory.listing.blocked:
            made.note(PurePath(error.location.path).name, f"left out: {error}")


def note_unread(made: NewImage, replicas: Replicas) -> None:
    """Note the replicas that were not taken and of which a file cannot be read: it may hold more than is known."""
    for key, copies in replicas.items():
        for copy in copies if key in made.logs else ():
            if copy.has_logs_alone and copy.path != made.logs[key].path:
                made.note(f"{key[0]}-{key[1]}", f"{copy.path} is damaged, and was not taken: {copy.damage}")


def note_renamed(made: NewImage, cluster: Cluster) -> None:
    """Note the renamed directories that are left out, except moves to another disk: their source is still there."""
    for entry in cluster.left_out:
        name = entry.name
        if name.state != "future" or name.topic_partition not in made.logs:
            made.note(f"{name.topic}-{name.partition}", f"{entry.path} is left out: --renamed {name.state} takes it")


def note_groups(made: NewImage, cluster: Cluster, release: Release) -> None:
    """Note the groups of types that the release does not support, or that need a feature whose level was lost."""
    for name, group in sorted(cluster.coordinators.groups.items()):
        feature = GROUP_FEATURES.get(group.type)
        if feature is None or feature in made.image.features:
            continue
        kept = "" if group.type == "share" else "; its committed positions stay"
        if feature not in release.features:
            made.note(f"group {name}", f"is a {group.type} group, which Kafka {release.version} does not know{kept}")
        else:
            text = f"is a {group.type} group, which needs {feature}: its level is lost with the metadata"
            made.note(f"group {name}", f"{text}; set it with kafka-features.sh, metadata.version first{kept}")


def note_transactions(made: NewImage, cluster: Cluster, whole_logs: Mapping[TopicPartition, WholeLog]) -> None:
    """Note what happens to open transactions.

    A coordinator ends the transactions that its topic lists as open. If offsets were lost, they may include the end
    marker of a transaction that its topic lists as ended; then no coordinator ends it again.

    Args:
        made: the notes are added to it.
        cluster: the old cluster.
        whole_logs: the logs of the new node.
    """
    has_coordinator = any(topic == TRANSACTION_STATE for topic, _ in made.logs)
    known = set()
    for name, fields in sorted(cluster.coordinators.transactions.items()):
        if transaction_state(fields) in OPEN_STATES and has_coordinator:
            known.add(fields["producerId"])
            partitions = [
                f"{each['topic']}-{number}"
                for each in fields["transactionPartitions"] or ()
                for number in each["partitionIds"]
            ]
            text = (
                f"was open; its coordinator ends it, with one more offset in {', '.join(partitions) or 'no partition'}"
            )
            made.note(f"transaction {name}", text)
    for key in sorted(made.logs):
        log = whole_logs[key]
        has_all = has_coordinator and not log.missing and key not in made.ends
        offsets = () if has_all else _open_offsets(log, known)
        if offsets:
            offset = max(min(offsets), log.log_start_offset)
            text = f"a transaction is open at offset {offset}, and no producer is left to end it"
            made.note(f"{key[0]}-{key[1]}", f"{text}; with read_committed, reading stops there")


def _open_offsets(log: WholeLog, known: Collection[int]) -> Sequence[int]:
    """Return the first offsets of transactions that are open at the end of a log, except those of known producers."""
    found = Transactions(open_offsets=dict(log.open_offsets))
    with Partition(log.listing) as partition:
        read_on(found, partition.segments[log.remote_count :], log.log_start_offset)
    return [first for producer_id, first in found.open_offsets.items() if producer_id not in known]


def reserve_producer_ids(made: NewImage, cluster: Cluster) -> None:
    """Set the next producer id above all ids in the logs and the metadata, for a cluster with incomplete metadata."""
    ids = set(_producer_ids(made, cluster))
    absurd = {each for each in ids if each > MAX_PRODUCER_ID}
    for each in sorted(absurd):
        made.note("producer ids", f"the logs hold id {each}, above which none are left; it does not count")
    highest = max(ids - absurd, default=-1)
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
