"""A scan: segments, one after the other or side by side, as one stream of Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from seglog_format.columnar.pool import Pool
from seglog_format.columnar.run import Run, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.columnar.run import Request, Source


def scan(
    sources: Iterable[tuple[Source, Start]],
    request: Request,
    *,
    at_end: Callable[[], None] | None = None,
) -> pa.RecordBatchReader:
    """Read segments in order.

    Args:
        sources: each segment, and where to start in it. The lowest offset to deliver is carried over from one to the
            next.
        request: what is wanted.
        at_end: called when everything was delivered; may raise.
    """
    return pa.RecordBatchReader.from_batches(request.shape.schema, _batches(sources, request, at_end))


def _batches(
    sources: Iterable[tuple[Source, Start]], request: Request, at_end: Callable[[], None] | None
) -> Iterator[pa.RecordBatch]:
    pool, floor = Pool(), request.from_offset
    for source, start in sources:
        run = Run(source, request, Start(start.position, start.previous, max(start.floor, floor)), pool)
        yield from run.batches()
        floor = run.floor
        if run.is_finished:
            break
    if at_end is not None:
        at_end()
