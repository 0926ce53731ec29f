"""The settings of a table: format, columns and partitioning, which stay the same from run to run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.values.decoder import Form, stored_form

if TYPE_CHECKING:
    from collections.abc import Sequence

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
BYTES: Final = Form("bytes")


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The form of a table.

    Attributes:
        format: one of `FORMATS`.
        partition_by: some of `PARTITIONINGS`: one level of directories each, in this order.
        isolation: as of `Partition.records`.
        bytes_as: how text formats hold bytes; one of `BYTES_AS`.
        key: how keys are decoded.
        value: how values are decoded.
        has_reasons: whether the rows are those that could not be decoded, each with the reason.
    """

    format: str = "parquet"
    partition_by: tuple[str, ...] = DEFAULT_PARTITIONING
    isolation: str = READ_UNCOMMITTED
    bytes_as: str = "utf8"
    key: Form = BYTES
    value: Form = BYTES
    has_reasons: bool = False

    def __post_init__(self) -> None:
        _require("format", (self.format,), FORMATS)
        _require("bytes_as", (self.bytes_as,), BYTES_AS)
        _require("partition_by", self.partition_by, PARTITIONINGS)

    @property
    def in_path(self) -> tuple[str, ...]:
        """Columns whose values are in the names of directories, and therefore not in the files."""
        return () if self.format == ICEBERG else self.partition_by

    @property
    def suffix(self) -> str:
        """Suffix of the names of files, without the dot."""
        return "parquet" if self.format == ICEBERG else self.format

    @property
    def forms(self) -> dict[str, Form]:
        """The forms of keys and values, for columns that are decoded."""
        forms = {"key": self.key, "value": self.value}
        return {name: form for name, form in forms.items() if form != BYTES}

    def undecoded(self) -> TableSettings:
        """Return the settings of the table beside this one, for records that cannot be decoded."""
        return replace(self, key=BYTES, value=BYTES, has_reasons=True, bytes_as="base64")

    @property
    def layout(self) -> str:
        """The layout of the scan: views only for Parquet, which Arrow writes from views without copying."""
        is_only_written = self.suffix == "parquet" and "day" not in self.partition_by and not self.forms
        return "view" if is_only_written else "binary"

    def as_json(self) -> dict[str, Any]:
        """Return the settings as the manifest holds them."""
        found = {
            "format": self.format,
            "partitionBy": list(self.partition_by),
            "isolation": self.isolation,
        } | {name: form.as_json() for name, form in self.forms.items()}
        return found | {"bytes": self.bytes_as} if self.format in TEXT_FORMATS else found

    def continued(self, stored: object, address: str) -> TableSettings:
        """Return the settings with which to continue a table: its reader's schemas do not change.

        Raises:
            UsageError: another setting differs, or the caller chose another schema.
        """
        known = stored if isinstance(stored, dict) else {}
        forms = {name: stored_form(known.get(name)) for name in ("key", "value")}
        now = replace(self, **{name: getattr(self, name).continued(form) for name, form in forms.items()})
        for name, value in ({"key": None, "value": None} | now.as_json()).items():
            was = known.get(name)
            if isinstance(was, dict) and isinstance(value, dict):
                was = {"type": value["type"], **was}  # older tables do not tell: their files do
                if was != value and {**was, "type": value["type"]} == value:
                    raise other_type(address, name, was["type"], value["type"])
            if was != value:
                msg = (
                    f"{address}: this table was begun with {name} {_text(was)}, not {_text(value)}:"
                    " give the same, or another directory"
                )
                raise UsageError(msg)
        return now


def other_type(address: str, name: str, was: object, now: object) -> UsageError:
    """Return the error of a table with a column that would have another type from now on."""
    msg = (
        f"{address}: this table's column {name} has the type {was!s:.200}, and this version makes it {now!s:.200}:"
        " export to another directory"
    )
    return UsageError(msg)


def _require(what: str, values: Sequence[str], known: Sequence[str]) -> None:
    if len(set(values)) != len(values) or not set(values) <= set(known):
        msg = f"{what}: expected each at most once, of {', '.join(known)}, found {', '.join(map(repr, values))}"
        raise UsageError(msg)


def _text(value: object) -> str:
    if isinstance(value, dict):
        schema = value.get("schema")
        return str(value.get("kind")) if schema is None else f"{value.get('kind')} by the schema {schema['text'][:60]}"
    if value is None:
        return "bytes"
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
