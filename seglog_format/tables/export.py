"""The export of logs into a table: exactly once, from run to run."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.engine.choice import Engine, engine_for
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.names import is_text
from seglog_format.storage.object_store import is_address
from seglog_format.storage.output_directory import OutputDirectory
from seglog_format.storage.output_store import OutputStore
from seglog_format.tables.schema_topic import beside, read_schemas
from seglog_format.tables.settings import DEFAULT_PARTITIONING, ICEBERG, TableSettings
from seglog_format.tables.sources import sources_at
from seglog_format.tables.table import opened
from seglog_format.values.decoder import TYPES, form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from seglog_format.log.directory import PathOrPaths
    from seglog_format.log.gap_watch import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.iceberg_catalog import IcebergLocation
    from seglog_format.tables.outcome import ExportedPartition
    from seglog_format.tables.sources import Source
    from seglog_format.tables.table import Table
    from seglog_format.values.decoder import Form
    from seglog_format.values.schemas import Schemas

DEFAULT_FILE_SIZE: Final = 128 * 2**20
"""Bytes after which a file of a table is complete."""
UNDECODED: Final = "undecoded"
"""What is added to the name of a table for what cannot be decoded."""


class ExportOptions(NamedTuple):
    """What an export may be asked for, besides the form of its table.

    Attributes:
        file_size: bytes after which a file is complete.
        is_followed: the logs grow meanwhile, even if no broker holds their lock.
        remote: the store with tiered segments of the partitions.
        schemas: those that keys and values were written by; None takes the reader's schema for each.
        is_strict: stop at a record that cannot be decoded.
        statistics: adds the entries that are left to slower code.
    """

    file_size: int = DEFAULT_FILE_SIZE
    is_followed: bool = False
    remote: RemoteStore | None = None
    schemas: Schemas | None = None
    is_strict: bool = False
    statistics: ScanStatistics | None = None


class TableExport:
    """A table that is open, and the partitions to add to it; `opened_export` makes one.

    Attributes:
        sources: the partitions.
    """

    def __init__(
        self, sources: tuple[Source, ...], table: Table, options: ExportOptions, undecoded: Callable[[], Table]
    ) -> None:
        from seglog_format.tables.decoding import RowDecoder  # noqa: PLC0415 - loads Arrow

        self.sources = sources
        self._table = table
        self._options = options
        self._undecoded = undecoded
        self._decoder = RowDecoder(table.settings, options.schemas)

    def run(
        self, source: Source, advance: Callable[[float], None] = lambda _: None, on_gap: OnGap | None = None
    ) -> ExportedPartition:
        """Add one partition's new records to the table.

        Args:
            source: the partition.
            advance: called with the done part of the work, up to 1.
            on_gap: as of `Partition.scan`; not called for offsets that damage hides.

        Returns:
            What was added. Where the log is damaged, or a record cannot be decoded and that was to end the export, the
            table has the rows before, and ``stopped_by`` is the error.

        Raises:
            FormatError: the name of its topic is no text, so no table can have it (SEG-PDR-002).
            WriteError: writing failed; the table has what was complete before.
        """
        _require_text(source)
        from seglog_format.tables.partition_export import PartitionExport  # noqa: PLC0415 - loads Arrow
        from seglog_format.tables.undecoded import UndecodedRows  # noqa: PLC0415 - as above

        is_followed, is_strict = self._options.is_followed, self._options.is_strict
        with source.open(self._options.remote, copy=is_followed) as partition:
            return PartitionExport(
                source.key,
                partition,
                self._table,
                self._table.settings,
                file_size=self._options.file_size,
                end=_end_of(partition) if is_followed or source.is_live else None,
                advance=advance,
                on_gap=on_gap,
                decoder=self._decoder,
                undecoded=None if is_strict else UndecodedRows(source.key, self._undecoded),
                statistics=self._options.statistics,
            ).run()


def _end_of(partition: Partition) -> int:
    """Return where to stop in a log that a broker writes to: what all replicas have stays in it."""
    end = partition.log_end_offset
    return end if partition.high_watermark is None else min(end, partition.high_watermark)


def location_of(to: str | os.PathLike[str], format: str, catalog: str | None = None) -> Output | IcebergLocation:  # noqa: A002 - the usual name
    """Return the place of a table: a directory, an address of an object store, or a name in a catalog.

    Args:
        to: as of `export`.
        format: of the table.
        catalog: as of `export`.

    Raises:
        UsageError: there is no writer for such addresses, or something is not installed.
    """
    engine_for(Engine.COLUMNAR, 0)
    text = os.fspath(to)
    if format == ICEBERG:
        return _iceberg_location(text, catalog)
    if catalog is not None:
        msg = "a catalog has Iceberg tables: give the format iceberg, too"
        raise UsageError(msg)
    return OutputStore(text) if is_address(text) else OutputDirectory(Path(text))


def _iceberg_location(to: str, catalog: str | None) -> IcebergLocation:
    if find_spec("pyiceberg") is None:
        msg = "Iceberg tables need pyiceberg: pip install 'seglog-format[iceberg]'"
        raise UsageError(msg)
    from seglog_format.tables.iceberg_catalog import TABLE_NAME, IcebergLocation  # noqa: PLC0415 - needs the extra

    if catalog is None and is_address(to):
        msg = f"{to}: an Iceberg table in a store needs a catalog: name one, and give the table's name in it"
        raise UsageError(msg)
    if catalog is None:
        return IcebergLocation(None, TABLE_NAME, Path(to))
    if "." not in to:
        msg = f"{to}: a table of a catalog has a name with a namespace, such as kafka.orders"
        raise UsageError(msg)
    return IcebergLocation(catalog, to)


@contextmanager
def opened_export(
    sources: tuple[Source, ...],
    location: Output | IcebergLocation,
    settings: TableSettings,
    options: ExportOptions = ExportOptions(),  # noqa: B008 - a tuple
) -> Iterator[TableExport]:
    """Open a table for an export.

    Args:
        sources: the partitions.
        location: of the table; see `location_of`.
        settings: of the table.
        options: of the export.

    Raises:
        UsageError: an invalid setting; the place holds something else; or the engine is not installed.
        WriteError: the place cannot be written.
    """
    engine_for(Engine.COLUMNAR, 0)
    if options.file_size < 1:
        msg = f"file_size is 1 or more, not {options.file_size}"
        raise UsageError(msg)
    with ExitStack() as stack:
        table = stack.enter_context(opened(location, settings))

        @cache
        def undecoded() -> Table:
            return stack.enter_context(opened(location.beside(UNDECODED), settings.undecoded()))

        yield TableExport(sources, table, options, undecoded)


def forms_of(  # noqa: PLR0913 - what is known of keys and values
    sources: tuple[Source, ...],
    key: str,
    value: str,
    schemas: Schemas | None,
    *,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
) -> tuple[Form, Form]:
    """Return how keys and values are decoded.

    Args:
        sources: the partitions.
        key: kind for keys.
        value: kind for values.
        schemas: the registry's.
        schema: text of the reader's schema of values.
        message: name of the Protobuf message of values.
        is_plain: values have no header of Schema Registry.

    Raises:
        UsageError: there is no schema, or there are several.
    """
    topics = sorted({source.key[0] for source in sources})
    if len(topics) > 1 and (key in TYPES or (value in TYPES and schema is None)):
        msg = f"a table has one schema, and {', '.join(topics)} have several: export one topic"
        raise UsageError(msg)
    of_value = form_of(value, f"{topics[0]}-value", schemas, schema=schema, message=message, is_plain=is_plain)
    return form_of(key, f"{topics[0]}-key", schemas), of_value


def export(  # noqa: PLR0913 - what an export may be asked for
    path_or_paths: PathOrPaths,
    to: str | os.PathLike[str],
    *,
    topics: Collection[str] | None = None,
    format: str = "parquet",  # noqa: A002 - the usual name
    partition_by: Sequence[str] = DEFAULT_PARTITIONING,
    file_size: int = DEFAULT_FILE_SIZE,
    isolation: str = READ_UNCOMMITTED,
    bytes_as: str = "utf8",
    catalog: str | None = None,
    key: str = "bytes",
    value: str = "bytes",
    schemas: Schemas | None = None,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
    is_strict: bool = False,
    remote: RemoteStore | None = None,
    statistics: ScanStatistics | None = None,
) -> tuple[ExportedPartition, ...]:
    """Add the records that a table does not have yet to it, each exactly once; begin the table if there is none.

    Needs the extra ``fast``. The table says itself how far it reaches: an export that was stopped at any moment goes on
    where the table ends. Where a broker is at work, it ends at the high watermark.

    Args:
        path_or_paths: of log directories or partition directories.
        to: the directory of the table, or an address of an object store, such as ``s3://bucket/table``, where no one
            else writes; with ``catalog`` the table's name there, with its namespace.
        topics: leave out all others.
        format: ``parquet``, ``iceberg``, ``arrow`` (IPC files), ``csv`` or ``jsonl``.
        partition_by: some of ``topic``, ``partition`` and ``day`` of the record's time in UTC: a level of
            directories each, named as Hive does.
        file_size: bytes after which a file is complete.
        isolation: as of `Partition.records`.
        bytes_as: how ``csv`` and ``jsonl`` hold keys, values and headers: ``utf8``, ``hex`` or ``base64``.
        catalog: of the Iceberg table, by its name in pyiceberg's configuration; by default one in the directory.
        key: how keys are decoded: ``bytes``, ``string``, ``json``, ``avro``, ``json-schema`` or ``protobuf``.
        value: how values are decoded. What cannot be decoded goes to a table beside this one, with the reason.
        schemas: those that keys and values were written by; by default of ``_schemas-0`` in the same log directory.
        schema: text of the reader's schema of values; by default the newest of the topic's subject. The table keeps
            the schema that it was begun with.
        message: name of a Protobuf message; by default the first of the schema.
        is_plain: values have no header of Schema Registry: they were written by ``schema``.
        is_strict: end at a record that cannot be decoded.
        remote: the store with tiered segments of the partitions, from `open_tier`.
        statistics: adds the entries that are left to slower code, by cause.

    Returns:
        What was added, for each partition, and what has become of its log since the last run.

    Raises:
        UsageError: a path is no log; the table has another form; or the engine is not installed.
        FormatError: a log is damaged, or a segment that is not the last ends before the next one begins, with no
            whole entry (SEG-PDR-024); the table has the rows before.
        UndecodedRecordError: a record cannot be decoded, with ``is_strict``; as above.
        WriteError: writing failed; the table has what was complete before.

    Examples:
        >>> from seglog_format import export
        >>> exported = export("demo/kafka-4.3.0", "tables/segs", topics=["segs"])
        >>> exported[0].next_offset, exported[0].row_count
        (450, 450)
    """
    paths = [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths)
    sources = sources_at(paths, topics)
    known = schemas_for(sources, {key, value}) if schemas is None else schemas
    forms = forms_of(sources, key, value, known, schema=schema, message=message, is_plain=is_plain)
    settings = TableSettings(format, tuple(partition_by), isolation, bytes_as, *forms)
    options = ExportOptions(file_size, remote=remote, schemas=known, is_strict=is_strict, statistics=statistics)
    with opened_export(sources, location_of(to, format, catalog), settings, options) as run:
        return tuple(_whole(run.run(source)) for source in run.sources)


def _require_text(source: Source) -> None:
    """Refuse a topic whose directory is named by bytes that are no UTF-8."""
    topic = source.key[0]
    if not is_text(topic):
        at = Location(str(source.path), field="name")
        raise FormatError(at, "SEG-PDR-002", expected="the name of a topic, in ASCII", found=ascii(topic))


def _whole(exported: ExportedPartition) -> ExportedPartition:
    if exported.stopped_by is not None:
        raise exported.stopped_by
    return exported


def schemas_for(sources: tuple[Source, ...], kinds: Collection[str]) -> Schemas | None:
    """Return the schemas in the log directory of some partitions, if one of the kinds needs them and it has them.

    Raises:
        FormatError: their log is damaged.
    """
    directory = beside(source.path for source in sources) if set(kinds) & set(TYPES) else None
    return None if directory is None else read_schemas(directory)
