"""An open log: append, roll, flush and close (chapters 70 and 71)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_algorithms import appending, offset_index, time_index, transaction_index
from seglog_algorithms.brokers import is_removed
from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import (
    CLEANED,
    INDEX,
    INDEXES,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    base_offsets,
    file_name,
)
from seglog_algorithms.entries import NO_TIMESTAMP, walk
from seglog_algorithms.indexes import IndexBuilder
from seglog_algorithms.leader_epochs import LEADER_EPOCHS, assigned, checkpoint, read_epochs, with_newer, within
from seglog_algorithms.producers import (
    DAY_MS,
    NONE,
    Batch,
    Producers,
    is_readable,
    producers_before,
    snapshot_of,
    snapshot_offsets,
    without_strays,
)
from seglog_algorithms.recovery import rising_epochs
from seglog_algorithms.rolling import Incoming, jitter_ms, new_base_offset, roll_reason
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.time_index import TimeIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_algorithms.building import Compress
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.leader_epochs import Epochs
    from seglog_algorithms.records import Decompress

WITHOUT_PRODUCERS: Final = ("0.8", "0.10.1")
LEFT_OVER: Final = (CLEANED, ".tmp")
OFFSET_SLOT: Final[int] = OffsetIndexEntry.sizeof()
TIME_SLOT: Final[int] = TimeIndexEntry.sizeof()


@dataclass(slots=True, kw_only=True)
class Segment(IndexBuilder):
    """The active segment; `index_bytes` is the size of each index while it is active."""

    base_offset: int
    created_ms: int
    jitter_ms: int
    index_bytes: int
    has_time_index: bool
    log: bytes = b""
    first_timestamp_ms: int = NO_TIMESTAMP
    has_indexes: bool = False

    @property
    def size(self) -> int:
        """Size of its log in bytes."""
        return len(self.log)

    @property
    def is_offset_index_full(self) -> bool:
        """Whether the offset index has no slot left (SEG-ROL-005)."""
        return len(self.offsets) >= self.index_bytes // OFFSET_SLOT

    @property
    def is_time_index_full(self) -> bool:
        """Whether the time index has only the slot for the end of the segment left (SEG-ROL-017)."""
        return self.has_time_index and len(self.times) >= self.index_bytes // TIME_SLOT - 1

    def add_point(self, offset: int, position: int) -> None:
        """Add the entries that are due; one that finds no slot is left out (SEG-ROL-016)."""
        if not self.is_offset_index_full:
            self.offsets.append((offset, position))
        if not self.is_time_index_full:
            self.add_time()

    def units(
        self, appended: Sequence[appending.Appended], generation: str
    ) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
        """Yield offset, position, size, and largest timestamp with its offset, of each unit of an append."""
        position = len(self.log)
        for unit in [[each] for each in appended] if generation == "4.1" else [appended]:  # SEG-ROL-011
            size = sum(len(each.entry.data) for each in unit)
            largest = max(((each.largest_ms, each.largest_offset) for each in unit), key=lambda pair: pair[0])
            named = unit[0].first_offset if generation in appending.EARLY else unit[-1].entry.last_offset
            yield named, position, size, largest
            position += size


@dataclass(slots=True)
class OpenLog:
    """A log that is open for writing; `files` is its directory, `end` its log end offset.

    Attributes:
        now_ms: the clock.
        fraction: the random number for the jitter of segments.
    """

    files: dict[str, bytes]
    settings: appending.Settings
    log_start: int
    decompress: Decompress
    compress: Compress
    now_ms: int
    fraction: float = 0.0
    end: int = 0
    epoch: int | None = None
    newest_epoch: int = NONE
    recovery_point: int = 0
    flushed_ms: int = 0
    snapshot_offset: int = 0
    producers: Producers = field(default_factory=Producers)
    epochs: Epochs = field(default_factory=list)
    active: Segment = field(init=False)

    # Open

    def __post_init__(self) -> None:
        self.files = {one: data for one, data in self.files.items() if not (is_removed(one) or one.endswith(LEFT_OVER))}
        self.flushed_ms = self.now_ms
        bases = base_offsets(self.files)
        if bases:
            self.load(bases)
        else:
            self.end = self.snapshot_offset = self.log_start
            if self.has_producers:
                self.files[LEADER_EPOCHS] = b""
            self.new_segment(self.log_start)
            self.active.has_indexes = True  # SEG-ROL-013
            self.show()
        self.recovery_point = self.end

    @property
    def has_producers(self) -> bool:
        """Whether brokers of this generation keep producers and leader epochs."""
        return self.settings.generation not in WITHOUT_PRODUCERS

    @property
    def first_base(self) -> int:
        """Base offset of the first segment."""
        return base_offsets(self.files)[0]

    def load(self, bases: list[int]) -> None:
        """Open a log that has segments."""
        last = bases[-1]
        found = list(walk(self.files[file_name(last, LOG)]))
        self.end = found[-1].last_offset + 1 if found else last
        self.active = self.loaded(last, found)
        self.show()
        if not self.has_producers:
            return
        offsets = snapshot_offsets(self.files)
        kept = without_strays((at for at in offsets if at <= self.end), bases)
        while kept and not is_readable(self.files[file_name(kept[-1], SNAPSHOT)]):  # SEG-RCV-027
            kept.pop()
        for at in {*offsets} - {*kept}:  # SEG-RCV-027, SEG-RCV-035
            del self.files[file_name(at, SNAPSHOT)]
        self.producers = producers_before(self.files, self.end, self.decompress, oldest_ms=self.now_ms - DAY_MS)
        self.snapshot_offset = kept[-1] if kept else bases[0]
        holders = [base for base in bases if self.files[file_name(base, LOG)]] if not found else [last]
        rises = rising_epochs(self.files[file_name(holders[-1], LOG)]) if holders else []
        known = read_epochs(self.files.get(LEADER_EPOCHS, b""))
        epochs = with_newer(known, rises)
        self.newest_epoch = max((epoch for epoch, _ in epochs), default=NONE)
        self.epochs = within(epochs, self.log_start, self.end)
        if self.epochs != known:  # SEG-RCV-037
            self.files[LEADER_EPOCHS] = checkpoint(self.epochs)

    def loaded(self, base: int, found: Sequence[Entry]) -> Segment:
        """Return the last segment, with these entries, as it is opened."""
        log = b"".join(entry.data for entry in found)  # SEG-APP-013
        offsets = offset_index.entries_of(self.files.get(file_name(base, INDEX), b""), base)
        times = time_index.entries_of(self.files.get(file_name(base, TIME_INDEX), b""), base)
        times = [each for each in times if each.timestamp_ms or found]
        count = sum(each.position < len(log) for each in offsets)
        if offsets and not offsets[0].position:  # a preallocated slot
            count = 0
        stamps = [(NO_TIMESTAMP, base), *((entry.max_timestamp_ms, entry.last_offset) for entry in found)]
        largest = max(stamps, key=lambda pair: pair[0])
        segment = self.segment_at(base)
        segment.log, segment.has_indexes = log, True
        segment.offsets, segment.times = [*offsets[:count]], [*times]
        segment.first_timestamp_ms = found[0].max_timestamp_ms if found else NO_TIMESTAMP  # SEG-ROL-004
        segment.largest = times[-1] if times and times[-1].timestamp_ms >= largest[0] else largest
        return segment

    def segment_at(self, base: int) -> Segment:
        """Return an empty segment without indexes."""
        settings = self.settings
        return Segment(
            settings.index_interval_bytes,
            largest=(NO_TIMESTAMP, base),
            base_offset=base,
            created_ms=self.now_ms,
            jitter_ms=jitter_ms(settings, self.fraction),
            index_bytes=settings.segment_index_bytes,
            has_time_index=settings.generation != "0.8",
        )

    def new_segment(self, base: int) -> None:
        """Begin a segment: an empty log and empty indexes, whatever files have their names (SEG-ROL-009)."""
        if any(walk(self.files.get(file_name(base, LOG), b""))):
            raise Damage("SEG-ROL-009", text="another process writes here")
        for kind in (LOG, *INDEXES):
            self.files.pop(file_name(base, kind), None)
        self.active = self.segment_at(base)
        self.active.has_indexes = self.settings.generation in appending.EARLY  # SEG-PDR-012
        self.show()

    # The files of the active segment

    def show(self, *, is_sealed: bool = False) -> None:
        """Write the files of the active segment: at their full size while it is active (SEG-ROL-013, SEG-ROL-018)."""
        active, size = self.active, self.settings.segment_index_bytes
        log_size = self.settings.segment_bytes if self.settings.preallocate and not is_sealed else 0
        self.files[file_name(active.base_offset, LOG)] = active.log.ljust(log_size, b"\0")
        if not active.has_indexes:
            return
        indexes = active.built(active.base_offset)
        full = 0 if is_sealed else size // OFFSET_SLOT * OFFSET_SLOT
        self.files[file_name(active.base_offset, INDEX)] = indexes.offset.ljust(full, b"\0")
        if active.has_time_index:
            full = 0 if is_sealed else size // TIME_SLOT * TIME_SLOT
            self.files[file_name(active.base_offset, TIME_INDEX)] = indexes.time.ljust(full, b"\0")

    # Append

    def lead(self, leader_epoch: int) -> None:
        """Become the leader under an epoch (SEG-APP-016, SEG-APP-017)."""
        if leader_epoch < max(self.newest_epoch, 0):
            raise Damage("SEG-APP-017", text=f"epoch {leader_epoch} after {self.newest_epoch}")
        self.epoch = leader_epoch
        self.assign(leader_epoch, self.end)

    def assign(self, epoch: int, start: int) -> None:
        """Record where a leader epoch begins (SEG-APP-016)."""
        self.newest_epoch = max(self.newest_epoch, epoch)
        self.write_epochs(assigned(self.epochs, epoch, start))

    def write_epochs(self, epochs: Epochs) -> None:
        """Write the leader epochs if they change."""
        if epochs != self.epochs:
            self.epochs = epochs
            self.files[LEADER_EPOCHS] = checkpoint(epochs)

    def append(
        self, data: bytes, origin: str = appending.CLIENT
    ) -> tuple[list[appending.Appended], str | None] | Batch:
        """Append as a leader; return the entries and why a segment began, or the batch that was sent again."""
        epoch = max(self.newest_epoch, 0) if self.epoch is None else self.epoch
        given: dict[str, Any] = {"end": self.end, "leader_epoch": epoch, "now_ms": self.now_ms, "origin": origin}
        codecs: dict[str, Any] = {"decompress": self.decompress, "compress": self.compress}
        appended = appending.as_leader(data, self.settings, **given, **codecs)
        repeated = appending.duplicate_of(appended[0].entry, self.producers) if origin == appending.CLIENT else None
        return repeated or self.write(appended, origin)

    def append_as_follower(
        self, data: bytes, leader_epoch: int | None
    ) -> tuple[list[appending.Appended], str | None] | None:
        """Append as a follower; return None if nothing was taken."""
        given: dict[str, Any] = {"end": self.end, "leader_epoch": leader_epoch, "decompress": self.decompress}
        appended = appending.as_follower(data, self.settings, **given)
        return self.write(appended, appending.REPLICATION) if appended else None

    def write(self, appended: list[appending.Appended], origin: str) -> tuple[list[appending.Appended], str | None]:
        """Write entries, in a new segment if one is due (SEG-ROL-001)."""
        producers, aborted = appending.applied(appended, self.producers, origin)
        incoming = Incoming(
            sum(len(each.entry.data) for each in appended),
            max(each.entry.max_timestamp_ms for each in appended),
            appended[0].first_offset,
            appended[-1].entry.last_offset,
            appended[0].entry.magic,
        )
        reason = roll_reason(self.active, incoming, self.settings, self.now_ms) or self.lacks_slots(appended)
        if reason is not None:
            self.roll(new_base_offset(self.end, incoming, self.settings))
        for each in appended:
            if each.entry.is_batch:
                self.assign(each.entry.leader_epoch, each.entry.header.base_offset)
            else:
                self.write_epochs([])  # SEG-APP-025
        self.write_entries(appended)
        self.producers, self.end = producers, appended[-1].entry.last_offset + 1
        if aborted:  # SEG-TXN-001
            name = file_name(self.active.base_offset, TRANSACTION_INDEX)
            self.files[name] = self.files.get(name, b"") + transaction_index.as_bytes(aborted)
        self.flush_if_due()
        return appended, reason

    def write_entries(self, appended: Sequence[appending.Appended]) -> None:
        """Write entries to the active segment, with the index entries that are due."""
        active = self.active
        for unit in active.units(appended, self.settings.generation):
            active.add(*unit)
        if not active.log:  # SEG-ROL-004
            counted = appended[:1] if self.settings.generation == "4.1" else appended
            active.first_timestamp_ms = max(each.entry.max_timestamp_ms for each in counted)
        active.log += b"".join(each.entry.data for each in appended)  # SEG-APP-013
        active.has_indexes = True
        self.show()

    def lacks_slots(self, appended: Sequence[appending.Appended]) -> str | None:
        """Return which index lacks slots for an append of several entries (SEG-ROL-016)."""
        if not self.active.log or len(appended) == 1 or not self.active.has_indexes:
            return None
        trial = replace(self.active, offsets=[*self.active.offsets], times=[*self.active.times])
        for unit in trial.units(appended, self.settings.generation):
            if trial.is_due and trial.is_offset_index_full:
                return "offset index full"
            if trial.is_due and trial.is_time_index_full:
                return "time index full"
            trial.add(*unit)
        return None

    # Roll, flush, close

    def roll(self, base: int) -> None:
        """Begin a segment; one that is empty is created again (SEG-ROL-005)."""
        if base == self.active.base_offset:
            del self.files[file_name(base, LOG)]
        else:
            self.seal()
        self.recovery_point = base  # SEG-FLS-009
        self.new_segment(base)
        self.take_snapshot(base)

    def seal(self) -> None:
        """End the active segment: the last entry of its time index, and trimmed files (SEG-ROL-014, SEG-ROL-018)."""
        self.active.add_time()
        self.show(is_sealed=True)

    def take_snapshot(self, offset: int) -> None:
        """Write a producer snapshot, unless the newest one has that offset (SEG-ROL-015, SEG-FLS-015)."""
        if self.has_producers and offset > self.snapshot_offset:
            self.files[file_name(offset, SNAPSHOT)] = snapshot_of(self.producers.values())
            self.snapshot_offset = offset

    def flush(self) -> None:
        """Move the recovery point to the log end offset (SEG-FLS-002)."""
        self.recovery_point, self.flushed_ms = self.end, self.now_ms

    def flush_if_due(self) -> None:
        """Flush by `flush.messages` and `flush.ms` (SEG-FLS-001)."""
        count, waited = self.end - self.recovery_point, self.now_ms - self.flushed_ms
        if count and (count >= self.settings.flush_messages or waited >= self.settings.flush_ms):
            self.flush()

    def close(self) -> None:
        """Close the log (SEG-FLS-004)."""
        self.flush()
        self.active.has_indexes = True
        self.take_snapshot(self.end)
        self.seal()

    def last_stable_offset(self) -> int:
        """Return the first offset of an open transaction, or the log end offset (SEG-LKP-012)."""
        return min(self.producers.open_offsets.values(), default=self.end)
