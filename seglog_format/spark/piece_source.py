"""The bytes of a piece, for the columnar engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import CorruptRecordError, Location
from seglog_format.log.segment_source import SegmentSource

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.segment_source import FallbackEntry
    from seglog_format.log.transactions import Transactions
    from seglog_format.spark.pieces import Piece
    from seglog_format.storage.byte_source import Window


class PieceSource:
    """Gives the engine the bytes of a piece, and the fallback decoder for entries that the fast path does not cover.

    Attributes:
        end_of_log: position after the last whole entry, once the fallback decoder has found that none follows.
    """

    def __init__(self, piece: Piece, segment: LogSegment, transactions: Transactions | None) -> None:
        to_offset = piece.to_offset
        if transactions is not None:
            to_offset = min(to_offset, transactions.last_stable_offset)
        self.to_offset = to_offset
        self.end_of_log: int | None = None
        self._piece = piece
        self._segment = segment
        self._fallback = SegmentSource(segment, to_offset, transactions)

    @property
    def path(self) -> str:
        """Path of the log on this machine."""
        return self._segment.path

    @property
    def size(self) -> int:
        """Size of the log; bytes outside of the piece are missing if the log is in a store."""
        return self._segment.source.size

    def view(self, start: int, end: int) -> memoryview:
        """Return bytes of the log."""
        return self._segment.source.view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a window of the log."""
        return self._segment.source.window(position, at_least)

    @property
    def file(self) -> str:
        """Path of the log."""
        return self._piece.log

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Lowest and highest offset that the piece can hold."""
        return self._piece.base_offset, self._piece.last_allowed

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        """Decode the entry at a position with the fallback decoder; return None where the log ends.

        Raises:
            FormatError: the entry is damaged or refused, or reaches into the next piece.
        """
        entry = self._fallback.fallback(position, previous, floor)
        end = self._piece.end
        if entry is None:
            self.end_of_log = position
            return None
        if end is not None and entry.end > end:
            at = Location(self._piece.log, position, "batch_length", 4)
            expected = f"an entry that ends at or before {end}, where the offset index has one start"
            raise CorruptRecordError(at, "SEG-IDX-009", expected=expected, found=f"its end at {entry.end}")
        return entry

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed content of the entry at a position; None if it is damaged or exceeds the limit."""
        return self._fallback.decompressed(position, limit)

    def end_of_damaged(self, position: int) -> int | None:
        """Return the position after a damaged entry; None if no entry follows."""
        return self._fallback.end_of_damaged(position)
