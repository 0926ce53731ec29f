"""Checks of the newest producer snapshot against the log: another log in its place has other producers (chapter 50)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.producer_snapshot import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.log.producer_snapshot import ProducerSnapshot
from seglog_format.log.segment import LogSegment
from seglog_format.model import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.checks.partition_directory import SegmentState
    from seglog_format.log.listing import NamedFile, PartitionListing, SegmentFiles
    from seglog_format.model import BatchHeader
    from seglog_format.small_model import ProducerStateEntry


@dataclass(frozen=True, slots=True)
class NewestEntry:
    """What a snapshot says of a producer, and the entry of the log that holds the offset.

    Attributes:
        location: of the producer in the snapshot.
        producer: as the snapshot has it.
        header: of the entry.
    """

    location: Location
    producer: ProducerStateEntry
    header: BatchHeader

    @property
    def is_of_producer(self) -> bool:
        """Whether the entry is a batch of the producer, and ends at its newest offset."""
        header = self.header
        is_its_own = isinstance(header, RecordBatchHeader) and header.producer_id == self.producer.producer_id
        return is_its_own and header.last_offset == self.producer.last_offset


@checks("SEG-PSN-009")
def newest_batch_is_of_producer(subject: NewestEntry) -> Iterator[Problem]:
    """Report a producer whose newest batch is not in the log, though its offset is."""
    if not subject.is_of_producer:
        header, producer = subject.header, subject.producer
        expected = f"a batch of producer {producer.producer_id} that ends at offset {producer.last_offset}"
        of = f"of producer {header.producer_id}" if header.producer_id >= 0 else "without a producer"
        yield Problem(subject.location, expected, f"an entry {of} that ends at {header.last_offset}")


def snapshot_producer_findings(
    listing: PartitionListing, states: Sequence[SegmentState], is_compacted: Callable[[], bool]
) -> Iterator[Finding]:
    """Yield findings of the newest snapshot about the log.

    Args:
        listing: of the partition directory.
        states: of its segments, in order.
        is_compacted: tells whether the log is compacted, whose batches may be gone; only asked where one is missing.

    Raises:
        UnreadableError: the disk refuses a file.
    """
    entries = [entry for entry in _newest_entries(listing, states) if not entry.is_of_producer]
    if entries and not is_compacted():
        for entry in entries:
            yield from findings_of(entry)


def _newest_entries(listing: PartitionListing, states: Sequence[SegmentState]) -> Iterator[NewestEntry]:
    """Find the entry for each producer of the newest snapshot whose offset is in an undamaged segment."""
    snapshot = listing.snapshots[-1] if listing.snapshots else None
    producers = () if snapshot is None else _producers(snapshot)
    for files, state in zip(listing.segments, states, strict=True):
        held = [
            (slot, producer)
            for slot, producer in enumerate(producers)
            if state.is_end_known and files.base_offset <= producer.last_offset < state.next_offset
        ]
        if held:
            assert snapshot is not None
            yield from _entries_in(files, str(snapshot.path), held)


def _producers(snapshot: NamedFile) -> Sequence[ProducerStateEntry]:
    """Read the producers of a snapshot; none where it cannot be read, which is another finding."""
    try:
        return ProducerSnapshot.open(snapshot.path).producers
    except FormatError:
        return ()


def _entries_in(
    files: SegmentFiles, path: str, held: Sequence[tuple[int, ProducerStateEntry]]
) -> Iterator[NewestEntry]:
    size = PRODUCER_STATE_ENTRY.size
    with LogSegment(files, copy=True) as segment:
        for slot, producer in held:
            try:
                number = segment.number_of(producer.last_offset)
                header = None if number is None else segment.entry(number).header
            except FormatError:  # damage before the offset, which is another finding
                return
            if header is not None:
                at = Location(path, PRODUCER_SNAPSHOT_HEADER.size + slot * size, "last_offset", size)
                yield NewestEntry(at, producer, header)
