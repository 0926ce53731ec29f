"""The segments of an open log that are written no more, as retention sees them (chapter 72)."""

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
    """What is known of the segments before the active one.

    Those that were there when the log was opened are looked at when somebody asks. Their largest timestamp is that of
    the time index, as it is for brokers, so that no log has to be read; and they count as reaching up to the next one.

    Args:
        files: where they are.
        directory: of the partition.
        base_offsets: of the segments that are there when the log is opened, ascending; the last one is active.
    """

    def __init__(self, files: Files, directory: Path, base_offsets: Iterable[int]) -> None:
        self._files = files
        self._directory = directory
        self._known: dict[int, RetainedSegment] = {}
        self._ends = dict(pairwise(base_offsets))

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """Of all of them, oldest first."""
        return tuple(self._ends)

    def add(self, base_offset: int, next_offset: int) -> None:
        """A segment is written no more; it ends at an offset."""
        self._ends[base_offset] = next_offset

    def remove(self, base_offset: int) -> None:
        """A segment is gone."""
        del self._ends[base_offset]
        self._known.pop(base_offset, None)

    def segments(self) -> list[RetainedSegment]:
        """All of them, oldest first.

        Raises:
            OSError: one cannot be looked at.
            FormatError: one has no time index, and its log cannot be read to its end.
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
