"""One served partition: finds the bytes that answer a fetch, and checks them before they are sent (chapter 60).

An entry is sent as it is stored, never decoded. A walk from the start of the segment leads to it, and its checksum is
verified once; valid entries are remembered. A fetch ends before damage, and the next fetch fails at it.

A read at the end of the log checks the directory and the last file for changes. Marks of valid entries are kept for
unchanged files.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.codec.checksum import crc32c
from seglog_format.errors import FormatError, Location, OffsetOutOfRangeError, TruncatedError, UsageError
from seglog_format.log.transactions import (
    Transactions,
    end_marker,
    indexed_transactions,
    lacks_index,
    scan_transactions,
)
from seglog_format.model import CODEC_MASK, ENTRY_PREFIX_SIZE, GREATEST_OFFSET, INT64_MAX, TailKind
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BATCH_FIELDS,
    MAGIC_POSITION,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
    RECORD_BATCH_MAGIC,
)
from seglog_format.serve.limits import LONG_HELD_SECONDS
from seglog_format.serve.slices import Chunk, Fetched, KeptWindow, LogRange, taken
from seglog_format.storage.file_reader import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.log.entry_table import EntryTable
    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import AbortedTxn, Frame, TimestampOffset
    from seglog_format.serve.slices import Source
    from seglog_format.storage.byte_source import Window


# -- a cheap fingerprint of a directory or of a log's last file, which shows changes -----------------------------------


FileState: TypeAlias = tuple[int, ...]

REREAD_SECONDS: Final = 5.0
"""Interval at which a log with a damaged entry is listed and read again."""


def state_of(path: Path) -> FileState:
    """Return values of `stat` that change whenever a file or a directory does.

    Raises:
        UsageError: the path does not exist.
    """
    try:
        status = path.stat()
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise UsageError(msg) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def last_state(partition: Partition) -> FileState:
    """Return the fingerprint of a log's last local file; empty if there is none."""
    last = partition.segments[-1] if partition.segments else None
    return () if last is None or last.is_tiered else state_of(last.paths.log)


def look_at_size(partition: Partition, offset: int, refresh: Callable[[bool], bool]) -> None:
    """Compare the size of the file for an offset with its size when it was walked.

    Args:
        partition: as it was listed.
        offset: any offset.
        refresh: lists the directory again if it has changed, or if the argument is true; returns whether it did.

    Raises:
        UsageError: the file does not exist.
        UnreadableError: it was cut in place, so a reader would pass over what is cut off (SEG-PDR-022).
    """
    segments = partition.segments
    index = bisect_left(segments, offset, key=lambda segment: segment.allowed.last)
    segment = segments[index] if index < len(segments) else None
    if segment is None or segment.is_tiered or (tail := segment.walked.tail) is None:
        return
    size, known = segment.storage.status(segment.paths.log).size, tail.position + tail.size
    is_restored = size > known and segment is not segments[-1]
    if (is_restored or size < known) and not refresh(is_restored):
        raise unreadable(segment.path, size, known - size, None)


# -- a lock that measures how long it has been held --------------------------------------------------------------------


class TimedLock:
    """A lock that measures how long it has been held. A context manager."""

    __slots__ = ("_lock", "_since")

    def __init__(self) -> None:
        self._lock = Lock()
        self._since = 0.0

    @property
    def held_seconds(self) -> float:
        """Seconds that the lock has been held; 0 if it is free."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock; return False if it is held and ``blocking`` is False."""
        if not self._lock.acquire(blocking):
            return False
        self._since = time.monotonic()
        return True

    def release(self) -> None:
        """Release the lock."""
        self._since = 0.0
        self._lock.release()

    def __enter__(self) -> None:  # each fetch takes it: no further calls
        self._lock.acquire()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = 0.0
        self._lock.release()


# -- the transactions of a served log: from headers and end markers, if the transaction indexes agree with them --------


ATTRIBUTES_LOW_POSITION: Final = 22
"""Position in a batch of the attributes byte whose bits mark transactional batches and control batches."""
TRANSACTIONAL_OR_CONTROL: Final = 0x30


class ServedTransactions:
    """The transactions of one log, extended as it grows.

    Attributes:
        found: the transactions of the log, up to the end of the last read.
    """

    def __init__(self) -> None:
        self.found = Transactions()
        self._is_sure = True
        self._has_tiered = False

    def read_on(self, partition: Partition) -> Transactions:
        """Read the batches that were appended since the last call, and return all transactions."""
        if self._is_sure and not self.found.end_offset:
            self._has_tiered = any(segment.is_tiered for segment in partition.segments)
        if self._is_sure and self._has_tiered and not self.found.end_offset:
            self.found = indexed_transactions(partition.segments, partition.log_start_offset)
        if self._is_sure:
            self._is_sure = self.found.damage is None and self._agrees(partition)
        if not self._is_sure:
            self.found = scan_transactions(partition.segments, partition.log_start_offset, partition.lost_before)
        return self.found

    def _agrees(self, partition: Partition) -> bool:
        known = len(self.found.aborted)
        since = self.found.end_offset
        new = [segment for segment in partition.segments if segment.allowed.last >= since]
        try:
            if not all(self._read(segment, partition) for segment in new):
                return False
        except FormatError:
            return False
        self.found.end_offset = max(self.found.end_offset, partition.log_start_offset)
        listed = [
            (each.producer_id, each.first_offset, each.last_offset)
            for segment in new
            for each in (segment.transaction_index.entries if segment.transaction_index else ())
            if each.last_offset >= since
        ]
        found = [(each.producer_id, each.first_offset, each.last_offset) for each in self.found.aborted[known:]]
        return listed == found

    def _read(self, segment: LogSegment, partition: Partition) -> bool:
        """Read headers and markers of one segment; return False if it is damaged, or a transaction before it is."""
        if self.found.open_offsets and partition.lost_before(segment.base_offset, self.found.end_offset):
            return False
        for frame in _transactional(segment, self.found.end_offset):
            marker = end_marker(segment, frame) if frame.header.is_control else None
            if self._has_tiered and lacks_index(segment, marker):
                return False
            self.found.add(frame.header, marker)
        self.found.end_offset = max(self.found.end_offset, segment.next_offset)
        return segment.damage is None


def _transactional(segment: LogSegment, from_offset: int) -> Iterator[Frame]:
    """Yield the transactional entries from an offset on, undecoded."""
    table, source = segment.entries, segment.source
    for number in range(bisect_left(table.last_offsets, from_offset), len(table.positions)):
        position = table.positions[number]
        start, data = source.window(position, ATTRIBUTES_LOW_POSITION + 1)
        attributes, magic = data[position - start + ATTRIBUTES_LOW_POSITION], data[position - start + MAGIC_POSITION]
        if magic == RECORD_BATCH_MAGIC and attributes & TRANSACTIONAL_OR_CONTROL:
            yield segment.entry(number)
        segment.release_before(position)
    segment.forget()


# -- marks of valid entries of a partition: each entry is verified once, as long as its file does not change -----------


VERIFIED: Final = 1
"""The mark of an entry that is valid, less its codec; 0 means not verified."""

MAX_BATCH_SIZE: Final = 2**20
"""Larger entries are verified in parts."""

BATCH_LENGTH, MAGIC, CRC, ATTRIBUTES = (
    list(BATCH_FIELDS).index(name) for name in ("batch_length", "magic", "crc", "attributes")
)


class VerifiedEntries:
    """A mark for each entry of each segment. Callers hold the partition's lock.

    Args:
        window: receives the size of what was read, and drops it.
    """

    def __init__(self, window: KeptWindow) -> None:
        self._checked: dict[int, bytearray] = {}
        self._window = window

    def clear(self) -> None:
        """Forget all marks."""
        self._checked.clear()

    def forget(self, segment: LogSegment) -> None:
        """Forget the marks of a segment: its file has changed."""
        self._checked.pop(segment.base_offset, None)

    def first(self, segment: LogSegment, number: int, offset: int) -> int:
        """Verify the entry with which the answer about an offset begins; return its codec.

        Raises:
            FormatError: the entry is damaged; or the entry before it is, so an offset may be missing (SEG-LKP-017).
        """
        marks = self._marks(segment)
        if number and not marks[number - 1] and _starts_above(segment, number, offset):
            self._verify(segment, number - 1, marks)
        if not marks[number]:
            self._verify(segment, number, marks)
        return marks[number] - VERIFIED

    def stop(self, segment: LogSegment, start: int, stop: int, on_damage: Callable[[FormatError], None]) -> int:
        """Return the number of the first entry that is not valid, or ``stop``.

        Args:
            segment: the segment of the entries.
            start: first number.
            stop: number after the last.
            on_damage: called with the error of the invalid entry.
        """
        marks = self._marks(segment)
        number = marks.find(0, start, stop)
        while number >= 0:
            try:
                self._verify(segment, number, marks)
            except FormatError as error:
                on_damage(error)
                return number
            number = marks.find(0, number + 1, stop)
        return stop

    def _verify(self, segment: LogSegment, number: int, marks: bytearray) -> None:
        table = segment.walked
        start = table.positions[number]
        end = table.positions[number + 1] if number + 1 < len(table.positions) else table.position
        is_short = end - start <= MAX_BATCH_SIZE
        mark = _mark_of_batch(segment.source.window(start, end - start), start, end) if is_short else 0
        marks[number] = mark or VERIFIED + segment.verify_entry(number).header.codec_id
        self._window.used(segment, end - start)

    def _marks(self, segment: LogSegment) -> bytearray:
        """Return the marks of a segment, one byte for each entry."""
        count = len(segment.walked.positions)
        marks = self._checked.setdefault(segment.base_offset, bytearray())
        if len(marks) < count:
            marks.extend(bytes(count - len(marks)))
        return marks


def _mark_of_batch(window: Window, start: int, end: int) -> int:
    """Return the mark of a valid record batch without creating objects; 0 if it needs the full check."""
    data, start, end = window.data, start - window.start, end - window.start
    if end - start < RECORD_BATCH_HEADER_SIZE or end > len(data):
        return 0
    header = RECORD_BATCH_HEADER.unpack_from(data, start)
    if header[MAGIC] != RECORD_BATCH_MAGIC or header[BATCH_LENGTH] != end - start - ENTRY_PREFIX_SIZE:
        return 0
    is_right = crc32c(data[start + ATTRIBUTES_POSITION : end]) == header[CRC]
    return VERIFIED + (header[ATTRIBUTES] & CODEC_MASK) if is_right else 0


def _starts_above(segment: LogSegment, number: int, offset: int) -> bool:
    first = segment.entry(number).header.base_offset
    return first is not None and first > offset


# -- one served partition ----------------------------------------------------------------------------------------------


MAX_TIERED_SIZE: Final = 1 << 19
"""Maximum bytes of a tiered log in one answer, unless its first entry is larger: they stay in memory until sent."""
FIRST_STEP: Final = 64
"""Offsets of the first step of the walk of a tiered log; each further step is twice as long."""


class ServedPartition:
    """A partition that several clients read at once: one lookup at a time, while answers are sent in parallel.

    Attributes:
        source: its directory, and how to read it.
    """

    def __init__(self, source: Source, on_finding: Callable[[str], None]) -> None:
        """Store the options; no file is touched yet.

        Args:
            source: its directory, and how to read it.
            on_finding: called once with each finding that prevents bytes from being served.
        """
        self.source = source
        self._on_finding = on_finding
        self._lock = TimedLock()
        self._opened: Partition | None = None
        self._state: FileState = ()
        self._reread_at = -REREAD_SECONDS
        self._window = KeptWindow()
        self._verified = VerifiedEntries(self._window)
        self._transactions = ServedTransactions()
        self._reported: set[str] = set()

    @property
    def _partition(self) -> Partition:
        if self._opened is None:
            self._opened = self._listed()
            self._warn_of_tails(self._opened)
        return self._opened

    def _listed(self) -> Partition:
        before = state_of(self.source.path)
        partition = self.source.opener()
        self._state = before + last_state(partition)
        return partition

    def may_take_long(self, offset: int | None, *, is_committed_only: bool) -> bool:
        """Return whether an answer may have to wait for files to be opened and walked, or for a thread that does so.

        Args:
            offset: the offset to look up; None for the end of the log.
            is_committed_only: whether the answer depends on transactions.
        """
        partition = self._opened
        if partition is None or self._lock.held_seconds > LONG_HELD_SECONDS:
            return True
        if is_committed_only and not self._transactions.found.end_offset:
            return True
        segments = partition.segments
        index = len(segments) - 1 if offset is None else bisect_left(segments, offset, key=_last_allowed)
        return index < len(segments) and (segments[index].is_tiered or not segments[index].walked.has_begun)

    def rest(self) -> None:
        """Close the files until the next use, unless they are in use now."""
        if self._lock.acquire(blocking=False):
            try:
                if self._opened is not None:
                    self._opened.close()
            finally:
                self._lock.release()

    def forget(self) -> None:
        """List the directory again before the next answer: a file was missing."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened, self._transactions = None, ServedTransactions()
            self._verified.clear()

    def refresh(self, *, is_damaged: bool = False) -> bool:
        """List the directory again if it or its last file has changed; return whether they may have.

        An entry `is_damaged`: its file may have been rewritten in place since. So it is read again, every few seconds.
        """
        with self._lock:
            if is_damaged and not self._reread_at <= time.monotonic() - REREAD_SECONDS:
                return False
            try:
                return self._refresh(is_damaged)
            except (FormatError, UsageError):  # a file was deleted; the next reader gets the error
                self._opened, self._transactions = None, ServedTransactions()
                self._verified.clear()
                return True

    def _refresh(self, is_forced: bool = False) -> bool:  # noqa: FBT001, FBT002 - called by position
        known = self._opened
        if known is None:
            return False
        if not is_forced and state_of(self.source.path) + last_state(known) == self._state:
            return False
        known.close()
        self._opened = None
        self._opened = self._listed()
        are_same = [self._keep_known(segment, known) for segment in self._opened.segments]
        self._reread_at = time.monotonic()
        if not all(are_same) or self._transactions.found.damage is not None:
            self._transactions = ServedTransactions()
        self._warn_of_tails(self._opened)
        return True

    def _keep_known(self, segment: LogSegment, before: Partition) -> bool:
        """Keep the walk and the marks of an unchanged file; return False if it has changed."""
        known = next((each for each in before.segments if each.base_offset == segment.base_offset), None)
        if known is not None and segment.resume_from(known):
            return True
        self._verified.forget(segment)
        return known is None

    def log_range(self, *, is_committed_only: bool) -> LogRange:
        """Return the offsets that a client may read.

        Raises:
            UsageError: the directory cannot be read.
        """
        with self._lock:
            return self._range(is_committed_only=is_committed_only)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """Look up a timestamp as `Partition.offset_for_timestamp` does; report damage.

        Raises:
            FormatError: damage was met before the answer was certain.
            UsageError: there is no such lookup, or the directory cannot be read.
        """
        with self._lock:
            try:
                return self._partition.offset_for_timestamp(timestamp_ms)
            except FormatError as error:
                self._report(error)
                raise

    def fetch(self, offset: int, max_bytes: int, *, is_committed_only: bool, is_first: bool) -> Fetched:
        """Return entries from an offset on, up to a size, in one segment.

        Args:
            offset: first offset wanted.
            max_bytes: of entries.
            is_committed_only: end at the last stable offset, and return aborted transactions.
            is_first: return the first entry even if it exceeds `max_bytes`.

        Raises:
            OffsetOutOfRangeError: the offset is not in the log (SEG-LKP-004).
            FormatError: the entry is damaged.
            UsageError: the directory cannot be read.
        """
        with self._lock:
            try:
                look_at_size(self._partition, offset, self._refresh)
                if self.source.is_raw:
                    return self._fetch_raw(offset, max_bytes, is_committed_only=is_committed_only, is_first=is_first)
                return self._fetch(offset, max_bytes, is_committed_only=is_committed_only, is_first=is_first)
            except FormatError as error:
                self._report(error)
                raise

    def _fetch(self, offset: int, max_bytes: int, *, is_committed_only: bool, is_first: bool) -> Fetched:
        log = self._range_around(offset, is_committed_only=is_committed_only)
        limit = log.stable if is_committed_only else log.end
        found = self._first_entry(offset) if offset < limit else None
        if found is None:
            self._raise_damage_at(offset, log, is_committed_only=is_committed_only)
            return Fetched(log, None, () if is_committed_only else None)
        segment, first = found
        stop = self._stop(segment, first, max_bytes, limit)
        if stop <= first and not is_first:
            return Fetched(log, None, () if is_committed_only else None)
        return self._answer(log, segment, (first, max(stop, first + 1)), offset, is_committed_only=is_committed_only)

    def _range_around(self, offset: int, *, is_committed_only: bool) -> LogRange:
        log = self._range(is_committed_only=is_committed_only)
        if not log.start <= offset <= log.end:
            msg = f"{self.source}: offset {offset} is not from {log.start} to {log.end}"
            raise OffsetOutOfRangeError(msg)
        return log

    def _fetch_raw(self, offset: int, max_bytes: int, *, is_committed_only: bool, is_first: bool) -> Fetched:
        """Return bytes from the entry with an offset on, cut at the maximum size as brokers cut them."""
        log = self._range_around(offset, is_committed_only=is_committed_only)
        aborted = self._aborted(offset, INT64_MAX) if is_committed_only else None
        for segment in self._partition.segments:
            table = segment.entries
            number = table.find(offset)
            start = table.position if number is None else table.positions[number]
            rest = segment.source.size - start
            if segment.allowed.last >= offset and rest:
                first = rest if number is None else segment.entry(number).header.size_in_bytes
                size = min(rest, max(max_bytes, first if is_first else 0))
                return Fetched(log, self._taken(segment, start, size) if size else None, aborted)
        return Fetched(log, None, aborted)

    def _answer(
        self, log: LogRange, segment: LogSegment, numbers: tuple[int, int], offset: int, *, is_committed_only: bool
    ) -> Fetched:
        """Return the entries of these numbers, up to the first with a wrong checksum."""
        first, wanted = numbers
        table = segment.walked
        codec_id = self._verified.first(segment, first, offset)
        stop = self._verified.stop(segment, first + 1, wanted, self._report) if wanted > first + 1 else wanted
        end = table.positions[stop] if stop < len(table.positions) else table.position
        records = self._taken(segment, table.positions[first], end - table.positions[first])
        aborted = self._aborted(offset, table.last_offsets[stop - 1] + 1) if is_committed_only else None
        return Fetched(log, records, aborted, codec_id)

    def _taken(self, segment: LogSegment, position: int, size: int) -> Chunk:
        records = taken(segment, position, size)
        if isinstance(records, bytes):
            self._window.used(segment, size)
        return records

    def _first_entry(self, offset: int) -> tuple[LogSegment, int] | None:
        """Find segment and number of the first entry that ends at or above an offset; raise for damage before it."""
        segments = self._partition.segments
        for segment in segments[bisect_left(segments, offset, key=_last_allowed) :]:
            number = segment.number_of(offset)
            if number is not None:
                return segment, number
            _raise_lost_end(segment)
        return None

    def _raise_damage_at(self, offset: int, log: LogRange, *, is_committed_only: bool) -> None:
        """Raise the error for damage at an offset, if damage is the reason that no entry is served there."""
        damage = self._work_out_transactions().damage if is_committed_only and offset >= log.stable else None
        if damage is not None:
            raise damage.with_traceback(None)
        if offset >= log.end and self._partition.segments:
            last = self._partition.segments[-1]
            last.raise_damage()
            last.refuse_hidden_entries(last.walked.position)

    def _stop(self, segment: LogSegment, first: int, max_bytes: int, limit: int) -> int:
        """Return the number of the entry after the last one that fits and ends below an offset."""
        max_bytes = min(max_bytes, MAX_TIERED_SIZE) if segment.is_tiered else max_bytes
        start = segment.walked.positions[first]
        table = _walked_to(segment, start + max_bytes + 1)
        count = len(table.positions)
        if table.position - start <= max_bytes:
            fits = count
        else:
            fits = bisect_left(table.positions, start + max_bytes + 1, first) - 1
        return min(fits, bisect_left(table.last_offsets, limit, first))

    def _range(self, *, is_committed_only: bool) -> LogRange:
        partition = self._partition
        start, end = partition.log_start_offset, partition.log_end_offset
        if self.source.is_raw:
            last = partition.segments[-1] if partition.segments else None
            end += last is not None and last.source.size > last.entries.position
            return LogRange(start, end, end)
        if self.source.end is not None:
            end = max(start, min(end, self.source.end()))
        if not is_committed_only:
            return LogRange(start, end, end)
        return LogRange(start, end, min(end, max(start, self._work_out_transactions().last_stable_offset)))

    def _aborted(self, from_offset: int, to_offset: int) -> tuple[AbortedTxn, ...]:
        listed = self._work_out_transactions().aborted
        first = bisect_left(listed, from_offset, key=lambda one: one.last_offset)
        return tuple(one for one in listed[first:] if one.first_offset < to_offset)

    def _work_out_transactions(self) -> Transactions:
        """Return the transactions of the whole log."""
        found = self._transactions.found
        if found.end_offset < self._partition.log_end_offset and found.damage is None:
            return self._transactions.read_on(self._partition)
        return found

    def _warn_of_tails(self, partition: Partition) -> None:
        if self.source.end is not None or self.source.is_raw:
            return
        last = partition.segments[-1] if partition.segments else None
        if last is not None and last.tail is not None and last.tail.kind is not TailKind.NONE:
            tail = last.tail
            self._report(f"{last.path}:{tail.position}: {tail.size} bytes after the last whole entry are not served")

    def _report(self, finding: object) -> None:
        text = str(finding)
        if text not in self._reported:
            self._reported.add(text)
            self._on_finding(text)


def _walked_to(segment: LogSegment, position: int) -> EntryTable:
    """Return the positions of all entries; of a tiered log, of the entries up to a position and of some after it."""
    if not segment.is_tiered:
        return segment.entries
    table, step = segment.walked, FIRST_STEP
    with suppress(FormatError):  # the next fetch reports the damage
        while table.position < position and not table.is_complete:
            segment.number_of(min(table.next_offset + step, INT64_MAX))
            step *= 2
    return table


def _last_allowed(segment: LogSegment) -> int:
    return segment.allowed.last


def _raise_lost_end(segment: LogSegment) -> None:
    """Refuse to skip damaged entries at the end of a closed segment."""
    tail = segment.tail
    is_closed = segment.allowed.last < GREATEST_OFFSET
    if is_closed and tail is not None and tail.size and segment.next_offset <= segment.allowed.last:
        expected, found = f"entries up to offset {segment.allowed.last}", f"{tail.size} bytes ({tail.kind.value})"
        raise TruncatedError(Location(segment.path, tail.position), tail.requirement, expected=expected, found=found)
