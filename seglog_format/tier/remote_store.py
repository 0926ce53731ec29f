"""A remote store as `open_tier` returns it, with the methods for reading, verification and audit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from seglog_format.errors import warn_caller
from seglog_format.log.listing import checkpointed_offset
from seglog_format.log.remote_store import RemoteOffsets
from seglog_format.names import REMOTE_LOG_METADATA_TOPIC, FileKind
from seglog_format.state.config import UNLIMITED
from seglog_format.storage.object_store import ObjectFiles, objects_at
from seglog_format.tier.chunked_bytes import DEFAULT_CACHE_SIZE
from seglog_format.tier.joining import copies_of, gaps_between, join, served_parts
from seglog_format.tier.layout import KeyRing
from seglog_format.tier.layouts import layout_named, layout_of
from seglog_format.tier.local_metadata import LocalMetadataTopic, RetentionRules, read_metadata_topic
from seglog_format.tier.tier import Tier

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from seglog_format.checks.finding import Finding
    from seglog_format.log.directory import LogDirectories
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import RemoteCopies
    from seglog_format.model import MissingOffsets
    from seglog_format.storage.object_store import Traffic
    from seglog_format.tier.audit import AuditExtent, TierExtent


class RemoteTier:
    """A remote store of tiered segments, open for reading. It is never written to.

    Attributes:
        tier: the objects of the store, by segment.
    """

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self._beside = LocalMetadataTopic()

    @property
    def address(self) -> str:
        """The address or folder of the store."""
        return self.tier.address

    @property
    def traffic(self) -> Traffic:
        """The number of requests so far, and of the bytes that they fetched."""
        return self.tier.traffic

    def joined(self, listing: PartitionListing, log_start_offset: int | None) -> tuple[PartitionListing, int]:
        """Add the remote segments of a partition to its listing; for `open_partition`.

        The partitions of `__remote_log_metadata` in the same log directory decide which segments count. If they have
        none of the partition, the objects and the leader epochs decide, so an abandoned segment counts as well; a
        `UserWarning` reports that.

        Args:
            listing: of the directory.
            log_start_offset: as checkpointed; None without a checkpoint.

        Returns:
            A listing of all files, and the log start offset.

        Raises:
            UsageError: the store does not answer, or the name of the directory is not that of a partition.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """
        found = join(listing, log_start_offset, self.tier, self._beside.of(listing))
        if found.is_guess:
            text = (
                f"no record of {REMOTE_LOG_METADATA_TOPIC} was found: objects and leader epochs decide which segments"
            )
            warn_caller(f"{listing.path}: {text} count", UserWarning)
        return found.listing, found.log_start_offset

    def located(self, listing: PartitionListing, tiered: MissingOffsets) -> RemoteOffsets | None:
        """Return which of the offsets that are not in a directory the store holds; for `verify`.

        A segment counts if all objects exist that its layout requires; they are not read.

        Args:
            listing: of the directory.
            tiered: offsets between the log start and the first segment of the directory.

        Returns:
            None if the name of the directory is not that of a partition, or no segments of it are known.

        Raises:
            UsageError: the store does not answer.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """
        start = checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT)
        served = served_parts(listing, start, self.tier, self._beside.of(listing))
        if served is None:
            return None
        parts = [part for part in served.parts if self.tier.is_finished(part.segment.id)]
        return RemoteOffsets(self.address, len(parts), gaps_between(parts, tiered))

    def copies(self, listing: PartitionListing, log_end_offset: int) -> RemoteCopies | None:
        """Return what the store holds of a partition, also of segments that are still in its directory; for `retain`.

        A segment counts if all objects exist that its layout requires; they are not read.

        Args:
            listing: of the directory.
            log_end_offset: of the local log.

        Returns:
            None if the name of the directory is not that of a partition, or no segments of it are known.

        Raises:
            UsageError: the store does not answer.
            FormatError: an object of the store does not follow its layout, or the log of the metadata topic is damaged.
        """
        return copies_of(listing, log_end_offset, self.tier, self._beside.of(listing))

    def verify(self, logs: LogDirectories | None = None, *, extent: TierExtent | None = None) -> Iterator[Finding]:
        """Read every segment whole, and compare its log, indexes, manifest and record with one another.

        Args:
            logs: log directories with the partitions of `__remote_log_metadata`; None to use the objects alone.
            extent: updated while the verification runs.

        Yields:
            Findings, in the order of partitions and segments.

        Raises:
            UsageError: the store does not answer, or there is no metadata topic in the log directories.
            FormatError: the log of the metadata topic is damaged.
        """
        from seglog_format.tier.audit import verify_tier  # noqa: PLC0415 - readers do without checks

        return verify_tier(self.tier, None if logs is None else read_metadata_topic(logs), extent=extent)

    def audit(
        self,
        logs: LogDirectories,
        *,
        retention_ms: int = UNLIMITED,
        retention_bytes: int = UNLIMITED,
        now_ms: int | None = None,
        has_content: bool = False,
        extent: AuditExtent | None = None,
    ) -> Iterator[Finding]:
        """Check the store against the metadata topic, leader epochs and log start offsets in log directories.

        Args:
            logs: log directories with all partitions of the metadata topic, and those of the tiered topics.
            retention_ms: of the topics; -1 for no limit.
            retention_bytes: of a partition, local and remote; -1 for no limit.
            now_ms: the time for `retention_ms`; by default the current time.
            has_content: whether to read also every finished segment, as `verify` does.
            extent: updated while the audit runs.

        Yields:
            Findings: about the metadata topic, then about each partition, then about objects that it does not list.

        Raises:
            UsageError: there is no metadata topic, or the store does not answer.
            FormatError: a log or a checkpoint of the log directories is damaged.
        """
        from seglog_format.tier.audit import audit_tier  # noqa: PLC0415 - as above

        now = int(time.time() * 1000) if now_ms is None else now_ms
        rules = RetentionRules(0, retention_ms, retention_bytes, now)
        return audit_tier(self.tier, logs, rules, has_content=has_content, extent=extent)

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
        address: of the store: a folder, or an address such as ``s3://bucket/tier``.
        layout: name of the layout of its objects: ``local``, ``aiven`` or one of an installed package; by default the
            layout that recognizes the most objects.
        keys: files of private keys in PEM, by key pair id. A key that is not among them is read from the environment
            variable `SEGLOG_TIER_KEY_` and the id, in upper case, with other characters as underscores.
        settings: of the file system of an address.
        cache_size: maximum bytes of decoded chunks to keep in memory.

    Raises:
        UsageError: the store does not answer, it is empty, or no layout recognizes an object.

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
