"""The indexes of a segment, and the producers and epochs of its batches, in one walk (chapter 71).

If the fast path does not cover one entry of a log, the fallback decoder computes all its indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import helper, inlined, kernel
from seglog_format.columnar.entries import UNKNOWN_OFFSET, entry_size
from seglog_format.columnar.index_sound import (
    UNCOVERED_MARKER,
    marker_in,
    ordered_offsets,
    pass_sound,
    sound_state,
)
from seglog_format.columnar.layout import (
    BATCH_ATTRIBUTES,
    BATCH_MAGIC,
    CONTROL,
    LEADER_EPOCH,
    MAGIC,
    MAX_TIMESTAMP,
    OFFSET,
    PRODUCER_ID,
    TRANSACTIONAL,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_u8, region, store_64
from seglog_format.columnar.messages import message_timestamp
from seglog_format.columnar.windows import Windows
from seglog_format.model import INT32_MAX
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table
    from seglog_format.storage.byte_source import Readable

OFFSET_SLOT: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_SLOT: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
PAIR_SIZE: Final = 16
LARGEST_SIZE: Final = 2**31 - 1
"""Maximum size of a log whose positions an index can store."""
NO_TIMESTAMP: Final = -1
ROWS: Final = 4096

POSITION, BASE_OFFSET, INTERVAL, STORES_FIRST = range(4)
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
        columns = (EVENT[name] for name in ("producer_id", "kind", "base_offset", "last_offset"))
        return list(zip(*(wanted[:, column].tolist() for column in columns), strict=True))


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


def index_log(log: Readable, base_offset: int, interval_bytes: int, *, stores_first_offset: bool) -> IndexedLog | None:
    """Index a log as recovery does; return None if an entry before its end is not covered.

    The caller has to check that the bytes after the end are not an entry.

    Args:
        log: bytes of the log, up to the end of the part to index.
        base_offset: of the segment.
        interval_bytes: `index.interval.bytes`.
        stores_first_offset: the offset index names the first offset of an entry, not the last.
    """
    source = source_of(log)
    if source.size > LARGEST_SIZE:
        return None
    indexing = Indexing(base_offset, interval_bytes, stores_first_offset=stores_first_offset)
    windows = Windows(source)
    is_covered = indexing.add(windows)
    while is_covered and windows.has_more(indexing.state):
        is_covered = indexing.add(windows)
    return indexing.result(windows.origin + int(indexing.state[POSITION])) if is_covered else None


def index_sound_log(
    log: Readable, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
) -> IndexedLog | None:
    """Index a log whose entries are all kept by recovery, reading it once; return None if an entry is not covered.

    Args:
        log: bytes of the log.
        base_offset: of the segment.
        interval_bytes: `index.interval.bytes`.
        stores_first_offset: the offset index names the first offset of an entry, not the last.
    """
    source = source_of(log)
    if not 0 < source.size <= LARGEST_SIZE:
        return None
    indexing = Indexing(base_offset, interval_bytes, stores_first_offset=stores_first_offset)
    sound, windows = sound_state(base_offset), Windows(source)
    has_more = True
    while has_more:
        pass_sound(windows.data, sound)
        indexing.state[POSITION] = 0
        if not indexing.add(windows, int(sound[POSITION])):
            return None
        end = windows.origin + int(sound[POSITION])
        has_more = windows.has_more(sound)
    return indexing.result(end) if end == source.size else None


def _packed(table: Table, slot: np.dtype[np.void]) -> bytes:
    """Return the slots of an index file."""
    slots = np.empty(len(table), slot)
    for number, name in enumerate(slot.names or ()):
        slots[name] = table[:, number]
    return slots.tobytes()
