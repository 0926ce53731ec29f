"""Checks of indexes and producer snapshots, by chapter; a subject is such a file beside the content of its log."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, fields
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.side_files import PRODUCER_SNAPSHOT_HEADER, PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.log.segment import LogSegment
from seglog_format.model import NO_TIMESTAMP, OffsetPosition, RecordBatchHeader, TimestampOffset
from seglog_format.recovery.plan import Circumstances
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.producer_states import forgets_producers, states_from_logs
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seglog_format.checks.log_file import LogOutline
    from seglog_format.checks.partition_directory import SegmentState
    from seglog_format.log.index_file import IndexFile, ProducerSnapshot, TransactionIndex
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.model import BatchHeader, ProducerStateEntry
    from seglog_format.state.producer_state import Producer
    from seglog_format.storage.log_storage import LogStorage


EntryT = TypeVar("EntryT")


@dataclass(frozen=True, slots=True)
class _IndexSubject(Generic[EntryT]):
    """An index of equal slots and its log."""

    index: IndexFile[EntryT]
    entries: Sequence[EntryT]
    log: LogOutline

    def problem(self, slot: int, field: str, expected: str, found: int) -> Problem:
        """Return a problem with a slot, by its number from 0."""
        size = self.index.layout.size
        return Problem(Location(self.index.path, slot * size, field, size), expected, found)


class OffsetIndexSubject(_IndexSubject[OffsetPosition]):
    """An offset index and its log."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TimeIndexSubject(_IndexSubject[TimestampOffset]):
    """A time index and its log; the index of a partition's last segment need not be complete."""

    is_active: bool


@dataclass(frozen=True, slots=True)
class TransactionIndexSubject:
    """A transaction index, and producer ids by offset; None if unknown.

    They are those of the ABORT records in its segment, and of the control batches that compaction has emptied.
    """

    index: TransactionIndex
    aborts: Mapping[int, int] | None

    def problem(self, slot: int, field: str, expected: str, found: int) -> Problem:
        """Return a problem with a slot, by its number from 0."""
        size = TRANSACTION_INDEX_ENTRY.size
        return Problem(Location(self.index.path, slot * size, field, size), expected, found)


@dataclass(frozen=True, slots=True)
class SnapshotSubject:
    """The producers of a snapshot, and the offset in the name of its file."""

    path: str
    producers: Sequence[ProducerStateEntry]
    offset: int

    def problem(self, slot: int, field: str, expected: str, found: int) -> Problem:
        """Return a problem with a producer, by its number from 0."""
        size = PRODUCER_STATE_ENTRY.size
        return Problem(Location(self.path, PRODUCER_SNAPSHOT_HEADER.size + slot * size, field, size), expected, found)


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
    for slot, entry in enumerate(subject.entries):
        if entry.offset < subject.index.base_offset:
            yield subject.problem(slot, "relative_offset", "0 or more", entry.offset - subject.index.base_offset)


@checks("SEG-IDX-003")
def positions_start_entries(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position past the end of the log or inside an entry."""
    for slot, entry in enumerate(subject.entries):
        if not subject.log.is_start(entry.position):
            yield subject.problem(slot, "position", "where an entry of the log starts", entry.position)


@checks("SEG-IDX-004")
def offsets_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset not above that of the slot before."""
    for slot, (before, entry) in enumerate(pairwise(subject.entries), start=1):
        if entry.offset <= before.offset:
            yield subject.problem(slot, "relative_offset", f"an offset above {before.offset}", entry.offset)


@checks("SEG-IDX-005")
def positions_increase(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report a position not above that of the slot before."""
    for slot, (before, entry) in enumerate(pairwise(subject.entries), start=1):
        if entry.position <= before.position:
            yield subject.problem(slot, "position", f"a position above {before.position}", entry.position)


@checks("SEG-IDX-006")
def offsets_match_positions(subject: OffsetIndexSubject) -> Iterator[Problem]:
    """Report an offset that is not in the entry at its position; every lookup relies on that.

    Slots that break SEG-IDX-002 or SEG-IDX-003 are left out.
    """
    for slot, entry in enumerate(subject.entries):
        before = subject.log.last_offset_before(entry.position)
        if before is None or entry.offset < subject.index.base_offset:
            continue
        first = subject.log.base_offset_at(entry.position)
        if entry.offset <= before:
            expected = f"an offset above {before}, where the entries before the position end"
            yield subject.problem(slot, "relative_offset", expected, entry.offset)
        elif first is not None and first > entry.offset:
            expected = f"an offset of {first} or more, where the entry at the position starts"
            yield subject.problem(slot, "relative_offset", expected, entry.offset)


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
    last_timestamp_ms = NO_TIMESTAMP
    for slot, entry in enumerate(subject.entries):
        if entry.timestamp_ms <= last_timestamp_ms:
            yield subject.problem(slot, "timestamp_ms", f"a timestamp above {last_timestamp_ms}", entry.timestamp_ms)
        last_timestamp_ms = entry.timestamp_ms


@checks("SEG-TIX-003")
def offsets_do_not_decrease(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an offset below that of the slot before, or below the base offset."""
    last_offset = subject.index.base_offset
    for slot, entry in enumerate(subject.entries):
        if entry.offset < last_offset:
            yield subject.problem(slot, "relative_offset", f"an offset of {last_offset} or more", entry.offset)
        last_offset = max(entry.offset, subject.index.base_offset)


@checks("SEG-TIX-004")
def later_timestamps_follow(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry if an earlier record has a later timestamp; every lookup relies on there being none.

    Only log entries that end at or below the offset of an index entry count. The header of any other log entry does not
    show whether its largest timestamp is before that offset.
    """
    for slot, entry in enumerate(subject.entries):
        largest = subject.log.timestamp_up_to(entry.offset)
        if largest > entry.timestamp_ms:
            expected = f"a timestamp of {largest} or more, which the log has reached at offset {entry.offset}"
            yield subject.problem(slot, "timestamp_ms", expected, entry.timestamp_ms)


@checks("SEG-TIX-005")
def timestamps_match_log(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report an entry whose timestamp does not occur at its offset."""
    for slot, entry in enumerate(subject.entries):
        row = subject.log.row_with(entry.offset)
        if row is None:
            if subject.log.is_whole:
                yield subject.problem(slot, "relative_offset", "an offset that the log holds", entry.offset)
        elif row.magic > 0 and row.max_timestamp_ms != entry.timestamp_ms:
            expected = f"{row.max_timestamp_ms}, the largest of the log entry with offset {entry.offset}"
            yield subject.problem(slot, "timestamp_ms", expected, entry.timestamp_ms)


@checks("SEG-TIX-006")
def last_timestamp_is_largest(subject: TimeIndexSubject) -> Iterator[Problem]:
    """Report a complete index whose last timestamp is not the largest; brokers use it as the segment's age."""
    if subject.is_active or subject.index.trailing_zero_count or not subject.log.is_whole:
        return
    largest = max((row.max_timestamp_ms for row in subject.log.rows if not row.is_empty), default=NO_TIMESTAMP)
    recorded = subject.entries[-1].timestamp_ms if subject.entries else 0  # one entry (0, base offset) looks like zeros
    if recorded < largest:
        slot = max(len(subject.entries) - 1, 0)
        yield subject.problem(slot, "timestamp_ms", f"{largest}, the largest of the segment", recorded)


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
    for slot, entry in enumerate(subject.index.entries):
        if entry.last_offset < subject.index.base_offset:
            yield subject.problem(slot, "last_offset", f"{subject.index.base_offset} or more", entry.last_offset)


@checks("SEG-TXN-004")
def last_offsets_increase(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report entries that are not in the order of their markers."""
    for slot, (before, entry) in enumerate(pairwise(subject.index.entries), start=1):
        if entry.last_offset <= before.last_offset:
            yield subject.problem(slot, "last_offset", f"an offset above {before.last_offset}", entry.last_offset)


@checks("SEG-TXN-005")
def first_to_last(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report a transaction that starts after its marker."""
    for slot, entry in enumerate(subject.index.entries):
        if not 0 <= entry.first_offset <= entry.last_offset:
            yield subject.problem(slot, "first_offset", f"0 to {entry.last_offset}", entry.first_offset)


@checks("SEG-TXN-006")
def markers_exist(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an entry without a marker, if the whole log could be read."""
    for slot, entry in enumerate(subject.index.entries):
        if subject.aborts is not None and subject.aborts.get(entry.last_offset) != entry.producer_id:
            expected = f"the offset of an ABORT record of producer {entry.producer_id}"
            yield subject.problem(slot, "last_offset", expected, entry.last_offset)


@checks("SEG-TXN-008")
def last_stable_offsets(subject: TransactionIndexSubject) -> Iterator[Problem]:
    """Report an invalid last stable offset; brokers end a search at it."""
    for slot, entry in enumerate(subject.index.entries):
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            yield subject.problem(slot, "last_stable_offset", f"0 to {entry.last_offset + 1}", entry.last_stable_offset)


# -- checks of chapter 50. The decoder checks version, checksum and size -----------------------------------------------


@checks("SEG-PSN-004")
def producers_are_sound(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report repeated producer ids, and numbers below -1."""
    seen: set[int] = set()
    for slot, entry in enumerate(subject.producers):
        if entry.producer_id < 0 or entry.producer_id in seen:
            expected = "an id of 0 or more that did not occur before"
            yield subject.problem(slot, "producer_id", expected, entry.producer_id)
        seen.add(entry.producer_id)
        for name in (each.name for each in fields(entry)[1:]):  # all but the id
            if getattr(entry, name) < -1:
                yield subject.problem(slot, name, "-1 or more", getattr(entry, name))


@checks("SEG-PSN-006")
def offsets_below_name(subject: SnapshotSubject) -> Iterator[Problem]:
    """Report an offset at or above the one in the file's name."""
    for slot, entry in enumerate(subject.producers):
        for name in ("last_offset", "current_txn_first_offset"):
            if getattr(entry, name) >= subject.offset:
                yield subject.problem(slot, name, f"below {subject.offset}", getattr(entry, name))


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
