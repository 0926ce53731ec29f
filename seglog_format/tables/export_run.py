"""The run of an export: new records of partitions are added to an open table."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.engine.choice import Engine, engine_for
from seglog_format.errors import Location, UsageError
from seglog_format.names import require_text
from seglog_format.tables.table import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.log.gaps import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.progress import ExportedPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.tables.sources import Source
    from seglog_format.tables.table import IcebergLocation, Table
    from seglog_format.values.schemas import Schemas

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
        from seglog_format.tables.partition_export import PartitionExport  # noqa: PLC0415 - loads Arrow
        from seglog_format.tables.undecoded import UndecodedRows  # noqa: PLC0415 - as above

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
        table = stack.enter_context(opened(location, settings))

        @cache
        def undecoded() -> Table:
            return stack.enter_context(opened(location.beside(UNDECODED), table.settings.undecoded()))

        yield TableExport(sources, table, options, undecoded)
