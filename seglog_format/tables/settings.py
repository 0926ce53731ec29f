"""The partitions to export, the location of an Iceberg table, and the settings of a table.

The settings stay the same from run to run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.log.directory_lock import is_locked
from seglog_format.log.listing import list_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.log.path_kind import PathKind, path_kind, require_directory
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.names import parse_partition_directory
from seglog_format.tables.formats import (
    ALL,
    BYTES_AS,
    COLUMNS,
    DEFAULT_PARTITIONING,
    FORMATS,
    ICEBERG,
    INTERNAL,
    PARTITIONINGS,
    TEXT_FORMATS,
    require,
)
from seglog_format.values.decoder import Form, stored_form, type_of
from seglog_format.values.schemas import AS_MAP

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator

    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.tables.formats import Choice
    from seglog_format.tables.progress import TopicPartition


BYTES: Final = Form("bytes")


@dataclass(frozen=True, slots=True)
class IcebergLocation:
    """The location of an Iceberg table.

    Attributes:
        catalog: its name in pyiceberg's configuration; None for a directory with a catalog of its own.
        table: its name in the catalog, with its namespace.
        directory: of the table; None if the catalog chooses it.
    """

    catalog: str | None
    table: str
    directory: Path | None = None

    @property
    def address(self) -> str:
        """The location, as text for messages."""
        return self.table if self.directory is None else str(self.directory)

    def beside(self, suffix: str) -> IcebergLocation:
        """Return a table beside this one: in a directory beside it, or with another name in its catalog."""
        if self.directory is None:
            return replace(self, table=f"{self.table}_{suffix}")
        return replace(self, directory=self.directory.with_name(f"{self.directory.name}-{suffix}"))


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
        choice: the columns and records that the table has.
        of: for a table of the records that could not be decoded, each with the reason: a digest of the settings by
            which they were not; else empty.
    """

    format: str = "parquet"
    partition_by: tuple[str, ...] = DEFAULT_PARTITIONING
    isolation: str = READ_UNCOMMITTED
    bytes_as: str = "utf8"
    key: Form = BYTES
    value: Form = BYTES
    choice: Choice = ALL
    of: str = ""

    def __post_init__(self) -> None:
        require("format", (self.format,), FORMATS)
        require("bytes_as", (self.bytes_as,), BYTES_AS)
        require("partition_by", self.partition_by, PARTITIONINGS)
        needed = [*self.forms, *(["timestamp"] if self.format == ICEBERG and "day" in self.partition_by else [])]
        missing = [name for name in needed if not self.choice.has(name)]
        if missing:
            msg = f"the table needs the column {missing[0]}, which the chosen columns lack"
            raise UsageError(msg)

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
        begun = replace(self, key=self.key.begun(), value=self.value.begun())
        of = hashlib.sha256(json.dumps(begun.as_json(), sort_keys=True).encode()).hexdigest()
        return replace(self, key=BYTES, value=BYTES, choice=ALL, bytes_as="base64", of=of)

    @property
    def layout(self) -> str:
        """The layout of the scan: views only for Parquet, which Arrow writes from views without copying."""
        is_changed = self.forms or self.choice.is_filter or self.choice.headers == AS_MAP
        is_only_written = self.suffix == "parquet" and "day" not in self.partition_by and not is_changed
        return "view" if is_only_written else "binary"

    @property
    def scanned(self) -> tuple[str, ...]:
        """The columns to read: all of them if records may go to the table of those that cannot be decoded."""
        may_fail = self.forms or self.format in TEXT_FORMATS or self.choice.headers == AS_MAP
        return COLUMNS if may_fail else tuple(each for each in COLUMNS if each in INTERNAL or self.choice.has(each))

    @property
    def written(self) -> tuple[str, ...]:
        """The columns that files have, if nothing else adds to them."""
        names = [each for each in ("topic", "partition") if each not in self.in_path]
        reason = ("reason",) if self.of else ()
        return (*names, *(each for each in COLUMNS if self.choice.has(each)), *reason)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as the manifest holds them."""
        found = {
            "format": self.format,
            "partitionBy": list(self.partition_by),
            "isolation": self.isolation,
        } | {name: form.as_json() for name, form in self.forms.items()}
        found |= self.choice.as_json() | ({"of": self.of} if self.of else {})
        return found | {"bytes": self.bytes_as} if self.format in TEXT_FORMATS else found

    def continued(self, stored: object, address: str) -> TableSettings:
        """Return the settings with which to continue a table, whose decoded columns grow.

        Raises:
            UsageError: a setting differs, or a column cannot grow to that of the schema.
        """
        known = stored if isinstance(stored, dict) else {}
        if known.get("of", self.of) != self.of:  # older tables do not have it
            msg = f"{address}: set aside by an export with other settings: remove it, or export to another directory"
            raise UsageError(msg)
        forms = {name: stored_form(known.get(name)) for name in ("key", "value")}
        grown = {name: getattr(self, name).continued(form, f"{address}: {name}") for name, form in forms.items()}
        now = replace(self, **grown)
        for name, value in (dict.fromkeys(OPTIONAL) | now.as_json()).items():
            was = known.get(name, self.of if name == "of" else None)
            if isinstance(was, dict) and (form := forms[name]) is not None:
                kind = str(type_of(form))
                if was.get("type", kind) != kind:  # for older tables, a file shows the type
                    raise other_type(address, name, was["type"], kind)
            if _lasting(was) != _lasting(value):
                msg = (
                    f"{address}: this table was begun with {name} {_text(name, was)}, not {_text(name, value)}:"
                    " give the same, since each run adds only what is new, or another directory"
                )
                raise UsageError(msg)
        return now


def _lasting(value: Any) -> Any:  # noqa: ANN401 - of any setting
    """Return what stays the same of a setting: a column grows."""
    return {name: value.get(name) for name in ("kind", *PARTS)} if isinstance(value, dict) else value


OPTIONAL: Final = ("key", "value", "columns", "headers", "keys", "since", "until", "from", "to")
"""Settings that a manifest has if they are not the default ones."""


def other_type(address: str, name: str, was: object, now: object) -> UsageError:
    """Return the error of a table with a column that would have another type from now on."""
    msg = (
        f"{address}: this table's column {name} has the type {was!s:.200}, and this version makes it {now!s:.200}:"
        " export to another directory"
    )
    return UsageError(msg)


PARTS: Final = ("message", "plain", "times")
"""What a manifest says of a form besides its kind and its schema."""


def _text(name: str, value: object) -> str:
    if isinstance(value, dict):
        schema = value.get("schema")
        by = "" if schema is None else f" by the schema {' '.join(schema['text'].split())[:60]}"
        return f"{value.get('kind')}{by}" + "".join(f", {each} {value[each]}" for each in PARTS if value.get(each))
    if value is None:
        return "bytes" if name in {"key", "value"} else "as by default"
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class Source:
    """A partition to export.

    Attributes:
        key: topic and number.
        path: the directory.
    """

    key: TopicPartition
    path: Path

    @property
    def is_live(self) -> bool:
        """Return whether a broker uses the directory."""
        return is_locked(self.path.absolute().parent)

    def open(self, remote: RemoteStore | None = None) -> Partition:
        """Open the partition as it is now.

        Args:
            remote: the store with its tiered segments.
        """
        return open_partition(self.path, remote=remote)


def sources_at(
    paths: Iterable[str | os.PathLike[str]],
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
) -> tuple[Source, ...]:
    """Return the partitions at some paths, by topic and number.

    Args:
        paths: of log directories or partition directories.
        topics: to return; None for all.
        partitions: numbers of those to return; None for all.

    Raises:
        UsageError: a path is not such a directory, a partition occurs twice, or a topic, a number or any partition
            is missing.
    """
    found: dict[TopicPartition, Source] = {}
    for source in (each for path in paths for each in _sources(Path(path))):
        topic, number = source.key
        if (topics is not None and topic not in topics) or (partitions is not None and number not in partitions):
            continue
        other = found.setdefault(source.key, source)
        if other is not source:
            msg = f"{source.path} and {other.path} are the same partition: name one of them"
            raise UsageError(msg)
    _require_all([*(topics or ()), *(partitions or ())], found)
    return tuple(found[key] for key in sorted(found))


def _sources(path: Path) -> Iterator[Source]:
    require_directory(path)
    if path_kind(path) is PathKind.LOG_DIRECTORY:
        for entry in list_log_directory(path).partitions:
            if not entry.name.state:
                yield Source(entry.name.topic_partition, entry.path)
        return
    name = parse_partition_directory(path.absolute().name)
    yield Source(name.topic_partition, path)


def _require_all(wanted: Iterable[str | int], found: Collection[TopicPartition]) -> None:
    """Refuse a topic or a number that no partition has, and no partition at all."""
    missing = next((each for each in wanted if not any(each in key for key in found)), None)
    if missing is not None or not found:
        of = f" of topic {missing!r}" if isinstance(missing, str) else f" with the number {missing}"
        msg = f"no partition{'' if missing is None else of} is there"
        raise UsageError(msg)
