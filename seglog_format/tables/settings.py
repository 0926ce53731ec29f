"""What a table is: its format, columns and partitioning, which stay the same from run to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.log.reading import READ_UNCOMMITTED

if TYPE_CHECKING:
    from collections.abc import Sequence

ICEBERG: Final = "iceberg"
FORMATS: Final = ("parquet", ICEBERG, "arrow", "csv", "jsonl")
"""Formats of tables: those of their files, by which they also end, and Iceberg, whose files are Parquet."""
TEXT_FORMATS: Final = ("csv", "jsonl")
BYTES_AS: Final = ("utf8", "hex", "base64")
PARTITIONINGS: Final = ("topic", "partition", "day")
DEFAULT_PARTITIONING: Final = ("topic", "partition")
COLUMNS: Final = (
    *("offset", "timestamp", "timestamp_type", "key", "value", "headers"),
    *("leader_epoch", "file", "position"),
)
"""Columns of a table, after topic and partition."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The form of a table.

    Attributes:
        format: one of `FORMATS`.
        partition_by: some of `PARTITIONINGS`: one level of directories each, in this order.
        isolation: as of `Partition.records`.
        bytes_as: how text formats hold bytes; one of `BYTES_AS`.
    """

    format: str = "parquet"
    partition_by: tuple[str, ...] = DEFAULT_PARTITIONING
    isolation: str = READ_UNCOMMITTED
    bytes_as: str = "utf8"

    def __post_init__(self) -> None:
        _require("format", (self.format,), FORMATS)
        _require("bytes_as", (self.bytes_as,), BYTES_AS)
        _require("partition_by", self.partition_by, PARTITIONINGS)

    @property
    def in_path(self) -> tuple[str, ...]:
        """Columns whose values stand in the names of directories, and therefore not in the files."""
        return () if self.format == ICEBERG else self.partition_by

    @property
    def suffix(self) -> str:
        """How names of files end, after the dot."""
        return "parquet" if self.format == ICEBERG else self.format

    @property
    def layout(self) -> str:
        """The layout of the scan: Arrow can write views to Parquet without copying, and do little else with them."""
        return "view" if self.suffix == "parquet" and "day" not in self.partition_by else "binary"

    def as_json(self) -> dict[str, Any]:
        """Return the settings as the manifest holds them."""
        found = {
            "format": self.format,
            "partitionBy": list(self.partition_by),
            "isolation": self.isolation,
        }
        return found | {"bytes": self.bytes_as} if self.format in TEXT_FORMATS else found

    def require_same(self, stored: object, address: str) -> None:
        """Refuse to continue a table of another form.

        Raises:
            UsageError: a setting differs.
        """
        known = stored if isinstance(stored, dict) else {}
        for name, value in self.as_json().items():
            if known.get(name) != value:
                msg = (
                    f"{address}: this table was begun with {name} {_text(known.get(name))}, not {_text(value)}:"
                    " give the same, or another directory"
                )
                raise UsageError(msg)


def _require(what: str, values: Sequence[str], known: Sequence[str]) -> None:
    if len(set(values)) != len(values) or not set(values) <= set(known):
        msg = f"{what}: each once of {', '.join(known)}, not {', '.join(map(repr, values))}"
        raise UsageError(msg)


def _text(value: object) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
