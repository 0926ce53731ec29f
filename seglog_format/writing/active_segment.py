"""The active segment of a log, to which a writer appends (chapters 20, 40 to 42 and 70)."""

from __future__ import annotations

import errno
from contextlib import suppress
from copy import deepcopy
from dataclasses import astuple, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.retention import RetainedSegment
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError
from seglog_format.log.index_file import IndexedOffset, IndexInterval
from seglog_format.model import NO_TIMESTAMP, AbortedTxn, OffsetPosition, TimestampOffset
from seglog_format.names import FileKind, segment_file_name
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.state.config import IndexUnit
from seglog_format.writing.append import ActiveState, RollReason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seglog_format.packing import Packer
    from seglog_format.state.config import LogConfig
    from seglog_format.storage.files import FileHandle, Files
    from seglog_format.writing.append import Entry


# -- the content of a segment when a writer opens it -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """The content of a segment when it is opened for writing; a new segment is empty.

    Attributes:
        size: number of bytes of whole entries in the log.
        first_timestamp_ms: largest timestamp of the first entry, or -1.
        largest: largest timestamp, with the offset that the time index stores; None if there is none.
        offset_entry_count: number of entries of the offset index.
        time_entry_count: number of entries of the time index.
        last_time_entry_ms: timestamp of the last time index entry, or -1.
    """

    size: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP
    largest: TimestampOffset | None = None
    offset_entry_count: int = 0
    time_entry_count: int = 0
    last_time_entry_ms: int = NO_TIMESTAMP


# -- the decision which appends to a log get index entries, by generation of brokers (chapters 40, 41 and 70) ----------


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """The index entries due at one entry or append: an offset index entry, and the largest timestamp up to its end."""

    offset_entry: OffsetPosition
    largest: TimestampOffset


class SparseIndex:
    """Decides which of the appends to one segment are indexed.

    Args:
        config: of the log.
        base_offset: of the segment.
        largest: largest timestamp so far, with its offset; None in a new segment.
    """

    def __init__(self, config: LogConfig, base_offset: int, largest: TimestampOffset | None = None) -> None:
        self._interval = IndexInterval(
            config.index_interval_bytes, largest or TimestampOffset(NO_TIMESTAMP, base_offset)
        )
        self._unit = config.generation.index_unit
        self._indexed = config.generation.indexed_offset

    @property
    def largest(self) -> TimestampOffset:
        """Largest timestamp so far; -1 and the base offset if there is none."""
        return self._interval.largest

    def add(self, position: int, entries: Sequence[Entry]) -> list[IndexPoint]:
        """Add entries that are appended together.

        Args:
            position: where the first entry starts.
            entries: in order.

        Returns:
            The index entries that are due, in order (SEG-ROL-010, SEG-ROL-011).
        """
        units = [entries] if self._unit is IndexUnit.APPEND else [[entry] for entry in entries]
        points = []
        for unit in units:
            size = sum(len(entry.data) for entry in unit)
            if self._interval.add(size, max((entry.largest for entry in unit), key=attrgetter("timestamp_ms"))):
                points.append(IndexPoint(OffsetPosition(self._offset_of(unit), position), self.largest))
            position += size
        return points

    def _offset_of(self, unit: Sequence[Entry]) -> int:
        return unit[0].first_offset if self._indexed is IndexedOffset.FIRST else unit[-1].last_offset


# -- the active segment of a log ---------------------------------------------------------------------------------------


SEGMENT_KINDS: Final = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class IndexFile:
    """An offset or time index that is being written: preallocated, filled from the front, trimmed at the end.

    Args:
        handle: the open file.
        layout: struct of an entry.
        max_size: `segment.index.bytes`.
        count: number of entries already in it.
    """

    def __init__(self, handle: FileHandle, layout: Packer, max_size: int, count: int = 0) -> None:
        self.handle = handle
        self.count = count
        self._layout = layout
        self.max_count = max_size // layout.size

    def append(self, entries: Sequence[tuple[int, int]]) -> None:
        """Append entries; if no preallocated slot is free, the file grows."""
        if entries:
            data = b"".join([self._layout.pack(*entry) for entry in entries])
            self.handle.write_at(self.count * self._layout.size, data)
            self.count += len(entries)

    def preallocate(self) -> None:
        """Fill the file with zeros up to its full size (SEG-ROL-013)."""
        self.trim()
        self.handle.truncate(max(self.max_count, self.count) * self._layout.size)

    def trim(self) -> None:
        """Truncate the file after its last entry."""
        self.handle.truncate(self.count * self._layout.size)


@dataclass(slots=True)
class _Handles:
    """The open files of a segment; indexes are opened at their first use."""

    log: FileHandle
    offset_index: IndexFile | None = None
    time_index: IndexFile | None = None
    transaction_index: FileHandle | None = None

    def all(self) -> list[FileHandle]:
        indexes = [index.handle for index in (self.offset_index, self.time_index) if index is not None]
        return [self.log, *indexes, *([self.transaction_index] if self.transaction_index is not None else [])]


class ActiveSegment:
    """The segment to which a writer appends.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        base_offset: of the segment.
        config: of the log.
        opened_ms: time of opening.
        jitter_ms: how much earlier than `segment.ms` the segment is rolled.
        start: the existing content; None to create a new segment, replacing files of the same names (SEG-ROL-009).

    Attributes:
        base_offset: of the segment.
        size: number of bytes of the log that hold entries.
        name_count: number of files created since the segment was opened.
        synced_name_count: number of these files whose names are known to be on disk.
    """

    def __init__(  # noqa: PLR0913 - a segment is made in one place
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        opened_ms: int,
        jitter_ms: int = 0,
        start: SegmentStart | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.name_count = int(start is None)
        self.synced_name_count = 0
        self._files = files
        self._directory = directory
        self._config = config
        self._opened_ms = opened_ms
        self._jitter_ms = jitter_ms
        begun = start or SegmentStart()
        self.size = begun.size
        self._first_timestamp_ms = begun.first_timestamp_ms
        self._last_time_entry_ms = begun.last_time_entry_ms
        self._sparse = SparseIndex(config, base_offset, begun.largest)
        self._handles = _Handles(self._new_log() if start is None else self._old_log())
        if start is not None:
            self._open_indexes(start)

    def path(self, kind: FileKind) -> Path:
        """Return the path of the segment's file of one kind."""
        return self._directory / segment_file_name(self.base_offset, kind)

    def _new_log(self) -> FileHandle:
        self._require_no_records()
        for kind in SEGMENT_KINDS[1:]:
            if self._files.exists(self.path(kind)):
                self._files.remove(self.path(kind))
        size, path = self._config.segment_bytes if self._config.preallocate else 0, self.path(FileKind.LOG)
        if not self._files.exists(path):
            return self._files.create_new(path, size)
        # Its name may be all that knows the log end offset: removed first, it would be missing after a power cut.
        handle = self._files.open_append(path)
        if handle.size:
            handle.truncate(0)
            handle.fsync()
        handle.truncate(size)
        return handle

    def _require_no_records(self) -> None:
        """Refuse to replace a log that holds an entry: another process wrote it."""
        path = self.path(FileKind.LOG)
        if self._files.exists(path) and self._holds_entry(path):
            raise FileExistsError(errno.EEXIST, "a new segment does not replace records (SEG-ROL-009)", str(path))

    def _holds_entry(self, path: Path) -> bool:
        with self._files.open(path) as source:
            try:
                return any(True for _ in walk(source))
            except FormatError:
                return True  # damaged bytes may be records

    def _old_log(self) -> FileHandle:
        """Open the existing log, truncated after its last whole entry (SEG-APP-013)."""
        log = self._files.open_append(self.path(FileKind.LOG))
        if log.size > self.size:
            log.truncate(self.size)
        return log

    def _open_indexes(self, start: SegmentStart) -> None:
        handles = self._handles
        handles.offset_index = self._index(FileKind.OFFSET_INDEX, OFFSET_INDEX_ENTRY, start.offset_entry_count)
        if self._config.generation.has_time_index:
            handles.time_index = self._index(FileKind.TIME_INDEX, TIME_INDEX_ENTRY, start.time_entry_count)

    def _index(self, kind: FileKind, layout: Packer, count: int) -> IndexFile:
        path = self.path(kind)
        is_there = self._files.exists(path)
        self.name_count += not is_there
        handle = self._files.open_append(path) if is_there else self._files.create(path)
        index = IndexFile(handle, layout, self._config.segment_index_bytes, count)
        index.preallocate()
        return index

    def ensure_indexes(self) -> None:
        """Create the index files unless they exist."""
        if self._handles.offset_index is None:
            self._open_indexes(SegmentStart())

    @property
    def state(self) -> ActiveState:
        """The values that decide when the segment is rolled."""
        offset_index, time_index = self._handles.offset_index, self._handles.time_index
        entry_limit = self._config.segment_index_bytes // OFFSET_INDEX_ENTRY.size
        time_limit = self._config.segment_index_bytes // TIME_INDEX_ENTRY.size
        return ActiveState(
            base_offset=self.base_offset,
            size=self.size,
            first_timestamp_ms=self._first_timestamp_ms,
            created_ms=self._opened_ms,
            jitter_ms=self._jitter_ms,
            is_offset_index_full=(offset_index.count if offset_index else 0) >= entry_limit,
            is_time_index_full=self._config.generation.has_time_index
            and (time_index.count if time_index else 0) >= time_limit - 1,
        )

    def retained(self, next_offset: int) -> RetainedSegment:
        """Return the values that retention needs, given the log end offset."""
        modified_ms = self._files.modified_ms(self.path(FileKind.LOG))
        return RetainedSegment(self.base_offset, next_offset, self.size, self._sparse.largest.timestamp_ms, modified_ms)

    def lacks_room_for(self, entries: Sequence[Entry]) -> RollReason | None:
        """Return which index lacks slots for the entries of an append; None if none does (SEG-ROL-016)."""
        offset_index, time_index = self._handles.offset_index, self._handles.time_index
        if not self.size or len(entries) == 1 or offset_index is None:
            return None  # for one entry, `roll_reason` has checked that a slot is free
        offset_count, time_count = offset_index.count, time_index.count if time_index is not None else 0
        most = len(entries)  # index entries that are due
        if offset_count + most <= offset_index.max_count and (
            time_index is None or time_count + most < time_index.max_count
        ):
            return None
        last_ms = self._last_time_entry_ms
        for point in deepcopy(self._sparse).add(self.size, entries):
            if offset_count >= offset_index.max_count:
                return RollReason.OFFSET_INDEX_FULL
            if time_index is not None and time_count >= time_index.max_count - 1:
                return RollReason.TIME_INDEX_FULL
            offset_count += 1
            time_count += point.largest.timestamp_ms > last_ms
            last_ms = max(last_ms, point.largest.timestamp_ms)
        return None

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries to the log, and index entries that are due.

        Raises:
            OSError: writing failed. The log is truncated to its former size if that is possible.
        """
        position = self.size
        self._write_log(b"".join(entry.data for entry in entries))
        if not position:
            self._first_timestamp_ms = self._rolling_timestamp(entries)
        self.ensure_indexes()
        points = self._sparse.add(position, entries)
        self._add_offset_entries([point.offset_entry for point in points])
        self._add_time_entries([point.largest for point in points], is_last=False)

    def _write_log(self, data: bytes) -> None:
        try:
            self._handles.log.write_at(self.size, data)
        except OSError:
            with suppress(OSError):
                self._handles.log.truncate(self.size)
            raise
        self.size += len(data)

    def _rolling_timestamp(self, entries: Sequence[Entry]) -> int:
        """Return the timestamp from which the segment's age counts: of its first append or entry (SEG-ROL-004)."""
        counted = entries[:1] if self._config.generation.rolls_by_first_entry else entries
        return max(entry.header.max_timestamp_ms for entry in counted)

    def _add_offset_entries(self, due: Sequence[OffsetPosition]) -> None:
        index = self._handles.offset_index
        assert index is not None
        free = index.max_count - index.count  # several entries of one append may be due, but only one slot free
        index.append([(entry.offset - self.base_offset, entry.position) for entry in due[: max(free, 0)]])

    def _add_time_entries(self, due: Sequence[TimestampOffset], *, is_last: bool) -> None:
        """Add the entries whose timestamps are larger than that of the entry before; keep a slot for the final one."""
        index = self._handles.time_index
        if index is None:
            return
        entries: list[tuple[int, int]] = []
        free = index.max_count - index.count - 1
        for largest in due:
            if largest.timestamp_ms > self._last_time_entry_ms and (is_last or len(entries) < free):
                entries.append((largest.timestamp_ms, largest.offset - self.base_offset))
                self._last_time_entry_ms = largest.timestamp_ms
        index.append(entries)

    def add_aborted(self, transactions: Sequence[AbortedTxn]) -> None:
        """Append entries to the transaction index; create it for the first one (SEG-TXN-001)."""
        if not transactions:
            return
        if self._handles.transaction_index is None:
            self._handles.transaction_index = self._transaction_index()
        data = b"".join(TRANSACTION_INDEX_ENTRY.pack(*astuple(transaction)) for transaction in transactions)
        self._handles.transaction_index.write(data)

    def _transaction_index(self) -> FileHandle:
        path = self.path(FileKind.TRANSACTION_INDEX)
        if not self._files.exists(path):
            self.name_count += 1
            return self._files.create(path)
        handle = self._files.open_append(path)
        handle.truncate(handle.size - handle.size % TRANSACTION_INDEX_ENTRY.size)
        return handle

    def seal(self) -> None:
        """Write the final time index entry, and truncate all files to their content (SEG-ROL-014, SEG-ROL-018)."""
        self._add_time_entries([self._sparse.largest], is_last=True)
        for index in (self._handles.offset_index, self._handles.time_index):
            if index is not None:
                index.trim()
        if self._handles.log.size > self.size:
            self._handles.log.truncate(self.size)

    def fsync(self) -> None:
        """Sync all files to disk, but not their names."""
        for handle in self._handles.all():
            handle.fsync()

    def close(self) -> None:
        """Close the files."""
        for handle in self._handles.all():
            handle.close()
