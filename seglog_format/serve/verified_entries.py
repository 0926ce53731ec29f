"""Which entries of a partition were found to be right: each is verified once, while its file stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Frame


class VerifiedEntries:
    """A mark for each entry of each segment; whoever uses it holds the lock of the partition."""

    def __init__(self) -> None:
        self._checked: dict[int, bytearray] = {}

    def clear(self) -> None:
        """Know nothing any more."""
        self._checked.clear()

    def forget(self, segment: LogSegment) -> None:
        """Know nothing of a segment: its file has become another."""
        self._checked.pop(segment.base_offset, None)

    def first(self, segment: LogSegment, number: int, offset: int) -> Frame:
        """The entry of a number, with which an answer about an offset begins.

        Raises:
            FormatError: it is damaged, or the one before, which alone can tell that nothing is missing (SEG-LKP-017).
        """
        frame = segment.entry(number)
        first = frame.header.base_offset
        self._verify(segment, number - 1 if first is not None and first > offset and number else number)
        self._verify(segment, number)
        return frame

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
                self._verify(segment, number)
            except FormatError as error:
                on_damage(error)
                return number
            number = marks.find(0, number + 1, stop)
        return stop

    def _verify(self, segment: LogSegment, number: int) -> None:
        marks = self._marks(segment)
        if not marks[number]:
            segment.verify_entry(number)
            marks[number] = 1

    def _marks(self, segment: LogSegment) -> bytearray:
        """One byte for each entry: whether it was right."""
        marks = self._checked.setdefault(segment.base_offset, bytearray())
        marks.extend(bytes(len(segment.entries.positions) - len(marks)))
        return marks
