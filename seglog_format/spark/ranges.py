"""The plan of a query as values that any program runs: for Spark 3.5, which has no Python data sources, and others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from seglog_format.spark.columns import COLUMNS, CORRUPT, HEADERS, default_columns, projection, require_corrupt
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.options import parse_options
from seglog_format.spark.planning import plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask

_ARROW = {
    "binary": pa.binary(),
    "string": pa.string(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    COLUMNS["records"][HEADERS]: pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    COLUMNS["records"][CORRUPT]: pa.struct(
        {
            "file": pa.string(),
            "position": pa.int64(),
            "size": pa.int64(),
            "requirement": pa.string(),
            "message": pa.string(),
        }
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A part of a query that one task reads; it can be pickled, and read on any machine that sees the same paths."""

    _task: AnyTask
    _options: ReadOptions

    def read(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range, in order, as Arrow batches.

        Args:
            columns: of the table, in order; by default those of a query without a schema. Others are not decoded.

        Raises:
            UsageError: there is no such column; or mode ``permissive`` lacks the column ``_corrupt``.
            ReadError: damage or a missing file, as one line; the option ``mode`` tolerates damage.
        """
        from seglog_format.spark.executing import batches_of  # noqa: PLC0415 - the engine is for who reads

        names = columns or default_columns(self._options)
        projection(*names, table=self._options.table)
        require_corrupt(names, self._options)
        known = COLUMNS[self._options.table]
        schema = pa.schema([(name, _ARROW[known[name]]) for name in names])
        return batches_of(self._task, schema, self._options, EVERYTHING)


def plan_ranges(paths: str | Path | Iterable[str | Path], **options: str) -> list[PlannedRange]:
    """Plan a query without Spark: cut the logs below some paths into ranges of about the same size.

    Only names, sizes and indexes are read. Ranges are in the order of partitions and offsets; each offset is in one.

    Args:
        paths: a path, or several: of log directories, partition directories or trees, or addresses in object stores.
        options: of the data source, such as ``subscribe``, ``startingOffsets``, ``isolationLevel``, ``splitBytes``.

    Returns:
        The ranges; none if the partitions are empty.

    Raises:
        UsageError: an unknown option or invalid value, a missing path, or offsets that do not exist.
        FormatError: damage prevents the lookup of a timestamp.
    """
    several = [paths] if isinstance(paths, str | Path) else paths
    parsed = parse_options({**options, "paths": json.dumps([*map(str, several)])})
    return [PlannedRange(task, parsed) for task in plan(parsed)]
