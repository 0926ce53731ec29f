"""The columnar engine's part of recovery, in one object; see `engine.protocols.RecoveryKernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seglog_format.columnar.index_log import index_log, index_sound_log
from seglog_format.columnar.index_sound import SoundEntries
from seglog_format.columnar.ranges import next_range
from seglog_format.columnar.windows import Windows
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from seglog_format.columnar.index_log import IndexedLog
    from seglog_format.storage.byte_source import Readable


class ColumnarRecovery:
    """Recovery and indexing by compiled code."""

    def sound_entries(self, source: Readable, base_offset: int) -> SoundEntries:
        """Prepare to skip the entries of a log that recovery keeps unconditionally."""
        return SoundEntries(source, base_offset)

    def indexed(
        self, source: Readable, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """Return the indexes of a log; None if the fallback decoder has to compute them."""
        return index_log(source, base_offset, interval_bytes, stores_first_offset=stores_first_offset)

    def sound_index(
        self, source: Readable, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """Return the indexes of a log that recovery keeps whole; None if the fallback decoder has to read an entry."""
        return index_sound_log(source, base_offset, interval_bytes, stores_first_offset=stores_first_offset)

    def ordered_end(self, source: Readable, first_offset: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the covered entries with offsets in order, and their last offset."""
        state = np.array([0, first_offset - 1, first_offset, last_offset], np.int64)
        windows = Windows(source)
        next_range(windows.data, state, INT64_MAX // 2)
        while windows.has_more(state):
            next_range(windows.data, state, INT64_MAX // 2)
        return windows.origin + int(state[0]), int(state[1])
