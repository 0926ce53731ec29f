"""The export of one partition: the records of the log that the table lacks, part by part."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from seglog_format.errors import FormatError, UndecodedRecordError
from seglog_format.log.gaps import GapKind, warn_of_gap
from seglog_format.log.reading import is_committed_only
from seglog_format.model import MissingOffsets
from seglog_format.tables.formats import ICEBERG, TEXT_FORMATS
from seglog_format.tables.progress import Change, ChangeKind, ExportedPartition, OpenTransaction, Progress
from seglog_format.tables.rows import (
    GROUP_SIZE,
    REASON,
    chosen_rows,
    digest_of_last,
    groups_of,
    headers_as_map,
    last_epoch,
    last_offset,
    scanned_rows,
)
from seglog_format.values.decoder import decoded, decoder_of
from seglog_format.values.schemas import AS_MAP
from seglog_format.values.shape import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.log.gaps import Gap, OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.tables.file_table import FilePart
    from seglog_format.tables.progress import SegmentSize, TopicPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.values.schemas import Schemas


class Table(Protocol):
    """A table of any format, open for writing.

    Attributes:
        settings: of the table when it was created.
    """

    settings: TableSettings

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return the progress of the table in a partition; None if the table does not have the partition."""

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part with rows of a partition from an offset on; it is hidden until it is published."""


# -- the changes of a log since a table was written from it ------------------------------------------------------------


def closed_segments(partition: Partition, next_offset: int) -> tuple[SegmentSize, ...]:
    """Return the segments with only records below an offset, except the last of the log, which still grows."""
    following = [segment.base_offset for segment in partition.segments[1:]]
    pairs = zip(partition.segments, following, strict=False)
    return tuple((segment.base_offset, segment.size) for segment, base in pairs if base <= next_offset)


def changes_of(partition: Partition, progress: Progress, topic: str, number: int) -> Iterator[Change]:
    """Yield the changes of the log since the progress was stored.

    Raises:
        FormatError: the log is damaged at the offset of the table's last row.
    """
    start, end = partition.log_start_offset, partition.log_end_offset
    known = progress.next_offset
    if end < known:
        text = f"the log was cut to offset {end} since the last run, and the table has offsets up to {known - 1}"
        yield Change(ChangeKind.CUT, topic, number, f"{text}: export it again from the start")
        return
    found = _last_row(partition, progress)
    if found and found != progress.last_row:
        text = f"the log was cut and written again since the last run: its offset {progress.last_offset} is another"
        yield Change(
            ChangeKind.REWRITTEN, topic, number, f"{text} record than in the table: export it again from the start"
        )
        return
    if start > known:
        text = f"offsets {known} to {start - 1} were deleted from the log before they were exported"
        yield Change(ChangeKind.DELETED, topic, number, text, MissingOffsets(known, start))
    is_gone = not found and progress.last_offset is not None and progress.last_offset >= start
    if is_gone or _were_compacted(partition, progress):
        text = f"the log was compacted since the last run: the table keeps rows below {known} that it may have lost"
        yield Change(ChangeKind.COMPACTED, topic, number, text)


def missing_change(gap: Gap, topic: str, number: int) -> Change | None:
    """Return the change for a gap that an export skips; None for a gap that a later run may find filled.

    Such gaps are before the log, if a remote store has the offsets, and at its end.
    """
    if gap.kind not in {GapKind.BETWEEN_SEGMENTS, GapKind.MISSING_LOG}:
        return None
    return Change(ChangeKind.MISSING, topic, number, f"{gap.missing} ({gap.kind.value})", gap.missing)


def damage_change(damage: FormatError, gap: Gap | None, topic: str, number: int) -> Change:
    """Return the change for damage at which an export ends.

    Args:
        damage: the error.
        gap: the offsets that it hides; None if they are unknown.
        topic: of the partition.
        number: of the partition.
    """
    return Change(ChangeKind.DAMAGED, topic, number, str(damage), None if gap is None else gap.missing)


def _last_row(partition: Partition, progress: Progress) -> str:
    """Return the digest of the log's record at the table's last offset; empty if the log no longer has that record."""
    offset = progress.last_offset
    if offset is None or offset < partition.log_start_offset:
        return ""
    reader = partition.scan(("offset", "timestamp", "key", "value"), offset, offset + 1, layout="binary")
    rows = reader.read_all()
    return digest_of_last(rows) if rows.num_rows else ""


def _were_compacted(partition: Partition, progress: Progress) -> bool:
    """Return whether segments were joined or became smaller; segments that retention removed are ignored."""
    if not partition.segments:
        return False
    start = partition.segments[0].base_offset
    known = dict(progress.segments)
    now = {segment.base_offset: segment.size for segment in partition.segments}
    return any(now.get(base) != size for base, size in known.items() if base >= start)


# -- an iterator whose items another thread produces one step ahead: reading continues during writing ------------------


T = TypeVar("T")
Step: TypeAlias = "tuple[T | None, BaseException | None]"

POLL_SECONDS: Final = 0.01
"""Time between attempts to take an item from the reading thread, so it ends when it is no longer needed."""


@contextmanager
def read_ahead(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Iterate over items that another thread produces; at most one item waits in between.

    Args:
        items: only the other thread iterates over them.

    Yields:
        An iterator over the same items, which also raises their errors. At the end of the block the thread has ended.
    """
    queue: Queue[Step[T]] = Queue(maxsize=1)
    stopped = Event()
    thread = Thread(target=copy_context().run, args=(_produce, items, queue, stopped), name="seglog-read", daemon=True)
    thread.start()
    try:
        yield _consume(queue)
    finally:
        stopped.set()
        while thread.is_alive():
            _drain(queue)
            thread.join(POLL_SECONDS)


def _produce(items: Iterable[T], queue: Queue[Step[T]], stopped: Event) -> None:
    error: BaseException | None = None
    try:
        for item in items:
            queue.put((item, None))
            if stopped.is_set():
                break
    except BaseException as raised:  # noqa: BLE001 - it is raised where the items are used
        error = raised
    queue.put((None, error or StopIteration()))


def _consume(queue: Queue[Step[T]]) -> Iterator[T]:
    while True:
        item, error = queue.get()
        if isinstance(error, StopIteration):
            return
        if error is not None:
            raise error
        assert item is not None
        yield item


def _drain(queue: Queue[Step[T]]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return


# -- the export of one partition ---------------------------------------------------------------------------------------


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
        choice = self.settings.choice
        first = max(before.next_offset, self.partition.log_start_offset, choice.from_offset or 0)
        self.end = min((end for end in (self.end, choice.to_offset) if end is not None), default=None)
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
            undecoded_reason=None if self.undecoded is None else self.undecoded.reason,
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
        is_begun = self._progress.next_offset > 0 or self.settings.choice.from_offset is not None
        if (self.end is not None and first >= self.end) or (is_begun and first > self.partition.log_end_offset):
            return
        from_offset = first if is_begun else None  # from the start, so gaps there are reported too
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
        msg = f"{self.key[0]}-{self.key[1]}: offset {offset}: {reason} (in {found.undecoded.column('file')[0]})"
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


# -- decoding of the keys and values of rows; rows that cannot be decoded are separated, with the reason ---------------


PIECE_ROWS: Final = 1024
"""Rows that are decoded at once: their values may be many times larger than their bytes."""


class Decoded(NamedTuple):
    """Rows after decoding.

    Attributes:
        rows: those whose keys and values were decoded.
        undecoded: the others, unchanged, with a column for the reason.
        source: all of them, before decoding.
    """

    rows: pa.Table
    undecoded: pa.Table
    source: pa.Table


class RowDecoder:
    """Decodes the columns of a table that are not bytes."""

    def __init__(self, settings: TableSettings, schemas: Schemas | None) -> None:
        """Prepare for the settings of a table.

        Raises:
            UsageError: a schema is not valid for its type, or a library is not installed.
        """
        decoders = {name: decoder_of(form, schemas) for name, form in settings.forms.items()}
        self._decoders = {name: decoder for name, decoder in decoders.items() if decoder is not None}
        self._choice = settings.choice
        self._is_text = settings.format in TEXT_FORMATS
        self._bytes_as = settings.bytes_as
        self._has_first_names = settings.format != ICEBERG and any(form.older for form in settings.forms.values())

    def decode(self, rows: pa.Table) -> Iterator[Decoded]:
        """Decode rows; yield them in one piece, or in several if the decoded values are large."""
        if not self._decoders:
            yield self._decoded(rows)
            return
        held: list[Decoded] = []
        size = 0
        for first in range(0, rows.num_rows, PIECE_ROWS):
            held.append(self._decoded(rows.slice(first, PIECE_ROWS)))
            size += held[-1].rows.nbytes
            if size >= GROUP_SIZE:
                yield _joined(held)
                held, size = [], 0
        if held:
            yield _joined(held)

    def _decoded(self, source: pa.Table) -> Decoded:
        reasons: dict[int, str] = {}
        found = rows = chosen_rows(source, self._choice)
        for name, decoder in self._decoders.items():
            column, failures = decoded(decoder, rows.column(name), rows.column("key"))
            reasons = {failure.row: f"{name}: {failure.reason}" for failure in failures} | reasons
            if self._has_first_names:
                kind = first_names(decoder.type)
                column = pa.chunked_array([each.view(kind) for each in column.chunks], kind)
            found = found.set_column(found.schema.get_field_index(name), pa.field(name, column.type), column)
        if self._choice.headers == AS_MAP:
            column, failed = headers_as_map(rows.column("headers"))
            reasons = failed | reasons
            field = pa.field("headers", column.type, nullable=False)
            found = found.set_column(found.schema.get_field_index("headers"), field, column)
        if self._is_text:
            from seglog_format.tables.file_table import unwritable  # noqa: PLC0415 - of the formats, one is used

            reasons = unwritable(found, self._bytes_as) | reasons
        return Decoded(*_parted(found, rows, reasons), source) if reasons else Decoded(found, rows.slice(0, 0), source)


def _joined(pieces: list[Decoded]) -> Decoded:
    """Return pieces as one."""
    undecoded = [piece.undecoded for piece in pieces if piece.undecoded.num_rows]
    return Decoded(
        pa.concat_tables([piece.rows for piece in pieces]),
        pa.concat_tables(undecoded) if undecoded else pieces[0].undecoded,
        pa.concat_tables([piece.source for piece in pieces]),
    )


def _parted(found: pa.Table, rows: pa.Table, reasons: dict[int, str]) -> tuple[pa.Table, pa.Table]:
    is_decoded = pa.array([row not in reasons for row in range(rows.num_rows)])
    undecoded = rows.take(pa.array(sorted(reasons)))
    texts = pa.array([reasons[row] for row in sorted(reasons)], pa.string())
    return found.filter(is_decoded), undecoded.append_column(pa.field(REASON, pa.string(), nullable=False), texts)


# -- the table of records that cannot be decoded: beside the other table, and created with the first such record -------


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
