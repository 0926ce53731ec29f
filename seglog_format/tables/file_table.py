"""A table of files: parts are written beside each other, and count when the manifest has been replaced."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.storage.output_directory import unhidden
from seglog_format.tables.file_names import file_name, parsed_name
from seglog_format.tables.formats import begun_file
from seglog_format.tables.manifest import Manifest
from seglog_format.tables.rows import by_day, with_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from seglog_format.storage.output_directory import Output, OutputFile
    from seglog_format.tables.formats import RowFile
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings

MAX_OPEN_DAYS: Final = 16
"""Maximum files of a part: each holds memory."""


@contextmanager
def opened_table(output: Output, settings: TableSettings) -> Iterator[FileTable]:
    """Open the table at a place, or begin one; files of runs that were stopped are removed.

    Raises:
        UsageError: the place holds something else, or another process writes there.
        WriteError: it cannot be written.
    """
    with output.held():
        table = FileTable(output, settings)
        table.remove_unfinished()
        yield table


class FileTable:
    """A table of files that is open for writing."""

    def __init__(self, output: Output, settings: TableSettings) -> None:
        self._output = output
        self._settings = settings
        self._manifest = Manifest(output, settings)

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return how far the table reaches in a partition; None for one that it does not have."""
        return self._manifest[key]

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""
        self._manifest.store(key, progress)

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part: rows of a partition from an offset on, which stays hidden before it is published."""
        return FilePart(self._output, self._settings, self._manifest, key, first_offset)

    def remove_unfinished(self) -> None:
        """Remove files that no manifest counts: a run was stopped before it could replace it."""
        for name in list(self._output.listed()):
            found = parsed_name(self._settings, unhidden(name))
            if found is not None:
                progress = self._manifest[found[0]]
                if unhidden(name) != name or progress is None or found[1] >= progress.next_offset:
                    self._output.remove(name)


class _Open(NamedTuple):
    file: OutputFile
    writer: RowFile


class FilePart:
    """Files with the rows of some range of offsets of one partition: one file, or one for each day."""

    def __init__(
        self, output: Output, settings: TableSettings, manifest: Manifest, key: TopicPartition, first_offset: int
    ) -> None:
        self._output = output
        self._settings = settings
        self._manifest = manifest
        self._key = key
        self._first_offset = first_offset
        self._open: dict[str | None, _Open] = {}

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return sum(each.writer.size for each in self._open.values())

    @property
    def is_crowded(self) -> bool:
        """Return whether so many files are open that the part should be published."""
        return len(self._open) >= MAX_OPEN_DAYS

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """
        full = with_partition(rows, self._settings, *self._key)
        for day, some in by_day(full) if "day" in self._settings.partition_by else [(None, full)]:
            self._writer(day, some.schema).write(some)

    def _writer(self, day: str | None, schema: pa.Schema) -> RowFile:
        if day not in self._open:
            file = self._output.create(file_name(self._settings, self._key, self._first_offset, day))
            try:
                self._open[day] = _Open(file, begun_file(self._settings, file, schema))
            except BaseException:
                file.discard()
                raise
        return self._open[day].writer

    def publish(self, progress: Progress) -> Progress:
        """Make the part count, with the progress that it brings.

        Args:
            progress: without the new files, which are added to it.

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
        self._manifest.store(self._key, stored)
        self._open = {}
        return stored

    def discard(self) -> None:
        """Remove what was not published."""
        for each in self._open.values():
            each.writer.abandon()
            each.file.discard()
        self._open = {}
