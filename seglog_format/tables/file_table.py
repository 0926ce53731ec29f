"""A table of files: new parts become visible to readers when the manifest is replaced."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from seglog_format.storage.output_directory import unhidden
from seglog_format.tables.file_names import file_name, parsed_name
from seglog_format.tables.file_part import FilePart
from seglog_format.tables.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings


@contextmanager
def opened_table(output: Output, settings: TableSettings) -> Iterator[FileTable]:
    """Open the table at a location, or create it; remove files that stopped runs left.

    Raises:
        UsageError: the location has other content, or another process writes to it.
        WriteError: the location cannot be written.
    """
    with output.held():
        table = FileTable(output, settings)
        table.remove_unfinished()
        yield table


class FileTable:
    """A table of files, open for writing.

    Attributes:
        settings: of the table when it was created.
    """

    def __init__(self, output: Output, settings: TableSettings) -> None:
        self._output = output
        self._manifest = Manifest(output, settings)
        self.settings = self._manifest.settings

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return the progress of the table in a partition; None if the table does not have the partition."""
        return self._manifest[key]

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""
        self._manifest.store(key, progress)

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part with rows of a partition from an offset on; it is hidden until it is published."""
        name_of = partial(file_name, self.settings, key, first_offset)

        def commit(_names: Sequence[str], progress: Progress) -> None:
            self._manifest.store(key, progress)

        return FilePart(self._output, self.settings, key, name_of, commit)

    def remove_unfinished(self) -> None:
        """Remove files that are not in the manifest: a run was stopped before it replaced the manifest."""
        for name in list(self._output.listed()):
            found = parsed_name(self.settings, unhidden(name))
            if found is not None:
                progress = self._manifest[found[0]]
                if unhidden(name) != name or progress is None or found[1] >= progress.next_offset:
                    self._output.remove(name)
