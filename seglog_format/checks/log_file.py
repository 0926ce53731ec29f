"""Verification of one log, a `.log` file or a metadata snapshot: the walk, every entry, the bytes after the last."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.checks.entries import (
    Batch,
    Entry,
    LogSize,
    LogTail,
    Messages,
    compressed_part,
    control_records,
    decode_subject,
    refusals,
)
from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.checks.text_files import EpochRun, EpochsOfLog
from seglog_format.codec.compression import decompress_all
from seglog_format.codec.decode import KEPT_RECORDS
from seglog_format.codec.decode import field as field_of_batch
from seglog_format.codec.framing import frame_at, walk
from seglog_format.errors import FormatError, Location, RefusedError, UnreadableError
from seglog_format.log.entry_table import (
    EVERYTHING,
    OffsetRange,
    WantedRange,
    bounds_of,
    check_offsets,
)
from seglog_format.log.search import next_entry, unexpected_end
from seglog_format.model import (
    NO_TIMESTAMP,
    ControlRecordType,
    Frame,
    MissingOffsets,
    RecordBatchHeader,
    Tail,
    TailKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from seglog_format.engine import FilteredEntries, FilteredLog, MakePrefilter
    from seglog_format.scan_statistics import FallbackCause
    from seglog_format.storage.byte_source import ByteSource
    from seglog_format.storage.log_storage import LogStorage


@dataclass(slots=True)
class LogSummary:
    """Facts about a checked log that the checks of side files need.

    Attributes:
        aborts: producer id by the offset of its ABORT record, or of a control batch that compaction has emptied.
        damaged: position of the first damaged entry; None if there is none.
        partial_at: position of a truncated last entry; None if there is none.
        last_offset: of the last intact entry; None without one.
        is_end_known: whether no damaged entry follows the last intact one.
        has_tail: whether bytes that are no whole entry follow the last one.
        epochs: leader epochs of the intact batches that have one, in file order.
        filtered: the log as indexes are compared with it, if every entry passed the prefilter and no bytes follow.
        fallbacks: entries that did not pass the prefilter, by cause; empty without one.
    """

    aborts: dict[int, int] = field(default_factory=dict)
    damaged: int | None = None
    partial_at: int | None = None
    last_offset: int | None = None
    is_end_known: bool = True
    has_tail: bool = False
    epochs: list[EpochRun] = field(default_factory=list)
    filtered: FilteredLog | None = None
    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)
    _intact: list[LogRow | FilteredEntries] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Return whether every entry is intact, and the walk reached the end."""
        return self.damaged is None

    @property
    def entry_count(self) -> int:
        """Number of intact entries."""
        return sum(1 if isinstance(each, LogRow) else each.entry_count for each in self._intact)

    @property
    def prefiltered_count(self) -> int:
        """Return the number of entries that passed the prefilter."""
        return sum(0 if isinstance(each, LogRow) else each.entry_count for each in self._intact)

    def add(self, row: LogRow) -> None:
        """Add the next intact entry."""
        self._intact.append(row)
        self.last_offset, self.is_end_known = row.last_offset, True

    def add_filtered(self, part: FilteredEntries) -> None:
        """Add intact entries that passed the prefilter."""
        self._intact.append(part)
        self.aborts.update(part.aborts)
        self.last_offset, self.is_end_known = part.last_offset, True

    def add_epoch(self, run: EpochRun) -> None:
        """Add batches of one leader epoch; -1 means none."""
        if self.epochs and self.epochs[-1].epoch == run.epoch:
            self.epochs[-1] = self.epochs[-1]._replace(last_offset=run.last_offset)
        elif run.epoch >= 0:
            self.epochs.append(run)

    def filtered_parts(self) -> list[FilteredEntries] | None:
        """Return all entries if every one passed the prefilter; None if one did not, or the log has no entries."""
        parts = [each for each in self._intact if not isinstance(each, LogRow)]
        return parts if parts and len(parts) == len(self._intact) and self.is_whole else None

    def outline(self) -> LogOutline:
        """Return the intact entries before the first damaged one; indexes are compared with them."""
        rows = [row for row in self._rows() if self.damaged is None or row.position < self.damaged]
        return LogOutline(rows, partial_at=self.partial_at, unknown_from=self.damaged)

    def _rows(self) -> Iterator[LogRow]:
        for each in self._intact:
            if isinstance(each, LogRow):
                yield each
            else:
                yield from map(LogRow._make, each.rows())

    def note_damage(self, position: int) -> None:
        """Record the position of a damaged entry, if it is the first."""
        self.is_end_known = False
        if self.damaged is None:
            self.damaged = position


class LogVerification:
    """Checks one log file. Iterate it once, then read `summary`.

    Attributes:
        summary: complete when the iteration has ended.
    """

    def __init__(  # noqa: PLR0913 - how to verify
        self,
        source: ByteSource,
        path: str,
        base_offset: int,
        limit: int,
        advance: Callable[[int], None] | None = None,
        prefilter: MakePrefilter | None = None,
        *,
        wanted: WantedRange = EVERYTHING,
    ) -> None:
        self.source = source
        self.path = path
        self.base_offset = base_offset
        self.limit = limit
        self.advance = advance
        self.summary = LogSummary()
        self._position, _, self._end = bounds_of(wanted, source, path, OffsetRange(base_offset))
        self._refused_until = 0
        self._prefilter = None if prefilter is None else prefilter(source, base_offset, limit, self._decompressed)

    def __iter__(self) -> Iterator[Finding]:
        try:
            tail = yield from self._entries()
        except FormatError as error:
            self._count_fallback()
            self.summary.note_damage(self._position)
            yield Finding.of_error(error)
            tail = Tail(TailKind.NONE, self._position, 0)
        if tail.kind is TailKind.PARTIAL and (hidden := self._hidden_entries(tail)) is not None:
            self.summary.note_damage(tail.position)
            yield hidden
            tail = Tail(TailKind.NONE, tail.position, 0)
        self.summary.has_tail = tail.kind is not TailKind.NONE
        if tail.kind is TailKind.PARTIAL:
            self.summary.partial_at = tail.position
        parts = self.summary.filtered_parts() if tail.kind is TailKind.NONE else None
        if self._prefilter is not None and parts is not None:
            self.summary.filtered = self._prefilter.log_of(parts)
        yield from findings_of(EpochsOfLog(self.summary.epochs))
        yield from findings_of(LogTail(self.path, tail))
        yield from findings_of(LogSize(self.path, self.source.size))

    def _entries(self) -> Generator[Finding, None, Tail]:
        """Check every entry; return what follows the last one.

        Raises:
            FormatError: entries after the position cannot be found.
        """
        while True:
            yield from self._filtered()
            if self._is_past_range():
                return Tail(TailKind.NONE, self._position, 0)
            try:
                found = frame_at(self.source, self._position, self.source.size, self.path)
            except UnreadableError as error:
                yield from self._refused(error)
                self._advance_to(self._next_entry(error.location))
                continue
            if isinstance(found, Tail):
                return found
            self._count_fallback()
            yield from self._frame(found)
            self._advance_to(found.end)

    def _count_fallback(self) -> None:
        if self._prefilter is not None:
            self.summary.fallbacks[self._prefilter.cause] += 1

    def _refused(self, error: UnreadableError) -> Iterator[Finding]:
        """Report a range that the disk refuses, once; the checks continue after it (SEG-PDR-022)."""
        self.summary.note_damage(self._position)
        at = error.location
        if at.position + at.size > self._refused_until:
            yield Finding.of_error(error)
            self._refused_until = at.position + at.size

    def _next_entry(self, refused: Location) -> int:
        """Return the start of an intact entry after a refused range; the end of the file if there is none."""
        return next_entry(self.source, refused.position + refused.size, OffsetRange(self.base_offset))

    def _hidden_entries(self, tail: Tail) -> Finding | None:
        """Return the finding that intact entries follow an entry that seems to be cut short; None if none do."""
        error = unexpected_end(tail, self.source, OffsetRange(self.base_offset), self.path, is_last=True)
        last = self.summary.last_offset
        end = self.base_offset if last is None else last + 1
        return None if error is None else replace(Finding.of_error(error), missing=MissingOffsets(end, end))

    def _advance_to(self, position: int) -> None:
        if self.advance is not None:
            self.advance(position - self._position)
        self._position = position

    def _filtered(self) -> Iterator[Finding]:
        """Skip the entries for which no check can report a finding; check only the headers of some."""
        if self._prefilter is None:
            return
        for part in self._prefilter.parts(self._position, self.summary.last_offset):
            before = self.summary.last_offset
            for number, position in part.headers_to_check:
                yield from self._header(position, part.last_offset_before(number) if number else before)
            self.summary.add_filtered(part)
            for epoch, first, last, position in part.leader_epochs:
                self.summary.add_epoch(EpochRun(epoch, first, last, Location(self.path, position)))
            self._advance_to(part.end)
            if self._is_past_range():
                return

    def _is_past_range(self) -> bool:
        last = self.summary.last_offset
        return self._end is not None and last is not None and last + 1 >= self._end

    def _header(self, position: int, previous: int | None) -> Iterator[Finding]:
        """Check the header of a batch whose records were prefiltered."""
        at, frame = Location(self.path, position), frame_at(self.source, position, self.source.size, self.path)
        assert isinstance(frame, Frame)
        assert isinstance(frame.header, RecordBatchHeader)
        subject = Batch(at, frame, frame.header, ())
        yield from findings_of(Entry(at, subject.to_record_batch(), self.base_offset, previous))
        yield from findings_of(subject)

    def _decompressed(self, start: int, end: int, codec_id: int, magic: int) -> bytes | None:
        """Return the decompressed content of an entry; None if the checks have to read the entry."""
        at = Location(self.path, start)
        with suppress(FormatError):
            return decompress_all(codec_id, self.source.view(start, end), magic=magic, at=at, limit=self.limit)
        return None

    def _frame(self, frame: Frame) -> Iterator[Finding]:
        at = Location(self.path, frame.position)
        try:
            subject = decode_subject(frame, at, self.limit)
            check_offsets(subject.to_record_batch(), at)
        except UnreadableError as error:
            yield from self._refused(error)
            return
        except FormatError as error:
            self.summary.note_damage(frame.position)
            yield Finding.of_error(error)
            return
        entry = Entry(at, subject.to_record_batch(), self.base_offset, self.summary.last_offset)
        yield from findings_of(entry)
        yield from findings_of(subject)
        yield from findings_of(compressed_part(subject, self.limit))
        if isinstance(subject, Batch):
            yield from refusals(subject)
            yield from self._unchecked(subject)
        self._remember(entry, subject)

    def _unchecked(self, subject: Batch) -> Iterator[Finding]:
        """Report a batch with too many records for these checks; the prefilter's compiled code can check it."""
        if subject.is_partly_checked:
            at, count = field_of_batch(subject.at, "records_count"), subject.header.records_count
            expected = f"at most {KEPT_RECORDS} records in a batch whose records are all looked at"
            yield Finding.of_error(RefusedError(at, "SEG-COD-016", expected=expected, found=count))

    def _remember(self, entry: Entry, subject: Batch | Messages) -> None:
        header = entry.header
        is_empty = header.records_count == 0
        span = header.base_offset, header.last_offset
        self.summary.add(LogRow(entry.at.position, *span, header.max_timestamp_ms, header.magic, is_empty))
        if isinstance(subject, Batch):
            epoch = subject.header.partition_leader_epoch
            self.summary.add_epoch(EpochRun(epoch, subject.header.base_offset, header.last_offset, entry.at))
        if isinstance(subject, Batch) and header.is_control:
            types = [control.type for control in control_records(subject)]
            if is_empty or ControlRecordType.ABORT in types:
                self.summary.aborts[header.last_offset] = header.producer_id


# -- checks of metadata snapshots: each is a log between a header and a footer (chapter 32) ----------------------------


@dataclass(frozen=True, slots=True)
class SnapshotEnds:
    """The first and the last entry of a metadata snapshot.

    Attributes:
        first_at: location of the first entry.
        first: type of the first record of the first entry; None if that is not a control record.
        last_at: location of the last entry.
        last: type of the last record of the last entry; None if that is not a control record.
    """

    first_at: Location
    first: ControlRecordType | None
    last_at: Location
    last: ControlRecordType | None


@checks("SEG-CTL-014")
def begins_with_header(ends: SnapshotEnds) -> Iterator[Problem]:
    """Report a snapshot that does not begin with a header."""
    if ends.first is not ControlRecordType.SNAPSHOT_HEADER:
        yield Problem(ends.first_at, "a SNAPSHOT_HEADER first", _shown(ends.first))


@checks("SEG-CTL-015")
def ends_with_footer(ends: SnapshotEnds) -> Iterator[Problem]:
    """Report a snapshot that does not end with a footer: its writer did not finish it."""
    if ends.last is not ControlRecordType.SNAPSHOT_FOOTER:
        yield Problem(ends.last_at, "a SNAPSHOT_FOOTER last", _shown(ends.last))


def snapshot_ends_findings(path: Path, storage: LogStorage, limit: int) -> Iterator[Finding]:
    """Yield findings about the ends of a metadata snapshot whose entries are all intact."""
    yield from findings_of(_ends_of(path, storage, limit))


def _ends_of(path: Path, storage: LogStorage, limit: int) -> SnapshotEnds:
    first = last = None
    with storage.open(path) as source:
        for frame in walk(source, path=source.path):
            first, last = first or frame, frame
        start, end = Location(str(path), 0), Location(str(path), last.position if last else 0)
        heads, feet = _types(first, start, limit), _types(last, end, limit)
    return SnapshotEnds(start, next(iter(heads), None), end, next(reversed(feet), None))


def _types(frame: Frame | None, at: Location, limit: int) -> list[ControlRecordType | None]:
    """Return the types of the control records of an entry; none for data."""
    with suppress(FormatError):
        subject = None if frame is None else decode_subject(frame, at, limit)
        return [record.type for record in control_records(subject)] if isinstance(subject, Batch) else []
    return []


def _shown(found: ControlRecordType | None) -> str:
    return "none" if found is None else found.name


# -- the outline of a log that an index is checked against -------------------------------------------------------------


class LogRow(NamedTuple):
    """The values of one log entry that an index is checked against.

    Attributes:
        position: byte position in the file.
        base_offset: first offset; None for a compressed wrapper, which does not store it.
        last_offset: last offset.
        max_timestamp_ms: largest timestamp, or -1.
        magic: 0, 1 or 2.
        is_empty: whether compaction has removed every record, so the largest timestamp may be that of a removed record.
    """

    position: int
    base_offset: int | None
    last_offset: int
    max_timestamp_ms: int
    magic: int
    is_empty: bool = False


class LogOutline:
    """The rows of a log, indexed by position and by offset.

    Args:
        rows: whole entries in file order.
        partial_at: start of a last entry that is incomplete; None if there is none.
        unknown_from: position from which on damage hides the entries; None without damage.
    """

    def __init__(
        self, rows: Iterable[LogRow], *, partial_at: int | None = None, unknown_from: int | None = None
    ) -> None:
        self.rows = tuple(rows)
        self.partial_at = partial_at
        self.unknown_from = unknown_from
        self._slots = {row.position: slot for slot, row in enumerate(self.rows)}
        if partial_at is not None:
            self._slots[partial_at] = len(self.rows)
        self._last_before = (-1, *accumulate((row.last_offset for row in self.rows), max))
        self._by_offset = sorted(self.rows, key=_last_offset)
        timestamps = (NO_TIMESTAMP if row.is_empty else row.max_timestamp_ms for row in self._by_offset)
        self._timestamp_up_to = (NO_TIMESTAMP, *accumulate(timestamps, max))

    @property
    def is_whole(self) -> bool:
        """Return whether the rows cover the whole file."""
        return self.partial_at is None and self.unknown_from is None

    def is_start(self, position: int) -> bool:
        """Return whether an entry starts at a position; also True for a position that damage hides."""
        return position in self._slots or (self.unknown_from is not None and position >= self.unknown_from)

    def last_offset_before(self, position: int) -> int | None:
        """Return the greatest last offset of the entries before a position; None if no entry starts there."""
        slot = self._slots.get(position)
        return None if slot is None else self._last_before[slot]

    def base_offset_at(self, position: int) -> int | None:
        """Return the base offset of the entry at a position, if it is known."""
        slot = self._slots.get(position)
        return None if slot is None or slot == len(self.rows) else self.rows[slot].base_offset

    def timestamp_up_to(self, offset: int) -> int:
        """Return the largest timestamp of the entries that end at or below an offset; -1 without any."""
        return self._timestamp_up_to[bisect_right(self._by_offset, offset, key=_last_offset)]

    def row_with(self, offset: int) -> LogRow | None:
        """Return the entry that covers an offset, even if compaction has removed its record."""
        slot = bisect_left(self._by_offset, offset, key=_last_offset)
        if slot == len(self._by_offset):
            return None
        row = self._by_offset[slot]
        return row if row.base_offset is None or row.base_offset <= offset else None


def _last_offset(row: LogRow) -> int:
    return row.last_offset
