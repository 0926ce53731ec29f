"""The decision which appends to a log get index entries, by generation of brokers (chapters 40, 41 and 70)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset
from seglog_format.state.config import IndexUnit
from seglog_format.state.index_build import IndexedOffset, IndexInterval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.state.config import LogConfig
    from seglog_format.writing.append import Entry


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """The index entries due at one entry or append: an offset index entry, and the largest timestamp up to its end."""

    offset_entry: OffsetPosition
    largest: TimestampOffset


class SparseIndex:
    """Decides which of the appends to one segment are indexed.

    Args:
        config: of the log.
        base_offset: of the segment.
        largest: largest timestamp so far, with its offset; None in a new segment.
    """

    def __init__(self, config: LogConfig, base_offset: int, largest: TimestampOffset | None = None) -> None:
        self._interval = IndexInterval(
            config.index_interval_bytes, largest or TimestampOffset(NO_TIMESTAMP, base_offset)
        )
        self._unit = config.generation.index_unit
        self._indexed = config.generation.indexed_offset

    @property
    def largest(self) -> TimestampOffset:
        """Largest timestamp so far; -1 and the base offset if there is none."""
        return self._interval.largest

    def add(self, position: int, entries: Sequence[Entry]) -> list[IndexPoint]:
        """Add entries that are appended together.

        Args:
            position: where the first entry starts.
            entries: in order.

        Returns:
            The index entries that are due, in order (SEG-ROL-010, SEG-ROL-011).
        """
        units = [entries] if self._unit is IndexUnit.APPEND else [[entry] for entry in entries]
        points = []
        for unit in units:
            size = sum(len(entry.data) for entry in unit)
            if self._interval.add(size, max((entry.largest for entry in unit), key=_timestamp)):
                points.append(IndexPoint(OffsetPosition(self._offset_of(unit), position), self.largest))
            position += size
        return points

    def _offset_of(self, unit: Sequence[Entry]) -> int:
        return unit[0].first_offset if self._indexed is IndexedOffset.FIRST else unit[-1].last_offset


def _timestamp(largest: TimestampOffset) -> int:
    return largest.timestamp_ms
