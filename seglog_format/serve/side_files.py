"""Ids of topics and of the cluster, and leader epochs, from the small files beside the logs. Read at first use."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_partition_metadata
from seglog_format.codec.properties import decode_meta_properties
from seglog_format.errors import Location, SeglogError
from seglog_format.names import FileKind
from seglog_format.storage.file_bytes import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seglog_format.serve.topics import Topic
    from seglog_format.small_model import EpochStart

NAMESPACE: Final = uuid.UUID("5f5b1a0e-8b1f-4f0e-9d8e-5e6c0d7a4b21")
"""Namespace of the ids made for topics whose directories name none: the same name gives the same id."""

DEFAULT_CLUSTER_ID: Final = "seglog-serve"


class TopicIds:
    """Ids of topics: the stored one, unless another topic has the same (in copies); else made from the name.

    Attributes:
        by_name: the ids.
        names: the names, by id.
    """

    def __init__(self, topics: Iterable[Topic]) -> None:
        self.names: dict[uuid.UUID, str] = {}
        for topic in topics:
            said = (_topic_id(path) for path in topic.partitions.values())
            found = next((each for each in said if each is not None and each not in self.names), None)
            self.names[found or uuid.uuid5(NAMESPACE, topic.name)] = topic.name
        self.by_name: Mapping[str, uuid.UUID] = {name: topic_id for topic_id, name in self.names.items()}


def _topic_id(partition: Path) -> uuid.UUID | None:
    file = partition / FileKind.PARTITION_METADATA.value
    try:
        text = decode_partition_metadata(read_whole(file), Location(str(file))).topic_id
    except SeglogError:
        return None
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def cluster_id(log_directories: Iterable[Path]) -> str:
    """Return the cluster id of the last log directory that names one, or a made-up one."""
    found = DEFAULT_CLUSTER_ID
    for path in log_directories:
        file = path / FileKind.META_PROPERTIES.value
        try:
            found = decode_meta_properties(read_whole(file), Location(str(file))).cluster_id or found
        except SeglogError:
            continue
    return found


def leader_epochs(partition: Path) -> tuple[EpochStart, ...]:
    """Return leader epochs and their first offsets, ascending; empty if the directory does not name any."""
    path = partition / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        return decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries
    except SeglogError:
        return ()
