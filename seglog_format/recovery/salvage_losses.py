"""The offsets in ranges that salvage does not copy, as far as the intact entries around a range show them."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from seglog_format.codec.framing import frame_at
from seglog_format.errors import SeglogError
from seglog_format.model import GREATEST_OFFSET, Frame, MissingOffsets
from seglog_format.recovery.entry_walk import row_of

if TYPE_CHECKING:
    from seglog_format.log.entry_table import OffsetRange
    from seglog_format.recovery.salvage_scan import DamagedRange, SalvageScan
    from seglog_format.storage.byte_source import ByteSource


def with_missing(damage: DamagedRange, scan: SalvageScan, source: ByteSource, allowed: OffsetRange) -> DamagedRange:
    """Return a damaged range with the offsets between the intact entries before and after it.

    If there is no such entry, the base offset of the segment or of the next segment is the limit. Ranges without an
    intact entry between them get the same offsets.

    Args:
        damage: the range.
        scan: of the file.
        source: the bytes of the file.
        allowed: offsets that the segment can hold.
    """
    following = bisect_left(scan.starts, damage.end)
    first = scan.last_offsets[following - 1] + 1 if following else allowed.first
    after = _offset_after(following, scan, source, allowed)
    return replace(damage, missing=None if after is None or after <= first else MissingOffsets(first, after))


def _offset_after(number: int, scan: SalvageScan, source: ByteSource, allowed: OffsetRange) -> int | None:
    """Return the first offset of the intact entry with a number, or of the next segment; None if it is not known."""
    if number == len(scan.starts):
        return allowed.last + 1 if allowed.last < GREATEST_OFFSET else None
    with suppress(SeglogError):
        return first_offset(source, scan.starts[number])
    return None


def first_offset(source: ByteSource, position: int) -> int:
    """Return the first offset of the intact entry at a position.

    Raises:
        FormatError: its records cannot be read.
    """
    frame = frame_at(source, position, source.size, source.path)
    assert isinstance(frame, Frame)
    return row_of(frame, source.path, has_first_offset=True).first_offset
