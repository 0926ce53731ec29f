"""The columns of a scan, their Arrow types, and the values of those about the entry of a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from seglog_format.columnar.layout import BATCH_MAGIC, CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL
from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX, CompressionCodec, RecordBatchHeader, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.columnar.arrays import Numbers
    from seglog_format.columnar.batch_table import BatchTable
    from seglog_format.model import BatchHeader, Message, Record


TYPES: Final[dict[str, pa.DataType]] = {
    "timestamp_type": pa.int32(),
    "leader_epoch": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "sequence": pa.int32(),
    "is_transactional": pa.bool_(),
    "batch_offset": pa.int64(),
    "file": pa.string(),
    "position": pa.int64(),
    "codec": pa.string(),
}
ALWAYS_THERE: Final = frozenset({"file", "position", "codec"})
"""Columns that are never null; all others are null for entries of a magic without such a field."""
ENTRY_COLUMNS: Final = tuple(TYPES)

STORED: Final = {
    "leader_epoch": "partition_leader_epoch",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
}
CODECS: Final = pa.array([codec.label for codec in CompressionCodec])
TIMESTAMP_TYPES: Final = {TimestampType.CREATE_TIME: 0, TimestampType.LOG_APPEND_TIME: 1}


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """Creates columns about entries for the rows of an Arrow batch.

    Attributes:
        file: name of the `.log` file.
        entries: headers of the entries.
        counts: number of rows of each entry.
        offsets: of the rows; None unless sequence numbers are requested.
    """

    file: str
    entries: BatchTable
    counts: Numbers
    offsets: Numbers | None

    def column(self, name: str) -> pa.Array:
        """Return one of `ENTRY_COLUMNS`."""
        if name == "file":
            return pa.repeat(pa.scalar(self.file, TYPES[name]), int(self.counts.sum()))
        if name == "codec":
            return CODECS.take(pa.array(self._rows(self.entries.column("attributes") & CODEC_MASK)))
        if name == "position":
            return pa.array(self._rows(self.entries.column(name)))
        lacks_it = self.entries.column("magic") < (1 if name == "timestamp_type" else BATCH_MAGIC)
        mask = self._rows(lacks_it) if lacks_it.any() else None
        values = self._rows(self._of_entries(name)) if name != "sequence" else self._sequences()
        return pa.array(values.astype(TYPES[name].to_pandas_dtype()), mask=mask)

    def _rows(self, values: Any) -> Any:
        return np.repeat(values, self.counts)

    def _of_entries(self, name: str) -> Any:
        attributes = self.entries.column("attributes")
        if name == "timestamp_type":
            return (attributes & LOG_APPEND_TIME) // LOG_APPEND_TIME
        if name == "is_transactional":
            return attributes & TRANSACTIONAL != 0
        return self.entries.column("base_offset" if name == "batch_offset" else STORED[name])

    def _sequences(self) -> Numbers:
        """Return the sequence number of each row, from the batch's base sequence and with wrapping (SEG-BAT-017)."""
        first = self._rows(self.entries.column("base_sequence"))
        found = first + self.offsets - self._rows(self.entries.column("base_offset"))
        wrapped: Numbers = np.where(first < 0, -1, np.where(found > INT32_MAX, found - 2**31, found))
        return wrapped


def row_of_entry(record: Record | Message, header: BatchHeader, position: int, file: str) -> dict[str, object]:
    """Return the same columns for a record that the fallback decoder has decoded."""
    row: dict[str, object] = {
        "timestamp_type": TIMESTAMP_TYPES.get(header.timestamp_type),
        "file": file,
        "position": position,
        "codec": CompressionCodec(header.codec_id).label,
    }
    if isinstance(header, RecordBatchHeader):
        row |= {name: getattr(header, stored) for name, stored in STORED.items()}
        row |= {
            "sequence": record.sequence,
            "is_transactional": header.is_transactional,
            "batch_offset": header.base_offset,
        }
    return row


Layout: TypeAlias = Literal["view", "binary", "large_binary"]

DEFAULT_COLUMNS: Final = ("offset", "timestamp", "key", "value")
COLUMNS: Final = (*DEFAULT_COLUMNS, "headers", *ENTRY_COLUMNS)
NO_TIMESTAMP: Final = -1


BYTES_TYPES: Final = {"view": pa.binary_view(), "binary": pa.binary(), "large_binary": pa.large_binary()}
"""Type of keys and values by layout."""
TIMESTAMP_TYPE: Final = pa.timestamp("ms", tz="UTC")
"""Type of timestamps: milliseconds since 1970; null if a record has none."""


@cache
def _fields(layout: str) -> dict[str, pa.Field]:
    """Return the fields of all columns."""
    kind = BYTES_TYPES[layout]
    header = pa.struct([pa.field("key", kind, nullable=False), pa.field("value", kind)])
    return {
        "offset": pa.field("offset", pa.int64(), nullable=False),
        "timestamp": pa.field("timestamp", TIMESTAMP_TYPE),
        "key": pa.field("key", kind),
        "value": pa.field("value", kind),
        "headers": pa.field("headers", pa.list_(header), nullable=False),
        **{name: pa.field(name, each, nullable=name not in ALWAYS_THERE) for name, each in TYPES.items()},
    }


@dataclass(frozen=True)
class Shape:
    """The form of Arrow batches.

    Attributes:
        columns: names, in order.
        layout: of bytes: ``view``, ``binary`` or ``large_binary``.
    """

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    layout: Layout = "view"

    def __post_init__(self) -> None:
        unknown = [name for name in self.columns if name not in COLUMNS]
        if unknown or len(set(self.columns)) != len(self.columns):
            chosen = ", ".join(map(repr, self.columns))
            msg = f"columns: expected each at most once, of {', '.join(COLUMNS)}, found {chosen}"
            raise UsageError(msg)
        if self.layout not in BYTES_TYPES:
            msg = f"layout is {', '.join(BYTES_TYPES)}, not {self.layout!r}"
            raise UsageError(msg)

    @property
    def bytes_type(self) -> pa.DataType:
        """Type of keys and values."""
        return BYTES_TYPES[self.layout]

    @property
    def header_type(self) -> pa.DataType:
        """Type of one header."""
        return _fields(self.layout)["headers"].type.value_type

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        fields = _fields(self.layout)
        return pa.schema([fields[name] for name in self.columns])

    def of_records(
        self, records: Iterable[Record | Message], header: BatchHeader, position: int, file: str
    ) -> pa.RecordBatch:
        """Return a batch of records of one entry that the fallback decoder has decoded."""
        rows = [_row(record) | row_of_entry(record, header, position, file) for record in records]
        wanted = [{name: row.get(name) for name in self.columns} for row in rows]
        return pa.RecordBatch.from_pylist(wanted, self.schema)


def _row(record: Record | Message) -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestamp": None if record.timestamp_ms == NO_TIMESTAMP else record.timestamp_ms,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": header.key, "value": header.value} for header in record.headers],
    }
