"""Reading of a run of entries: calls of the kernel, and the work that the kernel leaves to Python.

A run delivers blocks, or Python objects like those of the fallback decoder.
"""

from __future__ import annotations

from copy import copy as copied
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.columnar import objects
from seglog_format.columnar import plan as names
from seglog_format.columnar.block import NOTES, POSITIONS, Assembly, Block, CopiedColumn, block_layout
from seglog_format.columnar.chunks import Decoders, no_chunks
from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.memory import SLACK
from seglog_format.columnar.objects import known_objects
from seglog_format.columnar.plan import POSITION
from seglog_format.columnar.reader import read_batches, read_messages
from seglog_format.columnar.schema import ENTRY_COLUMNS
from seglog_format.columnar.windows import Windows
from seglog_format.errors import FormatError, UsageError
from seglog_format.model import GREATEST_OFFSET, BatchHeader, Message, Record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import pyarrow as pa

    from seglog_format.columnar.arrays import Bytes, Numbers
    from seglog_format.columnar.request import Request, Source, Start
    from seglog_format.columnar.windows import Pool


ARENA_SIZE: Final = 8 * 2**20
"""Maximum decompressed bytes in a block, unless one entry alone has more."""
MAX_ARENA: Final = 2**30
"""Entries that decompress to more are left to the fallback decoder; positions in views are 32-bit numbers."""
HEADERS_FOR_ROW: Final = 2


class Run:
    """Entries of one segment, from some position on, as Arrow batches.

    Attributes:
        is_finished: whether all requested rows were read.
    """

    _delivers_block = _delivers_arena = True
    """True if results refer to the block or the arena, which then cannot be reused."""

    def __init__(self, source: Source, request: Request, start: Start, pool: Pool) -> None:
        self._source = source
        self._request = request
        self._pool = pool
        self._end = start.end
        self._window = Windows(source, start.position, start.end)
        self._state = np.zeros(names.STATE_SIZE, np.int64)
        self._state[[names.POSITION, names.PREVIOUS, names.FLOOR]] = (
            self._window.at(start.position),
            start.previous,
            start.floor,
        )
        self._plan = self._fixed_plan()
        self._chunks = no_chunks()
        self._decoders: Decoders | None = None
        self._kernel = read_batches
        self._arena: Bytes = np.empty(SLACK, np.uint8)
        self._arena_size = ARENA_SIZE
        self._rows = request.batch_rows
        self._headers = HEADERS_FOR_ROW * request.batch_rows if "headers" in request.shape.columns else 0
        self._columns = self._kept_columns()
        self._block = self._fresh_block()
        self._is_spent = self._is_delivered = False
        self.is_finished = False

    def _fixed_plan(self) -> Numbers:
        request, plan = self._request, np.zeros(names.PLAN_SIZE, np.int64)
        plan[names.LIMIT] = min(request.limit, MAX_ARENA)
        plan[names.FROM_OFFSET : names.TO_TIMESTAMP + 1] = (
            request.from_offset,
            request.to_offset,
            request.from_timestamp_ms,
            request.to_timestamp_ms,
        )
        plan[names.FIRST_ALLOWED : names.LAST_ALLOWED + 1] = self._source.allowed_offsets
        plan[names.CHECKSUM_PATH] = checksum_path()
        return plan

    def _kept_columns(self) -> frozenset[str]:
        """Return the columns that a block must hold."""
        return _kept_columns(self._request.shape.columns)

    @property
    def floor(self) -> int:
        """Lowest offset not delivered yet."""
        return int(self._state[names.FLOOR])

    @property
    def reached(self) -> int:
        """First offset after the last entry that was read."""
        return int(self._state[names.PREVIOUS]) + 1

    @property
    def position(self) -> int:
        """Position of the first entry not read yet."""
        return self._window.origin + int(self._state[names.POSITION])

    @property
    def _log(self) -> Bytes:
        """The bytes of the log in the window; positions in the block are relative to their start."""
        return self._window.data

    def _fresh_block(self) -> Block:
        layout = block_layout(self._columns, self._rows, self._headers)
        self._plan[names.ENTRIES : names.POSITIONS + 1] = layout.numbers
        self._plan[names.MAX_ROWS], self._plan[names.MAX_HEADERS] = layout.rows, layout.headers
        self._emptied()
        return Block.take(self._pool, layout)

    def _emptied(self) -> None:
        """Mark the block as empty. Decompressed bytes stay, unless results refer to the arena."""
        self._state[[names.ROWS, names.HEADERS, names.NOTED]] = 0
        self._state[names.NULL_TIMESTAMPS : names.HEADER_VALUE_BYTES + 2] = 0
        if self._delivers_arena or self._state[names.NEXT_CHUNK] >= self._state[names.CHUNKS]:
            self._state[[names.ARENA_USED, names.NEXT_CHUNK, names.CHUNKS]] = 0

    def batches(self) -> Iterator[Any]:
        """Read to the end of the run.

        Raises:
            FormatError: at the first entry that is damaged or refused, after everything before it; unless
                there is a callback for damaged entries.
        """
        while not self.is_finished:
            match self._read():
                case names.MORE_ROWS:
                    self._more_rows()
                case names.MORE_HEADERS:
                    self._more_headers()
                case names.MORE_ARENA:
                    self._more_arena()
                case names.OTHER_MAGIC:
                    self._other_kernel()
                case names.DECOMPRESS:
                    if (yield from self._decompress_next()):
                        return
                case answer:
                    yield from self._filled()
                    self.is_finished = answer == names.RANGE_END
                    if answer == names.FALLBACK and (yield from self._fall_back()):
                        return

    def _read(self) -> int:
        if self._is_spent:
            self._renew()
        return self._fill()

    def _fill(self) -> int:
        """Let the kernel fill the block until it returns a reason to stop."""
        request, block = self._request, self._block
        return int(
            self._kernel(
                self._log,
                self._arena,
                block.data,
                block.header_data,
                request.aborted,
                self._chunks,
                self._plan,
                self._state,
            )
        )

    def _other_kernel(self) -> None:
        self._kernel = read_messages if self._kernel is read_batches else read_batches

    def _filled(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of the block, which is complete."""
        if self._state[names.ROWS]:
            self._is_delivered = self._delivers_arena
            yield from self._of_block()
        self._is_spent = True

    def _renew(self) -> None:
        """Continue with an empty block; with a new arena if batches refer to this one, or it is too small."""
        is_used = len(self._arena) > SLACK
        if is_used and (self._is_delivered or len(self._arena) < self._arena_size):
            self._arena = self._pool.take(self._arena_size)
            self._state[names.CHUNKS] = 0
        if self._delivers_block or self._block.layout.rows != self._rows:
            self._block = self._fresh_block()
        else:
            self._emptied()
        self._is_spent = self._is_delivered = False

    def _of_block(self) -> Iterator[Any]:
        """Yield the results of the block."""
        shape = self._request.shape
        yield Assembly(
            self._block, self._state, self._window, self._arena, shape, self._source.file, self._pool
        ).batch()

    def _of_fallback(self, rows: Sequence[Record | Message], header: BatchHeader, position: int) -> Any:
        """Return the results of an entry that the fallback decoder has decoded."""
        return self._request.shape.of_records(rows, header, position, self._source.file)

    def _more_rows(self) -> None:
        self._rows = max(int(self._state[names.NEEDED]), self._rows)
        self._block = self._fresh_block()
        self._rows = self._request.batch_rows

    def _more_headers(self) -> None:
        self._headers *= 2
        self._block = self._fresh_block()

    def _more_arena(self) -> None:
        """Allocate a larger arena, or the first one. The block is empty."""
        grown = min(2 * len(self._arena), MAX_ARENA + SLACK) if len(self._arena) >= self._arena_size else 0
        self._arena = self._pool.take(max(self._arena_size, grown))

    def _decompress_next(self) -> Generator[pa.RecordBatch, None, bool]:
        """Decompress the entry at the position, which the kernel could not; return whether that is the end.

        From then on the kernel has decoders for gzip and zstd. If it still does not decompress a container, such as
        gzip of several members, the codec's library does, and the kernel reads the records. If the library refuses the
        container, the fallback decoder reads the entry.
        """
        if self._decoders is None:
            self._decoders = Decoders()
            self._plan[names.DECODERS :] = self._decoders.slots
        elif not (yield from self._decompress()):
            yield from self._filled()
            self._state[names.CAUSE] = names.CAUSE_COMPRESSION
            return (yield from self._fall_back())
        return False

    def _has_room(self, size: int) -> bool:
        return size <= len(self._arena) - SLACK - int(self._state[names.ARENA_USED])

    def _decompress(self) -> Generator[pa.RecordBatch, None, bool]:
        """Have a library decompress the entry at the position into the arena; return whether it could."""
        content = self._source.decompressed(self.position, int(self._plan[names.LIMIT]))
        if content is None:
            return False
        size = len(content)
        if not self._has_room(size):
            yield from self._filled()
            self._arena_size = max(self._arena_size, size + SLACK)
            self._renew()
            if not self._has_room(size):
                self._arena = self._pool.take(self._arena_size)
        used = int(self._state[names.ARENA_USED])
        self._arena[used : used + size] = np.frombuffer(content, np.uint8)
        self._chunks[: names.CHUNK_FIELDS] = self._state[names.POSITION], used, used + size
        self._state[names.CHUNKS], self._state[names.NEXT_CHUNK] = 1, 0
        self._request.statistics.library_decompressed += 1
        return True

    def _fall_back(self) -> Generator[pa.RecordBatch, None, bool]:
        """Read the entry at the position with the fallback decoder; return whether that is the end."""
        if self._window.has_more(self._state):
            self._forget_chunks()
            return False
        position, previous, floor = self.position, *(int(self._state[name]) for name in _PROGRESS)
        if self._end is not None and position >= self._end:
            return True
        try:
            entry = self._source.fallback(position, previous, floor)
        except FormatError as error:
            self._count_fallback()
            return self._passed_over(position, error)
        if entry is None:
            return True
        self._count_fallback()
        borders, base_offset = self._request.borders, self._source.allowed_offsets[0]
        if borders is not None and entry.overlap is not None:
            borders.overlap(base_offset, entry.overlap)
        if entry.hidden is not None and (borders is None or not borders.left_out(base_offset, position, entry.header)):
            return self._passed_over(position, entry.hidden)
        if rows := [record for record in entry.records if self._is_timely(record.timestamp_ms)]:
            yield self._of_fallback(rows, entry.header, position)
        self._go_to(entry.end)
        self._state[names.PREVIOUS] = entry.last_offset
        self._state[names.FLOOR] = max(floor, entry.last_offset + 1)
        self.is_finished = entry.last_offset + 1 >= self._request.to_offset <= GREATEST_OFFSET
        return self.is_finished

    def _count_fallback(self) -> None:
        self._request.statistics.fallbacks[names.CAUSES[int(self._state[names.CAUSE])]] += 1

    def _is_timely(self, timestamp_ms: int) -> bool:
        return self._request.from_timestamp_ms <= timestamp_ms <= self._request.to_timestamp_ms

    def _passed_over(self, position: int, error: FormatError) -> bool:
        """Continue after a damaged entry, if that is requested and possible; return whether to stop."""
        if self._request.on_corrupt is None:
            raise copied(error)
        self._request.on_corrupt(error)
        end = self._source.end_of_damaged(position)
        if end is None:
            return True
        self._go_to(end)
        return False

    def _go_to(self, position: int) -> None:
        """Continue at a position of the log."""
        self._state[names.POSITION] = self._window.at(position)
        self._forget_chunks()

    def _forget_chunks(self) -> None:
        """Discard decompressed entries: their positions are relative to the window, which may have changed."""
        self._state[[names.NEXT_CHUNK, names.CHUNKS]] = 0


def _kept_columns(columns: Sequence[str]) -> frozenset[str]:
    """Return the contents of a block: columns, and the data that other columns are made from."""
    kept = {name for name in columns if name not in ENTRY_COLUMNS}
    if len(kept) < len(columns):
        kept.add(NOTES)
    if "sequence" in columns:
        kept.add("offset")
    return frozenset(kept)


_PROGRESS: Final = (names.PREVIOUS, names.FLOOR)
assert names.POSITION == POSITION


# -- a run whose batches hold copied bytes; each part of a block is copied while it is in the cache --------------------


PART_ROWS: Final = 2**12
FIRST_CAPACITY: Final = 2**16
COPIED: Final = {names.KEYS: names.KEY_BYTES, names.VALUES: names.VALUE_BYTES}
"""Columns, and the positions of the sizes of their bytes in the state."""
GOES_ON: Final = frozenset({names.FULL, names.MORE_ROWS})


def run_of(source: Source, request: Request, start: Start, pool: Pool) -> Run:
    """Return a run that delivers batches of the requested shape."""
    kind = Run if request.shape.layout == "view" else CopiedRun
    return kind(source, request, start, pool)


class CopiedRun(Run):
    """Entries of one segment as Arrow batches in one of the classic layouts."""

    _delivers_arena = False

    def __init__(self, source: Source, request: Request, start: Start, pool: Pool) -> None:
        self._capacities = dict.fromkeys(COPIED, FIRST_CAPACITY)
        super().__init__(source, request, start, pool)

    def _fresh_block(self) -> Block:
        block, layout = super()._fresh_block(), self._request.shape.layout
        for number, capacity in self._capacities.items():
            if block.layout.starts[number] >= 0:
                block.copied[number] = CopiedColumn(self._pool, layout, block.layout.rows, capacity)
        return block

    def _fill(self) -> int:
        rows, wanted = self._block.layout.rows, PART_ROWS
        while True:
            before = int(self._state[names.ROWS])
            self._plan[names.MAX_ROWS] = min(before + wanted, rows)
            answer = super()._fill()
            self._copy()
            if answer not in GOES_ON or before + wanted >= rows:
                return answer
            # An entry may be larger than a part, up to the size of the block.
            wanted = PART_ROWS if int(self._state[names.ROWS]) > before else rows

    def _copy(self) -> None:
        block, rows, origin = self._block, int(self._state[names.ROWS]), int(self._state[names.ORIGIN])
        for number, copied_column in block.copied.items():
            most = int(self._state[COPIED[number]] + self._state[COPIED[number] + 1])
            copied_column.extend(block.data, block.layout.starts[number], rows, most, self._log, origin, self._arena)
            self._capacities[number] = copied_column.capacity


AT_A_TIME: Final = 256
"""Objects created at a time: few enough to avoid a garbage collection while they are in use."""
BLOCK_ROWS: Final = 2**13


class RecordRun(Run):
    """Entries of one segment as `Record` and `Message` objects, in lists."""

    _delivers_block = _delivers_arena = False
    _tracked = 1
    """Estimated number of objects that the garbage collector tracks for a record and its headers."""

    def _kept_columns(self) -> frozenset[str]:
        return frozenset({"offset", "timestamp", NOTES, POSITIONS})

    def _of_block(self) -> Iterator[list[Record | Message]]:
        block, rows = self._block, int(self._state[names.ROWS])
        job = np.zeros(objects.JOB_SIZE, np.int64)
        job[objects.POSITIONS_AT :] = (
            *(block.layout.starts[name] for name in (names.POSITIONS, names.OFFSETS, names.TIMESTAMPS, names.ENTRIES)),
            self._state[names.NOTED],
        )
        while (start := int(job[objects.ROW])) < rows:
            count = min(AT_A_TIME // self._tracked, rows - start)
            job[objects.END_ROW] = start + count
            made: list[Any] = [None] * count
            job[objects.TARGET] = id(made)
            if objects.make_objects(self._log, self._arena, block.data, job, known_objects()):
                msg = f"{self._source.file}: it has changed while it was read, or memory has run out"
                raise UsageError(msg)
            self._tracked = min(1 + 2 * len(made[-1].headers), AT_A_TIME)
            yield made

    def _of_fallback(
        self,
        rows: Sequence[Record | Message],
        header: BatchHeader,  # noqa: ARG002 - objects have no columns about the entry
        position: int,  # noqa: ARG002
    ) -> list[Record | Message]:
        return list(rows)
