"""The prefilter: skips the entries of a log for which no check can report a finding.

The kernels only decide that an entry passes. The checks read all other entries, and only they report findings: so
each rule is implemented once, and findings do not depend on the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar import plan as names
from seglog_format.columnar.chunks import Decoders, decompress_ahead, no_chunks
from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.layout import BATCH_MAGIC
from seglog_format.columnar.memory import SLACK
from seglog_format.columnar.prefilter_entries import (
    COLUMN,
    COLUMNS,
    HEADER,
    MARKS_ABORT,
    STORED_CODEC,
    STORED_END,
    STORED_MAGIC,
    STORED_START,
    WRAPPER,
    prefilter_entries,
)
from seglog_format.columnar.records import NO_ROOM
from seglog_format.columnar.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.columnar.arrays import Bytes, Numbers, Table
    from seglog_format.scan_statistics import FallbackCause
    from seglog_format.storage.byte_source import Readable

    Decompress = Callable[[int, int, int, int], bytes | None]


# -- the prefilter of indexes, for logs in which every entry passed (chapters 40, 41) ----------------------------------
# As with entries: an index passes, or the checks read it.


OFFSET_SLOT: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_SLOT: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
NO_TIMESTAMP: Final = -1


class FilteredLog:
    """A log in which every entry passed, and no bytes follow the last.

    Args:
        tables: rows of its entries, in order.
        base_offset: of the segment.
    """

    def __init__(self, tables: Sequence[Table], base_offset: int) -> None:
        self._table: Table = np.concatenate(tables)
        self._base_offset = base_offset
        lasts = self._column("last_offset")
        self._is_in_order = bool((lasts[1:] > lasts[:-1]).all())
        times = np.where(self._column("records_count") == 0, NO_TIMESTAMP, self._column("max_timestamp_ms"))
        self._largest: Numbers = np.maximum.accumulate(np.concatenate([[NO_TIMESTAMP], times]))

    def _column(self, name: str) -> Numbers:
        return self._table[:, COLUMN[name]]

    def has_offset_index(self, data: memoryview) -> bool:
        """Return whether no check can report a finding for an offset index with these bytes."""
        slots = _slots(data, OFFSET_SLOT)
        if slots is None or not self._is_in_order:
            return False
        offsets, positions = slots["offset"].astype(np.int64) + self._base_offset, slots["position"].astype(np.int64)
        rows = np.searchsorted(self._column("position"), positions)
        if not _increase(offsets) or not _increase(positions) or (rows >= len(self._table)).any():
            return False
        before = np.concatenate([[-1], self._column("last_offset")])[rows]
        return bool(
            (slots["offset"] >= 0).all()
            and (self._column("position")[rows] == positions).all()
            and (offsets > before).all()
            and (offsets >= self._column("base_offset")[rows]).all()
        )

    def has_time_index(self, data: memoryview, *, is_active: bool) -> bool:
        """Return whether no check can report a finding for a time index with these bytes.

        Args:
            data: of the index.
            is_active: the segment is the last of its partition, whose index need not be finished.
        """
        slots = _slots(data, TIME_SLOT)
        if slots is None or not self._is_in_order:
            return False
        times, offsets = slots["timestamp"].astype(np.int64), slots["offset"].astype(np.int64) + self._base_offset
        if times[0] <= NO_TIMESTAMP or not _increase(times) or (slots["offset"] < 0).any():
            return False
        lasts = self._column("last_offset")
        rows = np.searchsorted(lasts, offsets)
        if (offsets[1:] < offsets[:-1]).any() or (rows >= len(lasts)).any():
            return False
        bases, magics = self._column("base_offset")[rows], self._column("magic")[rows]
        is_same = self._column("max_timestamp_ms")[rows] == times
        return bool(
            (self._largest[np.searchsorted(lasts, offsets, "right")] <= times).all()
            and ((bases <= offsets) & (is_same | (magics == 0))).all()
            and (is_active or times[-1] >= self._largest[-1])
        )


def _slots(data: memoryview, slot: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype[np.void]] | None:
    """Return the slots of an index; None if they are not whole, the last is zero, or there are none."""
    if not len(data) or len(data) % slot.itemsize or not any(data[-slot.itemsize :]):
        return None
    return np.frombuffer(data, slot)


def _increase(values: Numbers) -> bool:
    return bool((values[1:] > values[:-1]).all())


assert WRAPPER < 0 < BATCH_MAGIC


# -- the prefilter -----------------------------------------------------------------------------------------------------


ROWS: Final = 4096
"""Maximum rows of one part."""
ARENA_SIZE: Final = 2**21
MAX_ARENA: Final = 2**30
"""Entries that decompress to more are left to the checks."""
NO_ENTRY: Final = -1
SEARCHED_SIZE: Final = 2**18
"""Bytes that are searched for a text at once."""


@dataclass(frozen=True, slots=True)
class FilteredEntries:
    """Adjacent entries that passed the prefilter.

    Attributes:
        table: a row for each.
        end: position after the last one.
    """

    table: Table
    end: int

    @property
    def positions(self) -> Numbers:
        """Position of each entry in the log."""
        return self._column("position")

    @property
    def entry_count(self) -> int:
        """Number of entries."""
        return len(self.table)

    @property
    def headers_to_check(self) -> list[tuple[int, int]]:
        """Numbers and positions of entries whose records passed, but whose headers must be checked."""
        numbers = np.flatnonzero(self._column("flags") & HEADER)
        return list(zip(numbers.tolist(), self._column("position")[numbers].tolist(), strict=True))

    @property
    def aborts(self) -> dict[int, int]:
        """Producer id by last offset, of batches with an ABORT marker and control batches without a record."""
        marked = self.table[self._column("flags") & MARKS_ABORT != 0]
        return dict(marked[:, [COLUMN["last_offset"], COLUMN["producer_id"]]].tolist())

    @property
    def leader_epochs(self) -> list[tuple[int, int, int, int]]:
        """Epoch, first and last offset, and position of each run of batches with one leader epoch."""
        with_epoch = self.table[self._column("leader_epoch") >= 0]
        epochs = with_epoch[:, COLUMN["leader_epoch"]]
        starts = np.flatnonzero(np.diff(epochs, prepend=NO_ENTRY))
        ends = np.append(starts[1:], len(epochs)) - 1
        columns = ((starts, "leader_epoch"), (starts, "base_offset"), (ends, "last_offset"), (starts, "position"))
        lists = (with_epoch[rows, COLUMN[name]].tolist() for rows, name in columns)
        return list(zip(*lists, strict=True)) if len(epochs) else []

    @property
    def last_offset(self) -> int:
        """Last offset of the last entry."""
        return int(self.table[-1, COLUMN["last_offset"]])

    def reached_before(self, number: int) -> tuple[int, int]:
        """Return the end of the entry before one that is not the first, and the offset after its last."""
        end = self.end if number == self.entry_count else int(self.positions[number])
        return end, int(self._column("last_offset")[number - 1]) + 1

    def usual_count(self, last: int) -> int:
        """Return how many entries at the start have a header that no check need see, and offsets up to a last one."""
        is_doubtful = (self._column("flags") & HEADER != 0) | (self._column("last_offset") > last)
        return int(is_doubtful.argmax()) if is_doubtful.any() else self.entry_count

    def last_offset_before(self, number: int) -> int | None:
        """Return the last offset of the entry before an entry; None if that is not one of these entries."""
        return int(self.table[number - 1, COLUMN["last_offset"]]) if number else None

    def rows(self) -> Iterator[tuple[int, int | None, int, int, int, bool]]:
        """Yield position, base offset (None: wrapper), last offset, largest timestamp, magic, and emptiness."""
        bases: Sequence[int | None] = self._column("base_offset").tolist()
        if (self._column("magic") < BATCH_MAGIC).any():
            bases = [None if offset == WRAPPER else offset for offset in bases]
        lists = (self._column(name).tolist() for name in ("last_offset", "max_timestamp_ms", "magic"))
        empty = (self._column("records_count") == 0).tolist()
        return zip(self._column("position").tolist(), bases, *lists, empty, strict=True)

    def _column(self, name: str) -> Numbers:
        return self.table[:, COLUMN[name]]


def _position_in(data: Bytes, start: int, end: int, text: bytes) -> int | None:
    """Return the first position of a text; a piece is copied at a time, since only `bytes` are searched quickly."""
    for at in range(start, end, SEARCHED_SIZE):
        hit = data[at : min(at + SEARCHED_SIZE + len(text) - 1, end)].tobytes().find(text)
        if hit >= 0:
            return at + hit
    return None


class ColumnarPrefilter:
    """Prefilters the entries of one log.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
        limit: bytes that one entry may decompress to.
        decompress: returns what the kernels do not decompress, by start and end in the log, codec and magic; None if
            the checks have to read the entry.
    """

    def __init__(self, source: Readable, base_offset: int, limit: int, decompress: Decompress) -> None:
        self._windows = Windows(source)
        self._decompress = decompress
        self._plan = np.zeros(names.PLAN_SIZE, np.int64)
        self._plan[names.LIMIT], self._plan[names.MAX_ROWS] = min(limit, MAX_ARENA), names.MAX_CHUNKS * 2**31
        self._plan[names.FIRST_ALLOWED], self._plan[names.CHECKSUM_PATH] = base_offset, checksum_path()
        self._state = np.zeros(names.STATE_SIZE, np.int64)
        self._chunks = no_chunks()
        self._decoders: Decoders | None = None
        self._stored = np.zeros(4, np.int64)
        self._arena: Bytes = np.empty(SLACK, np.uint8)
        self._table = np.empty((ROWS, len(COLUMNS)), np.int64)

    def parts(self, position: int, previous: int | None) -> Iterator[FilteredEntries]:
        """Yield entries from a position on, up to the first that the checks have to read.

        Args:
            position: of an entry.
            previous: last offset of the entry before it in the segment; None for the first.
        """
        self._state[names.PREVIOUS] = NO_ENTRY if previous is None else previous
        self._state[names.POSITION] = self._windows.at(position)
        yield from self._parts_in_sight()
        while self._windows.has_more(self._state):
            yield from self._parts_in_sight()

    def _parts_in_sight(self) -> Iterator[FilteredEntries]:
        self._state[[names.NEXT_CHUNK, names.CHUNKS]] = 0
        goes_on = True
        while goes_on:
            answer = prefilter_entries(
                self._windows.data, self._arena, self._chunks, self._plan, self._state, self._table, self._stored
            )
            if count := int(self._state[names.ROWS]):
                table = self._table[:count].copy()
                self._windows.to_log_positions(table, COLUMN["position"])
                yield FilteredEntries(table, self._windows.origin + int(self._state[names.POSITION]))
            goes_on = answer == names.FULL or (answer == names.DECOMPRESS and self._decompressed())
            if answer == names.DECOMPRESS and not goes_on:
                self._state[names.CAUSE] = names.CAUSE_COMPRESSION

    def entry_with(self, text: bytes, part: FilteredEntries, first: int, end: int) -> int:
        """Return the first of some entries whose bytes, decompressed, hold a text; ``end`` if there is none.

        Args:
            text: at least one byte.
            part: the last that `parts` has yielded.
            first: number of the first entry to search.
            end: number of the entry after the last.
        """
        at = part.positions - self._windows.origin
        chunks = self._chunks.reshape(-1, names.CHUNK_FIELDS)[: int(self._state[names.CHUNKS])]
        chunks = chunks[np.searchsorted(chunks[:, 0], at[0]) :][:end]
        chunks = chunks[: int(np.cumprod(chunks[:, 0] == at[: len(chunks)]).sum())]  # the others are not compressed
        starts = chunks[first:, 1]
        if len(starts):
            hit = _position_in(self._arena, int(starts[0]), int(chunks[-1, 2]), text)
            if hit is not None:
                return first + int(np.searchsorted(starts, hit, "right")) - 1
        if end <= (first := max(first, len(chunks))):
            return end
        stop = part.end - self._windows.origin if end == len(at) else int(at[end])
        hit = _position_in(self._windows.data, int(at[first]), stop, text)
        return end if hit is None else int(np.searchsorted(at, hit, "right")) - 1

    @property
    def cause(self) -> FallbackCause:
        """Return why the entry at which `parts` has ended did not pass."""
        return names.CAUSES[int(self._state[names.CAUSE])]

    def log_of(self, parts: Sequence[FilteredEntries]) -> FilteredLog:
        """Join the parts of a whole log, against which indexes are checked."""
        return FilteredLog([part.table for part in parts], int(self._plan[names.FIRST_ALLOWED]))

    def _decompressed(self) -> bool:
        """Decompress the entry at the position, and sometimes some after it; return whether that was possible."""
        self._state[[names.ROWS, names.ARENA_USED, names.NEXT_CHUNK, names.CHUNKS]] = 0
        if self._decompressed_by_kernel():
            return True
        start, end, codec, magic = (
            int(self._stored[name]) for name in (STORED_START, STORED_END, STORED_CODEC, STORED_MAGIC)
        )
        content = self._decompress(start + self._windows.origin, end + self._windows.origin, codec, magic)
        if content is None or len(content) > MAX_ARENA:
            return False
        if len(content) > len(self._arena) - SLACK:
            self._arena = np.empty(max(len(content), ARENA_SIZE) + SLACK, np.uint8)
        self._arena[: len(content)] = np.frombuffer(content, np.uint8)
        self._chunks[: names.CHUNK_FIELDS] = self._state[names.POSITION], 0, len(content)
        self._state[names.CHUNKS] = 1
        return True

    def _decompressed_by_kernel(self) -> bool:
        if self._decoders is None:
            self._decoders = Decoders()
            self._plan[names.DECODERS :] = self._decoders.slots
        while decompress_ahead(self._windows.data, self._arena, self._plan, self._state, self._chunks) == NO_ROOM:
            size = max(2 * len(self._arena), ARENA_SIZE)
            self._arena = np.empty(min(size, MAX_ARENA + SLACK), np.uint8)
        return bool(self._state[names.CHUNKS])
