"""Which entries of a partition were found to be right: each is verified once, while its file stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.segment import LogSegment
    from seglog_format.serve.touched_pages import TouchedPages

RIGHT, RIGHT_AND_ZSTD = 1, 2
"""Marks of entries; 0 where nothing is known."""


class VerifiedEntries:
    """A mark for each entry of each segment; whoever uses it holds the lock of the partition.

    Args:
        pages: told of what was looked at.
    """

    def __init__(self, pages: TouchedPages) -> None:
        self._checked: dict[int, bytearray] = {}
        self._pages = pages

    def clear(self) -> None:
        """Know nothing any more."""
        self._checked.clear()

    def forget(self, segment: LogSegment) -> None:
        """Know nothing of a segment: its file has become another."""
        self._checked.pop(segment.base_offset, None)

    def first(self, segment: LogSegment, number: int, offset: int) -> bool:
        """Make sure of the entry of a number, with which an answer about an offset begins; whether zstd compressed it.

        Raises:
            FormatError: it is damaged, or the one before, which alone can tell that nothing is missing (SEG-LKP-017).
        """
        marks = self._marks(segment)
        if number and not marks[number - 1] and _starts_above(segment, number, offset):
            self._verify(segment, number - 1, marks)
        if not marks[number]:
            self._verify(segment, number, marks)
        return marks[number] == RIGHT_AND_ZSTD

    def stop(self, segment: LogSegment, start: int, stop: int, on_damage: Callable[[FormatError], None]) -> int:
        """Number of the first entry that is not right, or ``stop``.

        Args:
            segment: whose entries they are.
            start: first number.
            stop: number after the last.
            on_damage: told of the one that is not right.
        """
        marks = self._marks(segment)
        number = marks.find(0, start, stop)
        while number >= 0:
            try:
                self._verify(segment, number, marks)
            except FormatError as error:
                on_damage(error)
                return number
            number = marks.find(0, number + 1, stop)
        return stop

    def _verify(self, segment: LogSegment, number: int, marks: bytearray) -> None:
        frame = segment.verify_entry(number)
        marks[number] = RIGHT_AND_ZSTD if frame.header.codec_id == CompressionCodec.ZSTD else RIGHT
        self._pages.touch(segment, len(frame.data))

    def _marks(self, segment: LogSegment) -> bytearray:
        """One byte for each entry."""
        count = len(segment.entries.positions)
        marks = self._checked.setdefault(segment.base_offset, bytearray())
        if len(marks) < count:
            marks.extend(bytes(count - len(marks)))
        return marks


def _starts_above(segment: LogSegment, number: int, offset: int) -> bool:
    first = segment.entry(number).header.base_offset
    return first is not None and first > offset
