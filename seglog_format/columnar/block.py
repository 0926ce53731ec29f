"""A block of rows: one buffer that the kernel fills, divided into columns, and converted to an Arrow batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from seglog_format.columnar import plan as names
from seglog_format.columnar.entries import COLUMN
from seglog_format.columnar.memory import SLACK
from seglog_format.columnar.notes import NOTE_SIZE, noted_entries
from seglog_format.columnar.schema import ENTRY_COLUMNS, TIMESTAMP_TYPE, EntryColumns
from seglog_format.columnar.views import MAX_INLINE, VIEW_SIZE, gather_values, gather_views
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers
    from seglog_format.columnar.schema import Shape
    from seglog_format.columnar.windows import Pool, Windows


# -- arrow's classic layouts: all bytes of a column in one buffer, and a number for the end of each row ----------------


WIDTHS: Final = {"binary": 4, "large_binary": 8}
"""Size of the number for the end of a row, by layout."""
LARGEST: Final = {layout: 2 ** (8 * width - 1) - 1 for layout, width in WIDTHS.items()}


class CopiedColumn:
    """Collects copies of the bytes that views refer to, some rows at a time.

    Attributes:
        capacity: bytes that currently fit.
    """

    def __init__(self, pool: Pool, layout: str, rows: int, capacity: int) -> None:
        self._pool = pool
        self._width = WIDTHS[layout]
        self._largest = LARGEST[layout]
        self._target = pool.take(capacity + SLACK)
        self.capacity = len(self._target) - SLACK
        self._ends = pool.take((rows + 1) * self._width)
        self._rows = self._used = 0

    def extend(self, block: Bytes, at: int, rows: int, most: int, log: Bytes, origin: int, arena: Bytes) -> None:
        """Copy the bytes of the rows that were not copied yet.

        Args:
            block: holds the views of the column.
            at: position of the first view.
            rows: number of views.
            most: upper bound of the bytes that all views refer to.
            log: bytes that some views refer to.
            origin: position in the log that views are relative to.
            arena: bytes that the other views refer to.

        Raises:
            UsageError: there are more bytes than the layout can hold.
        """
        start, count = at + VIEW_SIZE * self._rows, rows - self._rows
        most += MAX_INLINE * rows
        if most > self._largest:
            most = self._held_to_layout(self._used + _size(block, start, count))
        if most > self.capacity:
            self._grow(most)
        ends = self._ends[self._rows * self._width :]
        self._used = gather_values(block, start, count, log, origin, arena, self._target, self._used, self._width, ends)
        self._rows = rows

    def _held_to_layout(self, size: int) -> int:
        if size > self._largest:
            msg = f"a column of {size} bytes is too large for layout 'binary': ask for 'large_binary'"
            raise UsageError(msg)
        return size

    def _grow(self, size: int) -> None:
        larger = self._pool.take(max(size, 2 * self.capacity) + SLACK)
        larger[: self._used] = self._target[: self._used]
        self._target, self.capacity = larger, len(larger) - SLACK

    def array(self, kind: pa.DataType, valid: pa.Buffer | None) -> pa.Array:
        """Return the rows as an Arrow array."""
        ends, target = pa.py_buffer(self._ends), pa.py_buffer(self._target)
        buffers = [valid, ends.slice(0, (self._rows + 1) * self._width), target.slice(0, self._used)]
        return pa.Array.from_buffers(kind, self._rows, buffers)


def _size(block: Bytes, at: int, rows: int) -> int:
    """Return the number of bytes that views refer to, including bytes inside of views."""
    sizes = block[at : at + VIEW_SIZE * rows].view(np.uint32)[:: VIEW_SIZE // 4]
    return int(sizes.sum(dtype=np.int64))


# -- a block of rows ---------------------------------------------------------------------------------------------------


ALIGNMENT: Final = 64
NOT_WANTED: Final = -1
NOTES: Final = "notes"
"""Not a column: the data from which columns about entries are made."""
POSITIONS: Final = "positions"
"""Not a column: the positions of the records themselves."""

ROW_COLUMNS: Final = {
    "offset": ((names.OFFSETS, 8),),
    "timestamp": ((names.TIMESTAMPS, 8),),
    "key": ((names.KEYS, 16),),
    "value": ((names.VALUES, 16),),
    "headers": ((names.HEADER_ENDS, 4),),
    NOTES: ((names.ENTRIES, NOTE_SIZE),),
    POSITIONS: ((names.POSITIONS, 8),),
}
"""Bytes of the block that each column needs for a row, by its index in the plan."""
VIEWS: Final = (names.KEYS, names.VALUES, names.HEADER_KEYS, names.HEADER_VALUES)
REFERRED: Final = (names.KEY_BYTES, names.VALUE_BYTES, names.HEADER_KEY_BYTES, names.HEADER_VALUE_BYTES)
VALIDITY: Final = {"timestamp": names.TIMESTAMPS_VALID, "key": names.KEYS_VALID, "value": names.VALUES_VALID}


@dataclass(frozen=True)
class BlockLayout:
    """The positions of the parts of a block.

    Attributes:
        rows: maximum number of rows.
        headers: maximum number of headers.
        starts: position of each column, by its index in the plan.
        size: bytes of the rows.
        validity: start and end of the validity bits of each column that has them.
        header_size: bytes of the headers, without their validity bits, which follow.
    """

    rows: int
    headers: int
    starts: dict[int, int]
    size: int
    validity: tuple[slice, ...]
    header_size: int

    @property
    def numbers(self) -> list[int]:
        """The positions, in the order of the plan."""
        return [self.starts[number] for number in range(names.ENTRIES, names.POSITIONS + 1)]


@lru_cache(maxsize=16)
def block_layout(columns: frozenset[str], rows: int, headers: int) -> BlockLayout:
    """Lay out a block for some columns of rows, and for headers."""
    starts, size, validity = {}, 0, []
    for name, parts in ROW_COLUMNS.items():
        for number, width in parts:
            starts[number] = size if name in columns else NOT_WANTED
            size += _aligned(width * (rows + 1)) if name in columns else 0
    for name, number in VALIDITY.items():
        starts[number] = size
        if name in columns:
            validity.append(slice(size, size + _aligned(rows // 8 + 1)))
            size = validity[-1].stop
    column = _aligned(VIEW_SIZE * headers)
    starts |= {names.HEADER_KEYS: 0, names.HEADER_VALUES: column, names.HEADER_VALUES_VALID: 2 * column}
    return BlockLayout(rows, headers, starts, max(size, ALIGNMENT), tuple(validity), 2 * column)


@dataclass(slots=True)
class Block:
    """Memory for some rows and headers.

    Attributes:
        layout: positions of its parts.
        data: of rows.
        header_data: of headers.
        copied: columns whose bytes are copied together while the block is filled, by their index in the plan.
    """

    layout: BlockLayout
    data: Bytes
    header_data: Bytes
    copied: dict[int, CopiedColumn] = field(default_factory=dict)

    @classmethod
    def take(cls, pool: Pool, layout: BlockLayout) -> Block:
        """Return a block with all rows valid."""
        data, header_data = pool.take(layout.size), np.empty(0, np.uint8)
        for bits in layout.validity:
            data[bits] = 0xFF
        if layout.headers:
            header_data = pool.take(layout.header_size + _aligned(layout.headers // 8 + 1))
            header_data[layout.header_size :] = 0xFF
        if (ends := layout.starts[names.HEADER_ENDS]) != NOT_WANTED:
            data[ends : ends + 4] = 0
        return cls(layout, data, header_data)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass
class Assembly:
    """The parts of an Arrow batch: a filled block, and the bytes that its views refer to.

    Attributes:
        block: of rows.
        state: the state after the kernel.
        window: the part of the log that the kernel has read.
        arena: decompressed bytes.
        shape: columns and layout.
        file: name of the log.
        pool: of buffers.
    """

    block: Block
    state: Numbers
    window: Windows
    arena: Bytes
    shape: Shape
    file: str
    pool: Pool
    _buffers: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Bytes:
        """Bytes of the log; positions in the block are relative to their start."""
        return self.window.data

    @property
    def rows(self) -> int:
        """Number of rows of the batch."""
        return int(self.state[names.ROWS])

    def batch(self) -> pa.RecordBatch:
        """Return the Arrow batch."""
        arrays = [self._column(name) for name in self.shape.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.shape.schema)

    def _column(self, name: str) -> pa.Array:
        if name in ENTRY_COLUMNS:
            return self._entries.column(name)
        array: pa.Array = getattr(self, f"_{name}")()
        return array

    @cached_property
    def _entries(self) -> EntryColumns:
        at, count, data = self._position_of(names.ENTRIES), int(self.state[names.NOTED]), self.block.data
        notes = data[at : at + NOTE_SIZE * count].view(np.int64)
        offsets = self._numbers(names.OFFSETS) if self._position_of(names.OFFSETS) >= 0 else None
        entries, counts = noted_entries(self.log, notes)
        self.window.to_log_positions(entries.rows, COLUMN["position"])
        return EntryColumns(self.file, entries, counts, offsets)

    def _numbers(self, number: int) -> Numbers:
        at = self._position_of(number)
        return self.block.data[at : at + 8 * self.rows].view(np.int64)

    def _offset(self) -> pa.Array:
        return pa.Array.from_buffers(pa.int64(), self.rows, [None, self._part(names.OFFSETS)])

    def _timestamp(self) -> pa.Array:
        valid = self._validity(names.TIMESTAMPS_VALID, names.NULL_TIMESTAMPS)
        return pa.Array.from_buffers(TIMESTAMP_TYPE, self.rows, [valid, self._part(names.TIMESTAMPS)])

    def _key(self) -> pa.Array:
        return self._row_bytes(names.KEYS, self._validity(names.KEYS_VALID, names.NULL_KEYS), names.KEY_BYTES)

    def _value(self) -> pa.Array:
        return self._row_bytes(names.VALUES, self._validity(names.VALUES_VALID, names.NULL_VALUES), names.VALUE_BYTES)

    def _row_bytes(self, column: int, valid: pa.Buffer | None, referred: int) -> pa.Array:
        if column in self.block.copied:
            return self.block.copied[column].array(self.shape.bytes_type, valid)
        return self._bytes(self.block.data, self._position_of(column), self.rows, valid, referred)

    def _headers(self) -> pa.Array:
        count = int(self.state[names.HEADERS])
        data, column = self.block.header_data, self._position_of
        valid = (
            self._header_buffer.slice(column(names.HEADER_VALUES_VALID))
            if self.state[names.NULL_HEADER_VALUES]
            else None
        )
        keys = self._bytes(data, column(names.HEADER_KEYS), count, None, names.HEADER_KEY_BYTES)
        values = self._bytes(data, column(names.HEADER_VALUES), count, valid, names.HEADER_VALUE_BYTES)
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(self.shape.header_type))
        kind = pa.list_(self.shape.header_type)
        return pa.Array.from_buffers(kind, self.rows, [None, self._part(names.HEADER_ENDS)], children=[pairs])

    def _position_of(self, number: int) -> int:
        return self.block.layout.starts[number]

    def _once(self, name: str, data: Any) -> pa.Buffer:
        """Return one Arrow buffer for an array; the array returns to the pool when the buffer's last slice is freed."""
        if name not in self._buffers:
            self._buffers[name] = pa.py_buffer(data)
        return self._buffers[name]

    @property
    def _header_buffer(self) -> pa.Buffer:
        return self._once("headers", self.block.header_data)

    def _part(self, number: int) -> pa.Buffer:
        return self._once("rows", self.block.data).slice(self._position_of(number))

    def _validity(self, number: int, nulls: int) -> pa.Buffer | None:
        return self._part(number) if self.state[nulls] else None

    def _bytes(self, data: Bytes, at: int, rows: int, valid: pa.Buffer | None, referred: int) -> pa.Array:
        """Return a column of bytes in the requested layout."""
        if self.shape.layout != "view":
            return self._classic(data, at, rows, referred).array(self.shape.bytes_type, valid)
        views = self._once("rows" if data is self.block.data else "headers", data).slice(at, 16 * rows)
        return pa.Array.from_buffers(pa.binary_view(), rows, [valid, views, *self._behind(data, at, rows, referred)])

    def _classic(self, data: Bytes, at: int, rows: int, referred: int) -> CopiedColumn:
        """Return a column of headers, copied together."""
        most, origin = int(self.state[referred] + self.state[referred + 1]), int(self.state[names.ORIGIN])
        column = CopiedColumn(self.pool, self.shape.layout, rows, 0)
        column.extend(data, at, rows, most, self.log, origin, self.arena)
        return column

    def _behind(self, data: Bytes, at: int, rows: int, referred: int) -> list[pa.Buffer]:
        """Return the buffers that views refer to: the original bytes, or a copy if views use a small part of them."""
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
        """Return whether the batch is at most twice its rows' size, even if each column carries all its buffers."""
        in_log, in_arena = (self.state[np.array(REFERRED) + behind] for behind in (0, 1))
        views = VIEW_SIZE * sum(self._rows_of(column) for column in VIEWS if self._position_of(column) >= 0)
        taken = np.count_nonzero(in_log) * len(self._log_slice())
        taken += np.count_nonzero(in_arena) * int(self.state[names.ARENA_USED])
        return bool(taken + views <= 2 * (int(in_log.sum() + in_arena.sum()) + views))

    def _rows_of(self, column: int) -> int:
        return int(self.state[names.HEADERS if column in {names.HEADER_KEYS, names.HEADER_VALUES} else names.ROWS])

    def _log_slice(self) -> Bytes:
        return self.log[int(self.state[names.ORIGIN]) : int(self.state[names.POSITION])]
