"""Files that Arrow writes, Arrow IPC and Parquet, and the output file that they are written to."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile


PIECE_SIZE: Final = 2**20
"""Number of bytes written at once."""


class Sink:
    """An output file with the interface of Python's files. It joins the many small pieces that Arrow writes.

    Attributes:
        is_abandoned: whether writing has stopped.
    """

    closed: bool = False

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._pieces = bytearray()
        self.is_abandoned = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if not self.is_abandoned:
            self._pieces += data
            if len(self._pieces) >= PIECE_SIZE:
                self.flush_all()
        return len(data)

    def flush_all(self) -> None:
        """Write the joined pieces."""
        pieces, self._pieces = self._pieces, bytearray()
        if pieces:
            self._file.write(pieces)

    def tell(self) -> int:
        """Return the position."""
        return self._file.size + len(self._pieces)

    def flush(self) -> None:
        """Do nothing: files are synced when they are published."""

    def close(self) -> None:
        """Do nothing: the caller that opened the output file closes it."""


class ArrowWritten:
    """Base class of files that one of Arrow's writers writes; each format creates its writer."""

    _writer: Any

    def __init__(self, file: OutputFile) -> None:
        self._sink = Sink(file)

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Stop writing. Arrow writes a footer in any case; the sink drops it."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()


# -- arrow IPC files, also known as Feather ----------------------------------------------------------------------------


CODEC: Final = "zstd"


class ArrowFile(ArrowWritten):
    """An Arrow IPC file, open for writing; each group of rows becomes a record batch."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        super().__init__(file)
        options = pa.ipc.IpcWriteOptions(compression=CODEC)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows.combine_chunks())


# -- Parquet files: sorted by offset, with the statistics by which readers skip row groups -----------------------------


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
        import pyarrow.parquet as pq  # noqa: PLC0415 - of the formats, one is used

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
