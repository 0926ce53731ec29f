"""Topic ids, leader epochs and owners of log directories, from small files; an unreadable file counts as missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_meta_properties,
    decode_partition_metadata,
)
from seglog_format.errors import Location, SeglogError
from seglog_format.names import FileKind
from seglog_format.storage.byte_source import read_whole

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.model import EpochStart, MetaProperties


def topic_id_of(partition: Path) -> str | None:
    """Return the topic id in a partition directory, 22 letters of base64url; None if there is none."""
    path = partition / FileKind.PARTITION_METADATA.value
    try:
        return decode_partition_metadata(read_whole(path), Location(str(path))).topic_id
    except SeglogError:
        return None


def leader_epochs_of(partition: Path) -> tuple[EpochStart, ...]:
    """Return leader epochs and their first offsets, ascending; empty if the directory has none."""
    path = partition / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        return decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries
    except SeglogError:
        return ()


def meta_properties_of(log_directory: Path) -> MetaProperties | None:
    """Return the properties that say which broker owns a log directory; None without readable `meta.properties`."""
    path = log_directory / FileKind.META_PROPERTIES.value
    try:
        return decode_meta_properties(read_whole(path), Location(str(path)))
    except SeglogError:
        return None
