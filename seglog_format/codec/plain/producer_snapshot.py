"""Hand-written decoder of producer snapshots (chapter 50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.producer_snapshot import (
    CHECKED_POSITION,
    PRODUCER_SNAPSHOT_HEADER,
    PRODUCER_STATE_ENTRY,
    DecodedSnapshot,
    check_count,
    check_size,
    check_version,
    require_crc,
)
from seglog_format.record_model import ProducerStateEntry

if TYPE_CHECKING:
    from seglog_format.errors import Location


def decode_producer_snapshot(data: bytes | memoryview, at: Location) -> DecodedSnapshot:
    """Decode one snapshot file.

    Raises:
        TruncatedError: fewer than 10 bytes (SEG-PSN-003).
        UnsupportedVersionError: a version other than 1 (SEG-PSN-001).
        CorruptIndexError: the checksum is wrong, or the size does not match the count (SEG-PSN-002, SEG-PSN-003).
    """
    view = memoryview(data)
    check_size(view, at)
    version, crc, count = PRODUCER_SNAPSHOT_HEADER.unpack_from(view)
    check_version(version, at)
    require_crc(crc, crc32c(view[CHECKED_POSITION:]), at)
    entries = view[PRODUCER_SNAPSHOT_HEADER.size :]
    check_count(count, PRODUCER_STATE_ENTRY.size, entries, at)
    producers = tuple(ProducerStateEntry(*fields) for fields in PRODUCER_STATE_ENTRY.iter_unpack(entries))
    return DecodedSnapshot(version, crc, producers)
