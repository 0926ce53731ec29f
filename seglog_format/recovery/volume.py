"""What compiled code does for recovery at volume; the reference sees to everything that is not regular.

`seglog_format.columnar` can, and needs the extra ``fast``. It is handed in from outside, so that nothing here imports
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.storage.byte_source import ByteSource


class SoundEntries(Protocol):
    """Passes over the entries of one log that recovery keeps without a word."""

    def after(self, position: int, last_offset: int) -> tuple[int, int]:
        """Position and last offset after those, from a position on.

        Args:
            position: of an entry, or of what stands where one should.
            last_offset: of the entry before; one less than the base offset for the first.
        """


class KnownProducer(Protocol):
    """One producer; -1 where there is nothing."""

    @property
    def producer_id(self) -> int:
        """0 or more."""

    @property
    def producer_epoch(self) -> int:
        """Of what it appended last."""

    @property
    def batches(self) -> Sequence[tuple[int, int, int]]:
        """Base sequence, base offset and last offset of its newest data batches, oldest first."""

    @property
    def timestamp_ms(self) -> int:
        """Of what it appended last."""

    @property
    def coordinator_epoch(self) -> int:
        """Of its last marker."""

    @property
    def current_txn_first_offset(self) -> int:
        """Where its open transaction begins."""


class IndexedLog(Protocol):
    """The indexes of a log, as `segment_files.side_files_of` computes them."""

    @property
    def offset_index(self) -> bytes:
        """The bytes of the offset index."""

    @property
    def time_index(self) -> bytes:
        """The bytes of the time index."""

    @property
    def epoch_starts(self) -> Sequence[tuple[int, int]]:
        """Leader epochs and first offsets."""

    @property
    def end(self) -> int:
        """Position after the last regular entry."""

    @property
    def last_offset(self) -> int:
        """Of the last entry; one less than the base offset without any."""

    @property
    def has_wrappers(self) -> bool:
        """Whether there are compressed messages of magic 0 or 1."""

    def producers_outside(self) -> set[int]:
        """Ids of the producers that have appended outside of transactions."""

    def transaction_events(self) -> Sequence[tuple[int, int, int, int]]:
        """Producer id, type of the end marker or 3 for data, base offset and last offset of transactional batches."""

    def producers(self) -> Sequence[KnownProducer] | None:
        """What is known of producers at the end, where nothing was at the start; None: the reference has to say."""


class Volume(Protocol):
    """Compiled code for one process."""

    def sound_entries(self, source: ByteSource, base_offset: int) -> SoundEntries:
        """Prepare to pass over the entries of a log.

        Args:
            source: bytes of the log.
            base_offset: of the segment.
        """

    def indexed(
        self, source: ByteSource, base_offset: int, interval_bytes: int, *, stores_first_offset: bool
    ) -> IndexedLog | None:
        """The indexes of a log; None where the reference has to compute them.

        Args:
            source: bytes of the log, up to where it is to be indexed.
            base_offset: of the segment.
            interval_bytes: `index.interval.bytes`.
            stores_first_offset: the offset index names the first offset of an entry, not the last.
        """

    def ordered_end(self, source: ByteSource, first_offset: int, last_offset: int) -> tuple[int, int]:
        """Where the regular entries end whose offsets are in order, and their last offset.

        Without any, that is one less than the lowest that the segment can hold.

        Args:
            source: bytes of the log.
            first_offset: lowest that the segment can hold.
            last_offset: highest.
        """
