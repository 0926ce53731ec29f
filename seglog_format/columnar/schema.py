"""The columns of a scan, and their Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import pyarrow as pa

from seglog_format.columnar.entry_columns import ALWAYS_THERE, ENTRY_COLUMNS, TYPES, row_of_entry
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Message, Record

Layout: TypeAlias = Literal["view", "binary", "large_binary"]

DEFAULT_COLUMNS: Final = ("offset", "timestamp", "key", "value")
COLUMNS: Final = (*DEFAULT_COLUMNS, "headers", *ENTRY_COLUMNS)
NO_TIMESTAMP: Final = -1


def _bytes_types() -> dict[str, pa.DataType]:
    return {"view": pa.binary_view(), "binary": pa.binary(), "large_binary": pa.large_binary()}


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
        if self.layout not in _bytes_types():
            msg = f"layout is {', '.join(_bytes_types())}, not {self.layout!r}"
            raise UsageError(msg)

    @property
    def bytes_type(self) -> pa.DataType:
        """Type of keys and values."""
        return _bytes_types()[self.layout]

    @cached_property
    def timestamp_type(self) -> pa.DataType:
        """Type of timestamps: milliseconds since 1970; null if a record has none."""
        return pa.timestamp("ms", tz="UTC")

    @cached_property
    def header_type(self) -> pa.DataType:
        """Type of one header."""
        return pa.struct([pa.field("key", self.bytes_type, nullable=False), pa.field("value", self.bytes_type)])

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        fields = {
            "offset": pa.field("offset", pa.int64(), nullable=False),
            "timestamp": pa.field("timestamp", self.timestamp_type),
            "key": pa.field("key", self.bytes_type),
            "value": pa.field("value", self.bytes_type),
            "headers": pa.field("headers", pa.list_(self.header_type), nullable=False),
            **{name: pa.field(name, kind, nullable=name not in ALWAYS_THERE) for name, kind in TYPES.items()},
        }
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
