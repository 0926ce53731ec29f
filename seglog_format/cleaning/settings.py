"""The settings in force for a log: those of internal topics, which are fixed, and whether it is tiered (chapter 72)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.log.gaps import COMPACTED_TOPICS, tiered_gap
from seglog_format.names import METADATA_TOPICS, REMOTE_LOG_METADATA_TOPIC, SHARE_GROUP_STATE
from seglog_format.state.config import COMPACT, DELETE, UNLIMITED

if TYPE_CHECKING:
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionListing
    from seglog_format.state.config import LogConfig

KEPT_TOPICS: Final = frozenset({SHARE_GROUP_STATE, REMOTE_LOG_METADATA_TOPIC})
"""Internal topics that brokers create with ``cleanup.policy=delete`` and ``retention.ms=-1``."""

NEVER_TIERED: Final = METADATA_TOPICS | COMPACTED_TOPICS | KEPT_TOPICS
"""Topics that no setting makes tiered."""


def topic_config(topic: str, config: LogConfig) -> LogConfig:
    """Return the settings of a topic; in internal topics nothing is removed for its age or size."""
    if topic not in NEVER_TIERED:
        return config
    config = replace(config, remote_storage_enable=False)
    if topic in COMPACTED_TOPICS:
        return replace(config, cleanup_policy=frozenset({COMPACT}))
    if topic in KEPT_TOPICS:
        return replace(config, cleanup_policy=frozenset({DELETE}), retention_ms=UNLIMITED, retention_bytes=UNLIMITED)
    return config


def tiered_or_not(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> LogConfig:
    """Return settings of a log that say whether it is tiered (SEG-RET-018).

    Args:
        config: the settings of the log.
        listing: of the partition directory.
        directory: the log directory.

    Raises:
        UsageError: the log may be tiered, and the settings do not say whether it is.
    """
    if listing.topic_partition[0] in NEVER_TIERED:
        return topic_config(listing.topic_partition[0], config)
    if config.remote_storage_enable is None and config.remote_log_storage_system_enable is not False:
        sign = _sign_of_tier(config, listing, directory)
        if sign is not None:
            msg = f"{listing.path}: {sign}, so the topic may be tiered: give remote.storage.enable, true or false"
            raise UsageError(msg)
    return config


def require_not_tiered(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> None:
    """Refuse what no broker does with a tiered log.

    Args:
        config: the settings of the log.
        listing: of the partition directory.
        directory: the log directory.

    Raises:
        UsageError: the log is tiered; or it may be, and the settings do not say whether it is.
    """
    if tiered_or_not(config, listing, directory).remote_storage_enable:
        msg = f"{listing.path}: the topic has remote.storage.enable=true: brokers never compact it"
        raise UsageError(msg)


def _sign_of_tier(config: LogConfig, listing: PartitionListing, directory: LogDirectory) -> str | None:
    """Return what shows that a log may have segments in a remote store; None if nothing does."""
    gap = tiered_gap(listing, directory.log_start_offsets.get(listing.topic_partition, 0))
    if gap is not None:
        return f"the log begins at offset {gap.first_offset}, its first segment at {gap.next_offset}"
    if config.is_compacted:
        return None
    if config.names_remote_storage:
        return "the settings name remote storage"
    if any(topic == REMOTE_LOG_METADATA_TOPIC for topic, _ in directory.partitions):
        return f"the log directory has a partition of {REMOTE_LOG_METADATA_TOPIC}"
    return None
