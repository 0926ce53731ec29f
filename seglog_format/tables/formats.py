"""The file formats of tables, and the columns and records that a table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError, require_offsets
from seglog_format.log.entry_table import WantedRange
from seglog_format.values.schemas import HEADERS_AS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

ICEBERG: Final = "iceberg"
FORMATS: Final = ("parquet", ICEBERG, "arrow", "csv", "jsonl")
"""Formats of tables: those of their files, which are also the suffixes, and Iceberg, whose files are Parquet."""
TEXT_FORMATS: Final = ("csv", "jsonl")
BYTES_AS: Final = ("utf8", "hex", "base64")
PARTITIONINGS: Final = ("topic", "partition", "day")
DEFAULT_PARTITIONING: Final = ("topic", "partition")
COLUMNS: Final = (
    *("offset", "timestamp", "timestamp_type", "key", "value", "headers"),
    *("leader_epoch", "file", "position"),
)
"""Columns of a table, after topic and partition."""
INTERNAL: Final = frozenset({"offset", "timestamp", "key", "value", "leader_epoch"})
"""Columns that an export reads in any case, to continue a table."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The columns and records that a table has, where it does not have all.

    Attributes:
        columns: of `COLUMNS`, besides topic, partition and offset, which each table has; None for all.
        headers: one of `HEADERS_AS`: a list of pairs, or a map from text to bytes.
        keys: a table has only records with one of these keys; None for any.
        since_ms: first timestamp, in milliseconds since 1970, of a record that a table has; None for any.
        until_ms: first later timestamp of a record that it does not have; None for any.
        from_offset: first offset that a table has of each partition; None for the start of the log.
        to_offset: first later offset that it does not have; None for the end of the log.

    Raises:
        UsageError: no record can be chosen so.
    """

    columns: tuple[str, ...] | None = None
    headers: str = HEADERS_AS[0]
    keys: tuple[bytes, ...] | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None

    def __post_init__(self) -> None:
        require_offsets(from_offset=self.from_offset, to_offset=self.to_offset)
        WantedRange(from_offset=self.from_offset, to_offset=self.to_offset)
        require("columns", self.columns or (), COLUMNS)
        require("headers", (self.headers,), HEADERS_AS)

    def has(self, column: str) -> bool:
        """Return whether a table has a column."""
        return self.columns is None or column in {*self.columns, "offset"}

    @property
    def is_filter(self) -> bool:
        """Return whether some records are left out."""
        return (self.keys, self.since_ms, self.until_ms) != (None, None, None)

    def as_json(self) -> dict[str, Any]:
        """Return the choice as a manifest holds it: nothing for what is not chosen."""
        found = {
            "columns": None if self.columns is None else [name for name in COLUMNS if self.has(name)],
            "headers": None if self.headers == HEADERS_AS[0] else self.headers,
            "keys": None if self.keys is None else sorted(key.hex() for key in self.keys),
            "since": self.since_ms,
            "until": self.until_ms,
            "from": self.from_offset,
            "to": self.to_offset,
        }
        return {name: value for name, value in found.items() if value is not None}


def require(what: str, values: Sequence[str], known: Sequence[str]) -> None:
    """Refuse values that are unknown or there twice.

    Raises:
        UsageError: it is so.
    """
    if len(set(values)) != len(values) or not set(values) <= set(known):
        msg = f"{what}: expected each at most once, of {', '.join(known)}, found {', '.join(map(repr, values))}"
        raise UsageError(msg)


ALL: Final = Choice()


def schema_of(table_format: str, data: bytes) -> pa.Schema | None:
    """Return the columns in the bytes of a file of a table; None if its format is text, which has no types."""
    if table_format in TEXT_FORMATS:
        return None
    import pyarrow as pa  # noqa: PLC0415 - most runs read no file
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    return pa.ipc.open_file(data).schema if table_format == "arrow" else pq.read_schema(pa.BufferReader(data))


def schema_data(schema: pa.Schema) -> bytes:
    """Return a Parquet file with columns, and no rows."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    found = pa.BufferOutputStream()
    pq.write_metadata(schema, found, store_schema=False)
    return bytes(found.getvalue())
