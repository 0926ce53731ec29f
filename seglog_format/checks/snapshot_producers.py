"""Checks of the producer snapshots against the log: it may have other producers, or no snapshot at all (chapter 50)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.producer_snapshot import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.log.segment import LogSegment
from seglog_format.model import RecordBatchHeader
from seglog_format.recovery.opened_segments import opened_segments
from seglog_format.recovery.plan import Circumstances
from seglog_format.recovery.producer_states import forgets_producers, states_from_logs
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.checks.partition_directory import SegmentState
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.log.producer_snapshot import ProducerSnapshot
    from seglog_format.model import BatchHeader
    from seglog_format.record_model import ProducerStateEntry
    from seglog_format.state.producer_state import Producer
    from seglog_format.storage.log_storage import LogStorage

MAX_NAMED: Final = 10
"""Maximum number of producers that a finding names."""


@dataclass(frozen=True, slots=True)
class NewestEntry:
    """The state of a producer in a snapshot, and the entry of the log with the producer's last offset.

    Attributes:
        location: of the producer in the snapshot.
        producer: its state in the snapshot.
        header: of the entry.
    """

    location: Location
    producer: ProducerStateEntry
    header: BatchHeader

    @property
    def is_of_producer(self) -> bool:
        """Return whether the entry is a batch of the producer that ends at the producer's last offset."""
        header = self.header
        is_its_own = isinstance(header, RecordBatchHeader) and header.producer_id == self.producer.producer_id
        return is_its_own and header.last_offset == self.producer.last_offset


@checks("SEG-PSN-009")
def newest_batch_is_of_producer(subject: NewestEntry) -> Iterator[Problem]:
    """Report a producer whose last offset is in the log, but in a batch that is not the producer's."""
    if not subject.is_of_producer:
        header, producer = subject.header, subject.producer
        expected = f"a batch of producer {producer.producer_id} that ends at offset {producer.last_offset}"
        of = f"of producer {header.producer_id}" if header.producer_id >= 0 else "without a producer"
        yield Problem(subject.location, expected, f"an entry {of} that ends at {header.last_offset}")


@dataclass(frozen=True, slots=True)
class ForgottenProducers:
    """The producers of a log that a broker takes for one without producers.

    Attributes:
        path: of the partition directory.
        producers: those in the batches of the log.
    """

    path: str
    producers: Sequence[Producer]


@checks("SEG-PSN-010")
def producers_are_stored(subject: ForgottenProducers) -> Iterator[Problem]:
    """Report producers that a broker forgets when it starts, and their open transactions."""
    found = f"none: brokers forget producers {_listed([str(each.producer_id) for each in subject.producers])}"
    still_open = [each for each in subject.producers if each.current_txn_first_offset >= 0]
    if still_open:
        began = [f"{each.current_txn_first_offset} by producer {each.producer_id}" for each in still_open]
        found += f"; open transactions become visible from offset {_listed(began)}"
    yield Problem(Location(subject.path), "a producer snapshot", found)


def _listed(names: Sequence[str]) -> str:
    """Return names in one line, the first ten at most."""
    more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    *first, last = [*names[:MAX_NAMED], *more]
    return f"{', '.join(first)} and {last}" if first else last


def forgotten_producer_findings(
    listing: PartitionListing, log_start_offset: int, storage: LogStorage
) -> Iterator[Finding]:
    """Yield the finding about the producers that a broker forgets when it starts on a log that was closed cleanly.

    Args:
        listing: of the partition directory.
        log_start_offset: as checkpointed; 0 without a checkpoint.
        storage: opens the files.

    Raises:
        UnreadableError: the disk refuses to read a file.
    """
    with raised_refusals(), opened_segments(listing, storage=storage) as segments:
        closed = Circumstances(has_clean_shutdown=True)
        if forgets_producers(segments, listing.snapshots, closed):
            states = states_from_logs([(segment, segment.source.size) for segment in segments], log_start_offset)
            if states.producers:
                yield from findings_of(ForgottenProducers(str(listing.path), states.producers))


def snapshot_producer_findings(
    segments: Sequence[SegmentFiles],
    states: Sequence[SegmentState],
    newest: ProducerSnapshot | None,
    is_compacted: Callable[[], bool],
    storage: LogStorage,
) -> Iterator[Finding]:
    """Yield findings about producers of the newest snapshot whose batches the log lacks.

    Args:
        segments: of the partition, in order.
        states: of each of them.
        newest: the newest snapshot; None if there is none, or it cannot be read, which is another finding.
        is_compacted: returns whether the log is compacted, so batches may be removed; only called if one is missing.
        storage: opens the files.

    Raises:
        UnreadableError: the disk refuses to read a file.
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
    """Find the entry for each producer of a snapshot whose last offset is in an undamaged segment."""
    for number, held in sorted(_by_segment(states, snapshot.producers).items()):
        yield from _entries_in(segments[number], snapshot.path, held, storage)


def _by_segment(
    states: Sequence[SegmentState], producers: Sequence[ProducerStateEntry]
) -> dict[int, list[tuple[int, ProducerStateEntry]]]:
    """Group producers, with their slots, by the number of the undamaged segment that holds their last offset."""
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
    with LogSegment(files, storage=storage) as segment:
        for slot, producer in held:
            try:
                number = segment.number_of(producer.last_offset)
                header = None if number is None else segment.entry(number).header
            except FormatError:  # damage before the offset is another finding
                return
            if header is not None:
                at = Location(path, PRODUCER_SNAPSHOT_HEADER.size + slot * size, "last_offset", size)
                yield NewestEntry(at, producer, header)
