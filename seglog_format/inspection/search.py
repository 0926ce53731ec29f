"""Search for entries in bytes with other content, such as a whole fetch response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import frame_at
from seglog_format.errors import FormatError
from seglog_format.model import Frame
from seglog_format.schema.fixed_fields import MAGIC_POSITION

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHECKED_SIZE: Final = 1 << 28
"""Maximum bytes whose checksums a search computes, which limits its time."""


def runs_of_entries(data: memoryview) -> list[tuple[int, int]]:
    """Find runs of consecutive entries with right checksums.

    Args:
        data: any bytes.

    Returns:
        Start and end of each run of entries. If no entry has a right checksum, the one run that starts at the first
        plausible size and magic, and extends to the end; empty if there is no such position.
    """
    runs = list(_valid_runs(data))
    if runs:
        return runs
    plausible = next((position for position in _candidates(data) if _frame(data, position)), None)
    return [] if plausible is None else [(plausible, len(data))]


def _valid_runs(data: memoryview) -> Iterator[tuple[int, int]]:
    budget = MAX_CHECKED_SIZE
    end = 0
    for position in _candidates(data):
        if position < end:
            continue
        frame = _frame(data, position)
        if frame is None:
            continue
        budget -= len(frame.data)
        if budget < 0:
            return
        if checksum_is_valid(frame):
            end = _end_of_run(data, frame)
            yield position, end


def _end_of_run(data: memoryview, frame: Frame | None) -> int:
    """Return the end of the last whole entry of a run; its checksum may be wrong."""
    end = 0
    while frame is not None:
        end = frame.end
        frame = _frame(data, end)
    return end


def _candidates(data: memoryview) -> Iterator[int]:
    """Yield positions at which size and magic could be those of an entry."""
    content = bytes(data)
    for magic_position in range(MAGIC_POSITION, len(content)):
        if content[magic_position] <= 2 and content[magic_position - 8] < 0x80:  # noqa: PLR2004 - magic 0 to 2; a size that is not negative
            yield magic_position - MAGIC_POSITION


def _frame(data: memoryview, position: int) -> Frame | None:
    try:
        frame = frame_at(data, position, len(data))
    except FormatError:
        return None
    return frame if isinstance(frame, Frame) else None
