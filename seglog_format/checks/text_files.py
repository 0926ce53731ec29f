"""Verification of checkpoints and other text files. The decoders of chapters 11 and 51 report syntax errors."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from seglog_format.checks.checkpoints import EpochCheckpoint, PartitionOffsets
from seglog_format.checks.finding import Finding, findings_of
from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
)
from seglog_format.codec.properties import decode_clean_shutdown, decode_meta_properties, decode_quorum_state
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.storage.file_bytes import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.record_model import CheckpointedOffset

DECODERS: Final[dict[FileKind, Callable[[bytes, Location], Any]]] = {
    **dict.fromkeys(OFFSET_CHECKPOINT_KINDS, decode_offset_checkpoint),
    FileKind.LEADER_EPOCH_CHECKPOINT: decode_leader_epoch_checkpoint,
    FileKind.PARTITION_METADATA: decode_partition_metadata,
    FileKind.META_PROPERTIES: decode_meta_properties,
    FileKind.CLEAN_SHUTDOWN: decode_clean_shutdown,
    FileKind.QUORUM_STATE: decode_quorum_state,
}


def text_file_findings(path: Path, kind: FileKind) -> Iterator[Finding]:
    """Yield all findings about one text file; none for kinds without a grammar."""
    decode = DECODERS.get(kind)
    if decode is None:
        return
    try:
        content = decode(read_whole(path), Location(str(path)))
    except FormatError as error:
        yield Finding.of_error(error)
        return
    if kind in OFFSET_CHECKPOINT_KINDS:
        yield from findings_of(PartitionOffsets(str(path), content.entries))
    elif kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        yield from findings_of(EpochCheckpoint(str(path), content.entries))


def read_partition_offsets(path: Path) -> PartitionOffsets | None:
    """Read an offset checkpoint; return None if it is missing or unreadable (reported by `text_file_findings`)."""
    try:
        return PartitionOffsets(str(path), _entries(read_whole(path)))
    except SeglogError:
        return None


@lru_cache(maxsize=len(OFFSET_CHECKPOINT_KINDS))
def _entries(checkpoint: bytes) -> tuple[CheckpointedOffset, ...]:
    """Return the entries of a checkpoint; who checks each partition of a log directory alone asks for the same ones."""
    return decode_offset_checkpoint(checkpoint).entries
