"""Decoders of the slots of index files, and the rules for the number of slots that are entries.

An offset or time index is an array of equal slots without a header. A broker maps it at its full size, so a file
copied from a running or killed broker ends in slots of zeros, or of entries that were truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, overload

from seglog_format.errors import Location, UnsupportedVersionError
from seglog_format.layouts import (
    TRANSACTION_INDEX_ENTRY_LAYOUT,
)
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from seglog_format.model import AbortedTxn
    from seglog_format.packing import Packer
    from seglog_format.storage.byte_source import ByteSource

EntryT = TypeVar("EntryT")

CHUNK_SIZE: Final = 1 << 16
ZEROS: Final = bytes(CHUNK_SIZE)

TRANSACTION_INDEX_VERSION: Final = 0


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


def check_transaction_version(entries: Iterable[AbortedTxn], at: Location) -> None:
    """Refuse a transaction index with an entry whose version is not 0 (SEG-TXN-002)."""
    for slot, entry in enumerate(entries):
        if entry.version != TRANSACTION_INDEX_VERSION:
            start = at.shifted(slot * TRANSACTION_INDEX_ENTRY.size)
            location = start.at("version", *TRANSACTION_INDEX_ENTRY_LAYOUT.span("version"))
            raise UnsupportedVersionError(location, "SEG-TXN-002", expected="version 0", found=entry.version)
