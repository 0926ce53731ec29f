"""The columns of a scan, and their Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
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
