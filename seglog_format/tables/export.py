"""The export of logs into a table: exactly once, from run to run."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.engine import Engine, engine_for
from seglog_format.errors import Location, UsageError
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.names import require_text
from seglog_format.storage.object_store import is_address
from seglog_format.storage.output_directory import OutputDirectory, OutputStore
from seglog_format.tables.formats import DEFAULT_PARTITIONING, ICEBERG, Choice
from seglog_format.tables.schema_topic import beside, forms_of, read_schemas
from seglog_format.tables.settings import IcebergLocation, TableSettings, sources_at
from seglog_format.values.schemas import TYPED, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from seglog_format.log.directory import PathOrPaths
    from seglog_format.log.gaps import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.partition_export import Table
    from seglog_format.tables.progress import ExportedPartition
    from seglog_format.tables.settings import Source
    from seglog_format.values.decoder import Form
    from seglog_format.values.schemas import Schemas


# -- the run of an export: new records of partitions are added to an open table ----------------------------------------


DEFAULT_FILE_SIZE: Final = 128 * 2**20
"""Bytes after which a file of a table is complete."""
UNDECODED: Final = "undecoded"
"""Suffix of the name of a table with records that cannot be decoded."""


class ExportOptions(NamedTuple):
    """Options of an export, besides the form of its table.

    Attributes:
        file_size: bytes after which a file is complete.
        is_followed: whether the logs grow during the export, even if no broker holds their lock.
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
    """An open table, and the partitions to add to it; `opened_export` creates it.

    Attributes:
        sources: the partitions.
    """

    def __init__(
        self, sources: tuple[Source, ...], table: Table, options: ExportOptions, undecoded: Callable[[], Table]
    ) -> None:
        from seglog_format.tables.partition_export import RowDecoder  # noqa: PLC0415 - loads Arrow

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
            advance: called with the completed fraction of the work, up to 1.
            on_gap: as of `Partition.scan`; not called for offsets that damage hides.

        Returns:
            The added rows. If the log is damaged, or a record cannot be decoded and the options are strict, the table
            has the rows before it, and ``stopped_by`` is the error.

        Raises:
            FormatError: the name of its topic is not text, so no table can hold it (SEG-PDR-002).
            WriteError: writing failed; the table has the files that were complete before.
        """
        require_text(source.key[0], Location(str(source.path), field="name"))
        from seglog_format.tables.partition_export import PartitionExport, UndecodedRows  # noqa: PLC0415 - loads Arrow

        is_followed, is_strict = self._options.is_followed, self._options.is_strict
        with source.open(self._options.remote) as partition:
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
    """Return the offset at which to stop in a log that a broker writes to: records below it are on all replicas."""
    end = partition.log_end_offset
    return end if partition.high_watermark is None else min(end, partition.high_watermark)


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
        UsageError: a setting is invalid, the location is not empty and not a table, or the engine is not installed.
        WriteError: the location cannot be written.
    """
    engine_for(Engine.COLUMNAR, 0)
    if options.file_size < 1:
        msg = f"file_size is 1 or more, not {options.file_size}"
        raise UsageError(msg)
    with ExitStack() as stack:
        table = stack.enter_context(_opened(location, settings))

        @cache
        def undecoded() -> Table:
            return stack.enter_context(_opened(location.beside(UNDECODED), table.settings.undecoded()))

        yield TableExport(sources, table, options, undecoded)


# -- the export of logs into a table -----------------------------------------------------------------------------------


def location_of(to: str | os.PathLike[str], format: str, catalog: str | None = None) -> Output | IcebergLocation:  # noqa: A002 - the usual name
    """Return the location of a table: a directory, an address of an object store, or a name in a catalog.

    Args:
        to: as of `export`.
        format: of the table.
        catalog: as of `export`.

    Raises:
        UsageError: there is no writer for such addresses, or a package is not installed.
    """
    engine_for(Engine.COLUMNAR, 0)
    text = os.fspath(to)
    if format == ICEBERG:
        return _iceberg_location(text, catalog)
    if catalog is not None:
        msg = "a catalog has Iceberg tables: also give the format iceberg"
        raise UsageError(msg)
    return OutputStore(text) if is_address(text) else OutputDirectory(Path(text))


def _iceberg_location(to: str, catalog: str | None) -> IcebergLocation:
    if find_spec("pyiceberg") is None:
        msg = "Iceberg tables need pyiceberg: pip install 'seglog-format[iceberg]'"
        raise UsageError(msg)
    from seglog_format.tables.iceberg_table import TABLE_NAME  # noqa: PLC0415 - needs the extra

    if catalog is None and is_address(to):
        msg = f"{to}: an Iceberg table in a store needs a catalog: name one, and give the table's name in it"
        raise UsageError(msg)
    if catalog is None:
        return IcebergLocation(None, TABLE_NAME, Path(to))
    if "." not in to:
        msg = f"{to}: a table of a catalog has a name with a namespace, such as kafka.orders"
        raise UsageError(msg)
    return IcebergLocation(catalog, to)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The parameters of `export`, with the same meanings.

    Attributes:
        paths: of log directories or partition directories.
        to: the table.
        topics, partitions: to export; None for all.
        choice: the columns and records of the table.
        format, partition_by, isolation, bytes_as, catalog: the form of the table.
        key, value: how keys and values are decoded.
        schemas, schema, message, is_plain, times: the schemas and the form that keys and values were written with.
        file_size, is_followed, remote, is_strict, statistics: as of `ExportOptions`.
    """

    paths: Sequence[str | os.PathLike[str]]
    to: str | os.PathLike[str]
    topics: Collection[str] | None
    partitions: Collection[int] | None
    choice: Choice
    format: str
    partition_by: Sequence[str]
    isolation: str
    bytes_as: str
    catalog: str | None
    key: str
    value: str
    schema: str | None
    message: str | None
    is_plain: bool
    times: str
    file_size: int
    remote: RemoteStore | None
    is_strict: bool
    statistics: ScanStatistics | None
    schemas: Schemas | None = None
    is_followed: bool = False

    def forms(self, sources: tuple[Source, ...], schemas: Schemas | None) -> dict[str, Form]:
        """Return how keys and values are decoded; see `forms_of`.

        Args:
            sources: the partitions.
            schemas: the registry's.

        Raises:
            UsageError: there is no schema, or the topics have several.
        """
        own = {"schema": self.schema, "message": self.message, "is_plain": self.is_plain}
        partitions = [(each.key[0], partial(each.open, self.remote)) for each in sources]
        one = "a table {}: export one topic"
        return forms_of((self.key, self.value), partitions, schemas, self.times, one, **own)


def _opened(location: Output | IcebergLocation, settings: TableSettings) -> AbstractContextManager[Table]:
    """Open the table at a location, or create it; remove files that stopped runs left.

    Raises:
        UsageError: the location has other content, or another process writes to it.
        WriteError: the location cannot be written.
    """
    if isinstance(location, IcebergLocation):
        from seglog_format.tables.iceberg_table import opened_iceberg  # noqa: PLC0415 - of the kinds, one is used

        return opened_iceberg(location, settings)
    from seglog_format.tables.file_table import opened_table  # noqa: PLC0415 - as above

    return opened_table(location, settings)


def requested_export(request: ExportRequest) -> AbstractContextManager[TableExport]:
    """Find the partitions, the schemas and the table of a request, and open the table; see `opened_export`.

    Raises:
        UsageError: as `export`; or the table would be in a directory that is read.
        FormatError: the log of the schemas is damaged.
    """
    sources = sources_at(request.paths, request.topics, request.partitions)
    schemas = schemas_for(sources, {request.key, request.value}) if request.schemas is None else request.schemas
    location = location_of(request.to, request.format, request.catalog)
    if request.catalog is None and not is_address(os.fspath(request.to)):
        _refuse_inside(Path(request.to), request.paths)
    forms = request.forms(sources, schemas)
    form = request.format, tuple(request.partition_by), request.isolation, request.bytes_as
    settings = TableSettings(*form, forms["key"], forms["value"], request.choice)
    if request.format == ICEBERG:
        from seglog_format.tables.rows import table_schema  # noqa: PLC0415 - loads Arrow

        table_schema(settings)  # refuses types before the table is there
    options = ExportOptions(
        request.file_size, request.is_followed, request.remote, schemas, request.is_strict, request.statistics
    )
    return opened_export(sources, location, settings, options)


def export(  # noqa: PLR0913 - the parameters of an export
    path_or_paths: PathOrPaths,
    to: str | os.PathLike[str],
    *,
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    columns: Sequence[str] | None = None,
    headers: str = "list",
    keys: Collection[bytes] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
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
    times: str = TYPED,
    is_strict: bool = False,
    remote: RemoteStore | None = None,
    statistics: ScanStatistics | None = None,
) -> tuple[ExportedPartition, ...]:
    """Add to a table the records that it does not have yet, each exactly once; create the table if there is none.

    Needs the extra ``fast``. The table stores its progress: after an export was stopped at any moment, the next one
    resumes where the table ends. If a broker uses the log, the export ends at the high watermark.

    Args:
        path_or_paths: of log directories or partition directories.
        to: the directory of the table, or an address of an object store, such as ``s3://bucket/table``, to which no
            other program writes; with ``catalog`` the table's name there, with its namespace.
        topics: to export; None for all.
        partitions: numbers of those to export; None for all.
        columns: of the table, besides topic, partition and offset; None for all.
        headers: ``list`` of pairs, or ``map`` from text to bytes. A record that repeats a key, or whose key is not
            UTF-8, cannot be decoded into a map.
        keys: export only records with one of these keys.
        since_ms: export no records with an earlier timestamp, in milliseconds since 1970, or with none.
        until_ms: export only records with an earlier timestamp.
        from_offset: export no records of a partition below this offset; only what this range needs is read.
        to_offset: export only records below this offset.
        format: ``parquet``, ``iceberg``, ``arrow`` (IPC files), ``csv`` or ``jsonl``.
        partition_by: some of ``topic``, ``partition`` and ``day`` of the record's time in UTC: a level of
            directories each, named as Hive does.
        file_size: bytes after which a file is complete.
        isolation: as of `Partition.records`.
        bytes_as: how ``csv`` and ``jsonl`` hold keys, values and headers: ``utf8``, ``hex`` or ``base64``.
        catalog: of the Iceberg table, by its name in pyiceberg's configuration; by default one in the directory.
        key: how keys are decoded: ``bytes``, ``string``, ``json``, ``avro``, ``json-schema`` or ``protobuf``; or
            ``kafka``, for one of the topics that Kafka keeps for itself.
        value: how values are decoded. Records that cannot be decoded are added to a table beside this one, with the
            reason.
        schemas: those that keys and values were written by; by default of ``_schemas-0`` in the same log directory.
        schema: text of the reader's schema of values; by default the newest of the topic's subject. The
            decoded column of a table grows to it.
        message: name of a Protobuf message; by default that of the first value that names one.
        is_plain: values have no header of Schema Registry: they were written by ``schema``.
        times: ``typed`` for columns of times, or ``written``: Protobuf's as seconds and nanoseconds, JSON's as text.
        is_strict: end at a record that cannot be decoded.
        remote: the store with tiered segments of the partitions, from `open_tier`.
        statistics: adds the entries that are left to slower code, by cause.

    Returns:
        The added rows of each partition, and the changes of its log since the last run.

    Raises:
        UsageError: a path is not a log; the table has another form; or the engine is not installed.
        FormatError: a log is damaged, or a segment that is not the last ends before the next one begins, with no
            whole entry (SEG-PDR-024); the table has the rows before the damage.
            UndecodedRecordError: a record cannot be decoded, with ``is_strict``; the table has the rows before it.
            WriteError: writing failed; the table has the files that were complete before.

    Examples:
        >>> from seglog_format import export
        >>> exported = export("demo/kafka-4.3.0", "tables/segs", topics=["segs"])
        >>> exported[0].next_offset, exported[0].row_count
        (450, 450)
    """
    request = ExportRequest(
        [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths),
        to,
        topics=topics,
        partitions=partitions,
        choice=Choice(
            None if columns is None else tuple(columns),
            headers,
            None if keys is None else tuple(keys),
            *(since_ms, until_ms, from_offset, to_offset),
        ),
        format=format,
        partition_by=partition_by,
        isolation=isolation,
        bytes_as=bytes_as,
        catalog=catalog,
        key=key,
        value=value,
        schemas=schemas,
        schema=schema,
        message=message,
        is_plain=is_plain,
        times=times,
        file_size=file_size,
        remote=remote,
        is_strict=is_strict,
        statistics=statistics,
    )
    with requested_export(request) as run:
        return tuple(_whole(run.run(source)) for source in run.sources)


def _refuse_inside(to: Path, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse a table in a directory that is read: a broker does not start beside a directory that is no partition."""
    table = to.resolve()
    for path in map(Path, paths):
        if table.is_relative_to(path.resolve()):
            msg = f"{to} is in {path}, which is read: a table in a log directory keeps its broker from starting"
            raise UsageError(msg)


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
