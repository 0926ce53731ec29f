"""The export of one partition: what the log has and the table has not, part by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_format.errors import FormatError
from seglog_format.tables.changes import changes_of, closed_segments
from seglog_format.tables.outcome import ExportedPartition
from seglog_format.tables.progress import Progress
from seglog_format.tables.read_ahead import read_ahead
from seglog_format.tables.rows import digest_of_last, groups_of, last_epoch, last_offset, scanned_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from seglog_format.log.gap_watch import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.tables.file_part import FilePart
    from seglog_format.tables.progress import TopicPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.tables.table import Table


@dataclass(slots=True)
class PartitionExport:
    """An export of one partition.

    Attributes:
        key: topic and number.
        partition: open for reading.
        table: to add rows to.
        settings: of the table.
        file_size: bytes after which a file is complete.
        end: first offset not wanted; None for all that there is.
        advance: called with the done part of the work, up to 1.
        on_gap: called with missing offsets; see `Partition.scan`.
    """

    key: TopicPartition
    partition: Partition
    table: Table
    settings: TableSettings
    file_size: int
    end: int | None
    advance: Callable[[float], None]
    on_gap: OnGap | None = None
    _progress: Progress = field(init=False)
    _part: FilePart | None = field(init=False, default=None)

    def run(self) -> ExportedPartition:
        """Add to the table what it does not have yet.

        Raises:
            FormatError: the log is damaged; the rows before are in the table.
            WriteError: writing failed; the table has what was published before.
        """
        known = self.table.progress_of(self.key)
        self._progress = before = known or Progress()
        changes = () if known is None else tuple(changes_of(self.partition, known, *self.key))
        first = max(before.next_offset, self.partition.log_start_offset)
        if not any(change.is_end for change in changes):
            self._copy(first)
            self._store_segments()
        after = self._progress
        return ExportedPartition(
            *self.key,
            first_offset=first,
            next_offset=after.next_offset,
            row_count=after.row_count - before.row_count,
            file_count=after.file_count - before.file_count,
            size=after.size - before.size,
            changes=changes,
        )

    def _copy(self, first: int) -> None:
        if self.end is not None and first >= self.end:
            return
        asked = first if self._progress.next_offset else None  # from the start, gaps are reported there as well
        rows = scanned_rows(self.partition, self.settings, (asked, self.end), self.on_gap)
        total = max(1, (self.partition.log_end_offset if self.end is None else self.end) - first)
        try:
            with read_ahead(groups_of(rows)) as groups:
                for group in groups:
                    self._add(group)
                    self.advance(min(1, (self._progress.next_offset - first) / total))
        except FormatError:
            self._publish()
            raise
        else:
            self._publish()
        finally:
            if self._part is not None:
                self._part.discard()

    def _add(self, rows: pa.Table) -> None:
        if self._part is None:
            self._part = self.table.begin(self.key, rows.column("offset")[0].as_py())
        self._part.write(rows)
        offset = last_offset(rows)
        self._progress = self._progress.after(
            next_offset=offset + 1,
            last_offset=offset,
            leader_epoch=last_epoch(rows),
            last_row=digest_of_last(rows),
            row_count=self._progress.row_count + rows.num_rows,
        )
        if self._part.size >= self.file_size or self._part.is_crowded:
            self._publish()

    def _publish(self) -> None:
        if self._part is not None:
            segments = closed_segments(self.partition, self._progress.next_offset)
            self._progress = self._part.publish(self._progress.after(segments=segments))
            self._part = None

    def _store_segments(self) -> None:
        """Remember what the log looks like now, so the next run says only what is new."""
        segments = closed_segments(self.partition, self._progress.next_offset)
        if segments != self._progress.segments:
            self._progress = self._progress.after(segments=segments)
            self.table.store(self.key, self._progress)
