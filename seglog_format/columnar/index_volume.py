"""What recovery asks of the engine, in one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seglog_format.columnar.arrays import readable
from seglog_format.columnar.index_log import index_log
from seglog_format.columnar.index_sound import SoundEntries
from seglog_format.columnar.ranges import next_range
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from seglog_format.columnar.index_log import IndexedLog


class ColumnarVolume:
    """Recovery at volume; see `seglog_format.lifecycle.volume`."""

    def sound_entries(self, data: memoryview, base_offset: int) -> SoundEntries:
        """Prepare to pass over the entries of a log that recovery keeps without a word."""
        return SoundEntries(data, base_offset)

    def indexed(
        self, data: memoryview, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """The indexes of a log; None where the reference has to compute them."""
        return index_log(data, base_offset, interval_bytes, stores_first_offset=stores_first_offset)

    def ordered_end(self, data: memoryview, first_offset: int, last_offset: int) -> tuple[int, int]:
        """Where the regular entries end whose offsets are in order, and their last offset."""
        state = np.array([0, first_offset - 1, first_offset, last_offset], np.int64)
        next_range(readable(data), state, INT64_MAX // 2)
        return int(state[0]), int(state[1])
