"""Protocols of compiled code: the prefilter of the checks, and the kernels of recovery.

`seglog_format.columnar` implements them. Results are the same without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.scan_statistics import FallbackCause
    from seglog_format.storage.byte_source import ByteSource


class FilteredEntries(Protocol):
    """One or more adjacent entries that are whole and undamaged, and whose records need no check."""

    @property
    def end(self) -> int:
        """Return the position after the last entry."""

    @property
    def entry_count(self) -> int:
        """Return the number of entries."""

    @property
    def headers_to_check(self) -> Sequence[tuple[int, int]]:
        """Return numbers and positions of entries whose records need no check, but whose headers do."""

    @property
    def aborts(self) -> Mapping[int, int]:
        """Return producer ids by last offset, of batches with an ABORT marker and control batches without a record."""

    @property
    def leader_epochs(self) -> Sequence[tuple[int, int, int, int]]:
        """Return epoch, first and last offset, and position of each run of batches with one leader epoch."""

    @property
    def last_offset(self) -> int:
        """Return the last offset of the last entry."""

    def last_offset_before(self, number: int) -> int | None:
        """Return the last offset of the entry before one of these; None for the first."""

    def rows(self) -> Iterator[tuple[int, int | None, int, int, int, bool]]:
        """Yield the fields of a `LogRow` for each entry."""


class FilteredLog(Protocol):
    """A log in which every entry passed the prefilter, and no bytes follow the last: indexes are compared with it."""

    def has_offset_index(self, data: memoryview) -> bool:
        """Return whether no check can report a finding for an offset index with these bytes."""

    def has_time_index(self, data: memoryview, *, is_active: bool) -> bool:
        """Return whether no check can report a finding for a time index with these bytes.

        Args:
            data: of the index.
            is_active: the segment is the last of its partition, whose index need not be finished.
        """


class Prefilter(Protocol):
    """Skips entries of one log for which no check can report a finding."""

    def parts(self, position: int, previous: int | None) -> Iterator[FilteredEntries]:
        """Yield entries from a position on, up to the first that the checks have to read.

        Args:
            position: of an entry, or of bytes in place of one.
            previous: last offset of the intact entry before it in the segment; None for the first.
        """

    @property
    def cause(self) -> FallbackCause:
        """Return why the entry at which `parts` has ended did not pass."""

    def log_of(self, parts: Sequence[Any]) -> FilteredLog:
        """Join the parts of a whole log."""


class Decompressing(Protocol):
    """Decompresses with the codecs of the fallback decoder."""

    def __call__(self, start: int, end: int, codec_id: int, magic: int) -> bytes | None:
        """Return the decompressed bytes of a range of the log; None if it is damaged, or more bytes follow."""


class MakePrefilter(Protocol):
    """Makes a `Prefilter` for a log."""

    def __call__(self, source: ByteSource, base_offset: int, limit: int, decompress: Decompressing) -> Prefilter:
        """Prepare to skip entries.

        Args:
            source: bytes of the log.
            base_offset: of the segment.
            limit: maximum bytes that one entry may decompress to.
            decompress: decompresses codecs that the prefilter does not.
        """


class SoundEntries(Protocol):
    """Skips the entries of one log that recovery keeps unconditionally."""

    def after(self, position: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the skipped entries, and the last offset before that position.

        Args:
            position: of an entry, or of bytes in place of one.
            last_offset: of the entry before; one less than the base offset for the first.
        """


class IndexedLog(Protocol):
    """The indexes of a log, as `segment_files.side_files_of` computes them."""

    @property
    def offset_index(self) -> bytes:
        """Return the bytes of the offset index."""

    @property
    def time_index(self) -> bytes:
        """Return the bytes of the time index."""

    @property
    def epoch_starts(self) -> Sequence[tuple[int, int]]:
        """Return leader epochs and their first offsets."""

    @property
    def end(self) -> int:
        """Return the position after the last entry that was indexed."""

    @property
    def last_offset(self) -> int:
        """Return the last offset of the last entry; one less than the base offset without entries."""

    @property
    def has_wrappers(self) -> bool:
        """Return whether there are compressed messages of magic 0 or 1."""

    def producers_outside(self) -> set[int]:
        """Return the ids of producers that appended outside of transactions."""

    def transaction_events(self) -> Sequence[tuple[int, int, int, int]]:
        """Return producer id, end marker type or 3 for data, base and last offset of each transactional batch."""


class RecoveryKernels(Protocol):
    """Compiled code for recovery."""

    def sound_entries(self, source: ByteSource, base_offset: int) -> SoundEntries:
        """Prepare to skip the entries of a log.

        Args:
            source: bytes of the log.
            base_offset: of the segment.
        """

    def indexed(
        self, source: ByteSource, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """Compute the indexes of a log; return None if the fallback decoder has to compute them.

        Args:
            source: bytes of the log, up to where it is to be indexed.
            base_offset: of the segment.
            interval_bytes: `index.interval.bytes`.
            stores_first_offset: the offset index names the first offset of an entry, not the last.
        """

    def sound_index(
        self, source: ByteSource, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """Compute the indexes of a log that recovery keeps whole; None if the fallback decoder must read an entry.

        Args:
            source: bytes of the log.
            base_offset: of the segment.
            interval_bytes: `index.interval.bytes`.
            stores_first_offset: the offset index names the first offset of an entry, not the last.
        """

    def ordered_end(self, source: ByteSource, first_offset: int, last_offset: int) -> tuple[int, int]:
        """Return the position after the entries with ascending offsets, and their last offset.

        Without any entry, the last offset is one less than the lowest offset that the segment can hold.

        Args:
            source: bytes of the log.
            first_offset: lowest that the segment can hold.
            last_offset: highest that the segment can hold.
        """
