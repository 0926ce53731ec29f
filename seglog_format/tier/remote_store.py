"""A remote store together with what is known of it: what `open_tier` returns."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.storage.object_files import ObjectFiles, objects_at
from seglog_format.tier.chunk_cache import DEFAULT_CACHE_SIZE
from seglog_format.tier.joining import join
from seglog_format.tier.keys import KeyRing
from seglog_format.tier.layouts import layout_named, layout_of
from seglog_format.tier.metadata_topic import read_metadata_topic
from seglog_format.tier.tier import Tier

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.storage.object_files import Traffic
    from seglog_format.tier.ids import RemotePartitionId
    from seglog_format.tier.segments import RemoteSegments


class RemoteTier:
    """A remote store of tiered segments, open for reading; nothing is ever written to it.

    Attributes:
        tier: its objects.
    """

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self._known: dict[Path, Mapping[RemotePartitionId, RemoteSegments] | None] = {}

    @property
    def address(self) -> str:
        """The address or folder of the store."""
        return self.tier.address

    @property
    def traffic(self) -> Traffic:
        """The requests made so far, and the bytes that they fetched."""
        return self.tier.traffic

    def joined(self, listing: PartitionListing, log_start_offset: int | None) -> tuple[PartitionListing, int]:
        """Add the remote segments of a partition to its listing; for `open_partition`.

        The partitions of `__remote_log_metadata` beside its directory say which segments count. Where they say nothing
        of the partition, the objects and the leader epochs decide.

        Args:
            listing: of the directory.
            log_start_offset: as checkpointed; None without a checkpoint.

        Returns:
            A listing of all files, and the log start offset.

        Raises:
            UsageError: the store does not answer, or the directory has no name of a partition.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """
        found = join(listing, log_start_offset, self.tier, self._known_beside(listing))
        return found.listing, found.log_start_offset

    def _known_beside(self, listing: PartitionListing) -> Mapping[RemotePartitionId, RemoteSegments] | None:
        """Return what the metadata topic in the log directory of a partition says; None if it is not there."""
        if not listing.storage.is_local:
            return None
        directory = listing.path.absolute().parent
        if directory not in self._known:
            self._known[directory] = None
            with suppress(UsageError):
                self._known[directory] = read_metadata_topic(open_log_directory(directory)).partitions
        return self._known[directory]

    def __repr__(self) -> str:
        return f"RemoteTier({self.address!r})"


def open_tier(
    address: str | os.PathLike[str],
    *,
    layout: str | None = None,
    keys: Mapping[str, str | os.PathLike[str]] | None = None,
    settings: Mapping[str, str] | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
) -> RemoteTier:
    """Open a remote store of tiered segments: its objects are listed, and nothing else is fetched.

    Args:
        address: of the store: a folder, or such as ``s3://bucket/tier``.
        layout: name of the layout of its objects, ``local`` or ``aiven`` or of an installed package; by default what
            recognizes most of them.
        keys: files of private keys in PEM, by key pair id. A key that is not among them is looked for in the
            environment: `SEGLOG_TIER_KEY_` and the id in upper case, its other characters underscores.
        settings: of the file system behind an address.
        cache_size: maximum bytes of unwrapped chunks to keep in memory.

    Raises:
        UsageError: the store does not answer, there is nothing, or no layout recognizes anything.

    Examples:
        >>> from pathlib import Path
        >>> from seglog_format import open_tier
        >>> partition = Path("bucket/orders-0-AAAAAAAAAAAAAAAAAAAAAQ")
        >>> partition.mkdir(parents=True)
        >>> (partition / "00000000000000000073-AAAAAAAAAAAAAAAAAAAAAg.log").touch()
        >>> open_tier("bucket")
        RemoteTier('bucket')
    """
    files = ObjectFiles(objects_at(address, settings))
    found = layout_of(files.files, files.address) if layout is None else layout_named(layout)
    return RemoteTier(Tier(files, found, KeyRing(keys), cache_size))
