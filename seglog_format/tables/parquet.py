"""Parquet files: sorted by offset, with the statistics by which readers skip row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from seglog_format.tables.sink import ArrowWritten

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

CODEC: Final = "zstd"
REPEATING: Final = ("topic", "partition", "timestamp_type", "key", "leader_epoch", "file", "position")
"""Columns whose values repeat, so a dictionary makes them smaller."""
COUNTED: Final = (
    *("topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch"),
    *("file", "position", "reason"),
)
"""Columns with statistics; for keys and values they would be large and of little use."""


class ParquetFile(ArrowWritten):
    """A Parquet file, open for writing; each group of rows becomes a row group."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        names = set(schema.names)
        decoded = [path for name in ("key", "value") if name in names for path in _leaves(schema.field(name))]
        super().__init__(file)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=CODEC,
            use_dictionary=[name for name in REPEATING if name in names] + decoded,
            write_statistics=[name for name in COUNTED if name in names] + decoded,
            write_page_index=True,
            sorting_columns=pq.SortingColumn.from_ordering(schema, [("offset", "ascending")]),
            store_schema=False,  # readers get plain Parquet types, not Arrow's views
        )

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)


def _leaves(field: pa.Field, above: str = "") -> list[str]:
    """Return the paths of decoded fields, as Parquet names them; none for bytes and text as a whole."""
    path = f"{above}{field.name}"
    if pa.types.is_struct(field.type):
        return [leaf for each in field.type for leaf in _leaves(each, f"{path}.")]
    if pa.types.is_map(field.type):
        parts = [pa.field("key", field.type.key_type), pa.field("value", field.type.item_type)]
        return [leaf for each in parts for leaf in _leaves(each, f"{path}.key_value.")]
    if pa.types.is_list(field.type):
        return _leaves(pa.field("element", field.type.value_type), f"{path}.list.")
    return [path] if above else []
