"""Checks of indexes and producer snapshots, by chapter; a subject is such a file beside the content of its log."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.side_files import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.log import index_rules
from seglog_format.log.segment import LogSegment
from seglog_format.model import RecordBatchHeader
from seglog_format.recovery.plan import Circumstances
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.producer_states import forgets_producers, states_from_logs
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seglog_format.checks.partition_directory import SegmentState
    from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
    from seglog_format.log.index_rules import LogOutline, Violation
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.model import BatchHeader, OffsetPosition, TimestampOffset
    from seglog_format.record_model import ProducerStateEntry
    from seglog_format.state.producer_state import Producer
    from seglog_format.storage.log_storage import LogStorage


@dataclass(frozen=True, slots=True)
class OffsetIndexSubject:
    """An offset index and its log."""

    index: OffsetIndex
    entries: Sequence[OffsetPosition]
    log: LogOutline

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, self.index.layout.size)


@dataclass(frozen=True, slots=True)
class TimeIndexSubject:
    """A time index and its log; the index of a partition's last segment need not be complete."""

    index: TimeIndex
    entries: Sequence[TimestampOffset]
    log: LogOutline
    is_active: bool

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, self.index.layout.size)


@dataclass(frozen=True, slots=True)
class TransactionIndexSubject:
    """A transaction index, and producer ids by offset of the ABORT records in its segment; None if unknown."""

    index: TransactionIndex
    aborts: Mapping[int, int] | None

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the index file."""
        return located(violations, self.index.path, 0, TRANSACTION_INDEX_ENTRY.size)


@dataclass(frozen=True, slots=True)
class SnapshotSubject:
    """The producers of a snapshot, and the offset in the name of its file."""

    path: str
    producers: Sequence[ProducerStateEntry]
    offset: int

    def problems(self, violations: Iterable[Violation]) -> Iterator[Problem]:
        """Convert violations to problems located in the snapshot file."""
        return located(violations, self.path, PRODUCER_SNAPSHOT_HEADER.size, PRODUCER_STATE_ENTRY.size)


def located(violations: Iterable[Violation], path: str, start: int, entry_size: int) -> Iterator[Problem]:
    """Convert violations by slot to problems by position."""
    for violation in violations:
        position = start + violation.slot * entry_size
        yield Problem(Location(path, position, violation.field, entry_size), violation.expected, violation.found)


def whole_slots(path: str, size: int, entry_size: int) -> Iterator[Problem]:
    """Yield a problem if a file does not have a whole number of entries."""
    rest = size % entry_size
    if rest:
        yield Problem(Location(path, size - rest, size=rest), f"a multiple of {entry_size} bytes", f"{rest} more bytes")


def zero_slots(path: str, position: int, count: int) -> Iterator[Problem]:
    """Yield a problem if slots at the end of an index are zero."""
    if count:
        yield Problem(Location(path, position), "the end of the index", f"{count} zero slots")


# -- checks of chapter 40 ----------------------------------------------------------------------------------------------


@checks("SEG-IDX-001")
def offset_slots_are_whole(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole slot."""
    yield from whole_slots(subject.index.path, subject.index.file_size, subject.index.layout.size)


@checks("SEG-IDX-002")
def relative_offsets_not_negative(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset below the base offset in the file name."""
    yield from subject.problems(index_rules.relative_offsets_not_negative(subject.entries, subject.index.base_offset))


@checks("SEG-IDX-003")
def positions_start_entries(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position past the end of the log or inside an entry."""
    yield from subject.problems(index_rules.positions_start_entries(subject.entries, subject.log))


@checks("SEG-IDX-004")
def offsets_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset not above that of the slot before."""
    yield from subject.problems(index_rules.offsets_increase(subject.entries))


@checks("SEG-IDX-005")
def positions_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position not above that of the slot before."""
    yield from subject.problems(index_rules.positions_increase(subject.entries))


@checks("SEG-IDX-006")
def offsets_match_positions(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset that is not in the entry at its position; every lookup relies on that."""
    base_offset = subject.index.base_offset
    yield from subject.problems(index_rules.offsets_match_positions(subject.entries, base_offset, subject.log))


@checks("SEG-IDX-007")
def offset_slots_without_zeros(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report slots of zeros: a killed broker leaves them at the end of its preallocated file."""
    index = subject.index
    yield from zero_slots(index.path, len(subject.entries) * index.layout.size, index.trailing_zero_count)


# -- checks of chapter 41 ----------------------------------------------------------------------------------------------


@checks("SEG-TIX-001")
def time_slots_are_whole(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole slot."""
    yield from whole_slots(subject.index.path, subject.index.file_size, subject.index.layout.size)


@checks("SEG-TIX-002")
def timestamps_increase(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report a timestamp not above that of the slot before."""
    yield from subject.problems(index_rules.timestamps_increase(subject.entries))


@checks("SEG-TIX-003")
def offsets_do_not_decrease(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an offset below that of the slot before, or below the base offset."""
    base_offset = subject.index.base_offset
    yield from subject.problems(index_rules.time_offsets_do_not_decrease(subject.entries, base_offset))


@checks("SEG-TIX-004")
def later_timestamps_follow(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry if an earlier record has a later timestamp; every lookup relies on there being none."""
    yield from subject.problems(index_rules.later_timestamps_follow(subject.entries, subject.log))


@checks("SEG-TIX-005")
def timestamps_match_log(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry whose timestamp does not occur at its offset."""
    yield from subject.problems(index_rules.timestamps_match_log(subject.entries, subject.log))


@checks("SEG-TIX-006")
def last_timestamp_is_largest(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report a complete index whose last timestamp is not the largest; brokers use it as the segment's age."""
    if not subject.is_active and not subject.index.trailing_zero_count:
        yield from subject.problems(index_rules.last_timestamp_is_largest(subject.entries, subject.log))


@checks("SEG-TIX-007")
def time_slots_without_zeros(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report slots of zeros: a killed broker leaves them at the end of its preallocated file."""
    index = subject.index
    yield from zero_slots(index.path, len(subject.entries) * index.layout.size, index.trailing_zero_count)


# -- checks of chapter 42. The decoder reports an entry of another version (SEG-TXN-002) -------------------------------


@checks("SEG-TXN-001")
def aborts_are_whole(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report bytes after the last whole entry."""
    yield from whole_slots(subject.index.path, subject.index.file_size, TRANSACTION_INDEX_ENTRY.size)


@checks("SEG-TXN-003")
def not_below_segment(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an offset below the segment's base offset: brokers then recover the segment."""
    yield from subject.problems(index_rules.aborts_not_below_segment(subject.index.entries, subject.index.base_offset))


@checks("SEG-TXN-004")
def last_offsets_increase(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report entries that are not in the order of their markers."""
    yield from subject.problems(index_rules.aborts_in_order(subject.index.entries))


@checks("SEG-TXN-005")
def first_to_last(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report a transaction that starts after its marker."""
    yield from subject.problems(index_rules.aborted_from_first_to_last(subject.index.entries))


@checks("SEG-TXN-006")
def markers_exist(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an entry without a marker, if the whole log could be read."""
    if subject.aborts is not None:
        yield from subject.problems(index_rules.aborts_have_markers(subject.index.entries, subject.aborts))


@checks("SEG-TXN-008")
def last_stable_offsets(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an invalid last stable offset; brokers end a search at it."""
    yield from subject.problems(index_rules.last_stable_offsets_in_range(subject.index.entries))


# -- checks of chapter 50. The decoder checks version, checksum and size -----------------------------------------------


@checks("SEG-PSN-004")
def producers_are_sound(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report repeated producer ids, and numbers below -1."""
    yield from subject.problems(index_rules.producers_are_sound(subject.producers))


@checks("SEG-PSN-006")
def offsets_below_name(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report an offset at or above the one in the file's name."""
    yield from subject.problems(index_rules.snapshot_offsets_below_name(subject.producers, subject.offset))


# -- checks of the producer snapshots against the log ------------------------------------------------------------------


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
