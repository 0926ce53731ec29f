"""The export of logs into a table: exactly once, from run to run."""

from __future__ import annotations

import os
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.engine.choice import Engine, engine_for
from seglog_format.errors import UsageError
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.storage.object_store import is_address
from seglog_format.storage.output_directory import OutputDirectory
from seglog_format.storage.output_store import OutputStore
from seglog_format.tables.settings import DEFAULT_PARTITIONING, ICEBERG, TableSettings
from seglog_format.tables.sources import sources_at
from seglog_format.tables.table import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from seglog_format.log.directory import PathOrPaths
    from seglog_format.log.gap_watch import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.iceberg_catalog import IcebergPlace
    from seglog_format.tables.outcome import ExportedPartition
    from seglog_format.tables.sources import Source
    from seglog_format.tables.table import Table

DEFAULT_FILE_SIZE: Final = 128 * 2**20
"""Bytes after which a file of a table is complete."""


class TableExport:
    """A table that is open, and the partitions to add to it; `opened_export` makes one.

    Attributes:
        sources: the partitions.
    """

    def __init__(
        self,
        sources: tuple[Source, ...],
        table: Table,
        settings: TableSettings,
        file_size: int,
        *,
        is_followed: bool,
    ) -> None:
        self.sources = sources
        self._is_followed = is_followed
        self._table = table
        self._settings = settings
        self._file_size = file_size

    def run(
        self, source: Source, advance: Callable[[float], None] = lambda _: None, on_gap: OnGap | None = None
    ) -> ExportedPartition:
        """Add one partition's new records to the table.

        Args:
            source: the partition.
            advance: called with the done part of the work, up to 1.
            on_gap: as of `Partition.scan`.
        """
        from seglog_format.tables.partition_export import PartitionExport  # noqa: PLC0415 - loads Arrow

        with source.open(copy=self._is_followed) as partition:
            end = _end_of(partition) if self._is_followed or source.is_live else None
            return PartitionExport(
                source.key,
                partition,
                self._table,
                self._settings,
                file_size=self._file_size,
                end=end,
                advance=advance,
                on_gap=on_gap,
            ).run()


def _end_of(partition: Partition) -> int:
    """Return where to stop in a log that a broker writes to: what all replicas have stays in it."""
    end = partition.log_end_offset
    return end if partition.high_watermark is None else min(end, partition.high_watermark)


def place_of(to: str | os.PathLike[str], format: str, catalog: str | None = None) -> Output | IcebergPlace:  # noqa: A002 - as everybody calls it
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
        return _iceberg_place(text, catalog)
    if catalog is not None:
        msg = "a catalog has Iceberg tables: give the format iceberg, too"
        raise UsageError(msg)
    return OutputStore(text) if is_address(text) else OutputDirectory(Path(text))


def _iceberg_place(to: str, catalog: str | None) -> IcebergPlace:
    if find_spec("pyiceberg") is None:
        msg = "Iceberg tables need pyiceberg: pip install 'seglog-format[iceberg]'"
        raise UsageError(msg)
    from seglog_format.tables.iceberg_catalog import TABLE_NAME, IcebergPlace  # noqa: PLC0415 - needs the extra

    if catalog is None and is_address(to):
        msg = f"{to}: an Iceberg table in a store needs a catalog: name one, and give the table's name in it"
        raise UsageError(msg)
    if catalog is None:
        return IcebergPlace(None, TABLE_NAME, Path(to))
    if "." not in to:
        msg = f"{to}: a table of a catalog has a name with a namespace, such as kafka.orders"
        raise UsageError(msg)
    return IcebergPlace(catalog, to)


@contextmanager
def opened_export(
    sources: tuple[Source, ...],
    place: Output | IcebergPlace,
    settings: TableSettings,
    file_size: int = DEFAULT_FILE_SIZE,
    *,
    is_followed: bool = False,
) -> Iterator[TableExport]:
    """Open a table for an export.

    Args:
        sources: the partitions.
        place: of the table; see `place_of`.
        settings: of the table.
        file_size: bytes after which a file is complete.
        is_followed: the logs grow meanwhile, even if no broker holds their lock.

    Raises:
        UsageError: an invalid setting; the place holds something else; or the engine is not installed.
        WriteError: the place cannot be written.
    """
    engine_for(Engine.COLUMNAR, 0)
    if file_size < 1:
        msg = f"file_size is 1 or more, not {file_size}"
        raise UsageError(msg)
    with opened(place, settings) as table:
        yield TableExport(sources, table, settings, file_size, is_followed=is_followed)


def export(  # noqa: PLR0913 - what an export may be asked for
    path_or_paths: PathOrPaths,
    to: str | os.PathLike[str],
    *,
    topics: Collection[str] | None = None,
    format: str = "parquet",  # noqa: A002 - as everybody calls it
    partition_by: Sequence[str] = DEFAULT_PARTITIONING,
    file_size: int = DEFAULT_FILE_SIZE,
    isolation: str = READ_UNCOMMITTED,
    bytes_as: str = "utf8",
    catalog: str | None = None,
) -> tuple[ExportedPartition, ...]:
    """Add the records that a table does not have yet to it, each exactly once; begin the table if there is none.

    Needs the extra ``fast``. The table says itself how far it reaches: an export that was stopped at any moment goes
    on where the table ends. Where a broker is at work, it ends at the high watermark.

    Args:
        path_or_paths: of log directories or partition directories.
        to: the directory of the table, or an address of an object store, such as ``s3://bucket/table``, where no one else
            writes; with ``catalog`` the table's name there, with its namespace.
        topics: leave out all others.
        format: ``parquet``, ``iceberg``, ``arrow`` (IPC files), ``csv`` or ``jsonl``.
        partition_by: some of ``topic``, ``partition`` and ``day`` of the record's time in UTC: a level of
            directories each, named as Hive does.
        file_size: bytes after which a file is complete.
        isolation: as of `Partition.records`.
        bytes_as: how ``csv`` and ``jsonl`` hold keys, values and headers: ``utf8``, ``hex`` or ``base64``.
        catalog: of the Iceberg table, by its name in pyiceberg's configuration; by default one in the directory.

    Returns:
        What was added, for each partition, and what has become of its log since the last run.

    Raises:
        UsageError: a path is no log; the table has another form; or the engine is not installed.
        FormatError: a log is damaged; the table has the rows before.
        WriteError: writing failed; the table has what was complete before.

    Examples:
        >>> from seglog_format import export
        >>> exported = export("demo/kafka-4.3.0", "tables/segs", topics=["segs"])
        >>> exported[0].next_offset, exported[0].row_count
        (450, 450)
    """
    paths = [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths)
    settings = TableSettings(format, tuple(partition_by), isolation, bytes_as)
    sources = sources_at(paths, topics)
    with opened_export(sources, place_of(to, format, catalog), settings, file_size) as run:
        return tuple(run.run(source) for source in run.sources)
