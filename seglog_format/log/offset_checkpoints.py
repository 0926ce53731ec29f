"""Offset checkpoints of a log directory, read as brokers read them at start (chapter 51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.quick_checkpoints import quick_offsets
from seglog_format.errors import Location, SeglogError
from seglog_format.log.file_bytes import read_whole

if TYPE_CHECKING:
    from pathlib import Path


def read_offset_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition; empty where the file is missing or cannot be read (SEG-CKP-011).

    Where a partition has several entries the last one counts.
    """
    try:
        data = read_whole(path)
        found = quick_offsets(data)
        return _offsets(data, path) if found is None else found
    except SeglogError:
        return {}


def _offsets(data: bytes, path: Path) -> dict[tuple[str, int], int]:
    from seglog_format.codec.checkpoints import decode_offset_checkpoint  # noqa: PLC0415 - brokers' files do without

    checkpoint = decode_offset_checkpoint(data, Location(str(path)))
    return {(topic, partition): offset for topic, partition, offset in checkpoint.entries}
