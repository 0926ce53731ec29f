"""Hand-written decoders of transaction indexes (chapter 42) and producer snapshots (chapter 50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.index_entries import check_transaction_version
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
from seglog_format.model import AbortedTxn
from seglog_format.record_model import ProducerStateEntry
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

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


def decode_transaction_index(data: bytes | memoryview, at: Location) -> tuple[AbortedTxn, ...]:
    """Decode a transaction index; bytes after the last whole entry are ignored (SEG-TXN-001).

    Raises:
        UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
    """
    view = memoryview(data)
    whole = view[: view.nbytes - view.nbytes % TRANSACTION_INDEX_ENTRY.size]
    entries = tuple(AbortedTxn(*fields) for fields in TRANSACTION_INDEX_ENTRY.iter_unpack(whole))
    check_transaction_version(entries, at)
    return entries
