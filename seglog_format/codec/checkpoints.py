"""Decoders and encoders of checkpoint files and partition metadata (chapter 51)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.parse import parse
from seglog_format.errors import CorruptIndexError, Location, UnsupportedVersionError
from seglog_format.names import require_text
from seglog_format.record_model import (
    CheckpointedOffset,
    EpochStart,
    LeaderEpochCheckpoint,
    OffsetCheckpoint,
    PartitionMetadata,
)
from seglog_format.schema import checkpoints as schema
from seglog_format.schema.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from construct import Struct

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
