"""A table of files: parts are written beside each other, and count when the manifest has been replaced."""

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
    """A table of files that is open for writing.

    Attributes:
        settings: of the table, as it was begun.
    """

    def __init__(self, output: Output, settings: TableSettings) -> None:
        self._output = output
        self._manifest = Manifest(output, settings)
        self.settings = self._manifest.settings

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return how far the table reaches in a partition; None for one that it does not have."""
        return self._manifest[key]

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""
        self._manifest.store(key, progress)

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part: rows of a partition from an offset on, which stays hidden before it is published."""
        name_of = partial(file_name, self.settings, key, first_offset)

        def commit(_names: Sequence[str], progress: Progress) -> None:
            self._manifest.store(key, progress)

        return FilePart(self._output, self.settings, key, name_of, commit)

    def remove_unfinished(self) -> None:
        """Remove files that no manifest counts: a run was stopped before it could replace it."""
        for name in list(self._output.listed()):
            found = parsed_name(self.settings, unhidden(name))
            if found is not None:
                progress = self._manifest[found[0]]
                if unhidden(name) != name or progress is None or found[1] >= progress.next_offset:
                    self._output.remove(name)
