"""The state of one producer, as a snapshot stores it (chapter 50)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_format.model import INT32_MAX, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from seglog_format.state_model import ProducerStateEntry

if TYPE_CHECKING:
    from seglog_format.model import RecordBatchHeader

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
