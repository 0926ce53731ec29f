"""The prefilter of indexes, for logs in which every entry passed (chapters 40, 41).

As with entries: an index passes, or the checks read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.layout import BATCH_MAGIC
from seglog_format.columnar.prefilter_entries import COLUMN, WRAPPER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.columnar.arrays import Numbers, Table

OFFSET_SLOT: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
TIME_SLOT: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
NO_TIMESTAMP: Final = -1


class FilteredLog:
    """A log in which every entry passed, and no bytes follow the last.

    Args:
        tables: rows of its entries, in order.
        base_offset: of the segment.
    """

    def __init__(self, tables: Sequence[Table], base_offset: int) -> None:
        self._table: Table = np.concatenate(tables)
        self._base_offset = base_offset
        lasts = self._column("last_offset")
        self._is_in_order = bool((lasts[1:] > lasts[:-1]).all())
        times = np.where(self._column("records_count") == 0, NO_TIMESTAMP, self._column("max_timestamp_ms"))
        self._largest: Numbers = np.maximum.accumulate(np.concatenate([[NO_TIMESTAMP], times]))

    def _column(self, name: str) -> Numbers:
        return self._table[:, COLUMN[name]]

    def has_offset_index(self, data: memoryview) -> bool:
        """Return whether no check can report a finding for an offset index with these bytes."""
        slots = _slots(data, OFFSET_SLOT)
        if slots is None or not self._is_in_order:
            return False
        offsets, positions = slots["offset"].astype(np.int64) + self._base_offset, slots["position"].astype(np.int64)
        rows = np.searchsorted(self._column("position"), positions)
        if not _increase(offsets) or not _increase(positions) or (rows >= len(self._table)).any():
            return False
        before = np.concatenate([[-1], self._column("last_offset")])[rows]
        return bool(
            (slots["offset"] >= 0).all()
            and (self._column("position")[rows] == positions).all()
            and (offsets > before).all()
            and (offsets >= self._column("base_offset")[rows]).all()
        )

    def has_time_index(self, data: memoryview, *, is_active: bool) -> bool:
        """Return whether no check can report a finding for a time index with these bytes.

        Args:
            data: of the index.
            is_active: the segment is the last of its partition, whose index need not be finished.
        """
        slots = _slots(data, TIME_SLOT)
        if slots is None or not self._is_in_order:
            return False
        times, offsets = slots["timestamp"].astype(np.int64), slots["offset"].astype(np.int64) + self._base_offset
        if times[0] <= NO_TIMESTAMP or not _increase(times) or (slots["offset"] < 0).any():
            return False
        lasts = self._column("last_offset")
        rows = np.searchsorted(lasts, offsets)
        if (offsets[1:] < offsets[:-1]).any() or (rows >= len(lasts)).any():
            return False
        bases, magics = self._column("base_offset")[rows], self._column("magic")[rows]
        is_same = self._column("max_timestamp_ms")[rows] == times
        return bool(
            (self._largest[np.searchsorted(lasts, offsets, "right")] <= times).all()
            and ((bases <= offsets) & (is_same | (magics == 0))).all()
            and (is_active or times[-1] >= self._largest[-1])
        )


def _slots(data: memoryview, slot: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype[np.void]] | None:
    """Return the slots of an index; None if they are not whole, the last is zero, or there are none."""
    if not len(data) or len(data) % slot.itemsize or not any(data[-slot.itemsize :]):
        return None
    return np.frombuffer(data, slot)


def _increase(values: Numbers) -> bool:
    return bool((values[1:] > values[:-1]).all())


assert WRAPPER < 0 < BATCH_MAGIC
