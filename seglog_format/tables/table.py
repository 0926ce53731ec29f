"""The interface of tables of all formats, and the location of those of Iceberg."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.file_part import FilePart
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings


class Table(Protocol):
    """A table, open for writing.

    Attributes:
        settings: of the table when it was created.
    """

    settings: TableSettings

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return the progress of the table in a partition; None if the table does not have the partition."""

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part with rows of a partition from an offset on; it is hidden until it is published."""


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


def opened(location: Output | IcebergLocation, settings: TableSettings) -> AbstractContextManager[Table]:
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
