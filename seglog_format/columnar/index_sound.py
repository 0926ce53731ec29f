"""Entries that recovery keeps unconditionally: whole, with the right checksum and offsets in order (chapter 71)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import inlined, kernel
from seglog_format.columnar.cpu import checksum_path
from seglog_format.columnar.entries import UNKNOWN_OFFSET, entry_is_valid, entry_size
from seglog_format.columnar.layout import (
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL,
    GREATEST_OFFSET,
    LAST_OFFSET_DELTA,
    MAGIC,
    MESSAGE_ATTRIBUTES,
    NONE,
    OFFSET,
    PRODUCER_ID,
    RECORDS_COUNT,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_u8, region
from seglog_format.columnar.prefilter_records import end_marker, prefilter_records
from seglog_format.columnar.windows import Windows
from seglog_format.model import INT32_MAX

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region
    from seglog_format.storage.byte_source import Readable

NO_MARKER: Final = (-1, -1, 0)
"""The result for a control batch without records."""
UNCOVERED_MARKER: Final = (-2, 0, 0)
POSITION, PREVIOUS, BASE_OFFSET, PATH = range(4)


@inlined
def ordered_offsets(data: Region, position: int) -> tuple[int, int]:
    """Return first and last offset of an entry; a wrapper's first is unknown; the last is -1 if both are impossible."""
    offset = load_be64(data, position + OFFSET)
    if load_u8(data, position + MAGIC) < BATCH_MAGIC:
        codec = load_u8(data, position + MESSAGE_ATTRIBUTES) & CODEC_MASK
        return (UNKNOWN_OFFSET if codec != NONE else offset), offset if 0 <= offset <= GREATEST_OFFSET else -1
    delta = load_be32(data, position + LAST_OFFSET_DELTA)
    if offset < 0 or delta < 0 or offset > GREATEST_OFFSET - delta:
        return offset, -1
    return offset, offset + delta


@inlined
def marker_in(data: Region, position: int, size: int) -> tuple[int, int, int]:
    """Return the end marker of a control batch, as `end_marker`; `NO_MARKER` or `UNCOVERED_MARKER` if there is none."""
    count, start = load_be32(data, position + RECORDS_COUNT), position + BATCH_HEADER_SIZE
    if load_be16(data, position + BATCH_ATTRIBUTES) & CODEC_MASK != NONE or count < 0 or count > 1:
        return UNCOVERED_MARKER
    if count == 0:
        return NO_MARKER
    delta, base_ms = load_be32(data, position + LAST_OFFSET_DELTA), load_be64(data, position + BASE_TIMESTAMP)
    passes, _ = prefilter_records(data, start, position + size, 1, delta, base_ms)
    kind, epoch, timestamp_delta = end_marker(data, start, position + size) if passes else UNCOVERED_MARKER
    return (kind, epoch, timestamp_delta) if kind >= 0 else UNCOVERED_MARKER


@kernel
def pass_sound(log: Bytes, state: Numbers) -> None:
    """Skip entries as long as recovery keeps them unconditionally.

    Args:
        log: bytes of a log.
        state: position of an entry, last offset of the entry before, base offset of the segment, path of checksums;
            afterwards the position of the first entry not skipped.
    """
    data, end, base_offset = region(log), len(log), state[BASE_OFFSET]
    position, previous = state[POSITION], state[PREVIOUS]
    while position >= 0:
        size = entry_size(data, position, end)
        if size < 0:
            break
        first, last = ordered_offsets(data, position)
        if last <= previous or last - base_offset > INT32_MAX or (first != UNKNOWN_OFFSET and first < base_offset):
            break
        if _has_uncovered_marker(data, position, size) or not entry_is_valid(state[PATH], data, position, size):
            break
        position, previous = position + size, last
    state[POSITION], state[PREVIOUS] = position, previous


@inlined
def _has_uncovered_marker(data: Region, position: int, size: int) -> bool:
    """Return whether a control batch of a producer has other content than one end marker as coordinators write it."""
    if load_u8(data, position + MAGIC) != BATCH_MAGIC or not load_be16(data, position + BATCH_ATTRIBUTES) & CONTROL:
        return False
    if load_be64(data, position + PRODUCER_ID) < 0:
        return False
    kind, _, _ = marker_in(data, position, size)
    return kind == UNCOVERED_MARKER[0]


def sound_state(base_offset: int) -> Numbers:
    """Return the state of `pass_sound` at the start of a segment."""
    return np.array([0, base_offset - 1, base_offset, checksum_path()], np.int64)


class SoundEntries:
    """Skips the entries of one log that recovery keeps unconditionally.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
    """

    def __init__(self, source: Readable, base_offset: int) -> None:
        self._windows = Windows(source)
        self._state = sound_state(base_offset)

    def after(self, position: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the sound entries from a position on, and the last offset before it.

        Args:
            position: of an entry.
            last_offset: of the entry before; one less than the base offset for the first.
        """
        self._state[POSITION], self._state[PREVIOUS] = self._windows.at(position), last_offset
        pass_sound(self._windows.data, self._state)
        while self._windows.has_more(self._state):
            pass_sound(self._windows.data, self._state)
        return self._windows.origin + int(self._state[POSITION]), int(self._state[PREVIOUS])
