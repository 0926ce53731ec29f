"""The table of records that cannot be decoded: beside the other table, and created with the first such record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from seglog_format.tables.progress import Progress
from seglog_format.tables.rows import REASON, last_offset

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from seglog_format.tables.file_part import FilePart
    from seglog_format.tables.progress import TopicPartition
    from seglog_format.tables.table import Table


class UndecodedRows:
    """The records of one partition that cannot be decoded.

    They are published before the rows around them. So after a stopped run their table may be ahead of the other one;
    records that it already has are not added again.

    Attributes:
        count: number of records that could not be decoded, also those that a stopped run has added.
        reason: why the first of them could not be; None if there is none.
    """

    def __init__(self, key: TopicPartition, opened: Callable[[], Table]) -> None:
        """Begin without rows.

        Args:
            key: of the partition.
            opened: opens the table, or creates it.
        """
        self._key = key
        self._opened = opened
        self._part: FilePart | None = None
        self._progress = Progress()
        self.count = 0
        self.reason: str | None = None

    def add(self, rows: pa.Table) -> None:
        """Write rows that the table does not have."""
        table = self._opened()
        if self._part is None:
            self._progress = table.progress_of(self._key) or Progress()
        self.count += rows.num_rows
        self.reason = self.reason or rows.column(REASON)[0].as_py()
        new = rows.filter(pc.greater_equal(rows.column("offset"), self._progress.next_offset))
        if not new.num_rows:
            return
        if self._part is None:
            self._part = table.begin(self._key, new.column("offset")[0].as_py())
        self._part.write(new)
        offset = last_offset(new)
        self._progress = self._progress.after(
            next_offset=offset + 1, last_offset=offset, row_count=self._progress.row_count + new.num_rows
        )

    def publish(self) -> None:
        """Commit the rows."""
        if self._part is not None:
            self._part.publish(self._progress)
            self._part = None

    def discard(self) -> None:
        """Remove the rows that were not published."""
        if self._part is not None:
            self._part.discard()
            self._part = None
