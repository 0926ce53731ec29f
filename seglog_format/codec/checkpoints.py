"""Decoders and encoders of checkpoints, partition metadata and root files: text of lines (chapters 11 and 51)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.parse import parse
from seglog_format.errors import CorruptIndexError, Location, UnsupportedVersionError
from seglog_format.model import (
    CheckpointedOffset,
    CleanShutdown,
    EpochStart,
    LeaderEpochCheckpoint,
    MetaProperties,
    OffsetCheckpoint,
    PartitionMetadata,
    QuorumState,
)
from seglog_format.names import require_text
from seglog_format.schema import checkpoints as schema
from seglog_format.schema import log_directory
from seglog_format.schema.text import json_object, plain, properties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from construct import Container, Struct


CHECKPOINT_VERSION: Final = 0

NOWHERE: Final = Location()


def decode_offset_checkpoint(data: bytes | memoryview, at: Location = NOWHERE) -> OffsetCheckpoint:
    """Decode one of the offset checkpoints in the root of a log directory.

    Args:
        data: the whole file; an empty one has no entries (SEG-CKP-005).
        at: the file's name.

    Raises:
        UnsupportedVersionError: a version other than 0 (SEG-CKP-001).
        CorruptIndexError: the lines are not those of a checkpoint (SEG-CKP-002, SEG-CKP-003, SEG-CKP-004,
            SEG-CKP-013).
    """
    found = _parse(schema.OffsetCheckpoint, data, at)
    entries = tuple(CheckpointedOffset(plain(row.topic), row.partition, row.offset) for row in found.entries)
    return OffsetCheckpoint(found.version, entries)


def decode_leader_epoch_checkpoint(data: bytes | memoryview, at: Location = NOWHERE) -> LeaderEpochCheckpoint:
    """Decode the leader epoch checkpoint of a partition.

    Args:
        data: the whole file; an empty one has no entries (SEG-CKP-005).
        at: the file's name.

    Raises:
        UnsupportedVersionError: a version other than 0 (SEG-CKP-001).
        CorruptIndexError: the lines are not those of a checkpoint (SEG-CKP-002, SEG-CKP-003, SEG-CKP-004).
    """
    found = _parse(schema.LeaderEpochCheckpoint, data, at)
    return LeaderEpochCheckpoint(found.version, tuple(EpochStart(row.epoch, row.start_offset) for row in found.entries))


def _parse(declaration: Struct, data: bytes | memoryview, at: Location) -> Any:  # noqa: ANN401 - a container
    version = parse(schema.CheckpointVersion, data, at, requirement="SEG-CKP-001", error=CorruptIndexError).version
    if version != CHECKPOINT_VERSION:
        raise UnsupportedVersionError(at.at("version"), "SEG-CKP-001", expected="version 0", found=version)
    found = parse(declaration, data, at, requirement="SEG-CKP-003", error=CorruptIndexError)
    if len(found.entries) != found.entry_count:
        expected = f"a count of the {len(found.entries)} lines that follow"
        where = at.at("entry_count", _end_of_first_line(data))
        raise CorruptIndexError(where, "SEG-CKP-002", expected=expected, found=found.entry_count)
    return found


def _end_of_first_line(data: bytes | memoryview) -> int:
    end = re.search(rb"\r\n|\r|\n", data)
    return end.end() if end else len(data)


def decode_partition_metadata(data: bytes | memoryview, at: Location = NOWHERE) -> PartitionMetadata:
    """Decode `partition.metadata`.

    Args:
        data: the whole file; anything after the second line is ignored.
        at: the file's name.

    Raises:
        CorruptIndexError: the first two lines are invalid (SEG-CKP-009).
    """
    found = parse(schema.PartitionMetadata, data, at, requirement="SEG-CKP-009", error=CorruptIndexError)
    return PartitionMetadata(found.version, plain(found.topic_id))


def encode_offset_checkpoint(entries: Iterable[CheckpointedOffset]) -> bytes:
    """Encode an offset checkpoint with these lines, in this order.

    Raises:
        FormatError: a topic has no name in UTF-8 (SEG-PDR-002).
    """
    lines = []
    for entry in entries:
        require_text(entry.topic, NOWHERE)
        lines.append(f"{entry.topic} {entry.partition} {entry.offset}")
    return _checkpoint(lines)


def encode_leader_epoch_checkpoint(entries: Iterable[EpochStart]) -> bytes:
    """Encode a leader epoch checkpoint with these lines, in this order."""
    return _checkpoint([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def _checkpoint(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(lines), *lines)).encode("utf-8")


def encode_partition_metadata(topic_id: str) -> bytes:
    """Encode `partition.metadata`; no line end follows the last line.

    Args:
        topic_id: 22 characters of base64url.
    """
    return f"version: {CHECKPOINT_VERSION}\ntopic_id: {topic_id}".encode()


# -- decoders of the root files of a log directory and of the quorum's state file (chapter 11) ------------------------


META_PROPERTIES_VERSIONS: Final = (0, 1)
QUORUM_STATE_VERSIONS: Final = (0, 1)


def decode_meta_properties(data: bytes | memoryview, at: Location = NOWHERE) -> MetaProperties:
    """Decode `meta.properties`.

    Args:
        data: the whole file.
        at: the file's name.

    Raises:
        UnsupportedVersionError: a version other than 0 and 1.
        CorruptIndexError: the file is not a Java properties file, has an invalid number, or is of version 1 without
            `cluster.id` or `node.id`. All of these name SEG-LDR-005.
    """
    pairs = properties(bytes(data))
    if pairs is None:
        raise CorruptIndexError(at.at("escape"), "SEG-LDR-005", expected="\\u and four hex digits", found="fewer")
    found = parse(log_directory.MetaProperties, data, at, requirement="SEG-LDR-005", error=CorruptIndexError)
    if found.version not in META_PROPERTIES_VERSIONS:
        raise UnsupportedVersionError(at.at("version"), "SEG-LDR-005", expected="version 0 or 1", found=found.version)
    if found.version == 1 and (found.cluster_id is None or found.node_id is None):
        raise CorruptIndexError(at.at("version"), "SEG-LDR-005", expected="cluster.id and node.id", found="one missing")
    return MetaProperties(
        version=found.version,
        cluster_id=_text(found.cluster_id),
        node_id=found.broker_id if found.version == 0 else found.node_id,
        directory_id=_text(found.directory_id),
        properties=tuple(pairs),
    )


def _text(value: str | None) -> str | None:
    return None if value is None else plain(value)


def decode_clean_shutdown(data: bytes | memoryview, at: Location = NOWHERE) -> CleanShutdown:
    """Decode `.kafka_cleanshutdown`, whose presence matters more than its content (SEG-LDR-003).

    Args:
        data: the whole file; up to 3.6 it is empty.
        at: the file's name.

    Raises:
        CorruptIndexError: neither empty nor a JSON object, as brokers write it since 3.7 (SEG-LDR-004).
    """
    if not data:
        return CleanShutdown()
    if json_object(bytes(data)) is None:
        raise CorruptIndexError(at, "SEG-LDR-004", expected="nothing or a JSON object", found="something else")
    found = parse(log_directory.CleanShutdown, data, at, requirement="SEG-LDR-004", error=CorruptIndexError)
    return CleanShutdown(found.version, found.broker_epoch)


def decode_quorum_state(data: bytes | memoryview, at: Location = NOWHERE) -> QuorumState:
    """Decode `quorum-state`.

    Args:
        data: the whole file.
        at: the file's name.

    Raises:
        UnsupportedVersionError: a `data_version` other than 0 and 1.
        CorruptIndexError: not a JSON object with a `data_version`. Both name SEG-LDR-006.
    """
    if json_object(bytes(data)) is None:
        raise CorruptIndexError(at, "SEG-LDR-006", expected="a JSON object", found="something else")
    found = parse(log_directory.QuorumState, data, at, requirement="SEG-LDR-006", error=CorruptIndexError)
    if found.data_version not in QUORUM_STATE_VERSIONS:
        where = at.at("data_version")
        raise UnsupportedVersionError(where, "SEG-LDR-006", expected="version 0 or 1", found=found.data_version)
    leader_id, leader_epoch, voted_id = (_number(found[name]) for name in ("leader_id", "leader_epoch", "voted_id"))
    directory_id = found.voted_directory_id if isinstance(found.voted_directory_id, str) else None
    return QuorumState(found.data_version, leader_id, leader_epoch, voted_id, _voter_ids(found), directory_id)


def _number(value: object) -> int:
    return value if isinstance(value, int) and log_directory.is_int64(value) else -1


def _voter_ids(found: Container[Any]) -> tuple[int, ...]:
    voters = found.current_voters if isinstance(found.current_voters, list) else []
    return tuple(_number(voter.get("voterId")) for voter in voters if isinstance(voter, dict))


def encode_clean_shutdown(state: CleanShutdown) -> bytes:
    """Encode `.kafka_cleanshutdown` as brokers do since 3.7; earlier ones left the file empty."""
    return json.dumps({"version": state.version, "brokerEpoch": state.broker_epoch}, separators=(",", ":")).encode()
