"""Ids of topics and of the cluster, from the small files beside the logs, or generated."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Final

from seglog_format.log.side_files import meta_properties_of, topic_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seglog_format.serve.topics import Topic

NAMESPACE: Final = uuid.UUID("5f5b1a0e-8b1f-4f0e-9d8e-5e6c0d7a4b21")
"""Namespace of the ids generated for topics whose directories name none: the same name gives the same id."""

DEFAULT_CLUSTER_ID: Final = "seglog-serve"


class TopicIds:
    """Ids of topics: the stored id, unless another topic has the same id (as in copies); else one made from the name.

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
    text = topic_id_of(partition)
    return None if text is None else uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def cluster_id(log_directories: Iterable[Path]) -> str:
    """Return the cluster id of the last log directory that names one, or a generated one."""
    found = DEFAULT_CLUSTER_ID
    for path in log_directories:
        properties = meta_properties_of(path)
        if properties is not None:
            found = properties.cluster_id or found
    return found
