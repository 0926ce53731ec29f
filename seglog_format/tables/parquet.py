"""Parquet files: sorted by offset, with the statistics by which readers skip what they do not want."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from seglog_format.tables.sink import Sink

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

CODEC: Final = "zstd"
REPEATING: Final = ("topic", "partition", "timestamp_type", "key", "leader_epoch", "file", "position")
"""Columns whose values repeat, so a dictionary makes them smaller."""
COUNTED: Final = (
    *("topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch"),
    *("file", "position"),
)
"""Columns with statistics; for keys and values they would cost much and say little."""


class ParquetFile:
    """A Parquet file that is being written; each group of rows becomes a row group."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        names = set(schema.names)
        self._sink = Sink(file)
        self._writer: Any = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=CODEC,
            use_dictionary=[name for name in REPEATING if name in names],
            write_statistics=[name for name in COUNTED if name in names],
            write_page_index=True,
            sorting_columns=pq.SortingColumn.from_ordering(schema, [("offset", "ascending")]),
            store_schema=False,  # readers get plain Parquet types, and no views of Arrow
        )

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Write nothing more. Arrow writes a footer in any case, which then goes nowhere."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()
