"""Decoders of the root files of a log directory and of the quorum's state file (chapter 11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.parse import parse
from seglog_format.errors import CorruptIndexError, Location, UnsupportedVersionError
from seglog_format.record_model import CleanShutdown, MetaProperties, QuorumState
from seglog_format.schema import log_directory as schema
from seglog_format.schema.text import json_object, plain, properties

if TYPE_CHECKING:
    from construct import Container

META_PROPERTIES_VERSIONS: Final = (0, 1)
QUORUM_STATE_VERSIONS: Final = (0, 1)

NOWHERE: Final = Location()


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
    found = parse(schema.MetaProperties, data, at, requirement="SEG-LDR-005", error=CorruptIndexError)
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
    found = parse(schema.CleanShutdown, data, at, requirement="SEG-LDR-004", error=CorruptIndexError)
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
    found = parse(schema.QuorumState, data, at, requirement="SEG-LDR-006", error=CorruptIndexError)
    if found.data_version not in QUORUM_STATE_VERSIONS:
        where = at.at("data_version")
        raise UnsupportedVersionError(where, "SEG-LDR-006", expected="version 0 or 1", found=found.data_version)
    leader_id, leader_epoch, voted_id = (_number(found[name]) for name in ("leader_id", "leader_epoch", "voted_id"))
    directory_id = found.voted_directory_id if isinstance(found.voted_directory_id, str) else None
    return QuorumState(found.data_version, leader_id, leader_epoch, voted_id, _voter_ids(found), directory_id)


def _number(value: object) -> int:
    return value if isinstance(value, int) and schema.is_int64(value) else -1


def _voter_ids(found: Container[Any]) -> tuple[int, ...]:
    voters = found.current_voters if isinstance(found.current_voters, list) else []
    return tuple(_number(voter.get("voterId")) for voter in voters if isinstance(voter, dict))


def encode_clean_shutdown(state: CleanShutdown) -> bytes:
    """Encode `.kafka_cleanshutdown` as brokers do since 3.7; earlier ones left the file empty."""
    return json.dumps({"version": state.version, "brokerEpoch": state.broker_epoch}, separators=(",", ":")).encode()
