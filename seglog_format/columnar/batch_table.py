"""A table of the entries of a log, with a row for each, filled at memory speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.entries import COLUMN, COLUMNS, fill_table
from seglog_format.columnar.plan import POSITION
from seglog_format.columnar.windows import Windows
from seglog_format.model import GREATEST_OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.columnar.arrays import Numbers, Table
    from seglog_format.storage.byte_source import Readable

ROWS: Final = 4096
"""Maximum rows of one part of a table, whatever the size of the log."""
WITHOUT_CHECKSUMS: Final = -1


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Entries of a log in file order.

    Attributes:
        rows: a row for each entry, a column for each name of `entries.COLUMNS`.
        end: position after the last entry: the end of the log, or an entry that the fast path does not cover.
    """

    rows: Table
    end: int

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Numbers:
        """Return all values of one column."""
        return self.rows[:, COLUMN[name]]

    def running_maxima(self, before_ms: int) -> Numbers:
        """Return the largest timestamp up to each entry.

        Args:
            before_ms: the largest before the first entry.
        """
        return np.maximum(np.maximum.accumulate(self.column("max_timestamp_ms")), before_ms)


def table_parts(
    data: Readable,
    *,
    position: int = 0,
    end: int | None = None,
    first_offset: int = 0,
    last_offset: int = GREATEST_OFFSET,
    checksums: bool = True,
) -> Iterator[BatchTable]:
    """Yield the entries of a log, some thousands at a time; each part is overwritten by the next.

    Args:
        data: of a `.log` file.
        position: start of an entry.
        end: where to stop; None for the end of the file.
        first_offset: lowest offset that the log can hold.
        last_offset: highest offset that it can hold.
        checksums: whether to compute each checksum (column ``crc_is_valid``).

    Yields:
        Parts up to the first uncovered entry: one that is truncated, or has an impossible size, magic or offset.
    """
    window = Windows(data, position, end)
    state = np.array([window.at(position), first_offset - 1, first_offset, last_offset], np.int64)
    rows = np.empty((ROWS, len(COLUMNS)), np.int64)
    path = checksum_path() if checksums else WITHOUT_CHECKSUMS
    goes_on = True
    while goes_on:
        if count := fill_table(window.data, state, path, rows):
            window.to_log_positions(rows[:count], COLUMN["position"])
            yield BatchTable(rows[:count], window.origin + int(state[POSITION]))
        goes_on = count == ROWS or window.has_more(state)
