"""Records as rows, from the reference and from the columnar engine, for comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.types import Message, Record

COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
"""Columns of a scan whose batches become rows."""

Row: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
"""Offset, timestamp in milliseconds, key, value, headers."""


def row_of(record: Record | Message) -> Row:
    """Return a record as a row."""
    headers = tuple((header.key, header.value) for header in record.headers)
    return record.offset, record.timestamp_ms, record.key, record.value, headers


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of Arrow batches with `COLUMNS`, after Arrow's own validation."""
    for batch in batches:
        batch.validate(full=True)
        times = batch.column(1).cast(pa.int64()).fill_null(-1).to_pylist()
        lists = (batch.column(number).to_pylist() for number in (0, 2, 3, 4))
        for time_ms, (offset, key, value, pairs) in zip(times, zip(*lists, strict=True), strict=True):
            yield offset, time_ms, key, value, tuple((pair["key"], pair["value"]) for pair in pairs)
