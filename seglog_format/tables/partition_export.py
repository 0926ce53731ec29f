"""The export of one partition: the records of the log that the table lacks, part by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from seglog_format.errors import FormatError, UndecodedRecordError
from seglog_format.log.gap_watch import warn_of_gap
from seglog_format.log.reading import is_committed_only
from seglog_format.tables.changes import changes_of, closed_segments, damage_change, missing_change
from seglog_format.tables.outcome import ExportedPartition, OpenTransaction
from seglog_format.tables.progress import Progress
from seglog_format.tables.read_ahead import read_ahead
from seglog_format.tables.rows import REASON, digest_of_last, groups_of, last_epoch, last_offset, scanned_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from seglog_format.log.gap_watch import OnGap
    from seglog_format.log.gaps import Gap
    from seglog_format.log.partition import Partition
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.tables.decoding import Decoded, RowDecoder
    from seglog_format.tables.file_part import FilePart
    from seglog_format.tables.outcome import Change
    from seglog_format.tables.progress import TopicPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.tables.table import Table
    from seglog_format.tables.undecoded import UndecodedRows


@dataclass(slots=True)
class PartitionExport:
    """An export of one partition.

    Attributes:
        key: topic and number of the partition.
        partition: open for reading.
        table: receives the rows.
        settings: of the table.
        file_size: bytes after which a file is complete.
        end: first offset that is not exported; None for the end of the log.
        advance: called with the completed fraction of the work, up to 1.
        on_gap: called with missing offsets that the export skips; see `Partition.scan`.
        decoder: of keys and values.
        undecoded: receives the rows that cannot be decoded; None to stop at the first.
        statistics: adds the entries that are left to slower code.
    """

    key: TopicPartition
    partition: Partition
    table: Table
    settings: TableSettings
    file_size: int
    end: int | None
    advance: Callable[[float], None]
    on_gap: OnGap | None
    decoder: RowDecoder
    undecoded: UndecodedRows | None
    statistics: ScanStatistics | None = None
    _progress: Progress = field(init=False)
    _stored: Progress = field(init=False)
    _part: FilePart | None = field(init=False, default=None)
    _changes: list[Change] = field(init=False, default_factory=list)
    _hidden: Gap | None = field(init=False, default=None)

    def run(self) -> ExportedPartition:
        """Add to the table the records that it does not have yet, up to the first damage.

        Raises:
            WriteError: writing failed; the table has the parts that were published before.
        """
        known = self.table.progress_of(self.key)
        self._progress = self._stored = before = known or Progress()
        first = max(before.next_offset, self.partition.log_start_offset)
        stopped_by: FormatError | UndecodedRecordError | None = None
        try:
            self._add_new(known, first)
        except UndecodedRecordError as error:
            stopped_by = error
        except FormatError as error:
            stopped_by = error
            self._changes.append(damage_change(error, self._hidden, *self.key))
        after = self._progress
        is_ended = stopped_by is not None or any(change.is_end for change in self._changes)
        return ExportedPartition(
            *self.key,
            first_offset=first,
            next_offset=after.next_offset,
            row_count=after.row_count - before.row_count,
            file_count=after.file_count - before.file_count,
            size=after.size - before.size,
            undecoded_count=0 if self.undecoded is None else self.undecoded.count,
            changes=tuple(self._changes),
            stopped_by=stopped_by,
            waits_for=None if is_ended else self._waits_for(),
        )

    def _waits_for(self) -> OpenTransaction | None:
        """Return the open transaction at which the export ended; None if it ended at the end of the log."""
        if not is_committed_only(self.settings.isolation):
            return None
        end = self.partition.log_end_offset if self.end is None else self.end
        found = {id_: at for id_, at in self.partition.transactions.open_offsets.items() if at < end}
        if not found:
            return None
        producer_id = min(found, key=lambda id_: found[id_])
        return OpenTransaction(producer_id, self.partition.last_stable_offset, len(found), end)

    def _add_new(self, known: Progress | None, first: int) -> None:
        if known is not None:
            self._changes.extend(changes_of(self.partition, known, *self.key))
        if not any(change.is_end for change in self._changes):
            self._copy(first)
            self._store_segments()

    def _on_gap(self, gap: Gap) -> None:
        """Note missing offsets, or end the export if damage hides them, so a later run can export them.

        Raises:
            CorruptRecordError: damage hides them.
        """
        if (damage := gap.damage) is not None:
            self._hidden = gap
            raise damage
        change = missing_change(gap, *self.key)
        if change is not None:
            self._changes.append(change)
        (warn_of_gap if self.on_gap is None else self.on_gap)(gap)

    def _copy(self, first: int) -> None:
        if self.end is not None and first >= self.end:
            return
        from_offset = first if self._progress.next_offset else None  # from the start, so gaps there are reported too
        rows = scanned_rows(self.partition, self.settings, (from_offset, self.end), self._on_gap, self.statistics)
        total = max(1, (self.partition.log_end_offset if self.end is None else self.end) - first)
        try:
            with read_ahead(groups_of(rows)) as groups:
                for group in groups:
                    self._add(group)
                    self.advance(min(1, (self._progress.next_offset - first) / total))
        except (FormatError, UndecodedRecordError):
            self._publish()
            raise
        else:
            self._publish()
        finally:
            self._discard()

    def _discard(self) -> None:
        for each in (self._part, self.undecoded):
            if each is not None:
                each.discard()

    def _add(self, rows: pa.Table) -> None:
        for found in self.decoder.decode(rows):
            if not found.undecoded.num_rows:
                self._write(found.rows, found.source)
            elif self.undecoded is not None:
                self.undecoded.add(found.undecoded)
                self._write(found.rows, found.source)
            else:
                self._stop(found)

    def _stop(self, found: Decoded) -> None:
        """Add the rows before the first that cannot be decoded.

        Raises:
            UndecodedRecordError: always.
        """
        offset, reason = found.undecoded.column("offset")[0].as_py(), found.undecoded.column(REASON)[0].as_py()
        decoded, before = (rows.filter(pc.less(rows.column("offset"), offset)) for rows in (found.rows, found.source))
        if before.num_rows:
            self._write(decoded, before)
        msg = f"{self.key[0]}-{self.key[1]}: offset {offset}: {reason}"
        raise UndecodedRecordError(msg)

    def _write(self, decoded: pa.Table, rows: pa.Table) -> None:
        """Write decoded rows, and advance the progress past their source rows."""
        if decoded.num_rows:
            if self._part is None:
                self._part = self.table.begin(self.key, decoded.column("offset")[0].as_py())
            self._part.write(decoded)
        offset = last_offset(rows)
        self._progress = self._progress.after(
            next_offset=offset + 1,
            last_offset=offset,
            leader_epoch=last_epoch(rows),
            last_row=digest_of_last(rows),
            row_count=self._progress.row_count + decoded.num_rows,
        )
        if self._part is not None and (self._part.size >= self.file_size or self._part.is_crowded):
            self._publish()

    def _publish(self) -> None:
        """Publish the undecoded rows before the others, so the next run loses none if this one stops in between."""
        if self.undecoded is not None:
            self.undecoded.publish()
        if self._part is not None:
            segments = closed_segments(self.partition, self._progress.next_offset)
            self._progress = self._part.publish(self._progress.after(segments=segments))
            self._part = None
            self._stored = self._progress

    def _store_segments(self) -> None:
        """Store the present segments of the log, so the next run reports only new changes."""
        segments = closed_segments(self.partition, self._progress.next_offset)
        if segments != self._progress.segments or self._progress != self._stored:
            self._progress = self._progress.after(segments=segments)
            self.table.store(self.key, self._progress)
