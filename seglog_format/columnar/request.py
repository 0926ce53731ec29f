"""Scan requests: columns, bounds, start, and the fallback decoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from seglog_format.scan_statistics import ScanStatistics
from seglog_format.storage.byte_source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_format.columnar.arrays import Numbers
    from seglog_format.columnar.schema import Shape
    from seglog_format.errors import FormatError
    from seglog_format.model import BatchHeader, Message, Record


class FallbackEntry(Protocol):
    """An entry as the fallback decoder read it. `log` provides it."""

    @property
    def header(self) -> BatchHeader:
        """The header of the entry."""

    @property
    def records(self) -> Sequence[Record | Message]:
        """The records of the entry that a reader delivers."""

    @property
    def end(self) -> int:
        """The position after the entry."""

    @property
    def last_offset(self) -> int:
        """The last offset of the entry."""

    @property
    def overlap(self) -> tuple[int, int, int] | None:
        """What `Borders.overlap` takes, if the entry begins below the end of the entry before it; else None."""

    @property
    def hidden(self) -> FormatError | None:
        """The error of a key, if the entry has a control bit and may hold data; else None."""


class Source(ByteSource, Protocol):
    """The bytes of one segment's log, and the fallback decoder for its entries. `log` provides it."""

    @property
    def file(self) -> str:
        """Name of the log."""

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Lowest and highest offset that the segment can hold."""

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        """Decode the entry at a position; return None if the log ends there.

        Raises:
            FormatError: an entry that is damaged or refused.
        """

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed content of the entry at a position; None if it is damaged or exceeds the limit."""

    def end_of_damaged(self, position: int) -> int | None:
        """Return the position after a damaged or refused entry; None if unknown."""


class Borders(Protocol):
    """Called at the borders between segments. `log` provides it."""

    reached: int
    """The first offset after the part of the segment that was read."""
    left_at: int | None
    """Position after that part, if bytes of the log are left there; else None."""

    def overlap(self, base_offset: int, overlap: tuple[int, int, int]) -> None:
        """Report an entry of a segment: its position, where it begins, and the end of the entry before it, above."""

    def left_out(self, base_offset: int, position: int, header: BatchHeader) -> bool:
        """Report an entry of a segment whose records are left out; return whether that is possible."""

    def come_to(self, base_offset: int) -> None:
        """Continue with the segment with a base offset, or with another part of the same one."""

    def come_to_end(self) -> None:
        """Check after the last segment."""


@dataclass(frozen=True, slots=True)
class Request:
    """The columns and rows that a scan should read.

    Attributes:
        shape: columns and layout.
        from_offset, to_offset: from the first inclusive to the second exclusive.
        from_timestamp_ms, to_timestamp_ms: both inclusive.
        batch_rows: maximum rows of an Arrow batch, unless one entry alone has more.
        limit: maximum bytes that one entry may decompress to.
        aborted: transactions to leave out, from `transactions.aborted_numbers`.
        on_corrupt: called with each damaged entry, which is then left out; None: the first one ends the scan.
        borders: called at borders between segments; may be None.
        statistics: counts entries left to slower code.
    """

    shape: Shape
    from_offset: int
    to_offset: int
    from_timestamp_ms: int
    to_timestamp_ms: int
    batch_rows: int
    limit: int
    aborted: Numbers
    on_corrupt: Callable[[FormatError], None] | None
    borders: Borders | None = None
    statistics: ScanStatistics = field(default_factory=ScanStatistics)


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a run.

    Attributes:
        position: of the first entry.
        previous: last offset of the entry before it.
        floor: lowest offset not delivered yet.
        end: position from which on no entry is read; None for the end of the log.
    """

    position: int
    previous: int
    floor: int
    end: int | None = None
