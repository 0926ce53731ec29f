"""Offset checkpoints of a log directory, read as brokers read them at start (chapter 51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.checkpoints import decode_offset_checkpoint
from seglog_format.errors import Location, SeglogError
from seglog_format.log.file_bytes import read_whole

if TYPE_CHECKING:
    from pathlib import Path


def read_offset_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition; empty where the file is missing or cannot be read (SEG-CKP-011).

    Where a partition has several entries the last one counts.
    """
    try:
        checkpoint = decode_offset_checkpoint(read_whole(path), Location(str(path)))
    except SeglogError:
        return {}
    return {(topic, partition): offset for topic, partition, offset in checkpoint.entries}
