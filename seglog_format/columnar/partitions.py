"""Several partitions as one stream of Arrow batches, each row with its topic and partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from seglog_format.columnar.schema import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.columnar.schema import Layout

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
