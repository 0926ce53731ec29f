"""Decoder of producer snapshots by their declarations (chapter 50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from construct import Array

from seglog_format.codec.producer_snapshot import (
    DecodedSnapshot,
    check_count,
    check_size,
    check_version,
    require_crc,
)
from seglog_format.codec.reference.checksum import crc32c
from seglog_format.codec.reference.framing import model_of
from seglog_format.record_model import ProducerStateEntry
from seglog_format.schema.fields import position_of
from seglog_format.schema.producer_snapshot import ProducerSnapshotHeader
from seglog_format.schema.producer_snapshot import ProducerStateEntry as ProducerStateEntrySchema

if TYPE_CHECKING:
    from seglog_format.errors import Location
    from seglog_format.storage.byte_source import Buffer


def decode_producer_snapshot(data: Buffer, at: Location) -> DecodedSnapshot:
    """Decode one snapshot file, as `seglog_format.codec.producer_snapshot.decode_producer_snapshot` does.

    Args:
        data: the whole file.
        at: location of its first byte.

    Raises:
        TruncatedError: fewer than 10 bytes (SEG-PSN-003).
        UnsupportedVersionError: a version other than 1 (SEG-PSN-001).
        CorruptIndexError: the checksum is wrong, or the size does not match the count (SEG-PSN-002, SEG-PSN-003).
    """
    view, size = memoryview(data), ProducerSnapshotHeader.sizeof()
    check_size(view, at)
    header = ProducerSnapshotHeader.parse(view)
    check_version(header.version, at)
    checked = position_of(ProducerSnapshotHeader, "count")
    require_crc(header.crc, crc32c(view[checked:]), at)
    entries = view[size:]
    check_count(header.count, ProducerStateEntrySchema.sizeof(), entries, at)
    stored = Array(header.count, ProducerStateEntrySchema).parse(entries)
    return DecodedSnapshot(header.version, header.crc, tuple(model_of(entry, ProducerStateEntry) for entry in stored))
