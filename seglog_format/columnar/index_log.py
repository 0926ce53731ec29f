"""The indexes of a segment, and the producers and epochs of its batches, in one walk (chapter 71).

If the fast path does not cover one entry of a log, the fallback decoder computes all its indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import checksum_path, helper, inlined, kernel
from seglog_format.columnar.entries import UNKNOWN_OFFSET, entry_is_valid, entry_size
from seglog_format.columnar.layout import (
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL,
    GREATEST_OFFSET,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    MAGIC,
    MAX_TIMESTAMP,
    MESSAGE_ATTRIBUTES,
    NONE,
    OFFSET,
    PRODUCER_ID,
    RECORDS_COUNT,
    TRANSACTIONAL,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_u8, region, store_64
from seglog_format.columnar.messages import message_timestamp
from seglog_format.columnar.plan import POSITION, PREVIOUS
from seglog_format.columnar.prefilter_entries import end_marker, prefilter_records
from seglog_format.columnar.ranges import next_range
from seglog_format.columnar.windows import Windows
from seglog_format.model import INT32_MAX, INT64_MAX
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table
    from seglog_format.storage.byte_source import Readable


# -- entries that recovery keeps unconditionally: whole, with the right checksum and offsets in order (chapter 71) -----


NO_MARKER: Final = (-1, -1, 0)
"""The result for a control batch without records."""
UNCOVERED_MARKER: Final = (-2, 0, 0)
SEGMENT_BASE, PATH = 2, 3
"""After `POSITION` and `PREVIOUS` in the state of `pass_sound`."""


@inlined
def ordered_offsets(data: Region, position: int) -> tuple[int, int]:
    """Return first and last offset of an entry; a wrapper's first is unknown; the last is -1 if both are impossible."""
    offset = load_be64(data, position + OFFSET)
    if load_u8(data, position + MAGIC) < BATCH_MAGIC:
        codec = load_u8(data, position + MESSAGE_ATTRIBUTES) & CODEC_MASK
        return (UNKNOWN_OFFSET if codec != NONE else offset), offset if 0 <= offset <= GREATEST_OFFSET else -1
    delta = load_be32(data, position + LAST_OFFSET_DELTA)
    if offset < 0 or delta < 0 or offset > GREATEST_OFFSET - delta:
        return offset, -1
    return offset, offset + delta


@inlined
def marker_in(data: Region, position: int, size: int) -> tuple[int, int, int]:
    """Return the end marker of a control batch, as `end_marker`; `NO_MARKER` or `UNCOVERED_MARKER` if there is none."""
    count, start = load_be32(data, position + RECORDS_COUNT), position + BATCH_HEADER_SIZE
    if load_be16(data, position + BATCH_ATTRIBUTES) & CODEC_MASK != NONE or count < 0 or count > 1:
        return UNCOVERED_MARKER
    if count == 0:
        return NO_MARKER
    delta, base_ms = load_be32(data, position + LAST_OFFSET_DELTA), load_be64(data, position + BASE_TIMESTAMP)
    passes, _ = prefilter_records(data, start, position + size, 1, delta, base_ms)
    kind, epoch, timestamp_delta = end_marker(data, start, position + size) if passes else UNCOVERED_MARKER
    return (kind, epoch, timestamp_delta) if kind >= 0 else UNCOVERED_MARKER


@kernel
def pass_sound(log: Bytes, state: Numbers) -> None:
    """Skip entries as long as recovery keeps them unconditionally.

    Args:
        log: bytes of a log.
        state: position of an entry, last offset of the entry before, base offset of the segment, path of checksums;
            afterwards the position of the first entry not skipped.
    """
    data, end, base_offset = region(log), len(log), state[SEGMENT_BASE]
    position, previous = state[POSITION], state[PREVIOUS]
    while position >= 0:
        size = entry_size(data, position, end)
        if size < 0:
            break
        first, last = ordered_offsets(data, position)
        if last <= previous or last - base_offset > INT32_MAX or (first != UNKNOWN_OFFSET and first < base_offset):
            break
        if _has_uncovered_marker(data, position, size) or not entry_is_valid(state[PATH], data, position, size):
            break
        position, previous = position + size, last
    state[POSITION], state[PREVIOUS] = position, previous


@inlined
def _has_uncovered_marker(data: Region, position: int, size: int) -> bool:
    """Return whether a control batch of a producer has other content than one end marker as coordinators write it."""
    if load_u8(data, position + MAGIC) != BATCH_MAGIC or not load_be16(data, position + BATCH_ATTRIBUTES) & CONTROL:
        return False
    if load_be64(data, position + PRODUCER_ID) < 0:
        return False
    kind, _, _ = marker_in(data, position, size)
    return kind == UNCOVERED_MARKER[0]


def sound_state(base_offset: int) -> Numbers:
    """Return the state of `pass_sound` at the start of a segment."""
    return np.array([0, base_offset - 1, base_offset, checksum_path()], np.int64)


class SoundEntries:
    """Skips the entries of one log that recovery keeps unconditionally.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
    """

    def __init__(self, source: Readable, base_offset: int) -> None:
        self._windows = Windows(source)
        self._state = sound_state(base_offset)

    def after(self, position: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the sound entries from a position on, and the last offset before it.

        Args:
            position: of an entry.
            last_offset: of the entry before; one less than the base offset for the first.
        """
        self._state[POSITION], self._state[PREVIOUS] = self._windows.at(position), last_offset
        pass_sound(self._windows.data, self._state)
        while self._windows.has_more(self._state):
            pass_sound(self._windows.data, self._state)
        return self._windows.origin + int(self._state[POSITION]), int(self._state[PREVIOUS])


# -- the indexes of a segment ------------------------------------------------------------------------------------------


OFFSET_SLOT: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_SLOT: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
PAIR_SIZE: Final = 16
LARGEST_SIZE: Final = 2**31 - 1
"""Maximum size of a log whose positions an index can store."""
NO_TIMESTAMP: Final = -1
ROWS: Final = 4096

BASE_OFFSET, INTERVAL, STORES_FIRST = range(1, 4)
"""After `POSITION`."""
BYTES_SINCE: Final = 4
"""Bytes since the last indexed entry, with that entry."""
LARGEST_MS, LARGEST_OFFSET, LAST_TIME_MS = range(5, 8)
"""The largest timestamp so far and its offset, and the last one in the time index."""
LATEST_EPOCH: Final = 8
OFFSETS, TIMES, EVENTS, EPOCHS = range(9, 13)
"""Number of stored entries of each kind."""
LAST_OFFSET, WRAPPERS = range(13, 15)
"""Last offset of the last entry, and the number of wrappers."""
STATE_SIZE: Final = 15

EVENT_COLUMNS: Final = ("producer_id", "kind", "base_offset", "last_offset")
"""Columns about a batch with a producer."""
EVENT: Final = {name: number for number, name in enumerate(EVENT_COLUMNS)}
EVENT_SIZE: Final = 8 * len(EVENT_COLUMNS)
EMPTY, DATA, TRANSACTIONAL_DATA = -1, 2, 3
"""Kinds of events, besides the types of end markers: a control batch without a record, and data."""

FULL: Final = 0
STOPPED: Final = 1
GIVEN_UP: Final = -1
"""Returned instead of a position if the result is invalid."""
"""The bytes at the position are not an entry that the fast path covers."""


@kernel
def index_entries(log: Bytes, state: Numbers, offsets: Table, times: Table, events: Table, epochs: Table) -> int:
    """Walk over entries and store index entries, until a table is full, or an entry is not covered.

    Args:
        log: bytes of a log.
        state: start and settings; afterwards the start of the next call, and the numbers of stored entries.
        offsets: receives offsets and positions.
        times: receives timestamps and offsets.
        events: receives the producer events of batches.
        epochs: receives leader epochs and first offsets.

    Returns:
        `FULL` or `STOPPED`.
    """
    data, end, base_offset = region(log), len(log), state[BASE_OFFSET]
    offsets_, times_ = region(offsets.reshape(-1).view(np.uint8)), region(times.reshape(-1).view(np.uint8))
    events_, epochs_ = region(events.reshape(-1).view(np.uint8)), region(epochs.reshape(-1).view(np.uint8))
    position = state[POSITION]
    for _ in range(len(offsets)):
        size = entry_size(data, position, end) if position >= 0 else -1
        if size < 0:
            return STOPPED
        first, last = ordered_offsets(data, position)
        if first == UNKNOWN_OFFSET and not state[STORES_FIRST]:
            first, state[WRAPPERS] = last, state[WRAPPERS] + 1
        is_batch = load_u8(data, position + MAGIC) == BATCH_MAGIC
        has_producer = is_batch and load_be64(data, position + PRODUCER_ID) >= 0
        is_in_range = base_offset <= first <= last and last - base_offset <= INT32_MAX
        if not is_in_range or (has_producer and not _store_event(data, position, size, last, events_, state)):
            state[POSITION] = GIVEN_UP
            return STOPPED
        timestamp_ms = load_be64(data, position + MAX_TIMESTAMP) if is_batch else message_timestamp(data, position)
        _index(state, (position, size, first, last, timestamp_ms), offsets_, times_)
        if is_batch:
            _note_epoch(state, load_be32(data, position + LEADER_EPOCH), first, epochs_)
        position += size
        state[POSITION], state[LAST_OFFSET] = position, last
    return FULL


@inlined
def _index(state: Numbers, row: tuple[int, int, int, int, int], offsets: Region, times: Region) -> None:
    """Update the indexes for an entry: position, size, first and last offset, timestamp."""
    position, size, first, last, timestamp_ms = row
    if timestamp_ms > state[LARGEST_MS]:
        state[LARGEST_MS], state[LARGEST_OFFSET] = timestamp_ms, last
    if state[BYTES_SINCE] > state[INTERVAL]:
        at = PAIR_SIZE * state[OFFSETS]
        store_64(offsets, at, first if state[STORES_FIRST] else last)
        store_64(offsets, at + 8, position)
        state[OFFSETS], state[BYTES_SINCE] = state[OFFSETS] + 1, 0
        if state[LARGEST_MS] > state[LAST_TIME_MS]:
            at = PAIR_SIZE * state[TIMES]
            store_64(times, at, state[LARGEST_MS])
            store_64(times, at + 8, state[LARGEST_OFFSET])
            state[LAST_TIME_MS], state[TIMES] = state[LARGEST_MS], state[TIMES] + 1
    state[BYTES_SINCE] += size


@inlined
def _note_epoch(state: Numbers, epoch: int, first: int, epochs: Region) -> None:
    """Store a leader epoch that is greater than those before."""
    if epoch > state[LATEST_EPOCH]:
        at = PAIR_SIZE * state[EPOCHS]
        store_64(epochs, at, epoch)
        store_64(epochs, at + 8, first)
        state[LATEST_EPOCH], state[EPOCHS] = epoch, state[EPOCHS] + 1


@helper
def _store_event(data: Region, position: int, size: int, last: int, events: Region, state: Numbers) -> bool:
    """Store the producer event of a batch; return whether the fast path covers it."""
    attributes, kind = load_be16(data, position + BATCH_ATTRIBUTES), DATA
    if attributes & CONTROL:
        kind = marker_in(data, position, size)[0]
        if kind == UNCOVERED_MARKER[0]:
            return False
    elif attributes & TRANSACTIONAL:
        kind = TRANSACTIONAL_DATA
    at = EVENT_SIZE * state[EVENTS]
    store_64(events, at, load_be64(data, position + PRODUCER_ID))
    store_64(events, at + 8 * 1, kind)
    store_64(events, at + 8 * 2, load_be64(data, position + OFFSET))
    store_64(events, at + 8 * 3, last)
    state[EVENTS] += 1
    return True


@dataclass(frozen=True, slots=True)
class IndexedLog:
    """The indexes of a log, up to the first entry that is not covered.

    Attributes:
        offset_index: the bytes of the offset index.
        time_index: of the time index.
        epoch_starts: first offset of each leader epoch that is greater than those before.
        events: producer events of batches, a row for each.
        end: position after the last entry.
        last_offset: of the last entry; one less than the base offset without entries.
        has_wrappers: whether there are compressed messages of magic 0 or 1.
    """

    offset_index: bytes
    time_index: bytes
    epoch_starts: list[tuple[int, int]]
    events: Table
    end: int
    last_offset: int
    has_wrappers: bool

    def producers_outside(self) -> set[int]:
        """Return the ids of producers that appended outside of transactions."""
        kinds = self.events[:, EVENT["kind"]]
        return set(self.events[kinds == DATA, EVENT["producer_id"]].tolist())

    def transaction_events(self) -> list[tuple[int, int, int, int]]:
        """Return producer id, kind (0 ABORT, 1 COMMIT, 3 data), base and last offset of each transactional batch."""
        kinds = self.events[:, EVENT["kind"]]
        wanted = self.events[(kinds != DATA) & (kinds != EMPTY)]
        return [(producer_id, kind, base, last) for producer_id, kind, base, last in wanted.tolist()]


class Indexing:
    """Collects the index entries of a log, part by part.

    Args:
        base_offset: of the segment.
        interval_bytes: `index.interval.bytes`.
        stores_first_offset: the offset index names the first offset of an entry, not the last.

    Attributes:
        state: of `index_entries`; its position is relative to the part that is added next.
    """

    def __init__(self, base_offset: int, interval_bytes: int, *, stores_first_offset: bool) -> None:
        self.state = state = np.zeros(STATE_SIZE, np.int64)
        state[BASE_OFFSET], state[INTERVAL], state[STORES_FIRST] = base_offset, interval_bytes, stores_first_offset
        state[LARGEST_MS] = state[LAST_TIME_MS] = NO_TIMESTAMP
        state[LATEST_EPOCH], state[LAST_OFFSET] = -1, base_offset - 1
        self._tables = [np.empty((ROWS, width), np.int64) for width in (2, 2, len(EVENT_COLUMNS), 2)]
        self._kept: list[list[Table]] = [[], [], [], []]

    def add(self, windows: Windows, end: int | None = None) -> bool:
        """Index the entries in a window, and save the content of the tables whenever they are full.

        Args:
            windows: of the log.
            end: position in the window at which to stop; None for its end.

        Returns:
            Whether all entries so far are covered.
        """
        data, answer = windows.data[:end], FULL
        while answer == FULL:
            self.state[OFFSETS : EPOCHS + 1] = 0
            answer = index_entries(data, self.state, *self._tables)
            for part, table, count in zip(
                self._kept, self._tables, self.state[OFFSETS : EPOCHS + 1].tolist(), strict=True
            ):
                part.append(table[:count].copy())
            windows.to_log_positions(self._kept[0][-1], 1)
        return int(self.state[POSITION]) >= 0

    def result(self, end: int) -> IndexedLog:
        """Return the indexes.

        Args:
            end: position in the log after the last entry.
        """
        base_offset = int(self.state[BASE_OFFSET])
        if self.state[LARGEST_MS] > self.state[LAST_TIME_MS]:
            self._kept[1].append(self.state[[LARGEST_MS, LARGEST_OFFSET]].reshape(1, 2))
        offsets, times, events, epochs = map(np.concatenate, self._kept)
        offsets[:, 0] -= base_offset
        times[:, 1] -= base_offset
        return IndexedLog(
            _packed(offsets, OFFSET_SLOT),
            _packed(times, TIME_SLOT),
            [(epoch, offset) for epoch, offset in epochs.tolist()],
            events,
            end,
            int(self.state[LAST_OFFSET]),
            bool(self.state[WRAPPERS]),
        )


def _packed(table: Table, slot: np.dtype[np.void]) -> bytes:
    """Return the slots of an index file."""
    slots = np.empty(len(table), slot)
    for number, name in enumerate(slot.names or ()):
        slots[name] = table[:, number]
    return slots.tobytes()


# -- the columnar engine's part of recovery, in one object -------------------------------------------------------------


class ColumnarRecovery:
    """Recovery and indexing by compiled code."""

    sound_entries = SoundEntries

    def indexed(
        self, log: Readable, base_offset: int, interval_bytes: int, *, stores_first_offset: bool, is_sound: bool = False
    ) -> IndexedLog | None:
        """Index a log as recovery does, reading it once; return None if an entry before its end is not covered.

        The caller has to check that the bytes after the end are not an entry.

        Args:
            log: bytes of the log, up to the end of the part to index.
            base_offset: of the segment.
            interval_bytes: `index.interval.bytes`.
            stores_first_offset: the offset index names the first offset of an entry, not the last.
            is_sound: return None, too, if recovery would not keep the whole log.
        """
        source, end, has_more = source_of(log), None, True
        if source.size > LARGEST_SIZE or (is_sound and not source.size):
            return None
        indexing = Indexing(base_offset, interval_bytes, stores_first_offset=stores_first_offset)
        sound, windows = sound_state(base_offset), Windows(source)
        state = sound if is_sound else indexing.state
        while has_more:
            if is_sound:
                pass_sound(windows.data, sound)
                indexing.state[POSITION], end = 0, int(sound[POSITION])
            if not indexing.add(windows, end):
                return None
            last = windows.origin + int(state[POSITION])
            has_more = windows.has_more(state)
        return indexing.result(last) if not is_sound or last == source.size else None

    def ordered_end(self, source: Readable, first_offset: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the covered entries with offsets in order, and their last offset."""
        state = np.array([0, first_offset - 1, first_offset, last_offset], np.int64)
        windows = Windows(source)
        next_range(windows.data, state, INT64_MAX // 2)
        while windows.has_more(state):
            next_range(windows.data, state, INT64_MAX // 2)
        return windows.origin + int(state[0]), int(state[1])
