"""Writing to the log in one partition directory: open, append, roll, close; not thread-safe (chapter 70)."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from seglog_format.cleaning.deletion import DeletedFiles, removal_steps
from seglog_format.cleaning.retention import RetainedSegment, plan_retention
from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_leader_epoch_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.framing import walk
from seglog_format.errors import (
    CorruptIndexError,
    FormatError,
    Location,
    TruncatedError,
    UnsupportedVersionError,
    UsageError,
)
from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, newest_readable_snapshot
from seglog_format.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    EpochStart,
    Frame,
    RecordBatchHeader,
    TimestampOffset,
)
from seglog_format.names import INDEX_KINDS, FileKind, parse_file_name, parse_partition_directory, segment_file_name
from seglog_format.recovery.apply import RecoveryOptions, recover_partition
from seglog_format.recovery.planned_files import METADATA_SNAPSHOT_DELETED
from seglog_format.state.config import PRODUCER_EXPIRATION_MS
from seglog_format.state.producer_state import EpochRises, LeaderEpochs, Origin, ProducerStates, states_of
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.files import Rename, read_small, replace_file, write_file
from seglog_format.writing.active_segment import ActiveSegment, SegmentStart
from seglog_format.writing.append import Entry, RollReason, incoming, jitter_ms, new_base_offset, roll_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.cleaning.retention import RetentionPlan
    from seglog_format.state.config import LogConfig
    from seglog_format.state.root_files import RootFiles
    from seglog_format.storage.environment import Environment
    from seglog_format.storage.files import Files

    IndexT = TypeVar("IndexT", OffsetIndex, TimeIndex)


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append.

    Attributes:
        first_offset: offset of the first record.
        last_offset: offset of the last record.
        rolled: why a new segment was begun for the append; None if none was begun.
        is_duplicate: whether the log already had the batch at these offsets, so nothing was written.
    """

    first_offset: int
    last_offset: int
    rolled: RollReason | None = None
    is_duplicate: bool = False


class PartitionLog:
    """A log that is open for writing. Every method may raise `OSError`; the log cannot be used after that.

    Args:
        path: of the partition directory; it is created if it is missing.
        config: settings of the log.
        environment: files, clock, random numbers.
        log_start_offset: as checkpointed, or 0.
        was_clean: whether the log directory was closed cleanly; if not, the log is recovered first.

    Attributes:
        end_offset: the offset that the next record gets.
        first_base_offset: of its first segment.
        synced_offset: everything below is on disk.
        active: the active segment.
        retired: closed segments whose files are still open.
        is_new: whether the directory was created.
        newest_epoch: the newest leader epoch in the checkpoint or in a batch; -1 if there is none.

    Raises:
        UsageError: files of an interrupted replacement are left.
        WriteError: recovery failed.
    """

    def __init__(
        self, path: Path, config: LogConfig, environment: Environment, *, log_start_offset: int, was_clean: bool
    ) -> None:
        self.path = path
        self.config = config
        self.retired: list[ActiveSegment] = []
        self._environment = environment
        self._files = environment.files
        self._start_offset = log_start_offset
        self._deleted = DeletedFiles(environment.files, config.file_delete_delay_ms)
        self.is_new = not self._files.exists(path)
        if self.is_new:
            self._files.make_directory(path)
            self._files.fsync_directory(path.parent)
        elif not was_clean:
            self._recover()
        loaded = load_log(self._files, path, log_start_offset, config, environment.clock())
        if loaded is None:
            self._begin(log_start_offset)
        else:
            self._producers, self._epochs = loaded.producers, loaded.epochs
            self.newest_epoch = loaded.newest_epoch
            if loaded.has_other_epochs:
                self._write_epochs()
            self.first_base_offset, self.end_offset = loaded.base_offsets[0], loaded.end_offset
            self._closed = ClosedSegments(self._files, path, loaded.base_offsets)
            self.active = self._segment(loaded.base_offsets[-1], loaded.start)
        self.synced_offset = self.end_offset

    def _recover(self) -> None:
        """Recover a log that was not closed cleanly, as a broker does when it starts."""
        if not self._files.is_local:
            msg = f"{self.path} was not closed cleanly, and is not on a local disk: recover it first"
            raise UsageError(msg)
        interval, generation = self.config.index_interval_bytes, self.config.generation
        options = RecoveryOptions(interval_bytes=interval, generation=generation)
        done = recover_partition(self.path, options=options, files=self._files, holds_lock=True)
        if done.failure is not None:
            raise UsageError(str(done.failure))
        self._sync_all()

    def _sync_all(self) -> None:
        """Sync all files: after a crash of the process, files may be readable but not yet on disk."""
        for name in self._files.names(self.path):
            if parse_file_name(name) is not None:
                handle = self._files.open_append(self.path / name)
                try:
                    handle.fsync()
                finally:
                    handle.close()
        self._files.fsync_directory(self.path)

    def _begin(self, start: int) -> None:
        """Create the first segment at the log start offset if there is none."""
        self._producers, self._epochs = ProducerStates(end_offset=start), LeaderEpochs()
        self.newest_epoch = NO_PARTITION_LEADER_EPOCH
        self.first_base_offset = self.end_offset = start
        self._closed = ClosedSegments(self._files, self.path, ())
        if self.config.generation.has_producer_state:
            write_file(self._files, self._partition_file(FileKind.LEADER_EPOCH_CHECKPOINT), b"")
        self.active = self._segment(start, None)
        self.active.ensure_indexes()

    def _segment(self, base_offset: int, start: SegmentStart | None) -> ActiveSegment:
        segment = ActiveSegment(
            self._files,
            self.path,
            base_offset,
            self.config,
            opened_ms=self._environment.clock(),
            jitter_ms=jitter_ms(self.config, self._environment.random()),
            start=start,
        )
        if not self.config.generation.has_lazy_indexes:
            segment.ensure_indexes()
        return segment

    def _partition_file(self, kind: FileKind) -> Path:
        return self.path / kind.value

    def name_topic(self, topic_id: str) -> None:
        """Write the topic id (SEG-CKP-009)."""
        replace_file(
            self._files, self._partition_file(FileKind.PARTITION_METADATA), encode_partition_metadata(topic_id)
        )

    @property
    def log_start_offset(self) -> int:
        """First offset that consumers may read."""
        return max(self._start_offset, self.first_base_offset)

    @property
    def last_stable_offset(self) -> int:
        """First offset of any open transaction, else the log end offset."""
        unstable = self._producers.first_unstable_offset
        return self.end_offset if unstable is None else unstable

    def duplicate_of(self, entry: Entry, origin: Origin) -> Appended | None:
        """Return the earlier append of a batch that a producer sends again, if there is one (SEG-APP-008)."""
        if origin is not Origin.CLIENT or not isinstance(entry.header, RecordBatchHeader):
            return None
        known = self._producers.duplicate_of(entry.header)
        return Appended(known.first_offset, known.last_offset, is_duplicate=True) if known else None

    def append(self, entries: Sequence[Entry], origin: Origin) -> Appended:
        """Append entries, in a new segment if one is due.

        Raises:
            UsageError: the state of a producer does not allow the append; nothing has changed.
        """
        headers = [(e.header, e.marker) for e in entries if isinstance(e.header, RecordBatchHeader)]
        changes = self._producers.changes(headers, origin)
        end_offset = entries[-1].last_offset + 1
        reason = self._roll_if_due(entries)
        self._assign_epochs(entries)
        self.active.append(entries)
        self.active.add_aborted(self._producers.apply(changes, end_offset))
        self.end_offset = end_offset
        return Appended(entries[0].first_offset, entries[-1].last_offset, reason)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record that a leader epoch begins at the log end offset (SEG-APP-016)."""
        self.newest_epoch = max(self.newest_epoch, leader_epoch)
        if self._epochs.assign(leader_epoch, self.end_offset):
            self._write_epochs()

    def _assign_epochs(self, entries: Sequence[Entry]) -> None:
        changed = False
        for entry in entries:
            header = entry.header
            if isinstance(header, RecordBatchHeader):
                self.newest_epoch = max(self.newest_epoch, header.partition_leader_epoch)
                changed |= self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            else:
                changed |= self._epochs.clear()
        if changed:
            self._write_epochs()

    def _write_epochs(self) -> None:
        data = encode_leader_epoch_checkpoint(self._epochs.entries)
        replace_file(self._files, self._partition_file(FileKind.LEADER_EPOCH_CHECKPOINT), data)

    def _roll_if_due(self, entries: Sequence[Entry]) -> RollReason | None:
        summary = incoming(entries)
        reason = roll_reason(self.active.state, summary, self.config, self._environment.clock())
        reason = reason or self.active.lacks_room_for(entries)
        if reason is not None:
            self.roll(new_base_offset(self.end_offset, summary, self.config.generation))
        return reason

    def roll(self, base_offset: int) -> None:
        """Begin a segment at the log end offset or above; if the active segment begins there, create it again."""
        if base_offset == self.active.base_offset:
            self.active.close()
        else:
            self._retire(self.active)
        self.active = self._segment(base_offset, None)
        self._producers.end_offset = base_offset
        self.synced_offset = base_offset
        self._take_snapshot()

    def _retire(self, segment: ActiveSegment) -> None:
        """Sync a segment completely before the next segment is created (SEG-FLS-009).

        Otherwise a power cut may keep the next segment, but lose entries of this one. No reader would notice that,
        because a log may have gaps between segments.
        """
        segment.seal()
        self.sync(segment)
        self.retired.append(segment)
        self._closed.add(segment.base_offset, self.end_offset)

    def close_retired(self) -> None:
        """Close the files of retired segments; they need no further sync."""
        for segment in self.retired:
            segment.close()
        self.retired.clear()

    def _take_snapshot(self) -> None:
        """Store the producer states, unless the newest snapshot already has the same end offset (SEG-ROL-015)."""
        states = self._producers
        if self.config.generation.has_producer_state and states.end_offset > states.snapshot_offset:
            name = segment_file_name(states.end_offset, FileKind.PRODUCER_SNAPSHOT)
            write_file(self._files, self.path / name, states.snapshot())
            states.snapshot_offset = states.end_offset

    def retain(self, checkpoint: Callable[[], None]) -> RetentionPlan:
        """Remove the segments that retention does not keep; the whole log counts as replicated.

        Args:
            checkpoint: stores the log start offset on disk before anything is removed (SEG-RET-012).

        Raises:
            FormatError: a segment has no time index, and its log cannot be read to its end.
        """
        now_ms = self._environment.clock()
        segments = [*self._closed.segments(), self.active.retained(self.end_offset)]
        plan = plan_retention(segments, self.config, now_ms=now_ms, log_start_offset=self.log_start_offset)
        if plan.removed:
            if plan.rolls_first:
                self.roll(self.end_offset)
            self._start_offset = plan.log_start_offset
            checkpoint()
            self._deleted.add(self._rename(plan), now_ms)
        return plan

    def _rename(self, plan: RetentionPlan) -> list[Path]:
        """Rename the files of the segments that a plan removes."""
        if self._epochs.start_at(plan.log_start_offset):
            self._write_epochs()
        renamed = []
        for step in removal_steps(self._files, self.path, [segment.base_offset for segment in plan.removed]):
            step.apply(self._files)
            if isinstance(step, Rename):
                renamed.append(step.target)
        for segment in plan.removed:
            self._closed.remove(segment.base_offset)
        self.first_base_offset = next(iter(self._closed.base_offsets), self.active.base_offset)
        return renamed

    def remove_deleted(self) -> None:
        """Delete files that were renamed for removal, if their delay has ended."""
        self._deleted.remove_due(self._environment.clock())

    def sync(self, segment: ActiveSegment) -> None:
        """Sync a segment's files and their names to disk (SEG-FLS-002, SEG-FLS-012)."""
        name_count = segment.name_count
        segment.fsync()
        if segment.synced_name_count < name_count:
            self._files.fsync_directory(self.path)
            segment.synced_name_count = name_count

    def seal(self) -> None:
        """Store the producer states, and close the active segment as a roll does (SEG-FLS-004, 015, 016)."""
        self.active.ensure_indexes()
        self._take_snapshot()
        self.active.seal()
        self.active.fsync()
        self._files.fsync_directory(self.path)

    def close(self) -> None:
        """Close all files without writing."""
        self.close_retired()
        self.active.close()


def open_log(
    path: Path, config: LogConfig, environment: Environment, root: RootFiles, topic_id: str | None
) -> PartitionLog:
    """Open the log of a partition for writing, with the state from its log directory.

    Args:
        path: of the partition directory; it is created if it is missing.
        config: settings of the log.
        environment: files, clock, random numbers.
        root: root files of the log directory.
        topic_id: for `partition.metadata` of a new partition; None to write no such file.

    Raises:
        UsageError: files of an interrupted replacement are left.
        OSError: an operation on files failed.
    """
    start_offset = root.log_start_offsets.get(parse_partition_directory(path.name).topic_partition, 0)
    log = PartitionLog(path, config, environment, log_start_offset=start_offset, was_clean=root.was_clean)
    if topic_id is not None and log.is_new:
        log.name_topic(topic_id)
    return log


# -- the state of a cleanly closed log that a writer needs before it appends -------------------------------------------


LEFTOVERS: Final = frozenset({".deleted", ".cleaned", ".tmp"})
"""Suffixes of files that every broker removes when it starts, but for metadata snapshots."""


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """The state of a cleanly closed log.

    Attributes:
        base_offsets: base offsets of its segments, ascending.
        start: content of the last segment.
        end_offset: log end offset.
        producers: its producer states.
        epochs: its leader epochs.
        newest_epoch: the newest leader epoch in the checkpoint or in a batch; -1 if there is none.
        has_other_epochs: whether these are not the leader epochs of the checkpoint.
    """

    base_offsets: tuple[int, ...]
    start: SegmentStart
    end_offset: int
    producers: ProducerStates
    epochs: LeaderEpochs
    newest_epoch: int = NO_PARTITION_LEADER_EPOCH
    has_other_epochs: bool = False


def load_log(files: Files, directory: Path, log_start_offset: int, config: LogConfig, now_ms: int) -> LoadedLog | None:
    """Read the state of a log; return None if it has no segment. Delete files that were renamed for removal.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        log_start_offset: as checkpointed, or 0.
        config: its generation says whether brokers store producer states and leader epochs.
        now_ms: the time, from which the age of producers counts.

    Raises:
        UsageError: the directory needs recovery first.
        FormatError: a log cannot be read to its end.
    """
    base_offsets = _base_offsets(files, directory)
    if not base_offsets:
        return None
    segments = [StoredSegment(files, directory, base_offset) for base_offset in base_offsets]
    start, end_offset, epoch_starts = _last_segment(segments[-1])
    if not config.generation.has_producer_state:
        return LoadedLog(base_offsets, start, end_offset, ProducerStates(), LeaderEpochs())
    if not start.size:
        epoch_starts = _last_epoch_starts(segments[:-1])
    _remove_stray_snapshots(files, directory, base_offsets, end_offset)
    producers = _producers(files, directory, segments, end_offset, now_ms)
    epochs = _epochs(files, directory)
    stored = epochs.entries
    known = max((entry.epoch for entry in stored), default=NO_PARTITION_LEADER_EPOCH)
    newer = [rise for rise in epoch_starts if rise.epoch > known]
    for rise in newer:
        epochs.assign(*rise)
    epochs.truncate_to(end_offset)
    epochs.start_at(log_start_offset)
    newest_epoch = newer[-1].epoch if newer else known
    return LoadedLog(base_offsets, start, end_offset, producers, epochs, newest_epoch, epochs.entries != stored)


def require_not_tiered(files: Files, directory: Path, config: LogConfig) -> None:
    """Refuse a log that begins in a remote store: a writer would move its start to the first segment on the disk.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        config: the settings of the log.

    Raises:
        UsageError: the settings say that the log is tiered; or they say nothing of it, and the checkpointed log start
            offset is below the first segment (SEG-PDR-028).
    """
    if config.remote_storage_enable:
        msg = f"{directory}: a tiered log, with remote.storage.enable=true, is not written"
        raise UsageError(msg)
    checkpoint = directory.parent / FileKind.LOG_START_OFFSET_CHECKPOINT.value
    if config.remote_storage_enable is None and files.exists(directory) and files.exists(checkpoint):
        with suppress(FormatError):
            offsets = decode_offset_checkpoint(read_small(files, checkpoint)).by_partition
            start = offsets.get(parse_partition_directory(directory.name).topic_partition)
            meanings = filter(None, map(parse_file_name, files.names(directory)))
            logs = (each.base_offset for each in meanings if each.kind is FileKind.LOG and each.suffix not in LEFTOVERS)
            first = min(logs, default=0)
            if start is not None and start < first:
                msg = (
                    f"{directory}: the log begins at {start}, its first segment at {first}: a tiered log is not written"
                )
                raise UsageError(msg)


class StoredSegment:
    """A segment in the writer's file layer; it is read through windows.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        base_offset: of the segment.
    """

    def __init__(self, files: Files, directory: Path, base_offset: int) -> None:
        self.base_offset = base_offset
        self._files = files
        self._directory = directory

    def path(self, kind: FileKind) -> Path:
        """Return the path of the segment's file of one kind."""
        return self._directory / segment_file_name(self.base_offset, kind)

    def frames(self) -> Iterator[Frame]:
        """Yield the entries of its log, undecoded.

        Raises:
            FormatError: while iterating: the log cannot be read to its end.
        """
        path = self.path(FileKind.LOG)
        with self._files.open(path) as source:
            yield from walk(source, path=str(path))

    @contextmanager
    def index(self, kind: FileKind, index_type: type[IndexT]) -> Iterator[IndexT]:
        """Open the segment's index of one kind; an empty index if there is no file."""
        path = self.path(kind)
        if not self._files.exists(path):
            yield index_type(MemoryBytes(b"", str(path)), self.base_offset)
            return
        with self._files.open(path) as source:
            yield index_type(source, self.base_offset)

    def largest_timestamp_ms(self) -> int:
        """Return the largest timestamp of a closed segment: of its last time index entry, else in its log.

        Returns:
            Milliseconds since 1970; -1 if there is no timestamp.

        Raises:
            FormatError: there is no entry in the time index, and the log cannot be read to its end.
        """
        with self.index(FileKind.TIME_INDEX, TimeIndex) as index:
            if index.entries:
                return index.entries[-1].timestamp_ms
        return max((frame.header.max_timestamp_ms for frame in self.frames()), default=NO_TIMESTAMP)


def _base_offsets(files: Files, directory: Path) -> tuple[int, ...]:
    """Return base offsets, ascending; delete files that were renamed for removal.

    Raises:
        UsageError: the directory needs recovery first.
    """
    names = files.names(directory)
    leftovers = [name for name in names if name.endswith(tuple(LEFTOVERS))]
    known = {name: meaning for name in names if name not in leftovers and (meaning := parse_file_name(name))}
    found = {meaning.base_offset for meaning in known.values() if meaning.kind is FileKind.LOG and not meaning.suffix}
    for name, meaning in known.items():
        is_orphan = meaning.kind in INDEX_KINDS and meaning.base_offset not in found
        if meaning.suffix or not meaning.is_canonical or is_orphan:
            msg = f"{directory / name} is left over from an interrupted operation: recover the directory first"
            raise UsageError(msg)
    for name in (each for each in leftovers if not each.endswith(METADATA_SNAPSHOT_DELETED)):  # SEG-RCV-020
        files.remove(directory / name)
    return tuple(sorted(found))


def _last_segment(segment: StoredSegment) -> tuple[SegmentStart, int, list[EpochStart]]:
    """Return the last segment's content, the log end offset, and the start of each higher leader epoch."""
    start, end_offset, rises = SegmentStart(), segment.base_offset, EpochRises()
    for frame in segment.frames():
        header = frame.header
        if not start.size:
            start = replace(start, first_timestamp_ms=header.max_timestamp_ms)
        if start.largest is None or header.max_timestamp_ms > start.largest.timestamp_ms:
            largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
            start = replace(start, largest=largest)
        start, end_offset = replace(start, size=frame.end), header.next_offset
        rises.add(header)
    return _with_indexes(start, segment), end_offset, rises.starts


def _with_indexes(start: SegmentStart, segment: StoredSegment) -> SegmentStart:
    """Add the counts of index entries; take the largest timestamp from the time index, if it has it.

    Which offset a time index stores for a timestamp depends on the broker that wrote it.
    """
    with segment.index(FileKind.OFFSET_INDEX, OffsetIndex) as offset_index:
        offset_entry_count = sum(entry.position < start.size for entry in offset_index.entries)
    with segment.index(FileKind.TIME_INDEX, TimeIndex) as time_index:
        times = time_index.entries
        time_entry_count, last = len(times), times[-1] if times else None
    if last is not None and start.largest is not None and last.timestamp_ms >= start.largest.timestamp_ms:
        start = replace(start, largest=last)
    return replace(
        start,
        offset_entry_count=offset_entry_count,
        time_entry_count=time_entry_count,
        last_time_entry_ms=last.timestamp_ms if last is not None else NO_TIMESTAMP,
    )


def _snapshots(files: Files, directory: Path) -> dict[int, Path]:
    """Return producer snapshots by offset, ascending."""
    meanings = ((parse_file_name(name), directory / name) for name in files.names(directory))
    found = [(m, path) for m, path in meanings if m is not None and m.kind is FileKind.PRODUCER_SNAPSHOT]
    return dict(sorted((meaning.base_offset, path) for meaning, path in found if not meaning.suffix))


def _remove_stray_snapshots(files: Files, directory: Path, base_offsets: Sequence[int], end_offset: int) -> None:
    """Remove snapshots above the log end offset, and those at which no segment begins.

    The newest of the others stays if it is above all base offsets.
    """
    found = _snapshots(files, directory)
    below = [offset for offset in found if offset <= end_offset]
    kept = {*base_offsets, *(offset for offset in below[-1:] if offset > base_offsets[-1])}.intersection(below)
    for offset in sorted(found.keys() - kept):
        files.remove(found[offset])


def _producers(
    files: Files, directory: Path, segments: Sequence[StoredSegment], end_offset: int, now_ms: int
) -> ProducerStates:
    """Return the producer states of the log, without producers that have expired.

    Raises:
        FormatError: a log cannot be read to its end.
    """

    def opened(path: Path) -> ProducerSnapshot:
        try:
            return ProducerSnapshot.from_bytes(read_small(files, path), str(path))
        except (CorruptIndexError, TruncatedError, UnsupportedVersionError):
            files.remove(path)  # SEG-RCV-027: brokers do so when they look for the newest that they can read
            raise

    newest = newest_readable_snapshot(_snapshots(files, directory).values(), opened)
    states = states_of(newest, segments[0].base_offset, now_ms - PRODUCER_EXPIRATION_MS)
    ends = (*(segment.base_offset for segment in segments[1:]), end_offset)
    for segment, next_offset in zip(segments, ends, strict=True):
        if next_offset > states.end_offset:
            states.replay(segment.frames(), str(segment.path(FileKind.LOG)))
    states.end_offset = end_offset
    return states


def _epochs(files: Files, directory: Path) -> LeaderEpochs:
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    data = read_small(files, path) if files.exists(path) else b""
    return LeaderEpochs(decode_leader_epoch_checkpoint(data, Location(str(path))).entries)


def _last_epoch_starts(segments: Sequence[StoredSegment]) -> list[EpochStart]:
    """Return the start of each higher leader epoch in the last segment with an entry."""
    rises = EpochRises()
    for segment in reversed(segments):
        for frame in segment.frames():
            rises.add(frame.header)
        if rises.has_entries:
            break
    return rises.starts


# -- the closed segments of a log that is open for writing, with the values that retention needs (chapter 72) ----------


class ClosedSegments:
    """The segments before the active one.

    Segments that existed when the log was opened are read at first use. Their largest timestamp is taken from the time
    index, as brokers do, so no log has to be read. Each counts as ending where the next segment begins.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        base_offsets: of the segments when the log is opened, ascending; the last one is active.
    """

    def __init__(self, files: Files, directory: Path, base_offsets: Iterable[int]) -> None:
        self._files = files
        self._directory = directory
        self._known: dict[int, RetainedSegment] = {}
        self._ends = dict(pairwise(base_offsets))

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """Base offsets, oldest first."""
        return tuple(self._ends)

    def add(self, base_offset: int, next_offset: int) -> None:
        """Add a segment that was closed at an offset."""
        self._ends[base_offset] = next_offset

    def remove(self, base_offset: int) -> None:
        """Remove a segment."""
        del self._ends[base_offset]
        self._known.pop(base_offset, None)

    def segments(self) -> list[RetainedSegment]:
        """Return all closed segments, oldest first.

        Raises:
            OSError: a file cannot be read.
            FormatError: a segment has no time index, and its log cannot be read to its end.
        """
        return [self._segment(base_offset, end) for base_offset, end in self._ends.items()]

    def _segment(self, base_offset: int, next_offset: int) -> RetainedSegment:
        found = self._known.get(base_offset)
        if found is None:
            segment = StoredSegment(self._files, self._directory, base_offset)
            path, largest = segment.path(FileKind.LOG), segment.largest_timestamp_ms()
            size, modified_ms = self._files.size(path), self._files.modified_ms(path)
            found = self._known[base_offset] = RetainedSegment(base_offset, next_offset, size, largest, modified_ms)
        return found
