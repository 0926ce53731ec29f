"""Decoder and encoder of producer snapshots (chapter 50), and decoder of transaction indexes (chapter 42)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.index_entries import check_transaction_version
from seglog_format.errors import CorruptIndexError, Location, TruncatedError, UnsupportedVersionError
from seglog_format.layouts import PRODUCER_SNAPSHOT_HEADER_LAYOUT, PRODUCER_STATE_ENTRY_LAYOUT
from seglog_format.model import AbortedTxn
from seglog_format.record_model import ProducerStateEntry
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable

PRODUCER_SNAPSHOT_VERSION: Final = 1

PRODUCER_SNAPSHOT_HEADER: Final = PRODUCER_SNAPSHOT_HEADER_LAYOUT.packer("version", "crc", "count")
PRODUCER_STATE_ENTRY: Final = PRODUCER_STATE_ENTRY_LAYOUT.packer_of(ProducerStateEntry)
CHECKED_POSITION: Final = PRODUCER_SNAPSHOT_HEADER_LAYOUT.end("crc")
"""Position of the first byte that the checksum covers (SEG-PSN-002)."""


@dataclass(frozen=True, slots=True)
class DecodedSnapshot:
    """A snapshot's content: version and checksum as stored, producers in file order."""

    version: int
    crc: int
    producers: tuple[ProducerStateEntry, ...]


def check_size(data: memoryview, at: Location) -> None:
    """Refuse a file that is smaller than the header (SEG-PSN-003)."""
    if data.nbytes < PRODUCER_SNAPSHOT_HEADER.size:
        raise TruncatedError(at.at("", 0, data.nbytes), "SEG-PSN-003", expected="10 bytes or more", found=data.nbytes)


def check_version(version: int, at: Location) -> None:
    """Refuse a version other than 1 (SEG-PSN-001)."""
    if version != PRODUCER_SNAPSHOT_VERSION:
        raise UnsupportedVersionError(_field(at, "version"), "SEG-PSN-001", expected="version 1", found=version)


def require_crc(stored: int, computed: int, at: Location) -> None:
    """Refuse a file whose stored checksum differs from the computed one (SEG-PSN-002)."""
    if computed != stored:
        location = _field(at, "crc")
        raise CorruptIndexError(location, "SEG-PSN-002", expected=f"{computed:08x}", found=f"{stored:08x}")


def check_count(count: int, entry_size: int, entries: memoryview, at: Location) -> None:
    """Refuse a count of entries that does not match the size of their bytes (SEG-PSN-003)."""
    if count * entry_size != entries.nbytes:
        expected = f"a count for {entries.nbytes} bytes of entries"
        raise CorruptIndexError(_field(at, "count"), "SEG-PSN-003", expected=expected, found=count)


def _field(at: Location, name: str) -> Location:
    return at.at(name, *PRODUCER_SNAPSHOT_HEADER_LAYOUT.span(name))


def encode_producer_snapshot(producers: Iterable[ProducerStateEntry]) -> bytes:
    """Encode a snapshot of these producers, in this order."""
    entries = [PRODUCER_STATE_ENTRY.pack(*astuple(producer)) for producer in producers]
    unsealed = PRODUCER_SNAPSHOT_HEADER.pack(PRODUCER_SNAPSHOT_VERSION, 0, len(entries)) + b"".join(entries)
    crc = crc32c(unsealed[CHECKED_POSITION:])
    header = PRODUCER_SNAPSHOT_HEADER.pack(PRODUCER_SNAPSHOT_VERSION, crc, len(entries))
    return header + unsealed[len(header) :]


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
