"""The leader epochs of a log, and its producers: their last sequences and open transactions (chapters 50 and 51).

The state of producers is computed from the batches of a log alone. A leader checks new batches with it. Every replica
updates it with each append, lists aborted transactions from it, and stores it as a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import end_marker_of
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.errors import AppendError, Location, UsageError
from seglog_format.log.index_file import newest_readable_snapshot
from seglog_format.model import (
    INT32_MAX,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    AbortedTxn,
    ControlRecordType,
    EpochStart,
    ProducerStateEntry,
    RecordBatchHeader,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from seglog_format.codec.control_record import EndMarker
    from seglog_format.log.index_file import ProducerSnapshot
    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import BatchHeader, Frame


class LeaderEpochs:
    """The first offset of each leader epoch, in order; both numbers strictly increase (SEG-CKP-007)."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries = list(entries)
        self._is_in_order = all(one.epoch < two.epoch and one[1] < two[1] for one, two in pairwise(self._entries))

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """Epochs and their first offsets."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that an epoch begins at an offset or before, and drop the entries that contradict it (SEG-APP-016).

        Returns:
            Whether any entry changed.
        """
        latest = self._entries[-1] if self._entries else None
        if epoch < 0 or (latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset):
            return False
        is_next = latest is None or (latest.epoch < epoch and latest.start_offset < start_offset)
        if not (is_next and self._is_in_order):
            self._entries = [one for one in self._entries if one.epoch < epoch and one.start_offset < start_offset]
        self._entries.append(EpochStart(epoch, start_offset))
        return True

    def clear(self) -> bool:
        """Drop all epochs, as messages of magic 0 or 1 require (SEG-APP-025); return whether anything changed."""
        changed = bool(self._entries)
        self._entries = []
        return changed

    def truncate_to(self, offset: int) -> bool:
        """Drop epochs that begin at an offset or above; return whether anything changed."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        changed = len(kept) < len(self._entries)
        self._entries = kept
        return changed

    def start_at(self, offset: int) -> bool:
        """Set the log start offset: the last earlier epoch then begins there; return whether anything changed."""
        before = [entry for entry in self._entries if entry.start_offset <= offset]
        if not before or before == [EpochStart(before[-1].epoch, offset)]:
            return False
        self._entries = [EpochStart(before[-1].epoch, offset), *self._entries[len(before) :]]
        return True


class EpochRises:
    """Collects where a higher leader epoch begins in the entries of a log.

    Attributes:
        starts: each epoch that is greater than all before it, with the first offset of its batch.
        has_entries: whether an entry of any magic was added.
    """

    def __init__(self) -> None:
        self.starts: list[EpochStart] = []
        self.has_entries = False

    def add(self, header: BatchHeader) -> None:
        """Add the next entry."""
        self.has_entries = True
        if isinstance(header, RecordBatchHeader):
            epoch = header.partition_leader_epoch
            if epoch > (self.starts[-1].epoch if self.starts else NO_PARTITION_LEADER_EPOCH):
                self.starts.append(EpochStart(epoch, header.base_offset))


def require_newest(leader_epoch: int, newest: int, path: Path) -> None:
    """Refuse a leader epoch for appends that is older than one in the log (SEG-APP-017).

    Raises:
        UsageError: the epoch is older, negative, or does not fit into 32 bits.
    """
    if not max(newest, 0) <= leader_epoch <= INT32_MAX:
        msg = f"{path}: leader epoch {leader_epoch}: the log knows {newest}, and none may be older (SEG-APP-017)"
        raise UsageError(msg)


# -- the state of one producer, as a snapshot stores it (chapter 50) ---------------------------------------------------


NO_OFFSET: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

REMEMBERED_BATCHES: Final = 5
"""Number of latest batches stored for each producer, to detect duplicates (SEG-APP-008)."""


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """The sequences and offsets of one of a producer's latest data batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record of the batch; sequences wrap after 2147483647."""
        return (self.last_sequence - self.offset_delta) % (INT32_MAX + 1)

    @property
    def first_offset(self) -> int:
        """Offset of the first record of the batch."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class Producer:
    """The state of one producer; unknown numbers are -1.

    Attributes:
        producer_id: 0 or more.
        producer_epoch: of its last append.
        batches: its newest data batches of that epoch, oldest first, at most 5.
        timestamp_ms: of its last append, end markers included.
        coordinator_epoch: of its last marker.
        current_txn_first_offset: first offset of its open transaction.
    """

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[ProducerBatch, ...] = ()
    timestamp_ms: int = NO_TIMESTAMP
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    current_txn_first_offset: int = NO_OFFSET

    def is_alive(self, oldest_ms: int) -> bool:
        """Return whether it has an open transaction, or an append after a time (chapter 50, "Expiration")."""
        return self.current_txn_first_offset >= 0 or self.timestamp_ms > oldest_ms

    @property
    def last_sequence(self) -> int:
        """Last sequence of its newest data batch in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def in_epoch(self, producer_epoch: int) -> Producer:
        """Return the producer with an epoch; if the epoch is new, without the batches of the old epoch."""
        if producer_epoch == self.producer_epoch:
            return self
        return replace(self, producer_epoch=producer_epoch, batches=())

    def duplicate_of(self, header: RecordBatchHeader) -> ProducerBatch | None:
        """Return the stored batch with the same sequences; None if there is none."""
        if header.producer_epoch != self.producer_epoch:
            return None
        sequences = header.base_sequence, header.last_sequence
        return next((b for b in self.batches if (b.first_sequence, b.last_sequence) == sequences), None)

    def to_entry(self) -> ProducerStateEntry:
        """Return the snapshot entry of the producer; it has only the newest batch."""
        newest = self.batches[-1] if self.batches else ProducerBatch(NO_SEQUENCE, NO_OFFSET, 0)
        return ProducerStateEntry(
            self.producer_id,
            self.producer_epoch,
            newest.last_sequence,
            newest.last_offset,
            newest.offset_delta,
            self.timestamp_ms,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )


def producer_from(entry: ProducerStateEntry) -> Producer:
    """Create a producer from the entry of a snapshot."""
    batch = ProducerBatch(entry.last_sequence, entry.last_offset, entry.offset_delta)
    return Producer(
        entry.producer_id,
        entry.producer_epoch,
        (batch,) if entry.last_offset >= 0 else (),
        entry.timestamp_ms,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


# -- the producer states of a log --------------------------------------------------------------------------------------


TRANSACTION_INDEX_VERSION: Final = 0


class Origin(Enum):
    """The origin of an append; it decides what is checked.

    Examples:
        >>> from seglog_format import Origin, PartitionWriter, new_record
        >>> with PartitionWriter("written/__consumer_offsets-0") as writer:
        ...     appended = writer.append([new_record(key=b"k", value=b"v")], origin=Origin.COORDINATOR)
        >>> appended.first_offset
        0
    """

    CLIENT = "client"
    """A producer: everything is checked."""

    COORDINATOR = "coordinator"
    """The broker itself, which appends end markers and records of its own topics: sequences are not checked."""

    REPLICATION = "replication"
    """A follower that copies its leader, or a log that is read again: the leader's checks are not repeated."""


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction with an end marker: its first offset, and that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class ProducerChanges:
    """The changes of producer states by one append; computed before its bytes are written, and applied afterwards."""

    producers: dict[int, Producer] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    ended: list[EndedTransaction] = field(default_factory=list)


class ProducerStates:
    """The producers of a log.

    Args:
        producers: their initial states.
        end_offset: the offset up to which batches were applied.

    Attributes:
        end_offset: the offset up to which batches were applied.
        snapshot_offset: offset of the newest snapshot.
    """

    def __init__(self, producers: Iterable[Producer] = (), end_offset: int = 0) -> None:
        self.end_offset = end_offset
        self.snapshot_offset = end_offset
        self._producers = {producer.producer_id: producer for producer in producers}
        # The producer of each open transaction, by its first offset, ascending.
        opened = ((p.current_txn_first_offset, p.producer_id) for p in self._producers.values())
        self._open = dict(sorted(pair for pair in opened if pair[0] >= 0))

    @property
    def producers(self) -> tuple[Producer, ...]:
        """All producers, by producer id."""
        return tuple(self._producers[key] for key in sorted(self._producers))

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction; None if no transaction is open."""
        return next(iter(self._open), None)

    def duplicate_of(self, header: RecordBatchHeader) -> ProducerBatch | None:
        """Return the stored batch that a producer sends again; None if there is none (SEG-APP-008)."""
        producer = self._producers.get(header.producer_id)
        return producer.duplicate_of(header) if producer and not header.is_control else None

    def changes(self, batches: Iterable[tuple[RecordBatchHeader, EndMarker | None]], origin: Origin) -> ProducerChanges:
        """Compute the changes by batches that are appended together.

        Args:
            batches: headers with final offsets, and end markers; batches without a producer id are ignored.
            origin: of the append.

        Raises:
            AppendError: an epoch, a sequence or a transaction is invalid (SEG-APP-007, SEG-APP-009, SEG-APP-022,
                SEG-APP-023).
        """
        changes = ProducerChanges()
        for header, marker in batches:
            if header.producer_id <= NO_PRODUCER_ID:
                continue
            known = self._producers.get(header.producer_id, Producer(header.producer_id))
            current = changes.producers.get(header.producer_id, known)
            if header.is_control:
                changed = _ended(current, header, marker, origin, changes)
            else:
                check_data_batch(header, known, current, origin)
                changed = _extended(current, header, changes)
            changes.producers[header.producer_id] = changed
        return changes

    def apply(self, changes: ProducerChanges, end_offset: int) -> tuple[AbortedTxn, ...]:
        """Apply the changes of an append.

        Returns:
            Entries for the transaction index, in the order of their markers (SEG-TXN-006).
        """
        self._producers.update(changes.producers)
        self._open = dict(sorted({**self._open, **changes.begun}.items()))
        aborted = []
        for transaction in changes.ended:
            if transaction.is_aborted:
                aborted.append(self._aborted(transaction))
            self._open.pop(transaction.first_offset, None)
        self.end_offset = end_offset
        return tuple(aborted)

    def _aborted(self, transaction: EndedTransaction) -> AbortedTxn:
        others = (first for first, producer_id in self._open.items() if producer_id != transaction.producer_id)
        return AbortedTxn(
            TRANSACTION_INDEX_VERSION,
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            next(others, transaction.last_offset + 1),
        )

    def replay(self, frames: Iterable[Frame], path: str) -> None:
        """Apply entries of a log from `end_offset` on.

        Args:
            frames: the entries, in order.
            path: of the log, for errors.

        Raises:
            FormatError: an end marker cannot be read, or the walk ends at damage.
        """
        for frame in frames:
            header = frame.header
            if isinstance(header, RecordBatchHeader) and header.base_offset >= self.end_offset:
                marker = end_marker_of(frame, Location(path, frame.position))
                self.apply(self.changes([(header, marker)], Origin.REPLICATION), header.next_offset)

    def snapshot(self) -> bytes:
        """Encode a snapshot; its producers are sorted by id."""
        return encode_producer_snapshot(producer.to_entry() for producer in self.producers)


def states_of(snapshot: ProducerSnapshot | None, start_offset: int, oldest_ms: int = -(2**63)) -> ProducerStates:
    """Create the states from a snapshot; without a snapshot, there are no producers at the start of the log.

    Args:
        snapshot: the newest that can be read.
        start_offset: of the log.
        oldest_ms: producers without an open transaction are left out if their last append is not after this.
    """
    if snapshot is None:
        return ProducerStates(end_offset=start_offset)
    known = map(producer_from, snapshot.producers)
    return ProducerStates((each for each in known if each.is_alive(oldest_ms)), snapshot.offset)


def producers_at_end(segments: Sequence[LogSegment], snapshots: Iterable[NamedFile], end_offset: int) -> ProducerStates:
    """Return the producer states at the end of a log, from the newest readable snapshot and the entries after it.

    Args:
        segments: of the log, in order; at least one.
        snapshots: of the partition.
        end_offset: log end offset; later snapshots are ignored.

    Raises:
        FormatError: an entry is damaged.
    """
    paths = (file.path for file in snapshots if file.base_offset <= end_offset)
    states = states_of(newest_readable_snapshot(paths), segments[0].base_offset)
    for segment in segments:
        if segment.next_offset > states.end_offset:
            states.replay(segment.ordered_frames(), segment.path)
    states.end_offset = end_offset
    return states


def _extended(current: Producer, header: RecordBatchHeader, changes: ProducerChanges) -> Producer:
    """Return a producer after one more data batch; a transactional batch begins a transaction if none is open."""
    in_epoch = current.in_epoch(header.producer_epoch)
    batch = ProducerBatch(header.last_sequence, header.last_offset, header.last_offset_delta)
    first = current.current_txn_first_offset
    if header.is_transactional and first == NO_OFFSET:
        first = header.base_offset
        changes.begun[first] = header.producer_id
    return Producer(  # `replace` is slow, and this is done for every batch
        producer_id=in_epoch.producer_id,
        producer_epoch=in_epoch.producer_epoch,
        batches=(*in_epoch.batches, batch)[-REMEMBERED_BATCHES:],
        timestamp_ms=header.max_timestamp_ms,
        coordinator_epoch=in_epoch.coordinator_epoch,
        current_txn_first_offset=first,
    )


def _ended(
    current: Producer, header: RecordBatchHeader, marker: EndMarker | None, origin: Origin, changes: ProducerChanges
) -> Producer:
    """Return a producer after an end marker; a marker batch that compaction emptied changes nothing (SEG-CTL-007)."""
    if marker is None:
        return current
    _check_epoch(header, current, origin)
    if origin is not Origin.REPLICATION and marker.coordinator_epoch < current.coordinator_epoch:
        msg = (
            f"coordinator epoch {marker.coordinator_epoch} of a marker is older than {current.coordinator_epoch}, "
            f"the latest of producer {header.producer_id}"
        )
        raise AppendError(msg, "SEG-APP-022")
    first = current.current_txn_first_offset
    if first != NO_OFFSET:
        is_aborted = marker.kind is ControlRecordType.ABORT
        changes.ended.append(EndedTransaction(header.producer_id, first, header.base_offset, is_aborted))
    return replace(
        current.in_epoch(header.producer_epoch),
        timestamp_ms=marker.timestamp_ms,
        coordinator_epoch=marker.coordinator_epoch,
        current_txn_first_offset=NO_OFFSET,
    )


def check_data_batch(header: RecordBatchHeader, known: Producer, current: Producer, origin: Origin) -> None:
    """Refuse a data batch that its producer may not append now.

    Args:
        header: of the batch.
        known: the producer before this append.
        current: the producer after the earlier batches of this append.
        origin: of the append.

    Raises:
        AppendError: the batch breaks SEG-APP-007, SEG-APP-009 or SEG-APP-023.
    """
    _check_epoch(header, current, origin)
    if origin is Origin.CLIENT:
        _check_sequence(header, known, current)
    if current.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
        msg = f"producer {header.producer_id} has a transaction open, and this batch is not part of it"
        raise AppendError(msg, "SEG-APP-023")


def _check_epoch(header: RecordBatchHeader, current: Producer, origin: Origin) -> None:
    if origin is not Origin.REPLICATION and header.producer_epoch < current.producer_epoch:
        msg = (
            f"epoch {header.producer_epoch} of producer {header.producer_id} is older than its latest, "
            f"{current.producer_epoch}"
        )
        raise AppendError(msg, "SEG-APP-009")


def _check_sequence(header: RecordBatchHeader, known: Producer, current: Producer) -> None:
    """Check that the sequence follows the last one, or is 0 in a new epoch; an unknown producer may begin with any."""
    if known.producer_epoch == NO_PRODUCER_EPOCH and not current.batches:
        return
    is_next_epoch = header.producer_epoch != current.producer_epoch
    last = NO_SEQUENCE if is_next_epoch else current.last_sequence
    expected = (last + 1) % (INT32_MAX + 1)
    if header.base_sequence != expected:
        msg = (
            f"sequence {header.base_sequence} of producer {header.producer_id} in epoch {header.producer_epoch}: "
            f"expected {expected}"
        )
        is_duplicate = expected > 0 and _is_before(header.last_sequence, expected)
        raise AppendError(msg, "SEG-APP-007", is_duplicate=is_duplicate)


def _is_before(sequence: int, other: int) -> bool:
    """Return whether a sequence comes before another one; sequences begin again at 0 after 2^31 - 1."""
    return (other - 1 - sequence) % (INT32_MAX + 1) < INT32_MAX // 2
