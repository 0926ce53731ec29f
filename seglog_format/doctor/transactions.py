"""The transactions that are open in partitions, and what the transaction coordinator knows of them."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.cluster.cluster import OPEN_STATES, transaction_state
from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import FormatError, Location
from seglog_format.log.transactions import end_marker
from seglog_format.model import AbortedTxn, BatchHeader, RecordBatchHeader
from seglog_format.names import TRANSACTION_STATE

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.log.directory import TopicPartition
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition


class Standing(Enum):
    """What `__transaction_state` says of a transaction that is open in a partition."""

    KNOWN = "in __transaction_state"
    HANGING = "hanging: not in __transaction_state"
    UNDECIDED = "not decided: __transaction_state is not here, or only in part"


class OpenTransaction(NamedTuple):
    """A transaction without an end marker in a partition.

    Attributes:
        path: the partition directory.
        producer_id: of the producer.
        producer_epoch: in its first batch here; None if that batch cannot be read, or is below the log start offset.
        first_offset: the first offset of the transaction here.
        since_ms: the greatest timestamp of its first batch; None as above.
        transactional_id: the latest that has this producer id in `__transaction_state`; None if none has.
        standing: whether the coordinator knows that the transaction is open here.
        last_stable_offset: of the partition; a consumer of committed records stops there.
        log_end_offset: of the partition.
    """

    path: Path
    producer_id: int
    producer_epoch: int | None
    first_offset: int
    since_ms: int | None
    transactional_id: str | None
    standing: Standing
    last_stable_offset: int
    log_end_offset: int

    @property
    def is_blocking(self) -> bool:
        """Return whether it is the transaction that holds back the last stable offset."""
        return self.first_offset <= self.last_stable_offset


class Coordinator:
    """What `__transaction_state` says, as far as it is in the log directories of a cluster.

    Attributes:
        is_whole: whether every partition of `__transaction_state` was read; only the metadata log says how many it has.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._transactions = cluster.coordinators.transactions
        topic = None if cluster.metadata() is None else cluster.image().topic_named(TRANSACTION_STATE)
        present = {number for name, number in cluster.replicas if name == TRANSACTION_STATE}
        is_readable = all(cluster.chosen((TRANSACTION_STATE, each)) for each in present)
        self._is_read = is_readable and not cluster.coordinators.problems
        self.is_whole = topic is not None and self._is_read and present >= set(topic.partitions)

    def standing_of(self, producer_id: int, key: TopicPartition) -> tuple[str | None, Standing]:
        """Return the transactional id of a producer id, and whether its transaction is open in a partition."""
        names = [name for name, fields in self._transactions.items() if fields["producerId"] == producer_id]
        for name in names:
            fields = self._transactions[name]
            listed = ((each["topic"], each["partitionIds"]) for each in fields["transactionPartitions"] or ())
            is_listed = any(topic == key[0] and key[1] in numbers for topic, numbers in listed)
            if is_listed and transaction_state(fields) in OPEN_STATES:
                return name, Standing.KNOWN
        is_decided = self.is_whole or (names and self._is_read)
        return names[-1] if names else None, Standing.HANGING if is_decided else Standing.UNDECIDED


def open_transactions(
    entry: PartitionEntry, partition: Partition, coordinator: Coordinator
) -> Iterator[OpenTransaction]:
    """Yield the open transactions of a partition, by first offset.

    Args:
        entry: of the partition.
        partition: opened; its headers and end markers are read, and its batches if a transaction is not listed.
        coordinator: of the cluster.
    """
    for producer_id, first_offset in sorted(partition.transactions.open_offsets.items(), key=lambda item: item[1]):
        header = _first_header(partition, first_offset)
        name, standing = coordinator.standing_of(producer_id, entry.name.topic_partition)
        yield OpenTransaction(
            entry.path,
            producer_id,
            None if header is None else header.producer_epoch,
            first_offset,
            None if header is None else header.max_timestamp_ms,
            name,
            standing,
            partition.last_stable_offset,
            partition.log_end_offset,
        )


def unlisted(partition: Partition, rebuilt: Container[str]) -> Iterator[Statement]:
    """Yield the segments of which brokers serve aborted records, since no transaction index lists their transactions.

    Args:
        partition: opened; its headers and end markers are read, and its batches if a transaction is not listed.
        rebuilt: the files that a start writes again.
    """
    with suppress(FormatError):  # of an index, which is a finding of its own
        for number, (count, first) in _served(partition).items():
            log = Path(partition.segments[number].path)
            if str(log.with_suffix(".txnindex")) not in rebuilt:
                span = f"the first of producer {first.producer_id} at offset {first.first_offset}"
                what = f"brokers serve {count} aborted records, {span}: no transaction index lists them"
                step = typed("recover", "--full-scan", "--write", log.parent)
                where = Location(str(log), field="transaction index")
                yield Statement(Kind.READERS, what, where, ("SEG-LKP-011",), (Hurt.COMMITTED,), step)


def _served(partition: Partition) -> dict[int, tuple[int, AbortedTxn]]:
    """Return how many aborted records no index lists, and the first transaction, by the number of its last segment."""
    segments, transactions = partition.segments, partition.transactions
    indexes = [each.transaction_index for each in segments]
    listed = {(each.producer_id, each.last_offset) for index in indexes if index for each in index.entries}
    lost = {
        each
        for each in (transactions.aborted if transactions.damage is None else ())
        if (each.producer_id, each.last_offset) not in listed and each.last_offset >= partition.log_start_offset
    }
    found: dict[int, tuple[int, AbortedTxn]] = {}
    bases = [each.base_offset for each in segments]
    for header in (batch.header for segment in segments for batch in segment.batches()) if lost else ():
        aborted, records_count = transactions.aborted_with(header), header.records_count or 0
        if aborted in lost and records_count > 0:
            number = bisect_right(bases, aborted.last_offset) - 1
            count, first = found.get(number, (0, aborted))
            found[number] = count + records_count, first
    return found


class TransactionAt(NamedTuple):
    """A transaction that was open at an offset.

    Attributes:
        path: the partition directory.
        producer_id: of the producer.
        producer_epoch: in its first batch here.
        first_offset: the first offset of the transaction here.
        since_ms: the greatest timestamp of its first batch.
        end_offset: of its end marker; None if it has none.
        outcome: the name of the end marker; None as above.
        transactional_id: the latest that has this producer id in `__transaction_state`; None if none has.
    """

    path: Path
    producer_id: int
    producer_epoch: int
    first_offset: int
    since_ms: int
    end_offset: int | None
    outcome: str | None
    transactional_id: str | None


def transactions_at(
    entry: PartitionEntry, partition: Partition, offset: int, coordinator: Coordinator
) -> Iterator[TransactionAt]:
    """Yield the transactions that begin at an offset or below, and end at it or above, in the order of their ends.

    Args:
        entry: of the partition.
        partition: opened; its headers and end markers are read until all these transactions have ended.
        offset: the offset.
        coordinator: of the cluster.

    Raises:
        FormatError: while iterating: at damage.
    """
    begun: dict[int, TransactionAt] = {}
    for segment in partition.segments:
        for frame in segment.ordered_frames():
            marker, header = end_marker(segment, frame), frame.header
            base, number = header.base_offset, header.producer_id
            if base is None or not isinstance(header, RecordBatchHeader):
                continue
            if base > offset and not begun:
                return
            if marker is not None:
                found = begun.pop(number, None)
                if found is not None and base >= offset:
                    yield found._replace(end_offset=base, outcome=marker.name)
            elif header.is_transactional and not header.is_control and base <= offset and number not in begun:
                name, _ = coordinator.standing_of(number, entry.name.topic_partition)
                epoch, since_ms = header.producer_epoch, header.max_timestamp_ms
                begun[number] = TransactionAt(entry.path, number, epoch, base, since_ms, None, None, name)
    yield from begun.values()


def _first_header(partition: Partition, offset: int) -> BatchHeader | None:
    if offset < partition.log_start_offset:
        return None
    try:
        return next((batch.header for batch in partition.read(offset, max_bytes=1).batches), None)
    except FormatError:
        return None
