"""A run whose batches hold copied bytes; each part of a block is copied while it is in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar import plan as names
from seglog_format.columnar.copied_columns import CopiedColumn
from seglog_format.columnar.run import Run

if TYPE_CHECKING:
    from seglog_format.columnar.block import Block
    from seglog_format.columnar.pool import Pool
    from seglog_format.columnar.request import Request, Source, Start

PART_ROWS: Final = 2**12
FIRST_CAPACITY: Final = 2**16
COPIED: Final = {names.KEYS: names.KEY_BYTES, names.VALUES: names.VALUE_BYTES}
"""Columns, and the positions of the sizes of their bytes in the state."""
GOES_ON: Final = frozenset({names.FULL, names.MORE_ROWS})


def run_of(source: Source, request: Request, start: Start, pool: Pool) -> Run:
    """Return a run that delivers batches of the requested shape."""
    kind = Run if request.shape.layout == "view" else CopiedRun
    return kind(source, request, start, pool)


class CopiedRun(Run):
    """Entries of one segment as Arrow batches in one of the classic layouts."""

    _delivers_arena = False

    def __init__(self, source: Source, request: Request, start: Start, pool: Pool) -> None:
        self._capacities = dict.fromkeys(COPIED, FIRST_CAPACITY)
        super().__init__(source, request, start, pool)

    def _fresh_block(self) -> Block:
        block, layout = super()._fresh_block(), self._request.shape.layout
        for number, capacity in self._capacities.items():
            if block.layout.starts[number] >= 0:
                block.copied[number] = CopiedColumn(self._pool, layout, block.layout.rows, capacity)
        return block

    def _fill(self) -> int:
        rows, wanted = self._block.layout.rows, PART_ROWS
        while True:
            before = int(self._state[names.ROWS])
            self._plan[names.MAX_ROWS] = min(before + wanted, rows)
            answer = super()._fill()
            self._copy()
            if answer not in GOES_ON or before + wanted >= rows:
                return answer
            # An entry may be larger than a part, up to the size of the block.
            wanted = PART_ROWS if int(self._state[names.ROWS]) > before else rows

    def _copy(self) -> None:
        block, rows, origin = self._block, int(self._state[names.ROWS]), int(self._state[names.ORIGIN])
        for number, copied_column in block.copied.items():
            most = int(self._state[COPIED[number]] + self._state[COPIED[number] + 1])
            copied_column.extend(block.data, block.layout.starts[number], rows, most, self._log, origin, self._arena)
            self._capacities[number] = copied_column.capacity
