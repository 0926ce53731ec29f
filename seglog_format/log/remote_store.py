"""A store with segments of a partition besides its directory, as far as opening or checking the partition needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from seglog_format.log.listing import PartitionListing
    from seglog_format.model import MissingOffsets


class RemoteOffsets(NamedTuple):
    """What is known of offsets that are not in a partition directory.

    Attributes:
        where: the store, or what says of it.
        segment_count: number of the remote segments that answer for them.
        missing: those that no segment answers for.
    """

    where: str
    segment_count: int
    missing: tuple[MissingOffsets, ...]


class KnowsTiered(Protocol):
    """Something that knows where offsets lie that are not in a partition directory."""

    def located(self, listing: PartitionListing, tiered: MissingOffsets) -> RemoteOffsets | None:
        """Say where offsets of a partition lie; None if nothing is known of the partition.

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
