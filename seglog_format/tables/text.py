"""CSV and JSON lines: keys, values and headers as text."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.storage.output_directory import OutputFile

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
