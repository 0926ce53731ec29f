"""Checks of the newest producer snapshot against the log: another log in its place has other producers (chapter 50)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.producer_snapshot import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.log.segment import LogSegment
from seglog_format.model import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.checks.partition_directory import SegmentState
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.producer_snapshot import ProducerSnapshot
    from seglog_format.model import BatchHeader
    from seglog_format.state_model import ProducerStateEntry
    from seglog_format.storage.log_storage import LogStorage


@dataclass(frozen=True, slots=True)
class NewestEntry:
    """State of a producer by a snapshot, and the entry of the log that holds the offset.

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
        """Return whether the entry is a batch of the producer, and ends at its newest offset."""
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
    segments: Sequence[SegmentFiles],
    states: Sequence[SegmentState],
    newest: ProducerSnapshot | None,
    is_compacted: Callable[[], bool],
    storage: LogStorage,
) -> Iterator[Finding]:
    """Yield findings of the newest snapshot about the log.

    Args:
        segments: of the partition, in order.
        states: of each of them.
        newest: the newest snapshot; None where there is none, or it cannot be read, which is another finding.
        is_compacted: says whether the log is compacted, whose batches may be gone; only asked where one is missing.
        storage: that files are read through.

    Raises:
        UnreadableError: the disk refuses a file.
    """
    if newest is None:
        return
    entries = [entry for entry in _newest_entries(segments, states, newest, storage) if not entry.is_of_producer]
    if entries and not is_compacted():
        for entry in entries:
            yield from findings_of(entry)


def _newest_entries(
    segments: Sequence[SegmentFiles], states: Sequence[SegmentState], snapshot: ProducerSnapshot, storage: LogStorage
) -> Iterator[NewestEntry]:
    """Find the entry for each producer of a snapshot whose offset is in an undamaged segment."""
    for number, held in sorted(_by_segment(states, snapshot.producers).items()):
        yield from _entries_in(segments[number], snapshot.path, held, storage)


def _by_segment(
    states: Sequence[SegmentState], producers: Sequence[ProducerStateEntry]
) -> dict[int, list[tuple[int, ProducerStateEntry]]]:
    """Group producers, with their slots, by the number of the undamaged segment that holds their newest offset."""
    found: dict[int, list[tuple[int, ProducerStateEntry]]] = {}
    for slot, producer in enumerate(producers):
        number = bisect_right(states, producer.last_offset, key=attrgetter("base_offset")) - 1
        if number >= 0 and states[number].is_end_known and producer.last_offset < states[number].next_offset:
            found.setdefault(number, []).append((slot, producer))
    return found


def _entries_in(
    files: SegmentFiles, path: str, held: Sequence[tuple[int, ProducerStateEntry]], storage: LogStorage
) -> Iterator[NewestEntry]:
    size = PRODUCER_STATE_ENTRY.size
    with LogSegment(files, copy=True, storage=storage) as segment:
        for slot, producer in held:
            try:
                number = segment.number_of(producer.last_offset)
                header = None if number is None else segment.entry(number).header
            except FormatError:  # damage before the offset, which is another finding
                return
            if header is not None:
                at = Location(path, PRODUCER_SNAPSHOT_HEADER.size + slot * size, "last_offset", size)
                yield NewestEntry(at, producer, header)
