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
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, Location, OffsetOutOfRangeError, TruncatedError, UsageError
from seglog_format.model import GREATEST_OFFSET, INT64_MAX, TailKind
from seglog_format.serve.fetched import Fetched, LogRange
from seglog_format.serve.file_state import REREAD_SECONDS, FileState, last_state, look_at_size, state_of
from seglog_format.serve.kept_window import KeptWindow
from seglog_format.serve.limits import LONG_HELD_SECONDS
from seglog_format.serve.slices import Chunk, taken
from seglog_format.serve.timed_lock import TimedLock
from seglog_format.serve.transactions import ServedTransactions
from seglog_format.serve.verified_entries import VerifiedEntries

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.entry_table import EntryTable
    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import AbortedTxn, TimestampOffset
    from seglog_format.serve.fetched import Source

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
        has_zstd = self._verified.first(segment, first, offset)
        stop = self._verified.stop(segment, first + 1, wanted, self._report) if wanted > first + 1 else wanted
        end = table.positions[stop] if stop < len(table.positions) else table.position
        records = self._taken(segment, table.positions[first], end - table.positions[first])
        aborted = self._aborted(offset, table.last_offsets[stop - 1] + 1) if is_committed_only else None
        return Fetched(log, records, aborted, has_zstd)

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
            self._partition.segments[-1].raise_damage()

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
