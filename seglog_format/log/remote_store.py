"""The interface of a remote store that opening or checking a partition needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from seglog_format.log.listing import PartitionListing
    from seglog_format.model import MissingOffsets


class RemoteOffsets(NamedTuple):
    """The remote segments that hold offsets which are not in a partition directory.

    Attributes:
        where: name of the store, or of the metadata that lists the segments.
        segment_count: number of the remote segments that hold these offsets.
        missing: the offsets that no remote segment holds.
    """

    where: str
    segment_count: int
    missing: tuple[MissingOffsets, ...]


class RemoteCopies(NamedTuple):
    """What a remote store holds of a log, also of segments that are still in the partition directory.

    Attributes:
        where: name of the store, or of the metadata that lists the segments.
        highest_offset: up to which the log was copied (SEG-RLM-010); -1 if nothing was.
        held: first and last offset of each part that the store holds now, in order; both inclusive.
    """

    where: str
    highest_offset: int
    held: tuple[tuple[int, int], ...]

    def missing(self, first_offset: int, last_offset: int) -> tuple[int, int] | None:
        """Return the first and the last offset of the first part of a range that the store does not hold, if any."""
        for first, last in self.held:
            if first_offset > last_offset or first > first_offset:
                break
            first_offset = max(first_offset, last + 1)
        if first_offset > last_offset:
            return None
        following = (first for first, _ in self.held if first > first_offset)
        return first_offset, min(last_offset, next(following, last_offset + 1) - 1)


class KnowsTiered(Protocol):
    """A source of information about offsets that are not in a partition directory."""

    def copies(self, listing: PartitionListing, log_end_offset: int) -> RemoteCopies | None:
        """Return what the remote store holds of a partition; None if that is not known.

        Args:
            listing: of the directory.
            log_end_offset: of the local log.

        Raises:
            UsageError: the store does not answer.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """

    def located(self, listing: PartitionListing, tiered: MissingOffsets) -> RemoteOffsets | None:
        """Return the remote segments that hold offsets of a partition; None if the partition is not known.

        Args:
            listing: of the directory.
            tiered: offsets between the log start and the first segment of the directory.

        Raises:
            UsageError: the store does not answer.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """


class RemoteStore(KnowsTiered, Protocol):
    """A store that holds segments of a partition besides its directory; `open_tier` opens one."""

    def joined(self, listing: PartitionListing, log_start_offset: int | None) -> tuple[PartitionListing, int]:
        """Add the remote segments of a partition to its listing.

        Args:
            listing: of the directory.
            log_start_offset: as checkpointed; None without a checkpoint.

        Returns:
            A listing of all files, and the log start offset.

        Raises:
            UsageError: the store does not answer.
            FormatError: an object of the store does not follow its layout.
        """
