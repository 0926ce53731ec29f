"""A block of rows: one buffer that the kernel fills, cut into columns, and turned into an Arrow batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from seglog_format.columnar import plan as names
from seglog_format.columnar.copying import SLACK
from seglog_format.columnar.entry_columns import ENTRY_COLUMNS, EntryColumns
from seglog_format.columnar.gather import gather_values, gather_views, total_size
from seglog_format.columnar.notes import NOTE_SIZE, noted_entries
from seglog_format.columnar.views import VIEW_SIZE
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers
    from seglog_format.columnar.pool import Pool
    from seglog_format.columnar.schema import Shape

ALIGNMENT: Final = 64
MAX_CLASSIC_SIZE: Final = 2**31 - 1
NOT_WANTED: Final = -1
NOTES: Final = "notes"
"""Not a column: what columns of entries are made from."""
PLACES: Final = "places"
"""Not a column: where the records themselves stand."""

ROW_COLUMNS: Final = {
    "offset": ((names.OFFSETS, 8),),
    "timestamp": ((names.TIMESTAMPS, 8),),
    "key": ((names.KEYS, 16),),
    "value": ((names.VALUES, 16),),
    "headers": ((names.HEADER_ENDS, 4),),
    NOTES: ((names.ENTRIES, NOTE_SIZE),),
    PLACES: ((names.PLACES, 8),),
}
"""What each column takes in the block, by place in the plan: bytes for a row."""
VIEWS: Final = (names.KEYS, names.VALUES, names.HEADER_KEYS, names.HEADER_VALUES)
REFERRED: Final = (names.KEY_BYTES, names.VALUE_BYTES, names.HEADER_KEY_BYTES, names.HEADER_VALUE_BYTES)
VALIDITY: Final = {"timestamp": names.TIMESTAMPS_VALID, "key": names.KEYS_VALID, "value": names.VALUES_VALID}


@dataclass(slots=True)
class Block:
    """Room for some rows and headers.

    Attributes:
        rows: how many fit.
        headers: how many fit.
        data: of rows, laid out as the plan says.
        header_data: of headers.
        places: by place in the plan: where each column stands.
    """

    rows: int
    headers: int
    data: Bytes
    header_data: Bytes
    places: dict[int, int] = field(default_factory=dict)

    @classmethod
    def take(cls, pool: Pool, columns: frozenset[str], rows: int, headers: int) -> Block:
        """Lay out a block, all rows valid as yet."""
        places, size, valid = {}, 0, []
        for name, parts in ROW_COLUMNS.items():
            for number, width in parts:
                places[number] = size if name in columns else NOT_WANTED
                size += _aligned(width * (rows + 1)) if name in columns else 0
        for name, number in VALIDITY.items():
            places[number] = size
            if name in columns:
                valid.append((size, _aligned(rows // 8 + 1)))
                size += valid[-1][1]
        header_size = _aligned(16 * headers)
        places |= {names.HEADER_KEYS: 0, names.HEADER_VALUES: header_size, names.HEADER_VALUES_VALID: 2 * header_size}
        data = pool.take(max(size, ALIGNMENT))
        header_data = pool.take(2 * header_size + _aligned(headers // 8 + 1)) if headers else np.empty(0, np.uint8)
        for start, length in valid:
            data[start : start + length] = 0xFF
        header_data[2 * header_size :] = 0xFF
        if "headers" in columns:
            data[places[names.HEADER_ENDS] : places[names.HEADER_ENDS] + 4] = 0
        return cls(rows, headers, data, header_data, places)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass
class Assembly:
    """What an Arrow batch is put together from: a block that was filled, and the bytes that its views refer to.

    Attributes:
        block: of rows.
        state: how the kernel left it.
        log: bytes of the log.
        arena: decompressed bytes.
        shape: columns and layout.
        file: name of the log.
    """

    block: Block
    state: Numbers
    log: Bytes
    arena: Bytes
    shape: Shape
    file: str
    _buffers: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Of the batch."""
        return int(self.state[names.ROWS])

    def batch(self) -> pa.RecordBatch:
        """The Arrow batch."""
        arrays = [self._column(name) for name in self.shape.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.shape.schema)

    def _column(self, name: str) -> pa.Array:
        if name in ENTRY_COLUMNS:
            return self._entries.column(name)
        array: pa.Array = getattr(self, f"_{name}")()
        return array

    @cached_property
    def _entries(self) -> EntryColumns:
        at, count, data = self._place(names.ENTRIES), int(self.state[names.NOTED]), self.block.data
        notes = data[at : at + NOTE_SIZE * count].view(np.int64)
        offsets = self._numbers(names.OFFSETS) if self._place(names.OFFSETS) >= 0 else None
        return EntryColumns(self.file, *noted_entries(self.log, notes), offsets)

    def _numbers(self, number: int) -> Numbers:
        at = self._place(number)
        return self.block.data[at : at + 8 * self.rows].view(np.int64)

    def _offset(self) -> pa.Array:
        return pa.Array.from_buffers(pa.int64(), self.rows, [None, self._part(names.OFFSETS)])

    def _timestamp(self) -> pa.Array:
        valid = self._validity(names.TIMESTAMPS_VALID, names.NULL_TIMESTAMPS)
        return pa.Array.from_buffers(self.shape.timestamp_type, self.rows, [valid, self._part(names.TIMESTAMPS)])

    def _key(self) -> pa.Array:
        valid = self._validity(names.KEYS_VALID, names.NULL_KEYS)
        return self._bytes(self.block.data, self._place(names.KEYS), self.rows, valid, names.KEY_BYTES)

    def _value(self) -> pa.Array:
        valid = self._validity(names.VALUES_VALID, names.NULL_VALUES)
        return self._bytes(self.block.data, self._place(names.VALUES), self.rows, valid, names.VALUE_BYTES)

    def _headers(self) -> pa.Array:
        count = int(self.state[names.HEADERS])
        data, place = self.block.header_data, self._place
        valid = (
            self._header_buffer.slice(place(names.HEADER_VALUES_VALID))
            if self.state[names.NULL_HEADER_VALUES]
            else None
        )
        keys = self._bytes(data, place(names.HEADER_KEYS), count, None, names.HEADER_KEY_BYTES)
        values = self._bytes(data, place(names.HEADER_VALUES), count, valid, names.HEADER_VALUE_BYTES)
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(self.shape.header_type))
        kind = pa.list_(self.shape.header_type)
        return pa.Array.from_buffers(kind, self.rows, [None, self._part(names.HEADER_ENDS)], children=[pairs])

    def _place(self, number: int) -> int:
        return self.block.places[number]

    def _once(self, name: str, data: Any) -> pa.Buffer:
        """One Arrow buffer for each buffer of ours: the last slice of it gives ours back."""
        if name not in self._buffers:
            self._buffers[name] = pa.py_buffer(data)
        return self._buffers[name]

    @property
    def _header_buffer(self) -> pa.Buffer:
        return self._once("headers", self.block.header_data)

    def _part(self, number: int) -> pa.Buffer:
        return self._once("rows", self.block.data).slice(self._place(number))

    def _validity(self, number: int, nulls: int) -> pa.Buffer | None:
        return self._part(number) if self.state[nulls] else None

    def _bytes(self, data: Bytes, at: int, rows: int, valid: pa.Buffer | None, referred: int) -> pa.Array:
        """A column of bytes in the layout asked for."""
        if self.shape.layout != "view":
            return self._classic(data, at, rows, valid)
        views = self._once("rows" if data is self.block.data else "headers", data).slice(at, 16 * rows)
        return pa.Array.from_buffers(pa.binary_view(), rows, [valid, views, *self._behind(data, at, rows, referred)])

    def _behind(self, data: Bytes, at: int, rows: int, referred: int) -> list[pa.Buffer]:
        """The buffers that views refer to: the bytes where they stand, or a copy where most of those are not wanted."""
        in_log, in_arena = int(self.state[referred]), int(self.state[referred + 1])
        if not in_log and not in_arena:
            return []
        log, arena = self._log_slice(), int(self.state[names.ARENA_USED])
        is_narrow = 2 * in_log >= (len(log) if in_log else 0) and 2 * in_arena >= (arena if in_arena else 0)
        if not is_narrow and not self._all_travel_lightly:
            target = np.empty(in_log + in_arena + SLACK, np.uint8)
            used = gather_views(data, at, rows, self.log, int(self.state[names.ORIGIN]), self.arena, target)
            return [pa.py_buffer(target).slice(0, used)]
        behind = [self._once("log", log) if in_log else pa.py_buffer(b"")]
        return [*behind, self._once("arena", self.arena).slice(0, arena)] if in_arena else behind

    @cached_property
    def _all_travel_lightly(self) -> bool:
        """Whether the batch is at most twice what its rows hold, even where each column takes along all there is."""
        in_log, in_arena = (self.state[np.array(REFERRED) + behind] for behind in (0, 1))
        views = VIEW_SIZE * sum(self._rows_of(place) for place in VIEWS if self._place(place) >= 0)
        taken = np.count_nonzero(in_log) * len(self._log_slice())
        taken += np.count_nonzero(in_arena) * int(self.state[names.ARENA_USED])
        return bool(taken + views <= 2 * (int(in_log.sum() + in_arena.sum()) + views))

    def _rows_of(self, place: int) -> int:
        return int(self.state[names.HEADERS if place in {names.HEADER_KEYS, names.HEADER_VALUES} else names.ROWS])

    def _log_slice(self) -> Bytes:
        return self.log[int(self.state[names.ORIGIN]) : int(self.state[names.POSITION])]

    def _classic(self, data: Bytes, at: int, rows: int, valid: pa.Buffer | None) -> pa.Array:
        """A column in a layout that has all bytes in one buffer, and numbers that say where each row ends."""
        size, width = total_size(data, at, rows), 4 if self.shape.layout == "binary" else 8
        if width == 4 and size > MAX_CLASSIC_SIZE:
            msg = f"a column of {size} bytes is too large for layout 'binary': ask for 'large_binary'"
            raise UsageError(msg)
        target, ends = np.empty(size + SLACK, np.uint8), np.empty((rows + 1) * width, np.uint8)
        origin = int(self.state[names.ORIGIN])
        gather_values(data, at, rows, self.log, origin, self.arena, target, width, ends)
        buffers = [valid, pa.py_buffer(ends), pa.py_buffer(target).slice(0, size)]
        return pa.Array.from_buffers(self.shape.bytes_type, rows, buffers)
