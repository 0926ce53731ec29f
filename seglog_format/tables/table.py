"""The interface of tables of all formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from seglog_format.tables.settings import IcebergLocation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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
