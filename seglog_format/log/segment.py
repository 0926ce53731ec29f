"""One segment: a `.log` file and its indexes, opened at first use (chapters 20 and 60)."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from copy import copy as copied
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import checksum_is_valid, decode_frame, verify_checksum
from seglog_format.codec.framing import FrameWalk, frame_at, walk
from seglog_format.errors import CorruptRecordError, FormatError, Location, TruncatedError, UnreadableError
from seglog_format.log.entry_table import (
    EntryTable,
    OffsetRange,
    check_offsets,
    first_in_doubt,
    has_many_headers,
    in_order,
    leading_batches,
    overlap_of,
    walk_headers,
    walked_next_offset,
)
from seglog_format.log.index_file import OffsetIndex, TimeIndex, TransactionIndex, readable
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, GREATEST_OFFSET, INT64_MAX, Frame, RecordBatch, Tail
from seglog_format.schema.fixed_fields import MAGIC_POSITION, RECORD_BATCH_MAGIC
from seglog_format.storage.byte_source import Closing, SourceFile, refuse_large_log
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.storage.log_storage import LogStorage


class LogSegment(Closing):
    """A `.log` file with its indexes. A context manager; closed files open again when they are needed.

    Positions come from walking the log from its start, never from an index alone (SEG-IDX-009): the walk reads the
    fixed fields of each entry once, and later lookups search the positions that it found.

    Attributes:
        paths: of the log and of the existing indexes.
        base_offset: the offset in the file names.
        allowed: offsets that the segment can hold.
        limit: maximum bytes that one entry may decompress to.
        mapped: map log and indexes instead of reading them through windows; see `open_partition`.
        storage: the storage that holds the files.
        is_tiered: whether the log is in a remote store: reading fetches it, and it does not change.
    """

    def __init__(
        self,
        paths: SegmentFiles,
        *,
        next_base_offset: int | None = None,
        limit: int = DEFAULT_OUTPUT_LIMIT,
        mapped: bool = False,
        opened: OpenSegments | None = None,
        storage: LogStorage = LOCAL,
    ) -> None:
        """Store the paths; no file is touched yet.

        Args:
            paths: the files of the segment.
            next_base_offset: base offset of the next segment; None for the last segment.
            limit: maximum bytes that one entry may decompress to.
            mapped: map log and indexes instead of reading them through windows; see `open_partition`.
            opened: the open segments of the partition, shared by all of its segments; None for a single segment.
            storage: the storage that holds the files.
        """
        self.paths = paths
        self.base_offset = paths.base_offset
        last = GREATEST_OFFSET if next_base_offset is None else next_base_offset - 1
        self.allowed = OffsetRange(self.base_offset, last)
        self.limit, self.mapped, self.storage = limit, mapped, storage
        self.is_tiered = storage.tiered_end(paths.log) is not None
        self._opened = opened
        self._bytes: SourceFile | None = None
        self._table = EntryTable(self.allowed)
        self._verified_count = 0
        self._next_offset: int | None = None

    @cached_property
    def path(self) -> str:
        """Path of the `.log` file."""
        return self.storage.name_of(self.paths.log)

    @property
    def source(self) -> SourceFile:
        """The open `.log` file, from which all its bytes are read.

        Raises:
            UsageError: the file does not exist.
            UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
            RefusedError: it is larger than a log can be (SEG-LOG-010).
        """
        self._use()
        if self._bytes is None:
            self._bytes = self.storage.open(self.paths.log, mapped=self.mapped, check=refuse_large_log)
        return self._bytes

    def forget(self) -> None:
        """Release the memory that holds what was read of the log; see `FileBytes.forget`."""
        if self._bytes is not None:
            self._bytes.forget()

    def release_before(self, position: int) -> None:
        """Release pages from time to time while the log is read; see `FileBytes.release_before`."""
        if self._bytes is not None:
            self._bytes.release_before(position)

    def _use(self) -> None:
        if self._opened is not None:
            self._opened.use(self)

    @cached_property
    def size(self) -> int:
        """Size of the `.log` file in bytes, by `LogStorage.status`, without opening it."""
        return self.storage.status(self.paths.log).size

    @cached_property
    def offset_index(self) -> OffsetIndex | None:
        """The offset index; None if it is missing or cannot be read."""
        self._use()
        opener = partial(OffsetIndex.open, mapped=self.mapped, storage=self.storage)
        return readable(opener, self.paths.offset_index, self.base_offset)

    @cached_property
    def time_index(self) -> TimeIndex | None:
        """The time index; None if it is missing or cannot be read."""
        self._use()
        opener = partial(TimeIndex.open, mapped=self.mapped, storage=self.storage)
        return readable(opener, self.paths.time_index, self.base_offset)

    @cached_property
    def transaction_index(self) -> TransactionIndex | None:
        """The transaction index; None if it is missing or cannot be read."""
        opener = partial(TransactionIndex.open, storage=self.storage)
        return readable(opener, self.paths.transaction_index, self.base_offset)

    @property
    def entries(self) -> EntryTable:
        """The positions of all entries; the first use walks the whole segment."""
        self._grow(INT64_MAX)
        return self._table

    @property
    def walked(self) -> EntryTable:
        """The positions of the entries walked so far."""
        return self._table

    def _grow(self, target: int) -> None:
        if self._table.has_to_grow(target):
            if target > self.base_offset:  # else the first entry is enough
                walk_headers(self._table, self.source, target, self.release_before)
            self._table.grow(self.source, self.path, target, self.release_before)
            if self._table.is_complete:
                self.forget()  # a walk needs few pages, but the system maps their neighbours also

    @property
    def damage(self) -> FormatError | None:
        """Return the error that ends the walk of this segment early; None if there is none."""
        return self.entries.damage

    @property
    def tail(self) -> Tail | None:
        """Return what follows the last whole entry; None if `damage` ends the walk early."""
        return self.entries.tail

    @property
    def next_offset(self) -> int:
        """The first offset after the last whole entry before any `damage`; the base offset if there is none."""
        if self._next_offset is None and not self._table.has_begun:
            self._next_offset = walked_next_offset(self.source, self.allowed)
            if self._next_offset is not None:
                self.forget()
        return self.entries.next_offset if self._next_offset is None or self._table.has_begun else self._next_offset

    @property
    def last_offset(self) -> int | None:
        """Last offset of the last whole entry before any `damage`; None if there is none."""
        return self.next_offset - 1 if self.entries.last_offsets else None

    @property
    def largest_timestamp_ms(self) -> int:
        """The largest timestamp in a header, in milliseconds; -1 if there is none."""
        return self.entries.largest_timestamp_ms

    @property
    def overlaps(self) -> Sequence[Overlap]:
        """The entries that begin below the end of the entry before them, as far as their headers say it."""
        return () if walked_next_offset(self.source, self.allowed) is not None else self.entries.overlaps

    def decoded_overlaps(self) -> Iterator[Overlap]:
        """Yield `overlaps` up to any damage, with those of wrappers, which are decoded for that."""
        position, reached = 0, self.base_offset
        if has_many_headers(self.source, 0):
            position, reached = leading_batches(self.source, self.allowed)
        elif all(self._magic_at(at) == RECORD_BATCH_MAGIC for at in self.entries.positions):
            yield from self.entries.overlaps
            return
        with suppress(FormatError):  # the reader of the entries reports the error
            for frame in in_order(self.frames(position), self.path, self.allowed, reached - 1):
                if (overlap := overlap_of(frame, reached, self.decode)) is not None:
                    yield overlap
                reached = frame.header.next_offset

    def _magic_at(self, position: int) -> int:
        return self.source.view(position + MAGIC_POSITION, position + MAGIC_POSITION + 1)[0]

    def frames(self, from_position: int = 0) -> FrameWalk:
        """Walk the entries undecoded, whatever their offsets.

        Args:
            from_position: start of an entry.

        Raises:
            FormatError: while iterating: at an entry after which no other can be found.
        """
        return walk(self.source, from_position, path=self.path)

    def ordered_frames(self, from_position: int = 0) -> Iterator[Frame]:
        """Walk the entries undecoded as long as their offsets are possible.

        Raises:
            FormatError: while iterating: at an entry after which no other can be found, or with an impossible offset
                (SEG-LOG-006, SEG-LOG-008, SEG-LOG-013, SEG-PDR-013).
        """
        return in_order(self.frames(from_position), self.path, self.allowed, self.base_offset - 1)

    def batches(self, from_position: int = 0) -> Iterator[RecordBatch]:
        """Decode the entries, as stored and in file order.

        Raises:
            FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
        """
        return map(self.decode, self.ordered_frames(from_position))

    def decode(self, frame: Frame) -> RecordBatch:
        """Decode an entry of this segment.

        Raises:
            FormatError: it is damaged or refused.
        """
        at = Location(self.path, frame.position)
        batch = decode_frame(frame, at=at, limit=self.limit)
        check_offsets(batch, at)
        return batch

    def hidden_data(self, frame: Frame, batch: RecordBatch | None = None) -> CorruptRecordError | None:
        """Return the error of `hidden_data`; None also for an entry that is damaged or refused.

        Args:
            frame: the entry.
            batch: the same, if it is decoded already.
        """
        if frame.header.is_control:
            from seglog_format.codec.control_record import hidden_data  # noqa: PLC0415 - loaded when one is read

            with suppress(FormatError):
                return hidden_data(frame, (batch or self.decode(frame)).records, Location(self.path, frame.position))
        return None

    def frame_at(self, position: int) -> Frame | Tail:
        """Return the entry that starts at a position.

        Raises:
            FormatError: no entry can start there.
        """
        source = self.source
        return frame_at(source, position, source.size, self.path)

    def position_of(self, offset: int, *, trust_index: bool = False) -> int | None:
        """Return the start of the first entry whose last offset is not below an offset (SEG-LKP-002).

        Args:
            offset: absolute.
            trust_index: start at the floor entry of the index if the bytes there look right, instead of proving it.

        Returns:
            A byte position, or None: every entry of the segment ends below the offset.

        Raises:
            FormatError: there is damage before such an entry.
        """
        if trust_index and (trusted := trusted_entry(self, offset)) is not None:
            return trusted.position
        number = self.number_of(offset)
        return None if number is None else self._table.positions[number]

    def entry_with(self, offset: int, *, trust_index: bool) -> Frame | None:
        """Return the entry whose position is `position_of`.

        Raises:
            FormatError: there is damage before such an entry.
        """
        if trust_index and (trusted := trusted_entry(self, offset)) is not None:
            return trusted
        number = self.number_of(offset)
        return None if number is None else self.entry(number)

    def number_of(self, offset: int) -> int | None:
        """Return the number, from 0, of the first entry whose last offset is not below an offset; walk to find it.

        Raises:
            FormatError: there is damage before such an entry.
        """
        self._grow(offset)
        number = self._table.find(offset)
        if number is None:
            self.raise_damage()
        return number

    def verify_entries(self, start: int, stop: int) -> None:
        """Verify the checksums of walked entries, each entry only once for this object.

        Args:
            start: number of the first entry; it must be the same in every call.
            stop: number of the entry after the last.

        Raises:
            CorruptRecordError: at the first entry with a wrong checksum.
        """
        self._verified_count = first_in_doubt(self._table, self.source, max(start, self._verified_count), stop)
        for number in range(self._verified_count, stop):
            self.verify_entry(number)
            self._verified_count = number + 1

    def verify_entry(self, number: int) -> Frame:
        """Return a walked entry after verifying its checksum.

        Raises:
            CorruptRecordError: the checksum is wrong.
        """
        frame = self.entry(number)
        verify_checksum(frame, Location(self.path, frame.position))
        return frame

    def verify_gap(self, offset: int) -> None:
        """Verify the checksum of the entry before a missing offset (SEG-LKP-017).

        By its last offset delta the entry ends below the offset, and only its checksum proves that field.

        Raises:
            FormatError: the entry is damaged.
        """
        number = self.number_of(offset)
        before = len(self.entries.positions) if number is None else number
        if before:
            self.verify_entry(before - 1)

    def verify_last_entry(self) -> None:
        """Verify the checksum of the last whole entry, if there is one: its last offset is the end of the segment.

        Raises:
            CorruptRecordError: the checksum is wrong.
        """
        if self.entries.positions:
            self.verify_entry(len(self.entries.positions) - 1)

    def entry(self, number: int) -> Frame:
        """Return a walked entry by its number.

        Raises:
            FormatError: the entry no longer exists: another process has written to the file meanwhile.
        """
        frame = self.frame_at(self._table.positions[number])
        if isinstance(frame, Frame):
            return frame
        at, found = Location(self.path, frame.position), f"{frame.size} bytes ({frame.kind.value})"
        raise TruncatedError(at, "SEG-LOG-004", expected="the entry that was here before", found=found)

    def resume_from(self, other: LogSegment) -> bool:
        """Use the entries that another object found in the same file, which may have grown since.

        Returns:
            False if the last of these entries is not in the file any more: then none are used.

        Raises:
            UsageError: the file does not exist, or may not be read.
        """
        self._table.resume_from(other._table)
        if not self._table.positions:
            return not other._table.positions
        try:
            last = self.entry(len(self._table.positions) - 1)
            is_same = (last.header.last_offset, last.end) == (self._table.last_offsets[-1], self._table.position)
            verify_checksum(last, Location(self.path, last.position))
        except FormatError:
            is_same = False
        if not is_same:
            self._table = EntryTable(self.allowed)
        return is_same

    def raise_damage(self) -> None:
        """Raise a copy of `damage`, if there is any."""
        if self._table.damage is not None:
            raise copied(self._table.damage)

    def refuse_hidden_entries(self, position: int) -> None:
        """Refuse the end of the log that follows a position, if it is the last one and hides intact entries.

        Raises:
            CorruptRecordError: it does (SEG-LOG-004).
        """
        if self.allowed.last != GREATEST_OFFSET or self.left_after(position) is None:
            return
        from seglog_format.log.search import unexpected_end  # noqa: PLC0415 - few logs have such an end

        error = unexpected_end(self.frame_at(position), self.source, self.allowed, self.path, is_last=True)
        if error is not None:
            raise error

    def left_after(self, position: int) -> int | None:
        """Return a position after which bytes of the log are left; None if it is the end of the log."""
        return position if position < self.source.size else None

    def release(self) -> None:
        """Release the files: each closes as soon as nothing else uses its bytes, and opens again when needed."""
        self._bytes = None
        self.__dict__.pop("offset_index", None)
        self.__dict__.pop("time_index", None)

    def close(self) -> None:
        """Close the files; bytes and indexes obtained from the segment must not be used any more."""
        for source in filter(None, (self._bytes, self.__dict__.get("offset_index"), self.__dict__.get("time_index"))):
            source.close()
        self.release()

    def __repr__(self) -> str:
        return f"LogSegment({self.path!r})"


# -- lookups that start at an index entry that looks right, without a proof (chapter 60) -------------------------------
# At the position in an index entry there must be an intact entry with a possible offset, and the walk from it must
# reach the wanted offset. This is no proof that it is an entry of the log: the bytes may belong to a record's value. In
# any doubt the result is None, and the caller walks from the start of the segment.
#
# An index is first searched without checking its order: for that it has to be read whole, which costs more than the
# rest of a lookup. Its order is checked only if the first search finds no such entry.


def trusted_entry(segment: LogSegment, offset: int) -> Frame | None:
    """Return the first entry whose last offset is not below an offset; None in any doubt.

    The result is also None if the offset is missing in the log.
    """
    with suppress(UnreadableError):  # brokers cut indexes when they roll
        for position in _positions(segment.offset_index, offset):
            with suppress(FormatError):
                table = _walked_from(segment, position, offset)
                number = table.find(offset)
                found = None if number is None else segment.frame_at(table.positions[number])
                if isinstance(found, Frame) and starts_at(found) <= offset:
                    return found
    return None


def _positions(index: OffsetIndex | None, offset: int) -> Iterator[int]:
    """Yield where to start searching for an offset: by all slots of an index, then by those that are in order."""
    searched = None if index is None else index.searched(offset)
    if index is not None and searched is not None:
        yield searched.position
        if (ordered := index.lookup(offset).position) != searched.position:
            yield ordered


def trusted_next_offset(segment: LogSegment) -> int | None:
    """Return the first offset after the last whole entry of a segment; None in any doubt."""
    with suppress(UnreadableError):  # as above
        for position in _last_positions(segment.offset_index):
            with suppress(FormatError):
                table = _walked_from(segment, position, INT64_MAX)
                if table.positions:
                    return table.next_offset
    return None


def _last_positions(index: OffsetIndex | None) -> Iterator[int]:
    entries = () if index is None else index.raw_entries()
    if entries:
        assert index is not None
        yield entries[-1].position
        if index.entries and index.entries[-1].position != entries[-1].position:
            yield index.entries[-1].position


def offset_up_to_timestamp(segment: LogSegment, timestamp_ms: int) -> tuple[int, int | None]:
    """Return the offset up to which no record of a segment is later than a timestamp, by its time index.

    The index entry that is found is trusted if the log has an entry with exactly its timestamp at its offset; else only
    the index entries that are in order count (SEG-TIX-008, SEG-TIX-009).

    Args:
        segment: with or without a time index.
        timestamp_ms: milliseconds since 1970; any integer.

    Returns:
        An absolute offset; the base offset of the segment if its index has no entry so old. And the position of the
        entry of the log that has this offset; None if it was not looked for.
    """
    index = segment.time_index
    noted = None if index is None else index.searched(timestamp_ms)
    if index is None or noted is None:
        return segment.base_offset, None
    found = trusted_entry(segment, noted.offset)
    if found is not None and found.header.max_timestamp_ms == noted.timestamp_ms:
        return noted.offset, found.position
    return index.lookup(timestamp_ms).offset, None


def _walked_from(segment: LogSegment, position: int, offset: int) -> EntryTable:
    """Walk over headers up to an offset, from a position where an intact entry starts that is not above it.

    Returns:
        The entries from there on; none if no such entry starts there.

    Raises:
        FormatError: damage ends the walk before the offset.
    """
    table = EntryTable(segment.allowed)
    found = segment.frame_at(position) if position > 0 else None
    if isinstance(found, Frame) and segment.base_offset <= starts_at(found) <= offset and checksum_is_valid(found):
        table.position = position
        table.grow(segment.source, segment.path, offset)
    if table.damage is not None:
        raise table.damage
    return table


def starts_at(frame: Frame) -> int:
    """Return the base offset; for a wrapper, which must be decompressed to find it, its last offset."""
    first = frame.header.base_offset
    return frame.header.last_offset if first is None else first


# -- the segments of a partition whose files are open: only the few that were used last --------------------------------


MAX_OPEN_SEGMENTS: Final = 16
"""Maximum number of segments with open files; a partition may have ten thousand segments."""

MAX_MAPPED_SIZE: Final = 1_900_000_000
"""Maximum bytes of logs mapped at once, unless a single log is larger: address space may be limited."""


class OpenSegments:
    """The segments of a partition with open files, in the order of their last use."""

    def __init__(self, limit: int = MAX_OPEN_SEGMENTS) -> None:
        self._limit = limit
        self._open: OrderedDict[int, LogSegment] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def use(self, segment: LogSegment) -> None:
        """Record that a segment is in use; release the least recently used if too many or too large ones are open.

        The one used before keeps no window: of all open files together, only one window is in memory.
        """
        previous = next(reversed(self._open.values()), None)
        if previous is segment:
            return
        if previous is not None and not previous.mapped:
            previous.forget()
        is_known = self._open.get(segment.base_offset) is segment
        self._open[segment.base_offset] = segment
        self._open.move_to_end(segment.base_offset)
        if is_known:
            return
        while len(self._open) > self._limit or (len(self._open) > 1 and self._mapped_size > MAX_MAPPED_SIZE):
            _, oldest = self._open.popitem(last=False)
            oldest.release()

    @property
    def _mapped_size(self) -> int:
        return sum(segment.size for segment in self._open.values() if segment.mapped)

    def close(self) -> None:
        """Close all segments."""
        while self._open:
            self._open.popitem()[1].close()
