"""Offset checkpoints of a log directory, read as brokers read them at start (chapter 51)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.simple_checkpoints import simple_offsets
from seglog_format.errors import Location, SeglogError
from seglog_format.names import FileKind
from seglog_format.storage.log_storage import LOCAL, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.storage.log_storage import LogStorage


def read_offset_checkpoint(path: Path, storage: LogStorage = LOCAL) -> dict[tuple[str, int], int]:
    """Return offsets by topic and partition; empty if the file is missing or unreadable (SEG-CKP-011).

    If a partition has several entries, the last entry counts.
    """
    try:
        data = read_file(storage, path)
        found = simple_offsets(data)
        return _offsets(data, path) if found is None else found
    except SeglogError:
        return {}


def checkpointed_offset(partition: PartitionListing, kind: FileKind) -> int | None:
    """Return the offset of a partition in a checkpoint of the log directory above; None if there is none.

    Args:
        partition: listing of its directory.
        kind: which checkpoint.
    """
    if partition.name is None:
        return None
    directory = partition.path.absolute() if partition.storage.is_local else partition.path
    checkpoint = read_offset_checkpoint(directory.parent / kind.value, partition.storage)
    return checkpoint.get(partition.name.topic_partition)


REACHED: Final = (
    FileKind.REPLICATION_OFFSET_CHECKPOINT,
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.CLEANER_OFFSET_CHECKPOINT,
    FileKind.LOG_START_OFFSET_CHECKPOINT,
)
"""Checkpoints that have no offset above the end that the log had (SEG-CKP-012)."""


def reached_offsets(partition: PartitionListing) -> dict[FileKind, int | None]:
    """Return the offset of a partition in each checkpoint of `REACHED` in the log directory above."""
    return {kind: checkpointed_offset(partition, kind) for kind in REACHED}


def greatest(offsets: Iterable[int | None]) -> int:
    """Return the greatest offset that a log had reached by its checkpoints; 0 without any."""
    return max((each or 0 for each in offsets), default=0)


def _offsets(data: bytes, path: Path) -> dict[tuple[str, int], int]:
    from seglog_format.codec.checkpoints import decode_offset_checkpoint  # noqa: PLC0415 - rarely needed

    checkpoint = decode_offset_checkpoint(data, Location(str(path)))
    return {(topic, partition): offset for topic, partition, offset in checkpoint.entries}
