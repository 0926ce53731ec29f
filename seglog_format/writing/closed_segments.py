"""The closed segments of a log that is open for writing, with the values that retention needs (chapter 72)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.cleaning.retention import RetainedSegment
from seglog_format.names import FileKind
from seglog_format.writing.loaded_log import StoredSegment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.storage.files import Files


class ClosedSegments:
    """The segments before the active one.

    Segments that existed when the log was opened are read at first use. Their largest timestamp is taken from the time
    index, as brokers do, so no log has to be read. Each counts as ending where the next segment begins.

    Args:
        files: file layer of the directory.
        directory: of the partition.
        base_offsets: of the segments when the log is opened, ascending; the last one is active.
    """

    def __init__(self, files: Files, directory: Path, base_offsets: Iterable[int]) -> None:
        self._files = files
        self._directory = directory
        self._known: dict[int, RetainedSegment] = {}
        self._ends = dict(pairwise(base_offsets))

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """Base offsets, oldest first."""
        return tuple(self._ends)

    def add(self, base_offset: int, next_offset: int) -> None:
        """Add a segment that was closed at an offset."""
        self._ends[base_offset] = next_offset

    def remove(self, base_offset: int) -> None:
        """Remove a segment."""
        del self._ends[base_offset]
        self._known.pop(base_offset, None)

    def segments(self) -> list[RetainedSegment]:
        """Return all closed segments, oldest first.

        Raises:
            OSError: a file cannot be read.
            FormatError: a segment has no time index, and its log cannot be read to its end.
        """
        return [self._segment(base_offset, end) for base_offset, end in self._ends.items()]

    def _segment(self, base_offset: int, next_offset: int) -> RetainedSegment:
        found = self._known.get(base_offset)
        if found is None:
            segment = StoredSegment(self._files, self._directory, base_offset)
            path, largest = segment.path(FileKind.LOG), segment.largest_timestamp_ms()
            size, modified_ms = self._files.size(path), self._files.modified_ms(path)
            found = self._known[base_offset] = RetainedSegment(base_offset, next_offset, size, largest, modified_ms)
        return found
