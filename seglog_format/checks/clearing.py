"""What passes over entries at volume: the checks then look only at what it has not cleared.

`seglog_format.columnar.clear` can, and needs the extra ``fast``. It is handed in from outside, so that nothing here
imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.scan_statistics import FallbackCause
    from seglog_format.storage.byte_source import ByteSource


class ClearedEntries(Protocol):
    """Entries that follow each other: whole and undamaged, their records regular. There is at least one."""

    @property
    def end(self) -> int:
        """Position after the last one."""

    @property
    def entry_count(self) -> int:
        """How many they are."""

    @property
    def odd_headers(self) -> Sequence[tuple[int, int]]:
        """Numbers and positions of those whose records are regular, but whose headers the checks have to look at."""

    @property
    def aborts(self) -> Mapping[int, int]:
        """Producer id by the last offset of batches with an ABORT marker, and of control batches without a record."""

    @property
    def leader_epochs(self) -> Sequence[tuple[int, int, int, int]]:
        """Epoch, first and last offset, and position of each run of batches with one leader epoch of 0 or more."""

    @property
    def last_offset(self) -> int:
        """Of the last one."""

    def last_offset_before(self, number: int) -> int | None:
        """Of the one before; None before the first of these."""

    def rows(self) -> Iterator[tuple[int, int | None, int, int, int, bool]]:
        """What `LogRow` says of each."""


class ClearedLog(Protocol):
    """A log of which every entry was passed over, and which ends with the last: what indexes are held against."""

    def has_offset_index(self, data: memoryview) -> bool:
        """Whether no check has anything to say about an offset index with these bytes."""

    def has_time_index(self, data: memoryview, *, is_active: bool) -> bool:
        """Whether no check has anything to say about a time index with these bytes.

        Args:
            data: of the index.
            is_active: the segment is the last of its partition, whose index need not be finished.
        """


class Clearing(Protocol):
    """Passes over entries of one log."""

    @property
    def cause(self) -> FallbackCause:
        """Why the entry at which `parts` has ended is for the checks to look at."""

    def parts(self, position: int, previous: int | None) -> Iterator[ClearedEntries]:
        """Entries from a position on, up to the first that the checks have to look at.

        Args:
            position: of an entry, or of what stands where one should.
            previous: last offset of the intact entry before it in the segment; None for the first.
        """

    def log_of(self, parts: Sequence[Any]) -> ClearedLog:
        """All that the log holds, out of its parts."""


class Expanding(Protocol):
    """Decompresses by the reference's codecs."""

    def __call__(self, start: int, end: int, codec_id: int, magic: int) -> bytes | None:
        """The content of some bytes of a log; None where they are damaged, or not all of them are needed."""


class Clearer(Protocol):
    """Makes a `Clearing` for a log."""

    def __call__(self, source: ByteSource, base_offset: int, limit: int, expand: Expanding) -> Clearing:
        """Prepare to pass over entries.

        Args:
            source: bytes of the log.
            base_offset: of the segment.
            limit: bytes that decompressing one entry may produce at most.
            expand: for codecs that it does not know itself.
        """
