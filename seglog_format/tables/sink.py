"""Files of rows in each format, Arrow IPC, Parquet, CSV and JSON lines, and the output file that they write to."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


# -- CSV and JSON lines: keys, values and headers as text --------------------------------------------------------------


BYTES: Final = ("key", "value")
"""Columns of bytes; headers also contain bytes."""
UTF8: Final = "utf8"
WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "utf8": bytes.decode,
    "hex": bytes.hex,
    "base64": lambda value: b64encode(value).decode("ascii"),
}


def unwritable(rows: pa.Table, bytes_as: str) -> dict[int, str]:
    """Return the rows that a text file cannot hold, because bytes in them are not UTF-8, each with the reason."""
    if bytes_as != UTF8:
        return {}
    return {
        row: f"{name}: not UTF-8, as which the table holds bytes: {error}"
        for name in ("headers", *BYTES)
        if name in rows.column_names
        for row, error in _not_utf8(rows.column(name))
    }


def _not_utf8(column: pa.ChunkedArray) -> Iterator[tuple[int, UnicodeDecodeError]]:
    if column.type == pa.string() or (column.type == pa.binary() and _is_utf8(column)):
        return
    for row, value in enumerate(column.to_pylist()):
        try:
            _require_utf8(value)
        except UnicodeDecodeError as error:
            yield row, error


def _is_utf8(column: pa.ChunkedArray) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _require_utf8(value: Any) -> None:  # noqa: ANN401 - decoded objects
    if isinstance(value, bytes):
        value.decode()
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            _require_utf8(each)


class TextFile:
    """A text file, open for writing."""

    def __init__(self, file: OutputFile, bytes_as: str) -> None:
        self._file = file
        self._bytes_as = bytes_as

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.size

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._file.write(self._text_of(rows))

    def _text_of(self, rows: pa.Table) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is no footer."""

    def abandon(self) -> None:
        """Do nothing: the caller removes the file."""

    def _written(self, value: bytes | None) -> str | None:
        return None if value is None else WRITERS[self._bytes_as](value)

    def _plain(self, value: Any) -> Any:  # noqa: ANN401 - decoded objects
        """Return a decoded object as JSON types."""
        if isinstance(value, bytes):
            return self._written(value)
        if isinstance(value, dict):
            return {name: self._plain(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(each) for each in value]
        if isinstance(value, timedelta):
            seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
            sign = "-" if value < timedelta(0) else ""
            return f"{sign}{seconds}.{micros:06}".rstrip("0").rstrip(".") + "s"  # as Protobuf writes it in JSON
        return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)

    def _headers(self, column: pa.ChunkedArray) -> list[Any]:
        if pa.types.is_map(column.type):
            return [{name: self._written(value) for name, value in each} for each in column.to_pylist()]
        return [
            [{name: self._written(each[name]) for name in ("key", "value")} for each in headers]
            for headers in column.to_pylist()
        ]


class JsonFile(TextFile):
    """A file of JSON lines; times are milliseconds since 1970."""

    def _text_of(self, rows: pa.Table) -> bytes:
        columns = {name: self._column(name, rows.column(name)) for name in rows.column_names}
        lines = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
        return "".join(f"{text}\n" for text in texts).encode()

    def _column(self, name: str, column: pa.ChunkedArray) -> list[Any]:
        if name == "headers":
            return self._headers(column)
        if name == "timestamp":
            column = column.cast(pa.int64())
        values = column.to_pylist()
        return [self._plain(each) for each in values] if name in BYTES else values


class CsvFile(TextFile):
    """A CSV file with a line of column names. Headers are a JSON array; null is empty, and empty text is quoted."""

    def _text_of(self, rows: pa.Table) -> bytes:
        for name in {*BYTES, "headers"} & set(rows.column_names):
            number = rows.schema.get_field_index(name)
            rows = rows.set_column(number, name, self._column(name, rows.column(name)))
        written = io.BytesIO()
        pa_csv.write_csv(rows, written, pa_csv.WriteOptions(include_header=not self.size))
        return written.getvalue()

    def _column(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        if name == "headers":
            texts = [json.dumps(each, ensure_ascii=False) for each in self._headers(column)]
            return pa.array(texts, pa.string())
        return pa.array(map(self._cell, column.to_pylist()), pa.string())

    def _cell(self, value: Any) -> str | None:  # noqa: ANN401 - decoded objects
        plain = self._plain(value)
        is_text = plain is None or isinstance(plain, str)
        return plain if is_text else json.dumps(plain, ensure_ascii=False)
