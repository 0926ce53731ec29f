"""A part of a table: new files, which become visible to readers when all of them are committed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from seglog_format.tables.formats import TEXT_FORMATS
from seglog_format.tables.rows import by_day, with_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from seglog_format.storage.output_directory import OutputFile
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings

MAX_OPEN_DAYS: Final = 16
"""Maximum open files of a part: each uses memory."""


class NewFiles(Protocol):
    """A location to which files are added."""

    def create(self, name: str) -> OutputFile:
        """Begin a new file."""


class RowFile(Protocol):
    """A file of rows, open for writing."""

    @property
    def size(self) -> int:
        """Approximate number of bytes so far."""

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """

    def close(self) -> None:
        """Complete the file, for example with a footer."""

    def abandon(self) -> None:
        """Stop writing, and release all resources."""


def begun_file(settings: TableSettings, file: OutputFile, schema: pa.Schema) -> RowFile:
    """Begin a file in the format of a table."""
    if settings.format == "arrow":
        from seglog_format.tables.sink import ArrowFile  # noqa: PLC0415 - of the formats, one is used

        return ArrowFile(file, schema)
    if settings.format in TEXT_FORMATS:
        from seglog_format.tables.sink import CsvFile, JsonFile  # noqa: PLC0415 - as above

        return (CsvFile if settings.format == "csv" else JsonFile)(file, settings.bytes_as)
    from seglog_format.tables.sink import ParquetFile  # noqa: PLC0415 - as above

    return ParquetFile(file, schema)


class _Open(NamedTuple):
    name: str
    file: OutputFile
    writer: RowFile


class FilePart:
    """Files with the rows of a range of offsets of one partition: one file, or one for each day."""

    def __init__(
        self,
        output: NewFiles,
        settings: TableSettings,
        key: TopicPartition,
        name_of: Callable[[str | None], str],
        commit: Callable[[Sequence[str], Progress], None],
    ) -> None:
        """Begin without files.

        Args:
            output: location of the files.
            settings: of the table.
            key: partition of the rows.
            name_of: returns the name of the file for a day; its argument is None if days have no files of their own.
            commit: commits published files, together with the progress.
        """
        self._output = output
        self._settings = settings
        self._key = key
        self._name_of = name_of
        self._commit = commit
        self._open: dict[str | None, _Open] = {}

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return sum(each.writer.size for each in self._open.values())

    @property
    def is_crowded(self) -> bool:
        """Return whether the part should be published, because it has many open files."""
        return len(self._open) >= MAX_OPEN_DAYS

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """
        full = with_partition(rows, self._settings, *self._key)
        for day, some in by_day(full) if "day" in self._settings.partition_by else [(None, full)]:
            chosen = some.select(self._settings.written)
            self._writer(day, chosen.schema).write(chosen)

    def _writer(self, day: str | None, schema: pa.Schema) -> RowFile:
        if day not in self._open:
            name = self._name_of(day)
            file = self._output.create(name)
            try:
                self._open[day] = _Open(name, file, begun_file(self._settings, file, schema))
            except BaseException:
                file.discard()
                raise
        return self._open[day].writer

    def publish(self, progress: Progress) -> Progress:
        """Commit the part, together with the progress.

        Args:
            progress: without the new files, which this method adds.

        Returns:
            The progress as stored.

        Raises:
            WriteError: writing failed; the next run writes these rows again.
        """
        for each in self._open.values():
            each.writer.close()
        size = sum(each.file.size for each in self._open.values())
        stored = progress.after(file_count=progress.file_count + len(self._open), size=progress.size + size)
        for each in self._open.values():
            each.file.publish()
        self._commit([each.name for each in self._open.values()], stored)
        self._open = {}
        return stored

    def discard(self) -> None:
        """Remove the files that were not published."""
        for each in self._open.values():
            each.writer.abandon()
            each.file.discard()
        self._open = {}
