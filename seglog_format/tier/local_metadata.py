"""The remote segments in the local partitions of the metadata topic, read without the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.log.offset_checkpoints import checkpointed_offset
from seglog_format.log.remote_store import RemoteOffsets
from seglog_format.names import REMOTE_LOG_METADATA_TOPIC, FileKind
from seglog_format.tier.joining import copies_of, gaps_between, served_parts
from seglog_format.tier.metadata_topic import read_metadata_topic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import RemoteCopies
    from seglog_format.model import MissingOffsets
    from seglog_format.tier.records import RemotePartitionId
    from seglog_format.tier.segments import RemoteSegments


class LocalMetadataTopic:
    """The partitions of `__remote_log_metadata` in the log directories of partitions; each log directory is read once.

    They show which remote segments hold tiered offsets (`located`), and what brokers have copied (`copies`), but not
    whether the objects of these exist.
    """

    def __init__(self) -> None:
        self._known: dict[Path, Mapping[RemotePartitionId, RemoteSegments] | None] = {}

    def of(self, listing: PartitionListing) -> Mapping[RemotePartitionId, RemoteSegments] | None:
        """Return the remote segments in the topic; None if the log directory has no partition of the topic.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        if not listing.storage.is_local:
            return None
        directory = listing.path.absolute().parent
        if directory not in self._known:
            self._known[directory] = _read(directory)
        return self._known[directory]

    def copies(self, listing: PartitionListing, log_end_offset: int) -> RemoteCopies | None:
        """Return what the remote store holds of a partition by the records of the topic; None if it has none of it.

        Args:
            listing: of the directory.
            log_end_offset: of the local log.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        return copies_of(listing, log_end_offset, None, self.of(listing))

    def located(self, listing: PartitionListing, tiered: MissingOffsets) -> RemoteOffsets | None:
        """Return the remote segments in the topic that hold offsets; None if it has none of the partition.

        Raises:
            FormatError: the log of the metadata topic is damaged.
        """
        start = checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT)
        served = served_parts(listing, start, None, self.of(listing))
        if served is None:
            return None
        where = f"a remote store, by {REMOTE_LOG_METADATA_TOPIC}"
        return RemoteOffsets(where, len(served.parts), gaps_between(served.parts, tiered))


def _read(directory: Path) -> Mapping[RemotePartitionId, RemoteSegments] | None:
    try:
        logs = open_log_directory(directory)
    except UsageError:  # a partition directory outside of a log directory
        return None
    if not any(topic == REMOTE_LOG_METADATA_TOPIC for topic, _ in logs.partitions):
        return None
    return read_metadata_topic(logs).partitions
