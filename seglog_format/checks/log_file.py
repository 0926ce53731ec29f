"""Verifying one `.log` file: the walk, every entry in it, what follows the last one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_format.checks import message_set, record, record_batch  # noqa: F401 - importing registers their checks
from seglog_format.checks.compression import compressed_part
from seglog_format.checks.control_record import control_records, refusals
from seglog_format.checks.finding import Finding, findings_of
from seglog_format.checks.segment import LogSize, LogTail
from seglog_format.checks.subjects import Batch, Entry, Messages, decode_subject
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location
from seglog_format.log.log_outline import LogOutline, LogRow
from seglog_format.model import ControlRecordType, TailKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.model import Frame


@dataclass(slots=True)
class LogSummary:
    """What the checks of side files need to know of a log once it has been walked.

    Attributes:
        rows: one for each intact entry.
        aborts: producer id by the offset of its ABORT record, or of a control batch that compaction has emptied.
        damaged: position of the first entry that is not intact; None where all are.
        partial_at: position of a last entry that is cut short.
    """

    rows: list[LogRow] = field(default_factory=list)
    aborts: dict[int, int] = field(default_factory=dict)
    damaged: int | None = None
    partial_at: int | None = None

    @property
    def last_offset(self) -> int | None:
        """Of the last intact entry."""
        return self.rows[-1].last_offset if self.rows else None

    @property
    def is_whole(self) -> bool:
        """Every entry was intact, and the walk reached the end."""
        return self.damaged is None

    def outline(self) -> LogOutline:
        """What indexes are held to: the intact entries before the first damaged one."""
        rows = [row for row in self.rows if self.damaged is None or row.position < self.damaged]
        return LogOutline(rows, partial_at=self.partial_at, unknown_from=self.damaged)

    def note_damage(self, position: int) -> None:
        """Remember where the first entry stands that is not intact."""
        if self.damaged is None:
            self.damaged = position


class LogVerification:
    """Checks one log file. Iterate it once, then read `summary`.

    Attributes:
        summary: complete when the iteration has ended.
    """

    def __init__(
        self, data: memoryview, path: str, base_offset: int, limit: int, advance: Callable[[int], None] | None = None
    ) -> None:
        self.data = data
        self.path = path
        self.base_offset = base_offset
        self.limit = limit
        self.advance = advance
        self.summary = LogSummary()

    def __iter__(self) -> Iterator[Finding]:
        frames = walk(self.data, path=self.path)
        try:
            for frame in frames:
                yield from self._frame(frame)
                if self.advance is not None:
                    self.advance(frame.header.size_in_bytes)
        except FormatError as error:
            self.summary.note_damage(frames.position)
            yield Finding.of_error(error)
        if frames.tail.kind is TailKind.PARTIAL:
            self.summary.partial_at = frames.tail.position
        yield from findings_of(LogTail(self.path, frames.tail))
        yield from findings_of(LogSize(self.path, len(self.data)))

    def _frame(self, frame: Frame) -> Iterator[Finding]:
        at = Location(self.path, frame.position)
        try:
            subject = decode_subject(frame, at, self.limit)
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
        self._remember(entry, subject)

    def _remember(self, entry: Entry, subject: Batch | Messages) -> None:
        header = entry.header
        is_empty = header.records_count == 0
        span = header.base_offset, header.last_offset
        self.summary.rows.append(LogRow(entry.at.position, *span, header.max_timestamp_ms, header.magic, is_empty))
        if isinstance(subject, Batch) and header.is_control:
            types = [control.type for control in control_records(subject)]
            if is_empty or ControlRecordType.ABORT in types:
                self.summary.aborts[header.last_offset] = header.producer_id
