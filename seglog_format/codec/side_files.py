"""Producer snapshots (chapter 50), transaction indexes (chapter 42), and the slots of offset and time indexes.

An offset or time index is an array of equal slots without a header. A broker maps it at its full size, so a file
copied from a running or killed broker ends in slots of zeros, or of entries that were truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final, TypeVar, overload

from seglog_format.codec.checksum import crc32c
from seglog_format.errors import CorruptIndexError, Location, TruncatedError, UnsupportedVersionError
from seglog_format.layouts import (
    PRODUCER_SNAPSHOT_HEADER_LAYOUT,
    PRODUCER_STATE_ENTRY_LAYOUT,
    TRANSACTION_INDEX_ENTRY_LAYOUT,
)
from seglog_format.model import AbortedTxn, ProducerStateEntry
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from seglog_format.packing import Packer
    from seglog_format.storage.byte_source import ByteSource

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


# -- transaction indexes -----------------------------------------------------------------------------------------------


TRANSACTION_INDEX_VERSION: Final = 0


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


def check_transaction_version(entries: Iterable[AbortedTxn], at: Location) -> None:
    """Refuse a transaction index with an entry whose version is not 0 (SEG-TXN-002)."""
    for slot, entry in enumerate(entries):
        if entry.version != TRANSACTION_INDEX_VERSION:
            start = at.shifted(slot * TRANSACTION_INDEX_ENTRY.size)
            location = start.at("version", *TRANSACTION_INDEX_ENTRY_LAYOUT.span("version"))
            raise UnsupportedVersionError(location, "SEG-TXN-002", expected="version 0", found=entry.version)


# -- slots of offset and time indexes, and the rules for the number of slots that are entries --------------------------


EntryT = TypeVar("EntryT")

CHUNK_SIZE: Final = 1 << 16
ZEROS: Final = bytes(CHUNK_SIZE)


class Slots(Sequence[EntryT]):
    """The first ``count`` slots of an index file, each decoded on access."""

    def __init__(self, source: ByteSource, layout: Packer, decode: Callable[[int, int], EntryT], count: int) -> None:
        self._source = source
        self._layout = layout
        self._decode = decode
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> EntryT: ...
    @overload
    def __getitem__(self, index: slice) -> list[EntryT]: ...
    def __getitem__(self, index: int | slice) -> EntryT | list[EntryT]:
        if isinstance(index, slice):
            return [self._entry(slot) for slot in range(self._count)[index]]
        return self._entry(range(self._count)[index])

    def _entry(self, slot: int) -> EntryT:
        position = slot * self._layout.size
        return self._decode(*self._layout.unpack_from(self._source.view(position, position + self._layout.size)))

    def __iter__(self) -> Iterator[EntryT]:
        for fields in slot_fields(self._source, self._layout, self._count):
            yield self._decode(*fields)


def slot_fields(source: ByteSource, layout: Packer, count: int) -> Iterator[tuple[int, int]]:
    """Yield the two numbers of each of the first slots, in order."""
    position, end = 0, count * layout.size
    while position < end:
        start, data = source.window(position, layout.size)
        known = min(start + len(data), end)
        whole = known - (known - position) % layout.size
        yield from layout.iter_unpack(data[position - start : whole - start])
        position = whole


def trailing_zero_size(source: ByteSource, size: int) -> int:
    """Return the number of zero bytes at the end of the first ``size`` bytes; fast even for megabytes."""
    end = size
    while end:
        start = max(0, end - CHUNK_SIZE)
        chunk = bytes(source.view(start, end))
        if chunk != ZEROS[: end - start]:
            return size - start - len(chunk.rstrip(b"\0"))
        end = start
    return size


def usable_offset_slots(fields: Iterable[tuple[int, int]]) -> int:
    """Return the number of slots of an offset index that are entries (SEG-IDX-010).

    Args:
        fields: relative offset and position of each slot, in order.
    """
    last_offset = -1
    count = 0
    for relative_offset, _ in fields:
        if relative_offset <= last_offset:
            break
        last_offset = relative_offset
        count += 1
    return count


def usable_time_slots(fields: Iterable[tuple[int, int]]) -> int:
    """Return the number of slots of a time index that are entries (SEG-TIX-009).

    Args:
        fields: timestamp in milliseconds and relative offset of each slot, in order.
    """
    last_timestamp_ms, last_offset = -1, 0
    count = 0
    for timestamp_ms, relative_offset in fields:
        if timestamp_ms <= last_timestamp_ms or relative_offset < last_offset:
            break
        last_timestamp_ms, last_offset = timestamp_ms, relative_offset
        count += 1
    return count
