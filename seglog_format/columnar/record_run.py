"""A run that delivers Python objects: it turns the rows of a block into objects like those of the fallback decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.columnar import objects
from seglog_format.columnar import plan as names
from seglog_format.columnar.block import NOTES, POSITIONS
from seglog_format.columnar.objects import known_objects
from seglog_format.columnar.run import Run
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Message, Record

AT_A_TIME: Final = 256
"""Objects created at a time: few enough to avoid a garbage collection while they are in use."""
BLOCK_ROWS: Final = 2**13


class RecordRun(Run):
    """Entries of one segment as `Record` and `Message` objects, in lists."""

    _delivers_block = _delivers_arena = False
    _tracked = 1
    """Estimated number of objects that the garbage collector tracks for a record and its headers."""

    def _kept_columns(self) -> frozenset[str]:
        return frozenset({"offset", "timestamp", NOTES, POSITIONS})

    def _of_block(self) -> Iterator[list[Record | Message]]:
        block, rows = self._block, int(self._state[names.ROWS])
        job = np.zeros(objects.JOB_SIZE, np.int64)
        job[objects.POSITIONS_AT :] = (
            *(block.layout.starts[name] for name in (names.POSITIONS, names.OFFSETS, names.TIMESTAMPS, names.ENTRIES)),
            self._state[names.NOTED],
        )
        while (start := int(job[objects.ROW])) < rows:
            count = min(AT_A_TIME // self._tracked, rows - start)
            job[objects.END_ROW] = start + count
            made: list[Any] = [None] * count
            job[objects.TARGET] = id(made)
            if objects.make_objects(self._log, self._arena, block.data, job, known_objects()):
                msg = f"{self._source.file}: it has changed while it was read, or memory has run out"
                raise UsageError(msg)
            self._tracked = min(1 + 2 * len(made[-1].headers), AT_A_TIME)
            yield made

    def _of_fallback(
        self,
        rows: Sequence[Record | Message],
        header: BatchHeader,  # noqa: ARG002 - objects have no columns about the entry
        position: int,  # noqa: ARG002
    ) -> list[Record | Message]:
        return list(rows)
