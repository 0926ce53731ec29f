"""Lookups that start at an index entry which looks right, instead of proving it (chapter 60).

What stands at an index entry's position must be an intact entry of a fitting offset, and the walk from there must lead
to the offset asked for. That it is an entry of the log cannot be proven: the bytes may belong to a record's value. On
any doubt the answer is None, and the caller walks from the start of the segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import FormatError
from seglog_format.model import INT64_MAX, Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.segment import LogSegment


def trusted_position(segment: LogSegment, offset: int) -> int | None:
    """Where the first entry starts whose last offset is not below an offset; None on any doubt.

    That the offset is missing in the log is a doubt, too.
    """
    index = segment.offset_index
    floor = 0 if index is None else index.lookup(offset).position
    try:
        found = next((frame for frame in _frames(segment, floor, offset) if frame.header.last_offset >= offset), None)
    except FormatError:
        return None
    return found.position if found is not None and starts_at(found) <= offset else None


def trusted_next_offset(segment: LogSegment) -> int | None:
    """The first offset after the last whole entry of a segment; None on any doubt."""
    index = segment.offset_index
    floor = index.entries[-1].position if index is not None and index.entries else 0
    try:
        return max((frame.header.next_offset for frame in _frames(segment, floor, INT64_MAX)), default=None)
    except FormatError:
        return None


def _frames(segment: LogSegment, position: int, offset: int) -> Iterator[Frame]:
    """The entries from a position on, if an intact one stands there that does not start above an offset."""
    found = segment.frame_at(position) if position > 0 else None
    if isinstance(found, Frame) and segment.base_offset <= starts_at(found) <= offset and checksum_is_valid(found):
        yield from segment.ordered_frames(position)


def starts_at(frame: Frame) -> int:
    """The base offset; for a wrapper, which has to be decompressed to know it, its last offset."""
    first = frame.header.base_offset
    return frame.header.last_offset if first is None else first
