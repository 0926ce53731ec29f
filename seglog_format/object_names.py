"""Names of the objects of a remote store, and of the copies of indexes beside a log (chapter 47).

A plug-in of the broker names an object by the start offset of its segment and the id of the segment, so the same
offsets uploaded twice have two names. All functions are pure; names come from hostile sources.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from seglog_format.names import MAX_OFFSET, MAX_PARTITION, OFFSET_DIGITS, FileKind

ID_SIZE: Final = 22
"""Characters of an id of Kafka: 16 bytes in base64url without padding."""

_ID: Final = rf"[A-Za-z0-9_-]{{{ID_SIZE}}}"
_OBJECT: Final = re.compile(rf"([0-9]{{{OFFSET_DIGITS}}})-({_ID})(\.[a-z_-]+)")
_CACHED: Final = re.compile(rf"([0-9]{{1,{OFFSET_DIGITS}}})_({_ID})(\.index|\.timeindex|\.txnindex)(\.deleted)?")
_LOCAL_DIRECTORY: Final = re.compile(rf"(.+)-([0-9]{{1,10}})-({_ID})")
_TOPIC_DIRECTORY: Final = re.compile(rf"(.+)-({_ID})")


class ObjectKind(Enum):
    """The content of an object; the value is its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    LEADER_EPOCHS = ".leader_epoch_checkpoint"
    INDEXES = ".indexes"
    """All of the above except the log, one after the other."""
    MANIFEST = ".rsm-manifest"


FILE_KINDS: Final = {
    ObjectKind.LOG: FileKind.LOG,
    ObjectKind.OFFSET_INDEX: FileKind.OFFSET_INDEX,
    ObjectKind.TIME_INDEX: FileKind.TIME_INDEX,
    ObjectKind.TRANSACTION_INDEX: FileKind.TRANSACTION_INDEX,
    ObjectKind.PRODUCER_SNAPSHOT: FileKind.PRODUCER_SNAPSHOT,
}
"""The kinds of objects that are files of a partition directory as well."""

_KINDS: Final = {kind.value: kind for kind in ObjectKind}


class ObjectName(NamedTuple):
    """The last part of an object's name.

    Attributes:
        start_offset: of the segment, 0 or greater.
        segment_id: 22 characters of base64url; a different id for each attempt to upload.
        kind: of the content.
    """

    start_offset: int
    segment_id: str
    kind: ObjectKind

    def __str__(self) -> str:
        return f"{self.start_offset:0{OFFSET_DIGITS}d}-{self.segment_id}{self.kind.value}"


def parse_object_name(name: str) -> ObjectName | None:
    """Parse the last part of an object's name; return None for any other name.

    Args:
        name: without the parts before it.
    """
    found = _OBJECT.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET or found[3] not in _KINDS:
        return None
    return ObjectName(int(found[1]), found[2], _KINDS[found[3]])


def parse_cached_index(name: str) -> ObjectName | None:
    """Parse the name of a file in `remote-log-index-cache`, even of one being removed; return None for another name."""
    found = _CACHED.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET:
        return None
    return ObjectName(int(found[1]), found[2], _KINDS[found[3]])


class TieredPartition(NamedTuple):
    """A partition, from the name of a directory of objects.

    Attributes:
        topic: of any characters.
        topic_id: 22 characters of base64url.
        partition: 0 to 2147483647.
    """

    topic: str
    topic_id: str
    partition: int


def parse_local_tier_directory(name: str) -> TieredPartition | None:
    """Parse ``<topic>-<partition>-<topic id>``, a directory of LocalTieredStorage; return None for another name.

    Both topic and id may have dashes: the length of the id decides where it starts.
    """
    found = _LOCAL_DIRECTORY.fullmatch(name)
    if found is None or int(found[2]) > MAX_PARTITION:
        return None
    return TieredPartition(found[1], found[3], int(found[2]))


def parse_topic_directory(name: str) -> tuple[str, str] | None:
    """Parse ``<topic>-<topic id>``, the part of an object's name before the partition; None for another name."""
    found = _TOPIC_DIRECTORY.fullmatch(name)
    return None if found is None else (found[1], found[2])
