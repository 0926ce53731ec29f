"""Scans of segments, one after the other or in parallel, as one stream of Arrow batches."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.columnar.ranges import Cuts
from seglog_format.columnar.request import Start
from seglog_format.columnar.run import RecordRun, run_of
from seglog_format.columnar.schema import Shape
from seglog_format.columnar.windows import WINDOW_SIZE, own_pool
from seglog_format.errors import FormatError
from seglog_format.model import GREATEST_OFFSET, Message, Record
from seglog_format.scan_statistics import ScanStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from seglog_format.columnar.request import FallbackEntry, Request, Source
    from seglog_format.columnar.run import Run
    from seglog_format.columnar.schema import Layout
    from seglog_format.storage.byte_source import Window


RANGE_SIZE: Final = 2**24
"""Bytes of a log that one thread reads as a range, which determines memory use. For a log that is read through windows,
a range is one window."""
AHEAD: Final = 1
"""Ranges in progress in addition to one for each thread, so a thread that finishes early has another to read."""


def scan(
    sources: Iterable[tuple[Source, Start]],
    request: Request,
    *,
    threads: int = 1,
    at_end: Callable[[], None] | None = None,
) -> pa.RecordBatchReader:
    """Read segments in order.

    Args:
        sources: each segment, and the start in it. The lowest offset to deliver is carried over from one segment to
            the next.
        request: the columns and rows to read.
        threads: number of reading threads. With a callback for damage only one is used, so calls are in order.
        at_end: called after the last batch; may raise.
    """
    is_alone = threads == 1 or request.on_corrupt is not None
    batches = _one_by_one(sources, request) if is_alone else _side_by_side(sources, request, threads)
    return pa.RecordBatchReader.from_batches(request.shape.schema, _until_end(batches, at_end))


def record_lists(sources: Iterable[tuple[Source, Start]], request: Request) -> Iterator[list[Record | Message]]:
    """Read segments in order into Python objects, some at a time.

    Args:
        sources: as in `scan`.
        request: the columns and rows to read; its shape is ignored.
    """
    return _one_by_one(sources, request, RecordRun)


def _until_end(batches: Iterator[pa.RecordBatch], at_end: Callable[[], None] | None) -> Iterator[pa.RecordBatch]:
    yield from batches
    if at_end is not None:
        at_end()


def _one_by_one(
    sources: Iterable[tuple[Source, Start]], request: Request, kind: Callable[..., Run] = run_of
) -> Iterator[Any]:
    floor = request.from_offset
    with own_pool() as pool:
        for source, start in sources:
            _come_to(request, source)
            run = kind(source, request, replace(start, floor=max(start.floor, floor)), pool)
            yield from run.batches()
            floor = run.floor
            if run.is_finished:
                return
            _leave(request, source, run.reached, run.position)
    _come_to_end(request)


def _come_to(request: Request, source: Source) -> None:
    if request.borders is not None:
        request.borders.come_to(source.allowed_offsets[0])


def _leave(request: Request, source: Source, reached: int, position: int) -> None:
    if request.borders is not None:
        request.borders.reached = reached
        request.borders.left_at = position if position < source.size else None


def _come_to_end(request: Request) -> None:
    if request.borders is not None:
        request.borders.come_to_end()


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A segment that several threads may use."""

    source: Source
    lock: Lock

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def size(self) -> int:
        with self.lock:
            return self.source.size

    def view(self, start: int, end: int) -> memoryview:
        with self.lock:
            return self.source.view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        with self.lock:
            return self.source.window(position, at_least)

    @property
    def file(self) -> str:
        return self.source.file

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        return self.source.allowed_offsets

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        with self.lock:
            return self.source.fallback(position, previous, floor)

    def decompressed(self, position: int, limit: int) -> bytes | None:
        with self.lock:
            return self.source.decompressed(position, limit)

    def end_of_damaged(self, position: int) -> int | None:
        with self.lock:
            return self.source.end_of_damaged(position)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a range: batches, the error that ended it, offset and position after its entries, statistics."""

    batches: list[pa.RecordBatch]
    error: FormatError | None
    is_finished: bool
    reached: int
    position: int
    statistics: ScanStatistics


@dataclass(slots=True)
class _Share:
    """A range that one thread reads: a thread of the executor, or the caller's."""

    range: tuple[Source, Start]
    future: Future[_Outcome]

    @classmethod
    def of(cls, executor: Executor, each: tuple[Source, Start], request: Request) -> _Share:
        """Submit a range for reading."""
        return cls(each, executor.submit(_outcome, *each, request))

    def read_in_this_thread(self, request: Request) -> bool:
        """Read the range in this thread, unless another has begun."""
        if not self.future.cancel():
            return False
        self.future = Future()
        try:
            self.future.set_result(_outcome(*self.range, request))
        except Exception as error:  # noqa: BLE001 - raised when the range is delivered
            self.future.set_exception(error)
        return True


def _side_by_side(sources: Iterable[tuple[Source, Start]], request: Request, threads: int) -> Iterator[pa.RecordBatch]:
    """Read ranges in several threads, the caller's among them, and deliver them in order."""
    ranges = _ranges(sources, request)
    executor = ThreadPoolExecutor(threads - 1, thread_name_prefix="seglog-scan")
    under_way: deque[_Share] = deque()
    try:
        while True:
            while len(under_way) < threads + AHEAD and (each := next(ranges, None)) is not None:
                under_way.append(_Share.of(executor, each, request))
            if not under_way:
                _come_to_end(request)
                return
            if not under_way[0].future.done() and any(share.read_in_this_thread(request) for share in under_way):
                continue
            share = under_way.popleft()
            _come_to(request, share.range[0])
            outcome = share.future.result()
            request.statistics.add(outcome.statistics)
            yield from outcome.batches
            if outcome.error is not None:
                raise outcome.error
            if outcome.is_finished:
                return
            _leave(request, share.range[0], outcome.reached, outcome.position)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _outcome(source: Source, start: Start, request: Request) -> _Outcome:
    """Read a range."""
    batches: list[pa.RecordBatch] = []
    statistics = ScanStatistics()
    with own_pool() as pool:
        run = run_of(source, replace(request, statistics=statistics), start, pool)
        try:
            batches.extend(run.batches())
        except FormatError as error:
            return _Outcome(batches, error, True, run.reached, run.position, statistics)
    return _Outcome(batches, None, run.is_finished, run.reached, run.position, statistics)


def _ranges(sources: Iterable[tuple[Source, Start]], request: Request) -> Iterator[tuple[Source, Start]]:
    """Yield each segment in ranges. The last range holds the first entry that is not covered, and all after it."""
    lock, floor = Lock(), request.from_offset
    for source, start in sources:
        guarded = _Guarded(source, lock)
        cuts = Cuts(guarded, source.allowed_offsets, start.position, start.previous, start.end)
        while True:
            position, previous = cuts.position, cuts.previous
            has_more = cuts.next(RANGE_SIZE if cuts.is_in_memory else WINDOW_SIZE)
            end = cuts.position if has_more else start.end
            yield guarded, Start(position, previous, max(start.floor, floor), end)
            floor = max(floor, cuts.previous + 1)
            if not has_more:
                break
            if floor >= request.to_offset <= GREATEST_OFFSET:
                return


# -- several partitions as one stream of Arrow batches, each row with its topic and partition --------------------------


PARTITION_COLUMNS: Final = {"topic": pa.string(), "partition": pa.int32()}
"""Columns for the partition of a row."""


def scan_partitions(
    partitions: Iterable[tuple[str, int, Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]]],
    columns: tuple[str, ...],
    layout: Layout,
) -> pa.RecordBatchReader:
    """Read partitions one after the other.

    Args:
        partitions: topic, number, and a function that yields batches of some columns.
        columns: of `schema.COLUMNS`, and ``topic`` and ``partition``.
        layout: of keys and values.
    """
    inner = Shape(tuple(name for name in columns if name not in PARTITION_COLUMNS), layout)
    fields = {name: pa.field(name, kind, nullable=False) for name, kind in PARTITION_COLUMNS.items()}
    schema = pa.schema([fields[name] if name in PARTITION_COLUMNS else inner.schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(schema, _batches(partitions, inner.columns or ("offset",), schema))


def _batches(
    partitions: Iterable[tuple[str, int, Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]]],
    columns: tuple[str, ...],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    for topic, partition, read in partitions:
        scalars = {
            "topic": pa.scalar(topic, PARTITION_COLUMNS["topic"]),
            "partition": pa.scalar(partition, PARTITION_COLUMNS["partition"]),
        }
        for batch in read(columns):
            arrays = [
                pa.repeat(scalars[name], len(batch)) if name in PARTITION_COLUMNS else batch.column(name)
                for name in schema.names
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
