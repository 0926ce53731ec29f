"""Marks of valid entries of a partition: each entry is verified once, as long as its file does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32c
from seglog_format.errors import FormatError
from seglog_format.model import CODEC_MASK, ENTRY_PREFIX_SIZE, CompressionCodec
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BATCH_FIELDS,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
    RECORD_BATCH_MAGIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.segment import LogSegment
    from seglog_format.serve.kept_window import KeptWindow
    from seglog_format.storage.byte_source import Window

RIGHT, RIGHT_AND_ZSTD = 1, 2
"""Marks of valid entries; 0 means not verified."""

MAX_BATCH_SIZE: Final = 2**20
"""Larger entries are verified in parts."""

BATCH_LENGTH, MAGIC, CRC, ATTRIBUTES = (
    list(BATCH_FIELDS).index(name) for name in ("batch_length", "magic", "crc", "attributes")
)


class VerifiedEntries:
    """A mark for each entry of each segment. Callers hold the partition's lock.

    Args:
        window: receives the size of what was read, and drops it.
    """

    def __init__(self, window: KeptWindow) -> None:
        self._checked: dict[int, bytearray] = {}
        self._window = window

    def clear(self) -> None:
        """Forget all marks."""
        self._checked.clear()

    def forget(self, segment: LogSegment) -> None:
        """Forget the marks of a segment: its file has changed."""
        self._checked.pop(segment.base_offset, None)

    def first(self, segment: LogSegment, number: int, offset: int) -> bool:
        """Verify the entry with which the answer about an offset begins; return whether it is compressed with zstd.

        Raises:
            FormatError: the entry is damaged; or the entry before it is, so an offset may be missing (SEG-LKP-017).
        """
        marks = self._marks(segment)
        if number and not marks[number - 1] and _starts_above(segment, number, offset):
            self._verify(segment, number - 1, marks)
        if not marks[number]:
            self._verify(segment, number, marks)
        return marks[number] == RIGHT_AND_ZSTD

    def stop(self, segment: LogSegment, start: int, stop: int, on_damage: Callable[[FormatError], None]) -> int:
        """Return the number of the first entry that is not valid, or ``stop``.

        Args:
            segment: the segment of the entries.
            start: first number.
            stop: number after the last.
            on_damage: called with the error of the invalid entry.
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
        table = segment.walked
        start = table.positions[number]
        end = table.positions[number + 1] if number + 1 < len(table.positions) else table.position
        is_short = end - start <= MAX_BATCH_SIZE
        mark = _mark_of_batch(segment.source.window(start, end - start), start, end) if is_short else 0
        marks[number] = mark or _mark(segment.verify_entry(number).header.codec_id)
        self._window.used(segment, end - start)

    def _marks(self, segment: LogSegment) -> bytearray:
        """Return the marks of a segment, one byte for each entry."""
        count = len(segment.walked.positions)
        marks = self._checked.setdefault(segment.base_offset, bytearray())
        if len(marks) < count:
            marks.extend(bytes(count - len(marks)))
        return marks


def _mark(codec_id: int) -> int:
    return RIGHT_AND_ZSTD if codec_id == CompressionCodec.ZSTD else RIGHT


def _mark_of_batch(window: Window, start: int, end: int) -> int:
    """Return the mark of a valid record batch without creating objects; 0 if it needs the full check."""
    data, start, end = window.data, start - window.start, end - window.start
    if end - start < RECORD_BATCH_HEADER_SIZE or end > len(data):
        return 0
    header = RECORD_BATCH_HEADER.unpack_from(data, start)
    if header[MAGIC] != RECORD_BATCH_MAGIC or header[BATCH_LENGTH] != end - start - ENTRY_PREFIX_SIZE:
        return 0
    is_right = crc32c(data[start + ATTRIBUTES_POSITION : end]) == header[CRC]
    return _mark(header[ATTRIBUTES] & CODEC_MASK) if is_right else 0


def _starts_above(segment: LogSegment, number: int, offset: int) -> bool:
    first = segment.entry(number).header.base_offset
    return first is not None and first > offset
