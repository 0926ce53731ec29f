"""A store with segments of a partition besides its directory, as far as opening the partition needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from seglog_format.log.listing import PartitionListing


class RemoteStore(Protocol):
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
