"""The positions of a log's entries, found by one walk and stored as a few numbers for each entry (chapter 60).

A position is trusted only if it was reached by walking from entry to entry, from the start of the segment. There is no
cheaper proof of an index entry: a record's value may hold bytes that are a whole valid batch, so the bytes at the
position of a wrong index entry may also look like an entry (SEG-IDX-009).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format import engine
from seglog_format.codec.framing import MAX_TRAILING_SIZE, DeclaredBytes, frame_at, walk
from seglog_format.engine import Engine, engine_for
from seglog_format.errors import CorruptRecordError, FormatError, Location, UnreadableError, UsageError
from seglog_format.layouts import MESSAGE_V1_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, GREATEST_OFFSET, INT64_MAX, NO_TIMESTAMP, Tail
from seglog_format.schema.fixed_fields import (
    BATCH_FIELDS,
    ENTRY_PREFIX,
    MESSAGE_MIN_SIZES,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_MAGIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.model import BatchHeader, Frame, Message, Record, RecordBatch
    from seglog_format.storage.byte_source import ByteSource


NUMBERS: Final = "q"

STRIDE_SIZE: Final = 16 * 2**20
"""Bytes walked between two calls of `passed`."""

SPARSE_SIZE: Final = 2**13
"""After an entry of this size, only the header of the next one is read, instead of a window that holds several."""

DISORDER: Final = frozenset({"SEG-LOG-006", "SEG-LOG-008", "SEG-LOG-013", "SEG-PDR-013"})
"""What `in_order` refuses in entries that are whole: the ones after them can be found."""

HEADER_COST: Final = 40
"""A header takes as long to walk over in Python as this number of bytes takes to read."""
SAMPLED_ENTRIES: Final = 8

MIN_SIZES: Final = {**MESSAGE_MIN_SIZES, RECORD_BATCH_MAGIC: RECORD_BATCH_HEADER.size - ENTRY_PREFIX_SIZE}
"""Minimum of the size field, by magic."""
LAST_OFFSET_DELTA, MAX_TIMESTAMP = (
    list(BATCH_FIELDS).index(name) for name in ("last_offset_delta", "max_timestamp_ms")
)
MESSAGE_TIMESTAMP_POSITION, MESSAGE_TIMESTAMP = MESSAGE_V1_HEADER_LAYOUT.slot("timestamp_ms")


class OffsetRange(NamedTuple):
    """The offsets that a segment can hold: from its base offset to just below the next segment's, both inclusive."""

    first: int
    last: int = GREATEST_OFFSET


def in_order(frames: Iterable[Frame], path: str, allowed: OffsetRange, previous: int) -> Iterator[Frame]:
    """Yield entries up to the first with an impossible offset, and raise there.

    Args:
        frames: entries in file order.
        path: file name for errors.
        allowed: offsets that the segment can hold.
        previous: last offset of the entry before them.

    Raises:
        CorruptRecordError: an entry starts below the base offset (SEG-LOG-008), does not end above the entry before it
            (SEG-LOG-006), ends above the greatest offset (SEG-LOG-013), or holds offsets of the next segment
            (SEG-PDR-013).
    """
    for frame in frames:
        first, last = frame.header.base_offset, frame.header.last_offset
        if first is not None and first < allowed.first:
            at = Location(path, frame.position, "offset", 8)
            raise CorruptRecordError(at, "SEG-LOG-008", expected=f"{allowed.first} or more", found=first)
        if last <= previous:
            at = Location(path, frame.position, "offset", 8)
            raise CorruptRecordError(at, "SEG-LOG-006", expected=f"a last offset above {previous}", found=last)
        _check_greatest(last, Location(path, frame.position))
        if last > allowed.last:
            at = Location(path, frame.position, "offset", 8)
            raise CorruptRecordError(at, "SEG-PDR-013", expected=f"at most {allowed.last}", found=last)
        yield frame
        previous = last


class Overlap(NamedTuple):
    """An entry that begins below the end of the entry before it (SEG-LOG-007): readers skip its first records.

    Attributes:
        position: of the entry, in bytes.
        first_offset: of the entry; no reader delivers the records from here on.
        next_offset: first offset after the entry before it.
    """

    position: int
    first_offset: int
    next_offset: int


def overlap_of(frame: Frame, next_offset: int, decode: Callable[[Frame], RecordBatch] | None = None) -> Overlap | None:
    """Return how an entry overlaps the one before it; None if it does not, or it is not known where it begins.

    Args:
        frame: the entry.
        next_offset: first offset after the entry before it.
        decode: decodes a wrapper, whose header does not say where it begins; None if that is not wanted.
    """
    first = frame.header.base_offset
    if first is None and decode is not None:
        with suppress(FormatError):  # the reader of its records reports the error
            first = decode(frame).base_offset
    return Overlap(frame.position, first, next_offset) if first is not None and first < next_offset else None


def is_within(timestamp_ms: int, since_ms: int | None, until_ms: int | None) -> bool:
    """Return whether a timestamp is neither before the first nor, with the second, at or after it."""
    return (since_ms is None or timestamp_ms >= since_ms) and (until_ms is None or timestamp_ms < until_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRange:
    """A range of offsets and of timestamps; None for no bound. The ends are not in it.

    Raises:
        UsageError: `to_offset` is not above `from_offset`.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        if self.to_offset is not None and self.to_offset <= (self.from_offset or 0):
            msg = f"no offset is from {self.from_offset or 0} up to, not including, {self.to_offset}"
            raise UsageError(msg)

    @property
    def is_window(self) -> bool:
        """Return whether a range of offsets or times is requested, so only batches and records are yielded."""
        return self.from_offset is not None or self.to_offset is not None or self.has_times

    @property
    def has_times(self) -> bool:
        """Return whether a range of timestamps is requested."""
        return self.since_ms is not None or self.until_ms is not None

    def overlaps(self, base_offset: int, next_offset: int) -> bool:
        """Return whether an offset from ``base_offset`` up to but excluding ``next_offset`` is requested."""
        below = self.to_offset is not None and base_offset >= self.to_offset
        above = self.from_offset is not None and next_offset <= self.from_offset
        return not below and not above

    def accepts(self, record: Record | Message) -> bool:
        """Return whether a record has a requested offset and a requested timestamp."""
        return self.overlaps(record.offset, record.offset + 1) and is_within(
            record.timestamp_ms, self.since_ms, self.until_ms
        )

    def may_be_in(self, header: BatchHeader) -> bool:
        """Return whether an entry may hold a record of the requested times: its header has the largest timestamp.

        No header says how old the oldest record of a producer is.
        """
        return self.since_ms is None or header.max_timestamp_ms >= self.since_ms


EVERYTHING: Final = WantedRange()


def check_offsets(batch: RecordBatch, at: Location) -> None:
    """Refuse a decoded entry with an offset above the maximum: a message may exceed the last offset of its wrapper.

    Raises:
        CorruptRecordError: an offset is above the maximum (SEG-LOG-013).
    """
    _check_greatest(max((record.offset for record in batch.records), default=0), at)
    _check_greatest(batch.last_offset, at)


def _check_greatest(last: int, at: Location) -> None:
    """Refuse an offset above the maximum.

    Raises:
        CorruptRecordError: it is above the maximum (SEG-LOG-013).
    """
    if last > GREATEST_OFFSET:
        expected = f"at most {GREATEST_OFFSET}"
        raise CorruptRecordError(at.at("offset", 0, 8), "SEG-LOG-013", expected=expected, found=last)


class EntryTable:
    """Positions, last offsets and largest timestamps of the walked entries of one `.log` file.

    Attributes:
        allowed: offsets that the segment can hold.
        positions: start of each entry, ascending.
        last_offsets: of each entry, strictly ascending.
        max_timestamps: largest timestamp in the header of each entry, in milliseconds.
        overlaps: the entries that begin below the end of the entry before them, as far as their headers say it.
        running_maxima: for each entry, the largest timestamp from the first entry up to it.
        position: where the walk continues.
        tail: what follows the last whole entry; None until the walk has reached it.
        damage: why the walk cannot continue; None if it can, or has ended.
    """

    __slots__ = (
        "allowed",
        "damage",
        "last_offsets",
        "max_timestamps",
        "overlaps",
        "position",
        "positions",
        "running_maxima",
        "tail",
    )

    def __init__(self, allowed: OffsetRange) -> None:
        self.allowed = allowed
        self.positions = array(NUMBERS)
        self.last_offsets = array(NUMBERS)
        self.max_timestamps = array(NUMBERS)
        self.running_maxima = array(NUMBERS)
        self.overlaps: list[Overlap] = []
        self.position = 0
        self.tail: Tail | None = None
        self.damage: FormatError | None = None

    def resume_from(self, other: EntryTable) -> None:
        """Use the entries that another walk of the same file has found, and continue after them."""
        if other.last_offsets and other.last_offsets[-1] <= self.allowed.last:
            self.positions, self.last_offsets = other.positions, other.last_offsets
            self.max_timestamps, self.running_maxima = other.max_timestamps, other.running_maxima
            self.overlaps = other.overlaps
            self.position, self.tail, self.damage = other.position, None, None

    @property
    def has_begun(self) -> bool:
        """Return whether any entry was walked, or the walk has ended."""
        return self.is_complete or bool(self.positions)

    @property
    def is_complete(self) -> bool:
        """Return whether the walk has ended."""
        return self.tail is not None or self.damage is not None

    @property
    def next_offset(self) -> int:
        """The first offset after the entries walked so far."""
        return self.last_offsets[-1] + 1 if self.last_offsets else self.allowed.first

    @property
    def largest_timestamp_ms(self) -> int:
        """Largest timestamp of the entries walked so far; -1 if there is none."""
        return self.running_maxima[-1] if self.running_maxima else NO_TIMESTAMP

    def has_to_grow(self, target: int) -> bool:
        """Return whether the walk must continue to find an entry that ends at or above an offset."""
        return not self.is_complete and (not self.last_offsets or self.last_offsets[-1] < target)

    def grow(
        self, source: ByteSource, path: str, target: int = INT64_MAX, passed: Callable[[int], None] | None = None
    ) -> None:
        """Continue the walk until an entry ends at or above an offset.

        Args:
            source: bytes of the log file.
            path: file name for errors.
            target: the offset; by default the walk continues to the end.
            passed: called from time to time with the position before which bytes are not needed any more.
        """
        start = None
        while start != self.position and self.has_to_grow(target):
            start = self.position
            with suppress(UnreadableError):  # `_walk` fails on the same bytes
                self._stride(source, target, min(start + STRIDE_SIZE, source.size - MAX_TRAILING_SIZE))
            if passed is not None:
                passed(self.position)
        if self.has_to_grow(target):
            self._walk(source, path, target)

    def _stride(self, source: ByteSource, target: int, end: int) -> None:
        """Add valid entries, several times as fast as `_walk`; stop before any other entry."""
        if isinstance(source, DeclaredBytes):
            return
        prefix, least = ENTRY_PREFIX.unpack_from, RECORD_BATCH_HEADER.size
        next_offset, last_offset, last_allowed = self.next_offset, self.next_offset - 1, self.allowed.last
        size_of_source = source.size
        start, data, known_end, size = 0, memoryview(b""), -1, 0
        while self.position < end and last_offset < target:
            if self.position > known_end:
                if self.position + least > size_of_source:
                    return
                if size < SPARSE_SIZE:
                    start, data = source.window(self.position, least)
                else:
                    start, data = self.position, source.view(self.position, self.position + least)
                known_end = start + len(data) - least
            at = self.position - start
            first, size, _, magic = prefix(data, at)
            following = self.position + ENTRY_PREFIX_SIZE + size
            if magic not in MIN_SIZES or size < MIN_SIZES[magic] or following > size_of_source:
                return
            last_offset, max_timestamp_ms = first, NO_TIMESTAMP
            if magic == RECORD_BATCH_MAGIC:
                fields = RECORD_BATCH_HEADER.unpack_from(data, at)
                last_offset, max_timestamp_ms = first + fields[LAST_OFFSET_DELTA], fields[MAX_TIMESTAMP]
            elif magic == 1:
                max_timestamp_ms = MESSAGE_TIMESTAMP.unpack_from(data, at + MESSAGE_TIMESTAMP_POSITION)[0]
            if not next_offset <= first <= last_offset <= last_allowed:
                return
            self._add(self.position, last_offset, max_timestamp_ms, following)
            next_offset = last_offset + 1

    def _walk(self, source: ByteSource, path: str, target: int) -> None:
        frames = walk(source, self.position, path=path)
        try:
            for frame in in_order(frames, path, self.allowed, self.next_offset - 1):
                if (overlap := overlap_of(frame, self.next_offset)) is not None:
                    self.overlaps.append(overlap)
                self._add(frame.position, frame.header.last_offset, frame.header.max_timestamp_ms, frame.end)
                if frame.header.last_offset >= target:
                    return
        except FormatError as error:
            self.damage = error.with_traceback(None)  # the traceback's frames would keep the file mapped
        else:
            self.tail = frames.tail

    def _add(self, position: int, last_offset: int, timestamp_ms: int, end: int) -> None:
        self.positions.append(position)
        self.last_offsets.append(last_offset)
        self.max_timestamps.append(timestamp_ms)
        self.running_maxima.append(max(timestamp_ms, self.largest_timestamp_ms))
        self.position = end

    def add_many(
        self, positions: bytes, last_offsets: bytes, max_timestamps: bytes, running_maxima: bytes, end: int
    ) -> None:
        """Add entries that follow those walked so far.

        Args:
            positions: where each entry starts, as native integers of 64 bits.
            last_offsets: of each entry, in the same form; ascending, and possible in the segment.
            max_timestamps: of each entry, in milliseconds, in the same form.
            running_maxima: largest timestamp of the log up to each entry, in the same form.
            end: position after the last entry.
        """
        self.positions.frombytes(positions)
        self.last_offsets.frombytes(last_offsets)
        self.max_timestamps.frombytes(max_timestamps)
        self.running_maxima.frombytes(running_maxima)
        self.position = end

    def find(self, offset: int, since_ms: int | None = None) -> int | None:
        """Return the number of the first walked entry that ends at or above an offset; None if there is none.

        With a timestamp, entries of which the header says that all records are older do not count.
        """
        number, count = bisect_left(self.last_offsets, offset), len(self.last_offsets)
        if since_ms is not None:
            number = max(number, self.find_not_older(since_ms))
            number = next((each for each in range(number, count) if self.max_timestamps[each] >= since_ms), count)
        return number if number < count else None

    def before_not_older(self, offset: int, timestamp_ms: int) -> int:
        """Return an offset below which no entry from another offset on is as late as a timestamp, by their headers.

        It is the last offset of the entry before the first one that may be: the checksum of that entry proves its end.
        """
        found = self.find(offset, timestamp_ms)
        number = len(self.positions) if found is None else found
        return self.last_offsets[number - 1] if number else self.allowed.first

    def find_not_older(self, timestamp_ms: int) -> int:
        """Return the number of the first walked entry that may hold a record not older than a timestamp."""
        return bisect_left(self.running_maxima, timestamp_ms)


# -- a walk over the headers of a log with many entries by the columnar engine (chapter 60) ----------------------------


def walk_headers(table: EntryTable, source: ByteSource, target: int, passed: Callable[[int], None]) -> None:
    """Add entries to a table, until one ends at or above an offset or is not covered by the fast path.

    Does nothing if there are few entries: loading the columnar engine takes longer than the walk.

    Args:
        table: to add the entries to; `EntryTable.grow` adds those that are still needed.
        source: bytes of the log file.
        target: the offset.
        passed: called with the position before which bytes are not needed any more.
    """
    if not has_many_headers(source, table.position):
        return
    parts = engine.batch_tables()(
        source, position=table.position, first_offset=table.next_offset, last_offset=table.allowed.last, checksums=False
    )
    with suppress(UnreadableError):  # `EntryTable.grow` fails on the same bytes
        for part in parts:
            table.add_many(
                part.column("position").tobytes(),
                part.column("last_offset").tobytes(),
                part.column("max_timestamp_ms").tobytes(),
                part.running_maxima(table.largest_timestamp_ms).tobytes(),
                part.end,
            )
            passed(part.end)
            if table.last_offsets[-1] >= target:
                return


def walked_next_offset(source: ByteSource, allowed: OffsetRange) -> int | None:
    """Return the offset after the last entry of a log with many; None if only the walk in Python can find it.

    The entries, which may be many millions, are not stored.

    Args:
        source: bytes of the log file.
        allowed: offsets that the segment can hold.
    """
    if not has_many_headers(source, 0):
        return None
    try:
        end, last_offset = engine.recovery_kernels().ordered_end(source, allowed.first, allowed.last)
        found = frame_at(source, end, source.size)
    except FormatError:
        return None
    return last_offset + 1 if isinstance(found, Tail) else None


def leading_batches(source: ByteSource, allowed: OffsetRange) -> tuple[int, int]:
    """Return where the batches of magic 2 at the start of a log end that do not overlap, and the offset reached there.

    They are found by compiled code, up to the first entry of another kind or any damage.

    Args:
        source: bytes of the log file.
        allowed: offsets that the segment can hold.
    """
    position, reached = 0, allowed.first
    for part in engine.batch_tables()(source, first_offset=reached, last_offset=allowed.last, checksums=False):
        if (part.column("base_offset") < 0).any():
            break
        position, reached = part.end, int(part.column("last_offset")[-1]) + 1
    return position, reached


def proven_start(
    source: ByteSource, path: str, allowed: OffsetRange, offset: int, since_ms: int | None = None
) -> tuple[int, int]:
    """Return where to begin to read from an offset on, by a walk over headers, and the offset that is reached there.

    That is the start of the entry before the first one that ends at or above the offset, and is not older than a
    timestamp by its header: only the checksum of the entry before proves where that ends (SEG-LKP-017). It is the start
    of the log if damage ends the walk before: the caller reports it.

    Args:
        source: bytes of the log file.
        path: file name for errors.
        allowed: offsets that the segment can hold.
        offset: absolute.
        since_ms: the timestamp; None for any. Then the walk goes through the whole log.
    """
    table = EntryTable(allowed)
    target = offset if since_ms is None else INT64_MAX
    walk_headers(table, source, target, lambda _: None)
    table.grow(source, path, target)
    number = table.find(offset, since_ms)
    if number is None:
        number = 0 if table.damage is not None else len(table.positions)
    return (table.positions[number - 1], table.last_offsets[number - 2] + 1) if number > 1 else (0, allowed.first)


def bounds_of(wanted: WantedRange, source: ByteSource, path: str, allowed: OffsetRange) -> tuple[int, int, int | None]:
    """Return where the entries of a range lie in a log; headers alone are read.

    Args:
        wanted: the range.
        source: bytes of the log file.
        path: file name for errors.
        allowed: offsets that the segment can hold.

    Returns:
        The position at which to begin and the offset that is reached there, as `proven_start`; and the offset at which
        to end, None for the end of the log.
    """
    start, ends = (0, allowed.first), [wanted.to_offset]
    if wanted.from_offset is not None or wanted.since_ms is not None:
        start = proven_start(source, path, allowed, wanted.from_offset or 0, wanted.since_ms)
    if wanted.until_ms is not None:
        ends.append(_end_of_older(source, path, allowed, wanted.until_ms))
    return *start, min((end for end in ends if end is not None), default=None)


def _end_of_older(source: ByteSource, path: str, allowed: OffsetRange, until_ms: int) -> int | None:
    """Return the end of the entry after the last one that is older than a timestamp by its header.

    Args:
        source: bytes of the log file.
        path: file name for errors.
        allowed: offsets that the segment can hold.
        until_ms: the timestamp.

    Returns:
        The offset after that entry; None for the end of the log, and if damage ends the walk over headers before.
    """
    table = EntryTable(allowed)
    walk_headers(table, source, INT64_MAX, lambda _: None)
    table.grow(source, path)
    count = len(table.positions)
    following = next((number for number in range(count, 0, -1) if table.max_timestamps[number - 1] < until_ms), 0)
    return None if table.damage is not None or following == count else table.last_offsets[following] + 1


def first_in_doubt(table: EntryTable, source: ByteSource, start: int, stop: int) -> int:
    """Return the number of the first entry in a range whose checksum the columnar engine did not find valid.

    Args:
        table: of the walked entries.
        source: bytes of the log file.
        start: number of the first entry.
        stop: number of the entry after the last.

    Returns:
        A number from ``start`` to ``stop``; ``stop`` if all are valid, ``start`` if the engine is not used.
    """
    if start >= stop:
        return start
    position, end = table.positions[start], (*table.positions[stop : stop + 1], table.position)[0]
    if not _is_worth_it(source, end - position):
        return start
    first_offset = table.last_offsets[start - 1] + 1 if start else table.allowed.first
    parts = engine.batch_tables()(
        source, position=position, end=end, first_offset=first_offset, last_offset=table.allowed.last
    )
    with suppress(UnreadableError):  # the fallback decoder fails on the same bytes
        for part in parts:
            valid = part.column("crc_is_valid")
            if not valid.all():
                return start + int(valid.argmin())
            start += len(part)
    return start


def _is_worth_it(source: ByteSource, size: int) -> bool:
    """Return whether the columnar engine would be chosen to read so many bytes."""
    return not isinstance(source, DeclaredBytes) and engine_for(Engine.AUTO, size).is_columnar


def has_many_headers(source: ByteSource, position: int) -> bool:
    """Return whether a log would take long to walk over in Python, to judge by the size of some entries."""
    return _is_worth_it(source, HEADER_COST * (source.size - position) // _sampled_size(source, position))


def is_sparse(source: ByteSource) -> bool:
    """Return whether a walk over a log in Python reads few of its bytes, to judge by the size of some entries."""
    return _sampled_size(source, 0) >= SPARSE_SIZE


def _sampled_size(source: ByteSource, position: int) -> int:
    number, end = 1, source.size
    with suppress(FormatError, UnreadableError):  # `EntryTable.grow` fails on the same bytes
        for number, frame in enumerate(islice(walk(source, position), SAMPLED_ENTRIES), 1):  # noqa: B007 - the last
            end = frame.end
    return max((end - position) // number, 1)
