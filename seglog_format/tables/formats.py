"""The file formats of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from seglog_format.tables.settings import TEXT_FORMATS

if TYPE_CHECKING:
    import pyarrow as pa

    from seglog_format.storage.output_directory import OutputFile
    from seglog_format.tables.settings import TableSettings


class RowFile(Protocol):
    """A file of rows, open for writing."""

    @property
    def size(self) -> int:
        """Approximate number of bytes so far."""

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """

    def close(self) -> None:
        """Complete the file, for example with a footer."""

    def abandon(self) -> None:
        """Stop writing, and release all resources."""


def begun_file(settings: TableSettings, file: OutputFile, schema: pa.Schema) -> RowFile:
    """Begin a file in the format of a table."""
    if settings.format == "arrow":
        from seglog_format.tables.sink import ArrowFile  # noqa: PLC0415 - of the formats, one is used

        return ArrowFile(file, schema)
    if settings.format in {"csv", "jsonl"}:
        from seglog_format.tables.text import CsvFile, JsonFile  # noqa: PLC0415 - as above

        return (CsvFile if settings.format == "csv" else JsonFile)(file, settings.bytes_as)
    from seglog_format.tables.sink import ParquetFile  # noqa: PLC0415 - as above

    return ParquetFile(file, schema)


def schema_of(settings: TableSettings, data: bytes) -> pa.Schema | None:
    """Return the columns in the bytes of a file of a table; None if its format is text, which has no types."""
    if settings.format in TEXT_FORMATS:
        return None
    import pyarrow as pa  # noqa: PLC0415 - most runs read no file
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    return pa.ipc.open_file(data).schema if settings.format == "arrow" else pq.read_schema(pa.BufferReader(data))


def schema_data(schema: pa.Schema) -> bytes:
    """Return a Parquet file with columns, and no rows."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    found = pa.BufferOutputStream()
    pq.write_metadata(schema, found, store_schema=False)
    return bytes(found.getvalue())
